"""Rules × backends: what each backend does with each rule, told from the results of the scenarios that cite it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from gradcheck.backends.base import kind_of, version_of
from gradcheck.case.case import Case
from gradcheck.matrix.catalogue import Document, Rule, all_rules
from gradcheck.result import NOT_RUN, Result, Status
from gradcheck.spec.model import BackendExpectation, Expect


class Does(StrEnum):
    """What a backend does where a rule is asked for, the worst first."""

    UNEXPECTED = "unexpected"
    CRASH = "crash"
    HANG = "hang"
    OTHER_GRADIENT = "gradient"
    SILENT = "silent"
    OTHER_VALUE = "value"
    RAISES = "raises"
    OTHER_ERROR = "error"
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
    issue: str = ""
    """The address where it is discussed, if it is known."""
    first_seen: str = ""
    """The first release that does it; empty if none does."""
    mended_in: str = ""
    """The release behind the last that does it, if that one does as documented."""


class Cell(NamedTuple):
    """What a backend does with a rule: the worst of its scenarios, and how many of those that ran are as documented."""

    does: Does
    holds: int = 0
    of: int = 0

    def __str__(self) -> str:
        return str(self.does) if self.does in NO_FAILURE else f"{self.does} {self.holds}/{self.of}"

    @property
    def fails(self) -> bool:
        """Whether something is not as documented, and not so on purpose."""
        return self.does not in NO_FAILURE


class Row(NamedTuple):
    """A rule, what each backend does, and in what way."""

    rule: Rule
    document: Document
    cells: Mapping[str, Cell]
    notes: tuple[Note, ...]
    scenarios: tuple[str, ...]
    """Those that assert it."""


class GraveFinding(NamedTuple):
    """What is `GRAVE`, once for all rules and backends of which the same is said."""

    note: Note
    cells: Mapping[str, Does]
    """What each backend does with the first scenario of the note."""


class ReleaseChange(NamedTuple):
    """What differs between a release and the next."""

    older: str
    newer: str
    mended: tuple[Row, ...]
    broken: tuple[Row, ...]
    otherwise: tuple[Row, ...]
    """Rules that neither keeps, each in its own way."""


class RuleMatrix(NamedTuple):
    """All rules on some backends."""

    backends: tuple[str, ...]
    rows: tuple[Row, ...]
    grave: tuple[GraveFinding, ...]
    """The worst first, and of these what is still so on the last backend."""
    scenarios: Mapping[str, Mapping[str, Does]] = {}
    """By scenario and backend, the worst of its cases."""
    made: str = "Nothing was run for this page: it is what the scenarios pin."
    """When and where it was run, in a sentence."""

    @property
    def releases(self) -> list[str]:
        """The columns of Paddle, in order."""
        return [backend for backend in self.backends if kind_of(backend) == "paddle"]

    def kinds(self) -> list[tuple[str, list[Row]]]:
        """The rules of the documents, and what was observed where these are silent: two tables."""
        return [
            ("The rules of the documents", [row for row in self.rows if not row.document.is_observation]),
            ("Observations where documents are silent", [row for row in self.rows if row.document.is_observation]),
        ]

    def broken_by(self, backend: str) -> list[Row]:
        """The rules that a backend does not keep, the worst first."""
        return sorted((row for row in self.rows if row.cells[backend].fails), key=severity)

    def breaking(self, row: Row) -> list[str]:
        """The backends that do not keep a rule."""
        return [backend for backend in self.backends if row.cells[backend].fails]

    def documents(self) -> list[tuple[Document, list[Row]]]:
        """The documents, each with its rules in its order."""
        rows = groupby(self.kinds()[0][1], key=lambda row: row.document)
        return [(document, list(members)) for document, members in rows]

    def changes(self) -> list[ReleaseChange]:
        """What changed from each release to the next."""
        found = []
        for older, newer in pairwise(self.releases):
            both = [(row, row.cells[older], row.cells[newer]) for row in self.rows]
            mended = tuple(row for row, old, new in both if old.fails and new.does in (Does.HOLDS, Does.POLICY))
            broken = tuple(row for row, old, new in both if new.fails and old.does in (Does.HOLDS, Does.POLICY))
            otherwise = tuple(row for row, old, new in both if old.fails and new.fails and old != new)
            found.append(ReleaseChange(older, newer, mended, broken, otherwise))
        return found

    def counts(self, rows: Sequence[Row]) -> list[tuple[Does, list[int]]]:
        """For each word, as documented first, with how many of some rules each backend does that."""
        words = [Does.HOLDS, *(does for does in ORDER if does is not Does.HOLDS)]
        table = [(does, [sum(row.cells[one].does is does for row in rows) for one in self.backends]) for does in words]
        return [(does, numbers) for does, numbers in table if any(numbers)]

    def sections(self) -> list[tuple[str, list[Row]]]:
        """The rows, each with a heading: what some backend breaks, by kind, the worst first; then the others."""
        parts = [(heading, [row for row in rows if is_broken(row)]) for heading, rows in self.kinds()]
        others = [row for row in self.rows if not is_broken(row)]
        policy = [row for row in others if any(cell.does is Does.POLICY for cell in row.cells.values())]
        return [
            *((heading, sorted(rows, key=severity)) for heading, rows in parts),
            (POLICY, policy),
            (HELD, [row for row in others if row not in policy]),
        ]


POLICY, HELD = "Where releases differ on purpose", "As documented everywhere"


def is_broken(row: Row) -> bool:
    """Whether any backend does not keep a rule."""
    return any(cell.fails for cell in row.cells.values())


def severity(row: Row) -> tuple[int, float]:
    """The place of a row: that of the worst that any backend does, then the share that is as documented."""
    ran = sum(cell.of for cell in row.cells.values())
    worst = min(ORDER.index(cell.does) for cell in row.cells.values())
    return worst, sum(cell.holds for cell in row.cells.values()) / max(ran, 1)


def title(backend: str) -> str:
    """What a column is called: ``engine``, ``cupy``, ``3.0.0``."""
    if kind_of(backend) == "paddle":
        return version_of(backend) or backend
    return "engine" if backend == "numpy" else backend


Told = tuple[Case, Does, str]
"""A case, what its backend does, and in what way."""


def matrix_of(
    documents: Iterable[Document], cases: Sequence[Case], results: Iterable[Result], made: str | None = None
) -> RuleMatrix:
    """The matrix of the rules of some documents, from the results of the cases by which backends are held to them.

    Rules that no case is about are left out. `made` says when and where it was run; None if nothing was.
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
    rows = tuple(
        Row(
            rule,
            document,
            cells(told[rule.id], backends),
            notes(told[rule.id], backends),
            tuple(grouped(told[rule.id])),
        )
        for rule, document in all_rules(documents)
        if rule.id in told
    )
    by_scenario = {id: worst_of(some) for id, some in grouped(everything).items()}
    matrix = RuleMatrix(backends, rows, findings(everything, backends), by_scenario)
    return matrix if made is None else matrix._replace(made=made)


def grouped(told: Iterable[Told]) -> dict[str, list[Told]]:
    """What is told, by scenario."""
    found: dict[str, list[Told]] = {}
    for one in told:
        found.setdefault(one[0].scenario.id, []).append(one)
    return found


def worst_of(told: Iterable[Told]) -> dict[str, Does]:
    """By backend, the worst that is told."""
    found: dict[str, Does] = {}
    for case, does, _ in told:
        found[case.backend] = min(does, found.get(case.backend, Does.NOT_RUN), key=ORDER.index)
    return found


def findings(told: Sequence[Told], backends: Sequence[str]) -> tuple[GraveFinding, ...]:
    """What is `GRAVE` among everything that is told."""
    by_scenario = grouped(told)
    found = [
        GraveFinding(note, {**dict.fromkeys(backends, Does.NOT_RUN), **worst_of(by_scenario[note.scenarios[0]])})
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


def cells(told: Sequence[Told], backends: Sequence[str]) -> dict[str, Cell]:
    """What each backend does."""
    by_scenario = [worst_of(some) for some in grouped(told).values()]
    found = {}
    for backend in backends:
        ran = [one[backend] for one in by_scenario if one.get(backend, Does.NOT_RUN) is not Does.NOT_RUN]
        worst = min(ran, key=ORDER.index, default=Does.NOT_RUN)
        found[backend] = Cell(worst, sum(does is Does.HOLDS for does in ran), len(ran))
    return found


def notes(told: Sequence[Told], backends: Sequence[str]) -> tuple[Note, ...]:
    """What is done otherwise, the worst first: once for all backends and scenarios of which the same is said."""
    by_scenario: dict[tuple[Does, str, str, str], list[str]] = {}
    for case, does, reason in told:
        if does not in NOT_OTHERWISE:
            issue = case.entry.issue or "" if case.entry is not None else ""
            where = by_scenario.setdefault((does, reason, issue, case.scenario.id), [])
            where += [case.backend] * (case.backend not in where)
    together: dict[tuple[Does, str, str, tuple[str, ...]], list[str]] = {}
    for (does, reason, issue, scenario), where in by_scenario.items():
        key = does, reason, issue, tuple(sorted(where, key=backends.index))
        together.setdefault(key, []).append(scenario)
    results = {id: worst_of(some) for id, some in grouped(told).items()}
    found = [
        Note(does, where, reason, tuple(ids), issue, *life(where, ids, results, backends))
        for (does, reason, issue, where), ids in together.items()
    ]
    return tuple(sorted(found, key=lambda note: ORDER.index(note.does)))


def life(
    where: Sequence[str], scenarios: Sequence[str], results: Mapping[str, Mapping[str, Does]], backends: Sequence[str]
) -> tuple[str, str]:
    """The first release that something is seen in, and the one that it is mended in; empty for none."""
    releases = [one for one in backends if kind_of(one) == "paddle"]
    seen = [one for one in releases if one in where]
    later = releases[releases.index(seen[-1]) + 1 :] if seen else []
    mended = later and all(results[id].get(later[0]) is Does.HOLDS for id in scenarios)
    return title(seen[0]) if seen else "", title(later[0]) if mended else ""


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
