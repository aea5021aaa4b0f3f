"""Rules for sizes: what names in shapes stand for, which of them are drawn, and what goes with drawing them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradcheck.spec.backend_rules import all_expectations
from gradcheck.spec.containers import variables
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.input_rules import check_name, sizes_named
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node, copy, describe
from gradcheck.spec.world_rules import world_key

FREE = re.compile("[A-Z]")
"""A size that is drawn."""
_HELD = ("grads", "values", "calls", "warns", "raises", "differs", "cotangent")
"""Keys of an expectation that hold at the inputs that a scenario gives."""


def parameters_of(scenario: Node) -> Node:
    """The matrix with the sizes among its parameters, each of one value; free ones have none."""
    whole = copy(scenario.mapping("matrix"))
    for name, (key, value) in scenario.mapping("sizes").entries.items():
        length = isinstance(value.value, int) and value.value is not True and value.value >= 0
        values = Node("sequence" if length else "unreadable", value.line, value.column, items=[value] * length)
        whole.entries.setdefault(name, (key, values))
    for size in free_sizes(scenario):
        whole.entries.setdefault(size.text, (size, Node("unreadable", size.line, size.column)))
    return whole


def free_sizes(scenario: Node) -> Iterator[Node]:
    """The sizes that are drawn, everywhere that they stand."""
    known = {*scenario.mapping("matrix").entries, *scenario.mapping("sizes").entries}
    for _, input in scenario.mapping("inputs").entries.values() if "explore" in scenario.entries else ():
        yield from (size for size in sizes_named(input) if size.text not in known and FREE.fullmatch(size.text))


def check_sizes(scenario: Node, text: SpecText) -> None:
    """Report sizes whose names are taken or no names, and such as are no whole numbers."""
    inputs, matrix = variables(scenario.mapping("inputs").entries), scenario.mapping("matrix").entries
    for name, (key, value) in scenario.mapping("sizes").entries.items():
        check_name(key, "a size", text)
        taken = "an input" if name in inputs else "a parameter of the matrix" if name in matrix else ""
        if taken:
            text.report(*key.place, f"the size {quote(name)} has the name of {taken}", "remove one of the two")
        if value.kind == "sequence":
            message = f"the size {quote(name)} must be a whole number, not {describe(value)}"
            text.report(*value.place, message, "for several, use 'matrix'")
            value.kind = "unreadable"


def check_explore(scenario: Node, text: SpecText) -> None:
    """Report what does not go with a search for inputs."""
    if "explore" in scenario.entries and not scenario.incomplete and (found := next(unfit(scenario), None)):
        text.report(*scenario.at("explore"), *found)


def unfit(scenario: Node) -> Iterator[tuple[str, str]]:
    """Why a scenario cannot be explored, and what to do."""
    if "script" in scenario.entries:
        yield "'explore' draws the inputs of a layer, this is a script", "write the code as 'layer', with 'inputs'"
    if world_key(scenario) is not None:
        yield "'explore' is not done in a world", "remove it, or give 'sizes' in its place"
    for expect in all_expectations(scenario):
        help = "move it to a scenario with inputs of its own"
        yield from (
            (f"{quote(key)} holds at certain inputs, and 'explore' draws them", help)
            for key in _HELD
            if key in expect.entries
        )
        if (said := expect.string("gradient")) in ("unchecked", "differs"):
            yield f"'gradient: {said}' leaves 'explore' nothing to look for", "remove one of the two"
