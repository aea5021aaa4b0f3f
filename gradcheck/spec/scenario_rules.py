"""Rules that relate several objects of a scenario: matrix, worlds, backends. They apply to
scenarios whose single values are valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gradcheck.spec import value_rules
from gradcheck.spec.code_rules import find_program_mistakes, find_unused_parameters
from gradcheck.spec.containers import variables
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.expect_rules import find_expect_mistakes
from gradcheck.spec.input_rules import (
    find_alias_mistakes,
    find_input_mistakes,
    find_unknown_sizes,
    rank_sizes,
)
from gradcheck.spec.literals import MOST_RANKS
from gradcheck.spec.model import MAX_COMBINATIONS, Scenario, is_static
from gradcheck.spec.subject import find_subject_mistakes
from gradcheck.spec.violation import Violation, below


def find_scenario_mistakes(scenario: Scenario, framework: str) -> Iterator[Violation]:
    """Yield the mistakes in a scenario; if there are none, reasons why it could not check
    anything.

    `framework` is empty if the file has unknown keys.
    """
    mistakes = list(_find_mistakes(scenario, framework))
    yield from mistakes or (find_subject_mistakes(scenario) if framework else ())


def _find_mistakes(scenario: Scenario, framework: str) -> Iterator[Violation]:
    yield from find_program_mistakes(scenario, framework)
    unknown_sizes = list(find_unknown_sizes(scenario))
    yield from unknown_sizes
    for name in scenario.inputs:
        yield from find_input_mistakes(name, scenario)
    yield from find_alias_mistakes(scenario.inputs, in_world=bool(world_path(scenario)))
    yield from find_name_mistakes(scenario)
    yield from find_world_mistakes(scenario)
    if not unknown_sizes:
        yield from find_unused_parameters(scenario)
    for path, expect in scenario.expectations():
        yield from below(path, find_expect_mistakes(expect, scenario))


def world_path(scenario: Scenario) -> DataPath:
    """Return the key that puts a scenario in a world; () if it is in none."""
    if scenario.world is not None:
        return ("world",)
    return ("matrix", "world") if "world" in scenario.matrix else ()


def find_name_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield names that are given twice, and too many combinations of the matrix."""
    inputs = variables(scenario.inputs)
    taken = {"kwargs": inputs, "matrix": inputs, "sizes": [*inputs, *scenario.matrix]}
    for section, names in taken.items():
        for name in getattr(scenario, section).keys() & {*names}:
            message = f"{section}: {quote(name)} is already the name of something else"
            is_length = section == "sizes" and name in scenario.matrix
            help = "remove" if is_length or section == "kwargs" else "rename"
            yield Violation((section, name), message, f"{help} one of the two", at_key=True)
    count = prod(len(values) for values in scenario.matrix.values())
    if count > MAX_COMBINATIONS:
        message = f"the matrix has {count:,} combinations, at most {MAX_COMBINATIONS} are allowed"
        yield Violation(("matrix",), message, "split the scenario", at_key=True)


# --------------------------------------------------------------------------- worlds
def find_world_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield mistakes of a world, and keys of worlds in a scenario without one."""
    path = world_path(scenario)
    if not path:
        yield from _find_keys_of_worlds(scenario)
        return
    yield from _find_impossible_worlds(scenario, path)
    for name, input in scenario.inputs.items():
        if input.values is None:
            continue
        length = value_rules.shape_of(input.values)[:1]
        for size in rank_sizes(scenario, input):
            if length != (size,):
                message = f"input {quote(name)} is split: its values need a first axis of length "
                help = "list the values of each rank, or write 'ranks: replicated'"
                path = ("inputs", name, "values")
                yield Violation(path, f"{message}{size}, with an entry for each rank", help)
                break


def _find_keys_of_worlds(scenario: Scenario) -> Iterator[Violation]:
    """Yield keys that have a meaning only in a world."""
    paths: list[DataPath] = [(key,) for key in scenario.written & {"outputs", "random"}]
    for name, input in scenario.inputs.items():
        if "ranks" in input.written:
            paths.append(("inputs", name, "ranks"))
    for path in paths:
        help = "give the number of ranks, such as 'world: 4', or remove it"
        yield Violation(path, f"'{path[-1]}' has no effect without a world", help, at_key=True)


def _find_impossible_worlds(scenario: Scenario, path: DataPath) -> Iterator[Violation]:
    """Yield violations for a world that is given twice or too large, and for keys that are not
    supported with a world.
    """
    ranks = max(scenario.world_sizes)
    if scenario.world is not None and "world" in scenario.matrix:
        message = "both the matrix and the scenario give a world"
        yield Violation(path, message, "keep one of the two", at_key=True)
    if ranks > MOST_RANKS:
        message = f"the world has {ranks:,} ranks, at most {MOST_RANKS} are allowed"
        yield Violation(path, message, "a mistake shows on 2, 3 or 4 ranks")
    if scenario.script is not None:
        message = "a script does not run in a world: only a 'layer' does"
        help = "write the program's layer as 'layer', with 'inputs', or remove the world"
        yield Violation(path, message, help, at_key=True)
    elif is_static(scenario.layer):
        message = "a static layer (forward_fn) does not run in a world"
        help = "write the layer as a PyLayer, or remove the world"
        yield Violation(path, message, help, at_key=True)
    for expect_path, expect in scenario.expectations():
        if expect.order == 2:
            help = "remove it: in a world only the derivative is checked"
            message = "'order: 2' is not supported with a world"
            yield Violation((*expect_path, "order"), message, help, at_key=True)
