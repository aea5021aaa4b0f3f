"""A backward in the inputs' own dtype, held against itself in float64, which was found right before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gradcheck.checker.outputs import Outputs, is_differentiable, natural_size, widened
from gradcheck.checker.problem import Array
from gradcheck.numeric.derivative import module_of
from gradcheck.numeric.probe import ROUNDING, Entry

UNITS = 32
"""Units in the last place that a backward in low precision may be off, relative to the largest gradient."""
NUDGES = 2
"""So many times inputs and cotangent are rounded at random, to see how far that moves the gradient."""
NEIGHBOURS, NEARBY, SPREAD = 4, 2.0**-7, 4
"""Points close by at which the error is looked at, how close, and how much larger it may be here than it varies."""
SUM_OF_OUTPUTS = -1
"""In place of an output element: the sum of all outputs with random signs."""

Vjp = Callable[[Array, Sequence[Array], Outputs], list[Array]]
"""A cotangent, the inputs and the outputs there, to the gradients of the moved inputs in float64."""


def wrong_in_low_precision(
    vjp: Vjp,
    low: tuple[Sequence[Array], Outputs],
    high: tuple[Sequence[Array], Outputs],
    moved: Sequence[int],
    eps: float,
    rtol: float,
    random: np.random.Generator,
) -> list[Entry]:
    """The elements on which the gradients of a random signed sum of the outputs differ too much.

    The bound per element: `UNITS` of the dtype, of the largest gradient, or of its natural size where it is zero; as
    much as the gradient itself changes when inputs and cotangent are rounded to the dtype (the condition of the
    backward); as much as the error varies between points close by: rounding does, a wrong formula does not.

    Args:
        low: inputs and outputs in their own dtype.
        high: the same in float64.
        moved: the inputs whose gradients `vjp` gives.
        eps: the spacing of the low dtype.
    """

    def nudged(x: Array, by: float) -> Array:
        signs = random.integers(0, 2, x.shape) * 2 - 1
        return module_of(x).asarray(x * (1 + by * signs), dtype=x.dtype) if is_differentiable(x) else x

    vector = low[1].vector
    cotangent = module_of(vector).asarray(widened(vector) * 0 + (random.integers(0, 2, vector.shape) * 2 - 1))
    found, expected = vjp(cotangent, *low), vjp(cotangent, *high)
    others = [vjp(nudged(cotangent, eps), [nudged(x, eps) for x in high[0]], high[1]) for _ in range(NUDGES)]
    errors = []
    for _ in range(NEIGHBOURS):
        near = [nudged(x, NEARBY) for x in low[0]]
        here, there = vjp(cotangent, near, low[1]), vjp(cotangent, [widened(x) for x in near], high[1])
        errors.append([a - b for a, b in zip(here, there, strict=True)])
    wrong = []
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not a.size:
            continue
        xp = module_of(a)
        condition = abs(others[0][number] - b)
        for other in others[1:]:
            condition = xp.maximum(condition, abs(other[number] - b))
        varies = xp.stack([abs(e[number] - (a - b)) for e in errors]).max(axis=0)
        size = float(abs(b).max())
        natural = natural_size(
            widened(low[0][moved[number]]), [widened(y) for y in low[1].arrays], low[1].split(cotangent)
        )
        if size <= ROUNDING * natural:  # rounding errors of a zero
            size = natural
        bar = UNITS * (eps * size + condition) + SPREAD * varies + rtol * abs(b)
        for i in xp.flatnonzero(~(abs(a - b) <= bar)).tolist():
            values = [float(v.reshape(-1)[i].real) for v in (a, b, bar)]
            wrong.append(Entry(number, i, SUM_OF_OUTPUTS, *values))
    return wrong
