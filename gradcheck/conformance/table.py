"""Rules × backends: what each backend does with each rule, by the scenarios that cite it."""

from __future__ import annotations

from collections import Counter, defaultdict
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
NOTHING_RUN = "Nothing was run for this page: it is what the scenarios pin."


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
    """The behaviour of a backend for a rule: its worst scenario, and how many are as documented.

    `of` is the number of scenarios that ran.
    """

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
    def verdict(self) -> str:
        """``broken``, ``kept`` (as documented, or otherwise on purpose), or ``not run``."""
        if self.fails:
            return "broken"
        return "kept" if self.of else "not run"


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
        """The key to sort by: the worst behaviour, then the share that is as documented."""
        worst = min(ORDER.index(cell.behaviour) for cell in self.cells.values())
        ran = sum(cell.of for cell in self.cells.values())
        held = sum(cell.holds for cell in self.cells.values())
        return worst, held / max(ran, 1)


class GraveFinding(NamedTuple):
    """A deviation that is in `GRAVE`, once for all rules and backends with the same reason."""

    note: Note
    cells: Mapping[str, Behaviour]
    """The behaviour of each backend in the first scenario of the note."""


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
    scenarios: Mapping[str, Mapping[str, Behaviour]]
    """By scenario and backend, the worst of its cases."""
    made: str = NOTHING_RUN
    """When and where it was run, in a sentence."""

    @property
    def releases(self) -> list[str]:
        """The columns of Paddle, in order."""
        return paddle_releases(self.backends)

    def kinds(self) -> list[tuple[str, list[Row]]]:
        """Return two tables: the rules of the documents, and observations that these lack."""
        kinds = (
            ("The rules of the documents", False),
            ("Observations where documents are silent", True),
        )
        return [(h, [r for r in self.rows if r.document.is_observation is o]) for h, o in kinds]

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
        _, rows = self.kinds()[0]
        by_document = groupby(rows, key=lambda row: row.document)
        return [(document, list(group)) for document, group in by_document]

    def changes(self) -> list[ReleaseChange]:
        """Return the differences between each release and the next."""
        return [self.compare_releases(older, newer) for older, newer in pairwise(self.releases)]

    def compare_releases(self, older: str, newer: str) -> ReleaseChange:
        """Return the differences between two releases."""
        changed: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows:
            before, after = row.cells[older], row.cells[newer]
            if before != after:
                changed[before.verdict, after.verdict].append(row)
        return ReleaseChange(
            older,
            newer,
            fixed=tuple(changed["broken", "kept"]),
            broken=tuple(changed["kept", "broken"]),
            otherwise=tuple(changed["broken", "broken"]),
        )

    def counts(self, rows: Sequence[Row]) -> list[tuple[Behaviour, list[int]]]:
        """Count the rows by behaviour, as documented first: a number for each backend."""
        by_backend = [Counter(row.cells[name].behaviour for row in rows) for name in self.backends]
        used = sorted(set[Behaviour]().union(*by_backend), key=ORDER.index)
        used.sort(key=lambda behaviour: behaviour is not Behaviour.HOLDS)
        return [(behaviour, [tally[behaviour] for tally in by_backend]) for behaviour in used]

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return the rows by heading: broken ones by kind, the worst first; then the others."""
        sections = []
        for heading, rows in self.kinds():
            broken = [row for row in rows if row.is_broken]
            sections.append((heading, sorted(broken, key=lambda row: row.severity)))
        policy, held = list[Row](), list[Row]()
        for row in self.rows:
            on_purpose = any(cell.behaviour is Behaviour.POLICY for cell in row.cells.values())
            if not row.is_broken:
                (policy if on_purpose else held).append(row)
        return [*sections, (POLICY, policy), (HELD, held)]


# --------------------------------------------------------------------------- building the matrix
def build_matrix(
    documents: Iterable[Document],
    cases: Sequence[Case],
    results: Iterable[Result],
    made: str | None = None,
) -> RuleMatrix:
    """Build the matrix of the rules of some documents from the results of cases.

    Rules that no case is about are left out. `made` says when and where it was run; None if nothing
    was.
    """
    case_by_name = {case.name: case for case in cases}
    outcomes = []
    for result in results:
        case = case_by_name[result.cases[-1]]
        outcomes.append(CaseBehaviour(case, *behaviour_of(case, result)))
    builder = MatrixBuilder(tuple(dict.fromkeys(case.backend for case in cases)), outcomes)
    rows = []
    for rule, document in iterate_rules(documents):
        citing = [outcome for outcome in outcomes if rule.id in outcome.case.scenario.tags]
        if citing:
            rows.append(builder.make_row(rule, document, citing))
    made = NOTHING_RUN if made is None else made
    return RuleMatrix(builder.backends, tuple(rows), builder.find_grave(), builder.worst, made)


class CaseBehaviour(NamedTuple):
    """A case, what its backend does, and the reason in words."""

    case: Case
    behaviour: Behaviour
    reason: str


class Deviation(NamedTuple):
    """The fields that notes with different backends or scenarios share."""

    behaviour: Behaviour
    reason: str
    issue: str


class MatrixBuilder:
    """Makes the parts of a matrix from the outcomes of all cases."""

    def __init__(self, backends: tuple[str, ...], outcomes: Sequence[CaseBehaviour]) -> None:
        self.backends, self.outcomes = backends, outcomes
        self.releases = paddle_releases(backends)
        self.worst: dict[str, dict[str, Behaviour]] = {}
        """By scenario and backend, the worst of its cases."""
        for case, behaviour, _ in outcomes:
            by_backend = self.worst.setdefault(case.scenario.id, {})
            before = by_backend.get(case.backend, Behaviour.NOT_RUN)
            by_backend[case.backend] = min(behaviour, before, key=ORDER.index)

    def make_row(self, rule: Rule, document: Document, citing: Sequence[CaseBehaviour]) -> Row:
        """Return the row of a rule, with the outcomes of the scenarios that cite it."""
        scenarios = tuple(dict.fromkeys(outcome.case.scenario.id for outcome in citing))
        cells = {backend: self.make_cell(scenarios, backend) for backend in self.backends}
        return Row(rule, document, cells, self.make_notes(citing), scenarios)

    def make_cell(self, scenarios: Iterable[str], backend: str) -> Cell:
        """Return what a backend does with some scenarios."""
        done = [self.worst[scenario].get(backend, Behaviour.NOT_RUN) for scenario in scenarios]
        ran = [behaviour for behaviour in done if behaviour is not Behaviour.NOT_RUN]
        worst = min(ran, key=ORDER.index, default=Behaviour.NOT_RUN)
        return Cell(worst, ran.count(Behaviour.HOLDS), len(ran))

    def make_notes(self, outcomes: Iterable[CaseBehaviour]) -> tuple[Note, ...]:
        """Return the deviations, the worst first.

        There is one note for all scenarios that deviate alike on the same backends.
        """
        backends_of: dict[tuple[Deviation, str], set[str]] = {}
        for case, behaviour, reason in outcomes:
            if behaviour not in NOT_DEVIATING:
                issue = case.entry.issue if case.entry is not None else None
                key = Deviation(behaviour, reason, issue or ""), case.scenario.id
                backends_of.setdefault(key, set()).add(case.backend)

        scenarios_of: dict[tuple[Deviation, tuple[str, ...]], list[str]] = {}
        for (deviation, scenario), deviating in backends_of.items():
            in_order = tuple(sorted(deviating, key=self.backends.index))
            scenarios_of.setdefault((deviation, in_order), []).append(scenario)

        notes = []
        for (deviation, on), ids in scenarios_of.items():
            behaviour, reason, issue = deviation
            lifetime = self.find_lifetime(on, ids)
            notes.append(Note(behaviour, on, reason, tuple(ids), issue, *lifetime))
        return tuple(sorted(notes, key=lambda note: ORDER.index(note.behaviour)))

    def find_lifetime(self, deviating: Sequence[str], scenarios: Iterable[str]) -> tuple[str, str]:
        """Return the first release that deviates, and the one that fixed it; empty for none."""
        seen = [release for release in self.releases if release in deviating]
        if not seen:
            return "", ""
        first = column_title(seen[0])
        for release in self.releases[self.releases.index(seen[-1]) + 1 :][:1]:
            if all(self.worst[s].get(release) is Behaviour.HOLDS for s in scenarios):
                return first, column_title(release)
        return first, ""

    def find_grave(self) -> tuple[GraveFinding, ...]:
        """Return the deviations that are in `GRAVE`, first those still so on the last backend."""
        findings = []
        for note in self.make_notes(o for o in self.outcomes if o.behaviour in GRAVE):
            behaviours = self.worst[note.scenarios[0]]
            cells = {name: behaviours.get(name, Behaviour.NOT_RUN) for name in self.backends}
            findings.append(GraveFinding(note, cells))

        def severity(finding: GraveFinding) -> tuple[int, bool]:
            is_over = self.backends[-1] not in finding.note.backends
            return ORDER.index(finding.note.behaviour), is_over

        return tuple(sorted(findings, key=severity))


# --------------------------------------------------------------------------- names of columns
def paddle_releases(backends: Iterable[str]) -> list[str]:
    """Return the releases of Paddle among some backends."""
    return [backend for backend in backends if kind_of(backend) == "paddle"]


def column_title(backend: str) -> str:
    """Return the title of a column: ``engine``, ``cupy``, ``3.0.0``."""
    if kind_of(backend) == "paddle":
        return version_of(backend) or backend
    return "engine" if backend == "numpy" else backend


def describe_backends(backends: Sequence[str], columns: Sequence[str]) -> str:
    """Describe some columns: ``3.0.0 to 3.2.2``, ``2.6.2, 3.1.1``, ``every release``."""
    releases = paddle_releases(columns)
    if len(releases) > 1 and list(backends) == releases:
        return "every release"

    def run(numbered: tuple[int, str]) -> tuple[int, str]:
        """Key that columns next to each other share if they are of one kind."""
        position, backend = numbered
        return columns.index(backend) - position, kind_of(backend)

    names = []
    for _, group in groupby(enumerate(backends), key=run):
        titles = [column_title(backend) for _, backend in group]
        names.append(titles[0] if len(titles) == 1 else f"{titles[0]} to {titles[-1]}")
    return ", ".join(names)
