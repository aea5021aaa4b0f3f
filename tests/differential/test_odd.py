"""Every function with odd inputs beside Paddle 3.3.1: transposed, empty, 0-d, half precision, complex, NaN, axes from the end."""

from __future__ import annotations

from typing import Any

import pytest
import table
from described import Arguments
from hypothesis import HealthCheck, given, settings
from known import crashes, excused
from odd import ODDITIES, odd
from test_calls import both

FEW = settings(max_examples=2, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def drawn(path: str) -> list[Arguments]:
    """Some arguments that are drawn for a path; the first that Hypothesis draws are the plainest, and left out."""
    found: list[Arguments] = []

    @FEW
    @given(arguments=table.ENTRIES[path].arguments)
    def run(arguments: Arguments) -> None:
        found.append(arguments)

    run()
    return found[1:]


@pytest.mark.parametrize("path", table.ENTRIES)
def test_odd_inputs_do_the_same(real: Any, path: str) -> None:
    for usual in drawn(path):
        for oddity in ODDITIES:
            arguments = odd(usual, oddity)
            if arguments is None or crashes(path, arguments):
                continue
            ours, theirs, found = both(real, path, arguments)
            unknown = {fact: pair for fact, pair in found.items() if not excused(path, arguments, fact, ours, theirs)}
            assert not unknown, f"{oddity}: {path}({arguments}): engine, Paddle: {unknown}"
