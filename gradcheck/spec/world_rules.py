"""Rules for scenarios in a world of ranks: what goes with one, and what needs one."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gradcheck.spec.backend_rules import all_expectations
from gradcheck.spec.code import is_static
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.text import Remark, SpecText
from gradcheck.spec.tree import Node
from gradcheck.spec.world import MOST_RANKS

SAY_HOW_MANY = "say how many ranks there are, such as 'world: 4', or remove it"


def world_key(scenario: Node) -> Node | None:
    """The key that puts a scenario in a world; None if it is in none."""
    entry = scenario.entries.get("world") or scenario.mapping("matrix").entries.get("world")
    return None if entry is None else entry[0]


def world_sizes(scenario: Node) -> list[int]:
    """The sizes that the world of a scenario has over the matrix, as far as they can be read; none without a world."""
    several = scenario.mapping("matrix").get("world")
    if several is not None:
        return [item.value for item in several.items if is_size(item)]  # type: ignore[misc]
    world = scenario.get("world")
    if world is None:
        return []
    degrees = [value for _, value in world.entries.values()]
    if not all(map(is_size, degrees or [world])):
        return []
    return [prod(one.value for one in degrees or [world])]  # type: ignore[misc]


def is_size(node: Node) -> bool:
    """Whether a value is a number of ranks."""
    return isinstance(node.value, int) and node.value is not True and 1 <= node.value <= MOST_RANKS


def ranks_of(scenario: Node, input: Node) -> list[int]:
    """The lengths that the leading axis of an input has: none where it has no such axis, or they are not known."""
    return world_sizes(scenario) if (input.string("ranks") or "split") == "split" else []


def check_world(scenario: Node, text: SpecText) -> None:
    """Report what does not go with a world, or needs one."""
    own, key = scenario.entries.get("world"), world_key(scenario)
    if own is not None and (of_matrix := scenario.mapping("matrix").entries.get("world")) is not None:
        message = f"both the matrix (line {of_matrix[0].line}) and the scenario give a world"
        text.report(*own[0].place, message, "keep one of the two")
    if own is not None and (count := prod(world_sizes(scenario))) > MOST_RANKS:
        message = f"the world has {count:,} ranks, at most {MOST_RANKS} are allowed"
        text.report(*own[1].place, message, "a mistake shows on 2, 3 or 4 ranks")
    outputs = scenario.get("outputs")
    if outputs is not None and outputs.kind == "sequence" and not outputs.items:
        text.report(*outputs.place, "outputs must not be empty", "write {ranks: replicated} for all, or one for each")
    found = needing(scenario) if key is None else excluded(scenario, key)
    text.report_all(found if not scenario.incomplete else ())
    for name, (_, input) in scenario.mapping("inputs").entries.items():
        values = input.get("values")
        for size in ranks_of(scenario, input) if values and values.kind != "unreadable" else ():
            if values and (values.kind != "sequence" or len(values.items) != size):
                entries = f"{len(values.items)} entr{'y' if len(values.items) == 1 else 'ies'}"
                has = entries if values.kind == "sequence" else "a number"
                message = (
                    f"input {quote(name)} is split over {size} rank{'s' * (size != 1)}, so its values have a first "
                    f"axis of that size, but here is {has}"
                )
                text.report(*values.place, message, "list the values of each rank, or write 'ranks: replicated'")
                break


def needing(scenario: Node) -> Iterator[Remark]:
    """What a scenario without a world says of one."""
    for name in ("outputs", "random"):
        if name in scenario.entries:
            yield scenario.at(name), f"{quote(name)} is of no use without a world", SAY_HOW_MANY
    for _, input in scenario.mapping("inputs").entries.values():
        if "ranks" in input.entries:
            yield input.at("ranks"), "'ranks' is of no use without a world", SAY_HOW_MANY


def excluded(scenario: Node, key: Node) -> Iterator[Remark]:
    """What a scenario in a world asks for, and is not done there."""
    layer = scenario.get("layer")
    if "script" in scenario.entries:
        help = "write the program's layer as 'layer', with 'inputs', or remove the world"
        yield key.place, "a script does not run in a world: only a 'layer' does", help
    elif layer is not None and is_static(layer.value):
        help = "write the layer as a PyLayer, or remove the world"
        yield key.place, "a static layer (forward_fn) does not run in a world", help
    for expect in all_expectations(scenario):
        if (order := expect.get("order")) is not None and order.value == 2:
            help = "remove it: in a world the derivative alone is checked"
            yield expect.at("order"), "'order: 2' is not done in a world", help
