"""The programs do the same on the engine and on Paddle 3.3.1: values, dtypes, shapes, flags, gradients and errors."""

from __future__ import annotations

import re
from typing import Any

import pytest
from one_liners import DIFFERS, EXACT, PROGRAMS, run
from outcome import differences

import pylayer.paddle as engine


@pytest.mark.parametrize("path", PROGRAMS)
def test_a_program_does_the_same(real: Any, path: str) -> None:
    ours, theirs = run(engine, path), run(real, path)
    pattern, reason = DIFFERS.get(path, ("", ""))
    raises = path.endswith(" raises") or pattern == "error"
    assert (theirs.error is not None) == raises, f"on Paddle: {theirs.error}: {theirs.message}"
    found = differences(ours, theirs, tolerance=EXACT)
    unknown = {fact: pair for fact, pair in found.items() if not re.fullmatch(pattern, fact)}
    assert not unknown, f"{path}: {PROGRAMS[path]}\nengine, Paddle: {unknown} {ours.message}"
    assert (len(found) > len(unknown)) == bool(reason), "no longer differs"


def test_a_known_difference_is_of_a_program() -> None:
    assert set(DIFFERS) <= set(PROGRAMS)
