"""Rules × backends: what each backend does with each rule, told from the results of the scenarios that cite it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from gradcheck.backends.base import kind_of, version_of
from gradcheck.case.case import Case
from gradcheck.result import NOT_RUN, Result, Status
from gradcheck.rules import Document, Rule, rules_of
from gradcheck.spec.expectations import BackendExpectation, Expect


class Does(StrEnum):
    """What a backend does where a rule is asked for, the worst first."""

    UNEXPECTED = "unexpected"
    CRASH = "crash"
    HANG = "hang"
    OTHER_GRADIENT = "other gradient"
    SILENT = "silent"
    OTHER_VALUE = "other value"
    RAISES = "raises"
    OTHER_ERROR = "other error"
    POLICY = "policy"
    HOLDS = "✓"
    NOT_RUN = "–"


MEANING = {
    Does.UNEXPECTED: "neither what is documented nor what is pinned",
    Does.CRASH: "the process dies",
    Does.HANG: "it does not end",
    Does.OTHER_GRADIENT: "it gives another gradient, or none, without a word",
    Does.SILENT: "it raises nothing, or does not warn, where it should",
    Does.OTHER_VALUE: "it gives something else, without a word",
    Does.RAISES: "it raises where it should not",
    Does.OTHER_ERROR: "it raises something else, or says something else",
    Does.POLICY: "it does something else on purpose, which is no mistake",
    Does.HOLDS: "as documented",
    Does.NOT_RUN: "not run there",
}
"""What the words mean, for those who read them."""
ORDER = [*Does]
NOT_OTHERWISE = (Does.HOLDS, Does.NOT_RUN)
NO_FAILURE = (Does.POLICY, *NOT_OTHERWISE)
GRAVE = (Does.UNEXPECTED, Does.CRASH, Does.HANG, Does.OTHER_GRADIENT)
"""What users of a release had better know first."""


class Note(NamedTuple):
    """What some backends do in place of what a rule says."""

    does: Does
    backends: tuple[str, ...]
    reason: str
    scenarios: tuple[str, ...]


class Row(NamedTuple):
    """A rule, what each backend does, and in what way."""

    rule: Rule
    document: Document
    cells: Mapping[str, Does]
    notes: tuple[Note, ...]


class Finding(NamedTuple):
    """What is `GRAVE`, once for all rules and backends of which the same is said."""

    note: Note
    cells: Mapping[str, Does]
    """What each backend does with the first scenario of the note."""


class Matrix(NamedTuple):
    """All rules on some backends."""

    backends: tuple[str, ...]
    rows: tuple[Row, ...]
    grave: tuple[Finding, ...]
    """The worst first, and of these what is still so on the last backend."""

    def counts(self) -> list[tuple[Does, list[int]]]:
        """For each word, as documented first, with how many rules each backend does that."""
        words = [Does.HOLDS, *(does for does in ORDER if does is not Does.HOLDS)]
        table = [(does, [sum(row.cells[one] is does for row in self.rows) for one in self.backends]) for does in words]
        return [(does, numbers) for does, numbers in table if any(numbers)]

    def sections(self) -> list[tuple[str, list[Row]]]:
        """The rows by what their reader looks for first, the worst before others: each with a heading."""
        changed: list[Row] = []
        alike: list[Row] = []
        policy: list[Row] = []
        held: list[Row] = []
        for row in self.rows:
            releases = [backend for backend in self.backends if kind_of(backend) == "paddle"]
            told = [{(note.reason, note.does) for note in row.notes if one in note.backends} for one in releases]
            if all(row.cells[one] in NOT_OTHERWISE for one in self.backends):
                held.append(row)
            elif all(row.cells[one] in NO_FAILURE for one in self.backends):
                policy.append(row)
            else:
                (alike if all(one == told[0] for one in told) else changed).append(row)
        return [
            ("Where releases differ", sorted(changed, key=severity)),
            ("Where every release goes its own way", sorted(alike, key=severity)),
            ("Where releases differ on purpose", policy),
            ("As documented everywhere", held),
        ]


def severity(row: Row) -> int:
    """The place of a row: that of the worst that any backend does."""
    return min(ORDER.index(does) for does in row.cells.values())


def title(backend: str) -> str:
    """What a column is called: ``engine``, ``cupy``, ``3.0.0``."""
    if kind_of(backend) == "paddle":
        return version_of(backend) or backend
    return "engine" if backend == "numpy" else backend


Told = tuple[Case, Does, str]
"""A case, what its backend does, and in what way."""


def matrix_of(documents: Iterable[Document], cases: Sequence[Case], results: Iterable[Result]) -> Matrix:
    """The matrix of the rules of some documents, from the results of the cases by which backends are held to them.

    Rules that no case is about are left out.
    """
    by_name = {case.name: case for case in cases}
    backends = tuple(dict.fromkeys(case.backend for case in cases))
    told: dict[str, list[Told]] = {}
    everything = []
    for result in results:
        case = by_name[result.cases[-1]]
        everything.append((case, *done(case, result)))
        for tag in case.scenario.tags:
            told.setdefault(tag, []).append(everything[-1])
    return Matrix(
        backends,
        tuple(
            Row(rule, document, cells(told[rule.id], backends), notes(told[rule.id], backends))
            for rule, document in rules_of(documents)
            if rule.id in told
        ),
        findings(everything, backends),
    )


def findings(told: Sequence[Told], backends: Sequence[str]) -> tuple[Finding, ...]:
    """What is `GRAVE` among everything that is told."""
    by_scenario: dict[str, list[Told]] = {}
    for one in told:
        by_scenario.setdefault(one[0].scenario.id, []).append(one)
    found = [
        Finding(note, cells(by_scenario[note.scenarios[0]], backends))
        for note in notes([one for one in told if one[1] in GRAVE], backends)
    ]
    return tuple(sorted(found, key=lambda one: (ORDER.index(one.note.does), backends[-1] not in one.note.backends)))


def assumed(case: Case) -> Result:
    """The result of a case if its backend does what is documented, or what is pinned of it."""
    entry = case.entry
    if entry is not None and entry.skip is not None:
        return case.result(Status.SKIP, entry.skip.reason)
    if entry is not None and entry.observed is not None:
        return case.result(Status.XFAIL, entry.why)
    return case.result(Status.PASS, "")


def done(case: Case, result: Result) -> tuple[Does, str]:
    """What a result tells of its backend, and in what way."""
    if result.status in NOT_RUN:
        return Does.NOT_RUN, result.message
    if not result.status.green:
        return Does.UNEXPECTED, result.message
    if result.status is not Status.XFAIL:
        return Does.HOLDS, ""
    return in_place(case.scenario.expect, case.entry), result.message


def in_place(documented: Expect, entry: BackendExpectation | None) -> Does:
    """Of what kind that is which is observed in place of what is documented."""
    observed = entry.observed if entry is not None else None
    if entry is None or observed is None:
        return Does.UNEXPECTED
    if entry.policy is not None:
        return Does.POLICY
    if observed.crash or observed.hang:
        return Does.CRASH if observed.crash else Does.HANG
    if observed.raises:
        return Does.OTHER_ERROR if documented.raises else Does.RAISES
    if documented.raises or documented.warns:
        return Does.SILENT
    if observed.gradient == "matches" and observed.order < documented.order:  # the second derivative is what fails
        return Does.RAISES
    of_gradients = observed.grads or observed.gradient != "unchecked" or any(".grad" in key for key in observed.values)
    return Does.OTHER_GRADIENT if of_gradients else Does.OTHER_VALUE


def cells(told: Sequence[Told], backends: Sequence[str]) -> dict[str, Does]:
    """By backend, the worst of what it does."""
    return {
        backend: min((does for case, does, _ in told if case.backend == backend), key=ORDER.index, default=Does.NOT_RUN)
        for backend in backends
    }


def notes(told: Sequence[Told], backends: Sequence[str]) -> tuple[Note, ...]:
    """What is done otherwise, the worst first: once for all backends and scenarios of which the same is said."""
    by_scenario: dict[tuple[Does, str, str], list[str]] = {}
    for case, does, reason in told:
        if does not in NOT_OTHERWISE:
            where = by_scenario.setdefault((does, reason, case.scenario.id), [])
            where += [case.backend] * (case.backend not in where)
    together: dict[tuple[Does, str, tuple[str, ...]], list[str]] = {}
    for (does, reason, scenario), where in by_scenario.items():
        key = does, reason, tuple(sorted(where, key=backends.index))
        together.setdefault(key, []).append(scenario)
    found = [Note(does, where, reason, tuple(ids)) for (does, reason, where), ids in together.items()]
    return tuple(sorted(found, key=lambda note: ORDER.index(note.does)))


def span(backends: Sequence[str], among: Sequence[str]) -> str:
    """Backends in a few words: ``3.0.0 to 3.2.2``, ``2.6.2, 3.1.1``, ``every release``."""
    releases = [one for one in among if kind_of(one) == "paddle"]
    if len(releases) > 1 and list(backends) == releases:
        return "every release"
    parts: list[list[str]] = []
    for backend in backends:
        follows = parts and among.index(backend) == among.index(parts[-1][-1]) + 1
        both = follows and kind_of(backend) == kind_of(parts[-1][-1])
        parts[-1].append(backend) if both else parts.append([backend])
    names = [title(part[0]) if len(part) == 1 else f"{title(part[0])} to {title(part[-1])}" for part in parts]
    return ", ".join(names)
