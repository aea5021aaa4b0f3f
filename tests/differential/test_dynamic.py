"""Random programs of dynamic mode on the engine and on Paddle 3.3.1: the same values, flags and gradients."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from dynamic_programs import CHANGES, OPERATIONS, SETTINGS, SOURCES, VIEWS, drawn, found

import pylayer.paddle as engine

COUNT = 300
"""Programs a test draws; under ``-m long`` ten times as many, twice."""

WRONG = {865, 1127}
"""Programs of which the release's `grad` gives a wrong gradient, of a result that others of the inputs lie behind."""


def compare(real: Any, seed: int) -> str:
    """Hold what the engine makes of one program against what Paddle does; whether it was refused by both."""
    program = drawn(seed)
    expected = outcome(real, program)
    ours = outcome(engine, program)
    if expected is None:  # which the engine may do all the same
        return "refused"
    assert ours is not None, program
    for one, other in zip(ours, expected, strict=True):
        if one is None or other is None:  # nothing and zeros are the same
            assert not np.any(other if one is None else one), program
        else:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=repr(program))
    return "compared"


def outcome(library: Any, program: Any) -> list[Any] | None:
    """What a library gives, None if it refuses."""
    try:
        return found(library, program)
    except (RuntimeError, ValueError, SystemError):
        return None


@pytest.mark.filterwarnings("ignore")
def test_programs_do_the_same(real: Any) -> None:
    counts = Counter(compare(real, seed) for seed in range(COUNT))
    assert counts["compared"] > COUNT // 2


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(2))
def test_many_programs_do_the_same(real: Any, part: int) -> None:
    for seed in range(part * 10 * COUNT, (part + 1) * 10 * COUNT):
        if seed not in WRONG:
            compare(real, seed)


def test_everything_is_drawn() -> None:
    programs = [drawn(seed) for seed in range(COUNT)]
    names = {name for p in programs for name in (*p.sources, *(act.name for act in p.acts))}
    assert names == {*SOURCES, *OPERATIONS, *VIEWS, *CHANGES, *SETTINGS}
