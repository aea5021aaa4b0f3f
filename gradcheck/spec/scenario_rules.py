"""Rules of a scenario that relate several of its keys. They apply to scenarios whose values are of
the format.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from math import prod

from gradcheck.spec.code_rules import CodeRules
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.expect_rules import find_expect_mistakes
from gradcheck.spec.input_rules import (
    find_alias_mistakes,
    find_input_mistakes,
    find_size_mistakes,
    rank_sizes,
)
from gradcheck.spec.literals import MOST_RANKS
from gradcheck.spec.model import BackendExpectation, Observed, Scenario, is_static
from gradcheck.spec.subject import find_subject_mistakes
from gradcheck.spec.value_rules import name_mistakes, suggest
from gradcheck.spec.versions import is_range, shared
from gradcheck.spec.violation import Exclusion, Violation, below, find_broken, find_excluded
from gradcheck.support.resources import bundled_specs

MAX_COMBINATIONS = 256

_RULE_ID = re.compile(r"^ +- id: ([a-z0-9-]+)$", re.MULTILINE)  # of the catalogue
_BACKEND_EXCLUSIONS = (
    Exclusion(
        "skip", ("xfail", "observed"), "both {other!r} and {key!r} for one backend",
        "keep one: a case that is not run cannot fail",
    ),
    Exclusion(
        "xfail", ("observed",), "both {other!r} and {key!r} for one backend",
        "keep 'observed', which says in what way the case fails",
    ),
    Exclusion(
        "expect", ("observed",), "both {other!r} and {key!r} for one backend",
        "keep 'expect' if what it does is right, 'observed' if it is not",
    ),
    Exclusion(
        "reason", ("policy",), "both {other!r} and {key!r} for one backend",
        "keep 'policy', which has a reason of either side, if it is no mistake",
    ),
)  # fmt: skip


class ScenarioRules:
    """All rules of scenarios, as the reader applies them to one file."""

    def __init__(self) -> None:
        self.code = CodeRules()

    def find_mistakes(self, scenario: Scenario) -> Iterator[Violation]:
        """Yield what is wrong with a scenario, and if nothing is, that it can check nothing."""
        mistakes = list(self._mistakes(scenario))
        yield from mistakes or find_subject_mistakes(scenario, self.code)

    def _mistakes(self, scenario: Scenario) -> Iterator[Violation]:
        yield from self.code.find_program_mistakes(scenario)
        for name in scenario.inputs:
            yield from below(("inputs", name), name_mistakes(variable(name), "an input"))
            yield from below(("inputs", name), find_input_mistakes(name, scenario))
        yield from find_alias_mistakes(scenario.inputs, in_world=bool(world_path(scenario)))
        yield from find_matrix_mistakes(scenario)
        yield from find_size_mistakes(scenario)
        yield from find_label_mistakes(scenario)
        yield from find_world_mistakes(scenario)
        for backend in scenario.backends:
            yield from find_backend_mistakes(scenario, backend)
        yield from self.code.find_unused_parameters(scenario)
        for path, expect in scenario.expectations():
            yield from below(path, find_expect_mistakes(expect, scenario, self.code))


def world_path(scenario: Scenario) -> DataPath:
    """Return the key that puts a scenario in a world; () if it is in none."""
    if scenario.world is not None:
        return ("world",)
    return ("matrix", "world") if "world" in scenario.matrix else ()


# --------------------------------------------------------------------------- tags and rules
def find_label_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield tags that are words of a selection, and rules that the catalogue has not."""
    for index, tag in enumerate(scenario.tags):
        if tag in ("and", "or", "not"):
            help = "choose another word: 'and', 'or' and 'not' join tags in a selection"
            yield Violation(("tags", index), f"{quote(tag)} cannot be a tag", help)
    for index, rule in enumerate(scenario.rules):
        name, path = (
            (rule, ()) if isinstance(rule, str) else (next(iter(rule)), (next(iter(rule)),))
        )
        if name not in rule_ids():
            otherwise = "`gradcheck list rules` lists them; words of your own are 'tags'"
            help = suggest(name, rule_ids(), otherwise)
            yield Violation(
                ("rules", index, *path),
                f"there is no rule {quote(name)}",
                help,
                "key" if path else "value",
            )


@functools.cache
def rule_ids() -> list[str]:
    """Return the ids of the rule catalogue, which `gradcheck.conformance.catalogue` reads.

    To read all of it as YAML would take as long as the rest of `validate`.
    """
    files = sorted((bundled_specs() / "rules").glob("*.yaml"))
    return [id for file in files for id in _RULE_ID.findall(file.read_text(encoding="utf-8"))]


# --------------------------------------------------------------------------- matrix and sizes
def find_matrix_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield names of parameters and sizes that cannot be used, and too many combinations."""
    taken = dict.fromkeys(variables(scenario.inputs), "an input")
    for name in scenario.matrix:
        yield from below(("matrix", name), name_mistakes(name, "a matrix parameter"))
        if name in taken:
            message = f"matrix parameter {quote(name)} has the name of an input"
            yield Violation(("matrix", name), message, "rename one of the two", "key")
    count = prod(len(values) for values in scenario.matrix.values())
    if count > MAX_COMBINATIONS:
        message = f"the matrix has {count:,} combinations, at most {MAX_COMBINATIONS} are allowed"
        yield Violation(("matrix",), message, "split the scenario", "key")

    taken |= dict.fromkeys(scenario.matrix, "a parameter of the matrix")
    for name in scenario.sizes:
        yield from below(("sizes", name), name_mistakes(name, "a size"))
        if name in taken:
            message = f"the size {quote(name)} has the name of {taken[name]}"
            yield Violation(("sizes", name), message, "remove one of the two", "key")


# --------------------------------------------------------------------------- worlds
def find_world_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield what is wrong with a world, and what is said of a world that there is not."""
    if scenario.outputs == ():
        help = "write {ranks: replicated} for all, or one for each"
        yield Violation(("outputs",), "outputs must not be empty", help)
    path = world_path(scenario)
    if not path:
        yield from _world_keys_without_world(scenario)
        return
    yield from _impossible_worlds(scenario, path)
    for name, input in scenario.inputs.items():
        if input.values is None:
            continue
        length = len(input.values) if isinstance(input.values, tuple) else None
        for size in [size for size in rank_sizes(scenario, input) if size != length][:1]:
            entries = (
                "a number" if length is None else f"{length} entr{'y' if length == 1 else 'ies'}"
            )
            message = (
                f"input {quote(name)} is split over {size} rank{'s' * (size != 1)}, so its values "
                "have a first axis of "
                f"that size, but here is {entries}"
            )
            help = "list the values of each rank, or write 'ranks: replicated'"
            yield Violation(("inputs", name, "values"), message, help)


def _world_keys_without_world(scenario: Scenario) -> Iterator[Violation]:
    """Yield keys that have a meaning only in a world."""
    paths: list[DataPath] = [(key,) for key in ("outputs", "random") if key in scenario.written]
    paths += [
        ("inputs", name, "ranks") for name, one in scenario.inputs.items() if "ranks" in one.written
    ]
    for path in paths:
        help = "say how many ranks there are, such as 'world: 4', or remove it"
        yield Violation(path, f"'{path[-1]}' is of no use without a world", help, "key")


def _impossible_worlds(scenario: Scenario, path: DataPath) -> Iterator[Violation]:
    """Yield a world that is given twice or too large, and what is not supported with a world."""
    is_script, ranks = scenario.script is not None, max(scenario.world_sizes)
    yield from find_broken(
        (
            scenario.world is not None and "world" in scenario.matrix,
            Violation(
                path, "both the matrix and the scenario give a world", "keep one of the two", "key"
            ),
        ),
        (
            ranks > MOST_RANKS,
            Violation(
                path,
                f"the world has {ranks:,} ranks, at most {MOST_RANKS} are allowed",
                "a mistake shows on 2, 3 or 4 ranks",
            ),
        ),
        (
            is_script,
            Violation(
                path,
                "a script does not run in a world: only a 'layer' does",
                "write the program's layer as 'layer', with 'inputs', or remove the world",
                "key",
            ),
        ),
        (
            not is_script and is_static(scenario.layer),
            Violation(
                path,
                "a static layer (forward_fn) does not run in a world",
                "write the layer as a PyLayer, or remove the world",
                "key",
            ),
        ),
    )
    for expect_path, expect in scenario.expectations():
        if expect.order == 2:
            help = "remove it: in a world the derivative alone is checked"
            message = "'order: 2' is not supported with a world"
            yield Violation((*expect_path, "order"), message, help, "key")


# --------------------------------------------------------------------------- backends
def find_backend_mistakes(scenario: Scenario, backend: str) -> Iterator[Violation]:
    """Yield what is wrong with what a scenario says of a backend."""
    entries = scenario.paths_and_entries(backend)
    if not entries:
        message = "a backend's expectations must not be empty"
        yield Violation(("backends", backend), message, "write what is different, or remove it")
    unlike = [
        (path, entry.versions)
        for path, entry in entries
        if entry.versions is None or is_range(entry.versions)
    ]
    for (_, one), (path, other) in itertools.combinations(unlike, 2):
        if common := shared(one, other):
            help = "an entry without 'versions' is about all"
            if one is not None and other is not None:
                help, path = "let one range end where another begins", (*path, "versions")
            yield Violation(path, f"two entries are about version {common}", help)
    for path, entry in entries:
        yield from below(path, _entry_mistakes(entry))


def _entry_mistakes(entry: BackendExpectation) -> Iterator[Violation]:
    """Yield what does not go together in what is said of versions of a backend."""
    yield from find_excluded(_BACKEND_EXCLUSIONS, entry.written)
    if entry.versions is not None and not is_range(entry.versions):
        help = "write '>=3.0,<3.3' or '==3.0.0': comparisons of PEP 440, joined by commas"
        message = f"versions: {quote(entry.versions)} is not a range of versions"
        yield Violation(("versions",), message, help)
    if entry.observed is None:
        for key in sorted(entry.written & {"reason", "policy", "issue"}):
            message = f"{quote(key)} is of no use without 'observed'"
            yield Violation((key,), message, "xfail and skip have their own", "key")
        return
    if entry.written.isdisjoint(("reason", "policy")):
        message = "'observed' needs a 'reason' beside it"
        yield Violation(("observed",), message, "add 'reason: …': why, in one sentence", "key")
    yield from below(("observed",), _observed_mistakes(entry.observed))


def _observed_mistakes(observed: Observed) -> Iterator[Violation]:
    """Yield observations that say nothing, or cannot be made together."""
    written = observed.written
    empty = "write what is seen"
    yield from find_broken(
        (not written, Violation((), "observed must not be empty", empty)),
        (
            "crash" in written and not observed.crash,
            Violation(("crash",), "crash must not be empty", empty),
        ),
        (
            "hang" in written and not observed.hang,
            Violation(("hang",), "'hang: false' says nothing", "remove it", "key"),
        ),
    )
    ends = sorted(written & {"crash", "hang"})
    besides = sorted(written - set(ends)) + ends[1:]
    if ends and besides:
        message = f"{quote(besides[0])} cannot be seen of a case that ends by {quote(ends[0])}"
        yield Violation((besides[0],), message, "keep one of the two", "key")
