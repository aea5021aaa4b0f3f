"""Rules × backends: what each backend does with each rule, from the results of the scenarios that cite it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from gradcheck.backends.base import kind_of, version_of
from gradcheck.case.case import Case
from gradcheck.conformance.behaviour import (
    GRAVE,
    NO_FAILURE,
    NOT_DEVIATING,
    ORDER,
    Behaviour,
    behaviour_of,
)
from gradcheck.conformance.catalogue import Document, Rule, iterate_rules
from gradcheck.result import Result

POLICY, HELD = "Where releases differ on purpose", "As documented everywhere"
"""Headings of the sections of rules that no backend breaks."""


class Note(NamedTuple):
    """A deviation from a rule, with the backends and scenarios that show it."""

    behaviour: Behaviour
    backends: tuple[str, ...]
    reason: str
    scenarios: tuple[str, ...]
    issue: str = ""
    """The address where it is discussed, if it is known."""
    first_seen: str = ""
    """The first release that deviates; empty if none does."""
    fixed_in: str = ""
    """The release behind the last one that deviates, if that one does as documented."""


class Cell(NamedTuple):
    """What a backend does with a rule: the worst of its scenarios, and how many of those that ran are as documented."""

    behaviour: Behaviour
    holds: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.behaviour} {self.holds}/{self.of}" if self.fails else str(self.behaviour)

    @property
    def fails(self) -> bool:
        """Whether something is not as documented, and not so on purpose."""
        return self.behaviour not in NO_FAILURE

    @property
    def keeps(self) -> bool:
        """Whether all that ran is as documented, or otherwise on purpose."""
        return self.behaviour in (Behaviour.HOLDS, Behaviour.POLICY)


class Row(NamedTuple):
    """A rule, the cell of each backend, and the deviations."""

    rule: Rule
    document: Document
    cells: Mapping[str, Cell]
    notes: tuple[Note, ...]
    scenarios: tuple[str, ...]
    """Ids of the scenarios that assert the rule."""

    @property
    def is_broken(self) -> bool:
        """Whether any backend does not keep the rule."""
        return any(cell.fails for cell in self.cells.values())

    @property
    def severity(self) -> tuple[int, float]:
        """The key to sort by, the worst first: the worst behaviour, then the share that is as documented."""
        worst = min(ORDER.index(cell.behaviour) for cell in self.cells.values())
        ran = sum(cell.of for cell in self.cells.values())
        held = sum(cell.holds for cell in self.cells.values())
        return worst, held / max(ran, 1)


class GraveFinding(NamedTuple):
    """A deviation that is in `GRAVE`, once for all rules and backends with the same reason."""

    note: Note
    cells: Mapping[str, Behaviour]
    """What each backend does with the first scenario of the note."""


class ReleaseChange(NamedTuple):
    """The differences between a release and the next."""

    older: str
    newer: str
    fixed: tuple[Row, ...]
    broken: tuple[Row, ...]
    otherwise: tuple[Row, ...]
    """Rules that neither release keeps, each in its own way."""


class RuleMatrix(NamedTuple):
    """All rules on some backends."""

    backends: tuple[str, ...]
    rows: tuple[Row, ...]
    grave: tuple[GraveFinding, ...]
    """The worst first, and of these what is still so on the last backend."""
    scenarios: Mapping[str, Mapping[str, Behaviour]] = {}
    """By scenario and backend, the worst of its cases."""
    made: str = "Nothing was run for this page: it is what the scenarios pin."
    """When and where it was run, in a sentence."""

    @property
    def releases(self) -> list[str]:
        """The columns of Paddle, in order."""
        return paddle_releases(self.backends)

    def kinds(self) -> list[tuple[str, list[Row]]]:
        """Return two tables: the rules of the documents, and observations where these are silent."""
        return [
            (
                "The rules of the documents",
                [row for row in self.rows if not row.document.is_observation],
            ),
            (
                "Observations where documents are silent",
                [row for row in self.rows if row.document.is_observation],
            ),
        ]

    def broken_by(self, backend: str) -> list[Row]:
        """Return the rules that a backend does not keep, the worst first."""
        return sorted(
            (row for row in self.rows if row.cells[backend].fails), key=lambda row: row.severity
        )

    def breaking(self, row: Row) -> list[str]:
        """Return the backends that do not keep a rule."""
        return [backend for backend in self.backends if row.cells[backend].fails]

    def documents(self) -> list[tuple[Document, list[Row]]]:
        """Return the documents, each with its rules in its order."""
        documents = []
        for document, rows in groupby(self.kinds()[0][1], key=lambda row: row.document):
            documents.append((document, list(rows)))
        return documents

    def changes(self) -> list[ReleaseChange]:
        """Return the differences between each release and the next."""
        return [self.compare_releases(older, newer) for older, newer in pairwise(self.releases)]

    def compare_releases(self, older: str, newer: str) -> ReleaseChange:
        """Return the differences between two releases."""
        fixed, broken, otherwise = [], [], []
        for row in self.rows:
            before, after = row.cells[older], row.cells[newer]
            if before.fails and after.keeps:
                fixed.append(row)
            elif before.keeps and after.fails:
                broken.append(row)
            elif before.fails and after.fails and before != after:
                otherwise.append(row)
        return ReleaseChange(older, newer, tuple(fixed), tuple(broken), tuple(otherwise))

    def counts(self, rows: Sequence[Row]) -> list[tuple[Behaviour, list[int]]]:
        """For each behaviour, as documented first, count the rows in which each backend does that."""
        table = []
        for behaviour in sorted(ORDER, key=lambda one: one is not Behaviour.HOLDS):
            numbers = [
                sum(row.cells[name].behaviour is behaviour for row in rows)
                for name in self.backends
            ]
            if any(numbers):
                table.append((behaviour, numbers))
        return table

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return the rows by heading: broken ones by kind, the worst first; then the others."""
        sections = []
        for heading, rows in self.kinds():
            broken = [row for row in rows if row.is_broken]
            sections.append((heading, sorted(broken, key=lambda row: row.severity)))

        policy, held = list[Row](), list[Row]()
        for row in self.rows:
            if not row.is_broken:
                on_purpose = any(cell.behaviour is Behaviour.POLICY for cell in row.cells.values())
                (policy if on_purpose else held).append(row)
        return [*sections, (POLICY, policy), (HELD, held)]


# ------------------------------------------------------------------------------------------- building the matrix
class CaseBehaviour(NamedTuple):
    """A case, what its backend does, and the reason in words."""

    case: Case
    behaviour: Behaviour
    reason: str


def build_matrix(
    documents: Iterable[Document],
    cases: Sequence[Case],
    results: Iterable[Result],
    made: str | None = None,
) -> RuleMatrix:
    """Build the matrix of the rules of some documents from the results of cases.

    Rules that no case is about are left out. `made` says when and where it was run; None if nothing was.
    """
    case_by_name = {case.name: case for case in cases}
    backends = tuple(dict.fromkeys(case.backend for case in cases))

    outcomes: list[CaseBehaviour] = []
    by_tag: dict[str, list[CaseBehaviour]] = {}
    for result in results:
        case = case_by_name[result.cases[-1]]
        outcome = CaseBehaviour(case, *behaviour_of(case, result))
        outcomes.append(outcome)
        for tag in case.scenario.tags:
            by_tag.setdefault(tag, []).append(outcome)

    rows = []
    for rule, document in iterate_rules(documents):
        if rule.id in by_tag:
            cited = by_tag[rule.id]
            scenarios = tuple(group_by_scenario(cited))
            rows.append(
                Row(
                    rule,
                    document,
                    make_cells(cited, backends),
                    make_notes(cited, backends),
                    scenarios,
                )
            )

    worst = worst_by_scenario(outcomes)
    matrix = RuleMatrix(backends, tuple(rows), find_grave(outcomes, backends), worst)
    return matrix if made is None else matrix._replace(made=made)


def group_by_scenario(outcomes: Iterable[CaseBehaviour]) -> dict[str, list[CaseBehaviour]]:
    """Return the outcomes by the id of their scenario."""
    groups: dict[str, list[CaseBehaviour]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.case.scenario.id, []).append(outcome)
    return groups


def worst_by_scenario(outcomes: Iterable[CaseBehaviour]) -> dict[str, dict[str, Behaviour]]:
    """Return by scenario and backend the worst behaviour."""
    return {
        scenario: worst_by_backend(group) for scenario, group in group_by_scenario(outcomes).items()
    }


def worst_by_backend(outcomes: Iterable[CaseBehaviour]) -> dict[str, Behaviour]:
    """Return by backend the worst behaviour."""
    worst: dict[str, Behaviour] = {}
    for outcome in outcomes:
        backend = outcome.case.backend
        before = worst.get(backend, Behaviour.NOT_RUN)
        worst[backend] = min(outcome.behaviour, before, key=ORDER.index)
    return worst


def make_cells(outcomes: Sequence[CaseBehaviour], backends: Sequence[str]) -> dict[str, Cell]:
    """Return the cell of each backend."""
    scenarios = worst_by_scenario(outcomes).values()
    cells = {}
    for backend in backends:
        ran = [scenario[backend] for scenario in scenarios if backend in scenario]
        ran = [behaviour for behaviour in ran if behaviour is not Behaviour.NOT_RUN]
        worst = min(ran, key=ORDER.index, default=Behaviour.NOT_RUN)
        cells[backend] = Cell(worst, ran.count(Behaviour.HOLDS), len(ran))
    return cells


class Deviation(NamedTuple):
    """What notes with different backends or scenarios have in common."""

    behaviour: Behaviour
    reason: str
    issue: str


def make_notes(outcomes: Sequence[CaseBehaviour], backends: Sequence[str]) -> tuple[Note, ...]:
    """Return the deviations, the worst first: one note for all scenarios that deviate alike on the same backends."""
    deviating: dict[tuple[Deviation, str], list[str]] = {}
    for case, behaviour, reason in outcomes:
        if behaviour not in NOT_DEVIATING:
            issue = case.entry.issue if case.entry is not None else None
            key = Deviation(behaviour, reason, issue or ""), case.scenario.id
            where = deviating.setdefault(key, [])
            if case.backend not in where:
                where.append(case.backend)

    scenarios_of: dict[tuple[Deviation, tuple[str, ...]], list[str]] = {}
    for (deviation, scenario), where in deviating.items():
        in_order = tuple(sorted(where, key=backends.index))
        scenarios_of.setdefault((deviation, in_order), []).append(scenario)

    worst = worst_by_scenario(outcomes)
    notes = []
    for (deviation, on), scenarios in scenarios_of.items():
        first, fixed = find_lifetime(on, [worst[scenario] for scenario in scenarios], backends)
        note = Note(
            deviation.behaviour,
            on,
            deviation.reason,
            tuple(scenarios),
            deviation.issue,
            first,
            fixed,
        )
        notes.append(note)
    return tuple(sorted(notes, key=lambda note: ORDER.index(note.behaviour)))


def find_lifetime(
    deviating: Sequence[str], scenarios: Sequence[Mapping[str, Behaviour]], backends: Sequence[str]
) -> tuple[str, str]:
    """Return the first release that deviates, and the one that fixed it; empty for none.

    `scenarios` has the behaviour of each scenario by backend.
    """
    releases = paddle_releases(backends)
    seen = [release for release in releases if release in deviating]
    if not seen:
        return "", ""
    later = releases[releases.index(seen[-1]) + 1 :]
    is_fixed = later and all(scenario.get(later[0]) is Behaviour.HOLDS for scenario in scenarios)
    return column_title(seen[0]), column_title(later[0]) if is_fixed else ""


def find_grave(
    outcomes: Sequence[CaseBehaviour], backends: Sequence[str]
) -> tuple[GraveFinding, ...]:
    """Return the deviations that are in `GRAVE`."""
    worst = worst_by_scenario(outcomes)
    findings = []
    for note in make_notes(
        [outcome for outcome in outcomes if outcome.behaviour in GRAVE], backends
    ):
        cells = {**dict.fromkeys(backends, Behaviour.NOT_RUN), **worst[note.scenarios[0]]}
        findings.append(GraveFinding(note, cells))

    def severity(finding: GraveFinding) -> tuple[int, bool]:
        return ORDER.index(finding.note.behaviour), backends[-1] not in finding.note.backends

    return tuple(sorted(findings, key=severity))


# ---------------------------------------------------------------------------------------------- names of columns
def paddle_releases(backends: Iterable[str]) -> list[str]:
    """Return the releases of Paddle among some backends."""
    return [backend for backend in backends if kind_of(backend) == "paddle"]


def column_title(backend: str) -> str:
    """Return the title of a column: ``engine``, ``cupy``, ``3.0.0``."""
    if kind_of(backend) == "paddle":
        return version_of(backend) or backend
    return "engine" if backend == "numpy" else backend


def describe_backends(backends: Sequence[str], columns: Sequence[str]) -> str:
    """Describe some of the columns in a few words: ``3.0.0 to 3.2.2``, ``2.6.2, 3.1.1``, ``every release``."""
    releases = paddle_releases(columns)
    if len(releases) > 1 and list(backends) == releases:
        return "every release"

    ranges: list[list[str]] = []
    for backend in backends:
        last = ranges[-1][-1] if ranges else None
        if last is not None and is_next_column(last, backend, columns):
            ranges[-1].append(backend)
        else:
            ranges.append([backend])

    names = []
    for part in ranges:
        first, last = column_title(part[0]), column_title(part[-1])
        names.append(first if len(part) == 1 else f"{first} to {last}")
    return ", ".join(names)


def is_next_column(before: str, after: str, columns: Sequence[str]) -> bool:
    """Whether a column follows another one and is of the same kind."""
    return columns.index(after) == columns.index(before) + 1 and kind_of(after) == kind_of(before)
