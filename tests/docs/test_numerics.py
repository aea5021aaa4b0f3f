"""The page on verdicts, the table of its clauses and the tests' marks name the same clauses."""

from __future__ import annotations

import re
from pathlib import Path

import clauses
import pytest

ROOT = Path(__file__).parents[2]
IDS = [clause.id for clause in clauses.CLAUSES]


def test_every_clause_has_its_sentence_in_order() -> None:
    page = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    assert re.findall(r"^- \*\*(V\d+)\*\* ", page, re.MULTILINE) == IDS


def test_every_clause_has_a_test_and_no_test_a_clause_that_is_none() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    marks = [re.findall(r'^@pytest\.mark\.clause\(id="(\w+)"\)', path.read_text(), re.MULTILINE) for path in files]
    assert {mark for found in marks for mark in found} == set(IDS)


@pytest.mark.parametrize("clause", clauses.CLAUSES, ids=IDS)
def test_the_text_of_a_clause_stands_once_in_the_code(clause: clauses.Clause) -> None:
    for file, old, _ in clause.edits:
        assert (ROOT / clauses.ROOM / file).read_text(encoding="utf-8").count(old) == 1, f"{file}: {old}"
