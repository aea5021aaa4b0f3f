"""The table of calls is complete, and every row of known differences is about calls that are in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import release_names
import table
from known import CRASHES, KNOWN, last_word
from one_liners import PROGRAMS

PATHS = {last_word(path) for path in table.ENTRIES}


def test_every_public_name_of_the_facade_has_calls() -> None:
    shown = {path.partition(" ")[0] for path in PROGRAMS}
    left = [name for name in table.names() if name not in table.ENTRIES and name not in shown]
    # What talks to other ranks has none to talk to here: worlds hold it (`test_worlds`, specs/checker/worlds.grad.yaml).
    assert [name for name in left if not name.startswith("distributed.")] == []


@pytest.mark.parametrize("row", [*KNOWN, *CRASHES], ids=lambda row: row.names)
def test_every_row_names_what_is_called(row) -> None:
    assert row.reason
    assert row.names == "*" or set(row.names.split()) <= PATHS


def test_the_names_of_the_release_are_those_it_has(real: Any, tmp_path: Path) -> None:
    made = tmp_path / "names.txt"
    subprocess.run([sys.executable, release_names.__file__, str(made)], capture_output=True, check=True)
    assert made.read_text() == release_names.FILE.read_text()
