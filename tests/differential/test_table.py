"""The table of calls is complete, and every row of known differences is about calls that are in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import table
from known import CRASHES, KNOWN, last_word
from release_names import as_text, release_names

PATHS = {last_word(path) for path in table.ENTRIES}


def test_every_public_name_of_the_facade_has_calls() -> None:
    assert [name for name in table.names() if name not in table.ENTRIES] == []


@pytest.mark.parametrize("row", [*KNOWN, *CRASHES], ids=lambda row: row.names)
def test_every_row_names_what_is_called(row) -> None:
    assert row.reason
    assert row.names == "*" or set(row.names.split()) <= PATHS


def test_the_names_of_the_release_are_those_it_has(real: Any) -> None:
    root = Path(__file__).parents[2]
    names = (root / "engine/pylayer/paddle/release-3.3.1.txt").read_text()
    assert names == as_text(release_names(real))
