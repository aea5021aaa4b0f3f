"""Random programs of static mode on the engine and on Paddle 3.3.1: the same gradients, and None only where Paddle has none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from static_programs import BINARY, SOURCES, UNARY, drawn, found

import pylayer.paddle as engine

COUNT = 150
"""Programs a test draws; under ``-m long`` ten times as many, two times over."""

WRONG = {3012}
"""Programs of which the release gives a wrong gradient of a gradient: zeros where a product's other factor needs one."""


def compare(real: Any, seed: int) -> str:
    """Hold the engine's gradients of one program against Paddle's, if that has any; which of the two it was."""
    program = drawn(seed)
    try:
        expected = found(real, program)
    except Exception:  # some gradients of gradients
        return "refused"
    gradients = found(engine, program)
    for ours, theirs in zip(gradients, expected, strict=True):
        if ours is None or theirs is None:  # nothing and zeros are the same
            assert not np.any(theirs if ours is None else ours), program
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=repr(program))
    return "compared" if any(g is not None and np.any(g) for g in expected) else "without gradients"


@pytest.mark.filterwarnings("ignore")
def test_programs_have_the_gradients_of_the_release(real: Any) -> None:
    counts = Counter(compare(real, seed) for seed in range(COUNT))
    assert counts["compared"] > COUNT // 4
    assert counts["refused"] < COUNT // 20


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(2))
def test_many_programs_have_the_gradients_of_the_release(real: Any, part: int) -> None:
    for seed in range(part * 10 * COUNT, (part + 1) * 10 * COUNT):
        if seed not in WRONG:
            compare(real, seed)


def test_every_source_and_operation_is_drawn() -> None:
    names = {step.name for seed in range(COUNT) for step in drawn(seed).steps}
    assert names == {*SOURCES, *UNARY, *BINARY}
