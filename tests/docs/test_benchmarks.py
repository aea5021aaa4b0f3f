"""The page of benchmarks and its charts show what the last run recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "examples"))

import benchmarks  # noqa: E402
import pytest  # noqa: E402

RECORD = json.loads((ROOT / "docs/examples/benchmarks.json").read_text(encoding="utf-8"))
DRAWN = benchmarks.files(RECORD)


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_a_page_or_chart_is_what_the_record_says(path: Path) -> None:
    shown = path.read_text(encoding="utf-8")
    assert shown == DRAWN[path], "draw it anew: python docs/examples/benchmarks.py --draw"


def test_another_figure_changes_the_page_and_the_chart() -> None:
    figures = RECORD["mutants"]["figures"] | {"caught": {"ours": 399}, "alarms": {"ours": 1}}
    drawn = benchmarks.files(RECORD | {"mutants": RECORD["mutants"] | {"figures": figures}})
    assert drawn[ROOT / "docs/benchmarks.md"] != DRAWN[ROOT / "docs/benchmarks.md"]
    assert drawn[ROOT / "docs/pictures/verdicts.svg"] != DRAWN[ROOT / "docs/pictures/verdicts.svg"]


def test_every_chart_is_on_the_page() -> None:
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    for path in DRAWN:
        assert path.suffix != ".svg" or f"(pictures/{path.name})" in page
