"""The table of calls is complete, and every row of known differences is about calls that are in it."""

from __future__ import annotations

import pytest
import table
from known import CRASHES, KNOWN, last_word
from one_liners import PROGRAMS

PATHS = {last_word(path) for path in table.ENTRIES}


def test_every_public_name_of_the_facade_has_calls() -> None:
    shown = {path.partition(" ")[0] for path in PROGRAMS}
    assert [name for name in table.names() if name not in table.ENTRIES and name not in shown] == []


@pytest.mark.parametrize("row", [*KNOWN, *CRASHES], ids=lambda row: row.names)
def test_every_row_names_what_is_called(row) -> None:
    assert row.reason
    assert row.names == "*" or set(row.names.split()) <= PATHS
