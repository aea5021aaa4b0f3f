"""What rules ask of a scenario on the tree: its parts, and what follows from them, as far as they can be read there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import get_args

from gradcheck.spec.literals import DType
from gradcheck.spec.model import MOST_RANKS
from gradcheck.spec.tree import Node, copy

ELEMENT_TYPES = get_args(DType)
INTEGER_RANGE = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1), "uint8": (0, 2**8 - 1), "bool": (0, 1),
}  # fmt: skip
"""The least and the most that the dtypes without a gradient hold."""
FREE = re.compile("[A-Z]")
"""A size that is drawn."""


# --------------------------------------------------------------------------- expectations
def backend_entries(scenario: Node) -> Iterator[list[Node]]:
    """For each backend that a scenario speaks of, what it says of its versions."""
    for _, value in scenario.under("backends").values():
        yield [one for one in (value.items or [value]) if one.kind == "mapping"]


def all_expectations(scenario: Node) -> list[Node]:
    """What a scenario expects, and what it says of each backend: expectations and observations."""
    entries = [entry for entries in backend_entries(scenario) for entry in entries]
    found = [scenario.get("expect"), *(entry.get(key) for entry in entries for key in ("expect", "observed"))]
    return [one for one in found if one is not None]


def default_verdict(scenario: Node, defaults: Node) -> str:
    """What the gradient check is expected to say where a scenario does not tell."""
    is_layer = "layer" in scenario.entries and "script" not in scenario.entries
    return "matches" if is_layer and differentiable(scenario, defaults) else "unchecked"


# --------------------------------------------------------------------------- inputs
def default_dtype(defaults: Node) -> str:
    """The dtype of inputs that give none."""
    dtype = defaults.string("dtype")
    return dtype if dtype and dtype in ELEMENT_TYPES else "float64"


def dtypes_of(scenario: Node, input: Node, defaults: Node) -> list[str]:
    """The dtypes that an input takes over the matrix."""
    if own := input.string("dtype"):
        return [own]
    several = [str(item.value) for item in scenario.mapping("matrix").listed("dtype") if item.value in ELEMENT_TYPES]
    return several or [default_dtype(defaults)]


def differentiable(scenario: Node, defaults: Node) -> set[str]:
    """The inputs that have a gradient, for one of their dtypes."""
    inputs = {name: value for name, (_, value) in scenario.under("inputs").items() if not is_stopped(value)}
    return {name for name, one in inputs.items() if not INTEGER_RANGE.keys() >= {*dtypes_of(scenario, one, defaults)}}


def is_stopped(input: Node) -> bool:
    """Whether an input takes part without a gradient."""
    stopped = input.get("stop_gradient")
    return stopped is not None and stopped.value is True


def shape_of(node: Node) -> tuple[int, ...]:
    """The shape of nested lists, by the first entry of each."""
    return (len(node.items), *(shape_of(node.items[0]) if node.items else ())) if node.kind == "sequence" else ()


def input_shape(input: Node) -> tuple[int, ...] | None:
    """The shape an input will have; None where it has none that could be read."""
    if "values" in input.entries:
        return shape_of(input.entries["values"][1])
    shape = None if "from" in input.entries else input.get("shape")
    lengths = tuple(item.value for item in shape.items if isinstance(item.value, int)) if shape else ()
    return lengths if shape and shape.kind == "sequence" and len(lengths) == len(shape.items) else None


# --------------------------------------------------------------------------- sizes
def sizes_named(input: Node) -> list[Node]:
    """The sizes in an input's shape that are names of parameters."""
    return [one for one in input.listed("shape") if isinstance(one.value, str) and one.value.isidentifier()]


def parameters_of(scenario: Node) -> Node:
    """The matrix with the sizes among its parameters, each of one value; sizes that are drawn have none."""
    whole, sizes = copy(scenario.mapping("matrix")), scenario.under("sizes")
    for name, (key, value) in sizes.items():
        length = isinstance(value.value, int) and value.value is not True and value.value >= 0
        values = Node("sequence" if length else "unreadable", value.line, value.column, items=[value] * length)
        whole.entries.setdefault(name, (key, values))
    for _, input in scenario.under("inputs").values() if "explore" in scenario.entries else ():
        for size in sizes_named(input):
            if FREE.fullmatch(size.text):
                whole.entries.setdefault(size.text, (size, Node("unreadable", size.line, size.column)))
    return whole


# --------------------------------------------------------------------------- worlds
def world_key(scenario: Node) -> Node | None:
    """The key that puts a scenario in a world; None if it is in none."""
    entry = scenario.entries.get("world") or scenario.under("matrix").get("world")
    return None if entry is None else entry[0]


def world_sizes(scenario: Node) -> list[int]:
    """The sizes that the world of a scenario has over the matrix, as far as they can be read; none without a world."""
    if "world" in scenario.under("matrix"):
        return [item.value for item in scenario.mapping("matrix").listed("world") if is_size(item)]  # type: ignore[misc]
    world = scenario.get("world")
    degrees = [value for _, value in world.entries.values()] or [world] if world is not None else []
    return [prod(one.value for one in degrees)] if degrees and all(map(is_size, degrees)) else []  # type: ignore[misc]


def is_size(node: Node) -> bool:
    """Whether a value is a number of ranks."""
    return isinstance(node.value, int) and node.value is not True and 1 <= node.value <= MOST_RANKS


def ranks_of(scenario: Node, input: Node) -> list[int]:
    """The lengths that the leading axis of an input has: none where it has no such axis, or they are not known."""
    return world_sizes(scenario) if (input.string("ranks") or "split") == "split" else []
