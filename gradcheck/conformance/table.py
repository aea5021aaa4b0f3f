"""The matrix of rules and backends: each backend's behaviour under each rule, from the scenarios
that cite it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from gradcheck.backends.base import kind_of, version_of
from gradcheck.case.case import Case
from gradcheck.conformance.behaviour import (
    NOT_DEVIATING,
    ORDER,
    Behaviour,
    behaviour_of,
)
from gradcheck.conformance.catalogue import Document, Rule, class_of, iterate_rules
from gradcheck.result import Result
from gradcheck.spec.model import ExpectationClass

HEADINGS: dict[ExpectationClass, str] = {
    "sentence": "Sentences of the documents",
    "precondition": "What misuse does",
    "wording": "Which error, in which words",
    "decided": "Decisions where documents contradict one another",
    "recorded": "What Paddle 3.3.1 does where documents are silent",
    "design": "What the engine does instead of Paddle 3.3.1",
    "verdict": "What gradcheck finds",
}
"""The classes in the order of the page. Only deviations from sentences count against a release."""


class Note(NamedTuple):
    """A deviation from a rule, with the backends and scenarios that show it."""

    behaviour: Behaviour
    backends: tuple[str, ...]
    reason: str
    scenarios: tuple[str, ...]
    issue: str = ""
    """The address of a discussion, if one is known."""
    first_seen: str = ""
    """The first release that deviates, of those that were run; empty if none does."""
    fixed_in: str = ""
    """The release that was run after the last one that deviates, if it behaves as expected."""


class Cell(NamedTuple):
    """The behaviour of a backend for a rule: its worst scenario, and how many are as expected.

    `of` is the number of scenarios that ran.
    """

    behaviour: Behaviour
    holds: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.behaviour} {self.holds}/{self.of}" if self.deviates else str(self.behaviour)

    @property
    def deviates(self) -> bool:
        """Whether some scenario is not as expected."""
        return self.behaviour not in NOT_DEVIATING

    @property
    def quality(self) -> tuple[int, float]:
        """Sort key, larger is better: the worst behaviour, then the share that is as expected."""
        if not self.deviates:
            return len(ORDER), 1.0
        return ORDER.index(self.behaviour), self.holds / max(self.of, 1)


class Row(NamedTuple):
    """A rule and a class, the cell of each backend, and the deviations."""

    rule: Rule
    document: Document
    class_: ExpectationClass
    cells: Mapping[str, Cell]
    notes: tuple[Note, ...]
    scenarios: tuple[str, ...]
    """Ids of the scenarios that test the rule in this class."""

    @property
    def anchor(self) -> str:
        """An anchor for links: the rule's id, with the class if it differs from the rule's own."""
        suffix = "" if self.class_ == self.rule.class_ else f"-{self.class_}"
        return f"{self.rule.id}{suffix}"

    @property
    def is_broken(self) -> bool:
        """Whether any backend deviates."""
        return any(cell.deviates for cell in self.cells.values())

    @property
    def severity(self) -> tuple[int, float]:
        """The key to sort by: the worst cell first."""
        return min(cell.quality for cell in self.cells.values())


class ReleaseChange(NamedTuple):
    """The differences between a release and the next one that was run."""

    older: str
    newer: str
    by_word: Mapping[str, Sequence[Row]]
    """The rules that were fixed and broken; and, among the rules from which both releases deviate,
    those that got better (less severe, or in fewer scenarios) and worse.
    """


class RuleMatrix(NamedTuple):
    """All rules on some backends."""

    backends: tuple[str, ...]
    rows: tuple[Row, ...]
    scenarios: Mapping[str, Mapping[str, Behaviour]]
    """The worst case of each scenario, by scenario and backend."""
    made: str
    """When and where it was run, in a sentence."""

    @property
    def releases(self) -> list[str]:
        """The columns for Paddle's releases, in order."""
        return paddle_releases(self.backends)

    def of_class(self, class_: ExpectationClass) -> list[Row]:
        """Return the rows of a class."""
        return [row for row in self.rows if row.class_ == class_]

    def ran(self, backend: str, class_: ExpectationClass) -> list[Cell]:
        """Return the cells of a backend in a class for which it was run."""
        return [cell for row in self.of_class(class_) if (cell := row.cells[backend]).of]

    def broken_by(self, backend: str, class_: ExpectationClass = "sentence") -> list[Row]:
        """Return the rows of a class from which a backend deviates, the worst first."""
        broken = [row for row in self.of_class(class_) if row.cells[backend].deviates]
        return sorted(broken, key=lambda row: row.cells[backend].quality)

    def sections(self) -> list[tuple[ExpectationClass, list[Row]]]:
        """Return, by class, the rows from which some backend deviates, the worst first."""
        sections = []
        for class_ in HEADINGS:
            broken = [row for row in self.of_class(class_) if row.is_broken]
            sections.append((class_, sorted(broken, key=lambda row: row.severity)))
        return sections

    def held(self, class_: ExpectationClass) -> list[Row]:
        """Return the rows of a class from which no backend deviates."""
        return [row for row in self.of_class(class_) if not row.is_broken]

    def changes(self) -> list[ReleaseChange]:
        """Return the differences between each release and the next."""
        return [self.compare_releases(older, newer) for older, newer in pairwise(self.releases)]

    def compare_releases(self, older: str, newer: str) -> ReleaseChange:
        """Return the differences between two releases, for rules that were run on both."""
        changed: dict[str, list[Row]] = {"fixed": [], "better": [], "worse": [], "broken": []}
        for row in self.rows:
            before, after = row.cells[older], row.cells[newer]
            if before.of == 0 or after.of == 0 or before.quality == after.quality:
                continue
            if after.quality > before.quality:
                word = "better" if after.deviates else "fixed"
            else:
                word = "worse" if before.deviates else "broken"
            changed[word].append(row)
        return ReleaseChange(older, newer, changed)

    def counts(self) -> list[tuple[ExpectationClass, list[tuple[int, int]]]]:
        """Count by class: for each backend the rules that it keeps, and those that were run."""
        counts = []
        for class_ in HEADINGS:
            numbers = []
            for backend in self.backends:
                ran = self.ran(backend, class_)
                numbers.append((sum(not cell.deviates for cell in ran), len(ran)))
            if self.of_class(class_):
                counts.append((class_, numbers))
        return counts


# --------------------------------------------------------------------------- building the matrix
def build_matrix(
    documents: Iterable[Document],
    cases: Sequence[Case],
    results: Iterable[Result],
    run_description: str = "",
) -> RuleMatrix:
    """Build the matrix of the rules of some documents from the results of cases.

    Rules without a case are left out. `run_description` describes when and where it was run.
    """
    case_by_name = {case.name: case for case in cases}
    outcomes = []
    for result in results:
        case = case_by_name[result.cases[-1]]
        outcomes.append(CaseBehaviour(case, *behaviour_of(case, result)))
    builder = MatrixBuilder(tuple(dict.fromkeys(case.backend for case in cases)), outcomes)
    rows = []
    for rule, document in iterate_rules(documents):
        rows += builder.make_rows(rule, document)
    return RuleMatrix(builder.backends, tuple(rows), builder.worst, run_description)


class CaseBehaviour(NamedTuple):
    """A case, its backend's behaviour, and the reason in words."""

    case: Case
    behaviour: Behaviour
    reason: str


class NoteKey(NamedTuple):
    """The fields in which notes must agree to be merged across backends and scenarios."""

    behaviour: Behaviour
    reason: str
    issue: str


class MatrixBuilder:
    """Builds the parts of a matrix from the outcomes of all cases."""

    def __init__(self, backends: tuple[str, ...], outcomes: Sequence[CaseBehaviour]) -> None:
        self.backends = backends
        self.releases = paddle_releases(backends)
        self.by_tag: dict[str, list[CaseBehaviour]] = {}
        self.worst: dict[str, dict[str, Behaviour]] = {}
        """The worst case of each scenario, by scenario and backend."""
        for outcome in outcomes:
            scenario, backend = outcome.case.scenario, outcome.case.backend
            by_backend = self.worst.setdefault(scenario.id, {})
            before = by_backend.get(backend, Behaviour.NOT_RUN)
            by_backend[backend] = min(outcome.behaviour, before, key=ORDER.index)
            for tag in scenario.tags:
                self.by_tag.setdefault(tag, []).append(outcome)

    def make_rows(self, rule: Rule, document: Document) -> list[Row]:
        """Return the rows of a rule: one for each class in which scenarios test it."""
        by_class: dict[ExpectationClass, list[CaseBehaviour]] = {}
        for outcome in self.by_tag.get(rule.id, ()):
            by_class.setdefault(class_of(rule, outcome.case.scenario), []).append(outcome)
        rows = []
        for class_, outcomes in by_class.items():
            scenarios = tuple(dict.fromkeys(outcome.case.scenario.id for outcome in outcomes))
            holds = Behaviour.DECIDED if class_ == "decided" else Behaviour.HOLDS
            cells = {name: self.make_cell(scenarios, name, holds) for name in self.backends}
            rows.append(Row(rule, document, class_, cells, self.make_notes(outcomes), scenarios))
        return rows

    def make_cell(self, scenarios: Iterable[str], backend: str, holds: Behaviour) -> Cell:
        """Return a backend's behaviour in some scenarios; `holds` if all are as expected."""
        done = [self.worst[scenario].get(backend, Behaviour.NOT_RUN) for scenario in scenarios]
        worst = min(done, key=ORDER.index)  # NOT_RUN is last in this order
        ran = len(done) - done.count(Behaviour.NOT_RUN)
        number = done.count(Behaviour.HOLDS)
        return Cell(holds if worst is Behaviour.HOLDS else worst, number, ran)

    def make_notes(self, outcomes: Iterable[CaseBehaviour]) -> tuple[Note, ...]:
        """Return the deviations, the worst first.

        Scenarios that deviate in the same way on the same backends share a note.
        """
        backends_of: dict[tuple[NoteKey, str], set[str]] = {}
        for case, behaviour, reason in outcomes:
            if behaviour not in NOT_DEVIATING:
                key = NoteKey(behaviour, reason, case.entry.issue or ""), case.scenario.id
                backends_of.setdefault(key, set()).add(case.backend)

        scenarios_of: dict[tuple[NoteKey, tuple[str, ...]], list[str]] = {}
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
        """Return the first release that deviates and the one that fixed it; empty if there is
        none.
        """
        deviating_releases = [release for release in self.releases if release in deviating]
        if not deviating_releases:
            return "", ""
        first = column_title(deviating_releases[0])
        for release in self.releases[self.releases.index(deviating_releases[-1]) + 1 :][:1]:
            if all(self.worst[s].get(release) is Behaviour.HOLDS for s in scenarios):
                return first, column_title(release)
        return first, ""


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
        """A key that is equal for neighbouring columns of one kind."""
        position, backend = numbered
        return columns.index(backend) - position, kind_of(backend)

    names = []
    for _, group in groupby(enumerate(backends), key=run):
        titles = [column_title(backend) for _, backend in group]
        names.append(titles[0] if len(titles) == 1 else f"{titles[0]} to {titles[-1]}")
    return ", ".join(names)
