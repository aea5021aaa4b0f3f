"""The matrix of rules and backends as an object for programs: ``matrix.json``, with its schema."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gradcheck.conformance.behaviour import Behaviour
from gradcheck.conformance.programs import PlainProgram
from gradcheck.conformance.table import Row, RuleMatrix, column_title
from gradcheck.spec.model import ExpectationClass


class _MatrixPart(BaseModel):
    model_config = ConfigDict(frozen=True, validate_by_name=True, serialize_by_alias=True)


class CellRecord(_MatrixPart):
    """The behaviour of a backend for a rule."""

    does: str = Field(description="The worst behaviour, in a word.")
    holds: int = Field(ge=0, description="Scenarios that are as expected.")
    of: int = Field(ge=0, description="Scenarios that ran; 0 where the backend was not run.")


class NoteRecord(_MatrixPart):
    """A deviation."""

    does: str = Field(description="The behaviour, in a word.")
    backends: list[str] = Field(description="The backends that deviate so.")
    reason: str
    scenarios: list[str]
    issue: str = Field(description="Address where it is discussed; empty if none is known.")
    first_seen: str = Field(description="The first release that deviates, of those that were run.")
    fixed_in: str = Field(description="The next release that was run and behaves as expected.")


class ProgramRecord(_MatrixPart):
    """A plain program that shows how releases deviate from a sentence."""

    code: str
    prints: dict[str, str] = Field(description="Release → the output of the program there.")


class RuleRecord(_MatrixPart):
    """A rule in one class."""

    rule: str
    class_: ExpectationClass = Field(alias="class")
    says: str
    document: str
    section: str
    quote: str = Field(description="The sentence; empty where no document has one.")
    gloss: str = Field(description="The quote in English, where it is in another language.")
    against: str = Field(description="For a decision: the evidence against it.")
    decided: str
    cells: dict[str, CellRecord] = Field(description="Backend → its behaviour.")
    notes: list[NoteRecord]
    scenarios: list[str]
    program: ProgramRecord | None


class ChangeRecord(_MatrixPart):
    """The rules in which a release differs from the one before it, with their classes."""

    from_: str = Field(alias="from")
    to: str
    fixed: list[str]
    better: list[str]
    worse: list[str]
    broken: list[str]


class MatrixRecord(_MatrixPart):
    """All rules on some backends."""

    format: Literal["gradcheck-matrix/3"] = "gradcheck-matrix/3"
    made: str = Field(description="When and where it was run.")
    backends: dict[str, str] = Field(description="Backend → the title of its column.")
    rules: list[RuleRecord]
    scenarios: dict[str, dict[str, str]] = Field(description="Scenario → backend → behaviour.")
    changes: list[ChangeRecord]


def matrix_record(matrix: RuleMatrix, programs: dict[str, PlainProgram]) -> MatrixRecord:
    """Return the object of a matrix; `programs` are by rule."""
    scenarios = {}
    for scenario, behaviours in matrix.scenarios.items():
        scenarios[scenario] = {name: word_of(behaviour) for name, behaviour in behaviours.items()}
    changes = []
    for change in matrix.changes():
        by_word = {word: [row.anchor for row in rows] for word, rows in change.by_word.items()}
        ends = {"from": change.older, "to": change.newer}
        changes.append(ChangeRecord.model_validate({**ends, **by_word}))
    return MatrixRecord(
        made=matrix.made,
        backends={backend: column_title(backend) for backend in matrix.backends},
        rules=[rule_record(row, programs.get(row.rule.id)) for row in matrix.rows],
        scenarios=scenarios,
        changes=changes,
    )


def rule_record(row: Row, program: PlainProgram | None) -> RuleRecord:
    """Return the object of a row."""
    cells = {}
    for backend, cell in row.cells.items():
        does = word_of(cell.behaviour)
        cells[backend] = CellRecord(does=does, holds=cell.holds, of=cell.of)
    shown = None
    if program is not None and row.class_ == "sentence":
        shown = ProgramRecord(code=program.code, prints=program.prints)
    return RuleRecord(
        rule=row.rule.id,
        **{"class": row.class_},
        document=row.document.document,
        **row.rule.model_dump(exclude={"id", "class_", "engine"}),
        cells=cells,
        notes=[NoteRecord(does=note.behaviour, **note._asdict()) for note in row.notes],
        scenarios=list(row.scenarios),
        program=shown,
    )


def word_of(behaviour: Behaviour) -> str:
    """Return a behaviour in letters."""
    words = {Behaviour.HOLDS: "as expected", Behaviour.NOT_RUN: "not run"}
    return words.get(behaviour, str(behaviour))
