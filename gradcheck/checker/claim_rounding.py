"""How much of what backward gives is rounding, where no tape tells it: measured as the rounding of a forward is."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from gradcheck.checker.low_precision import UNITS
from gradcheck.checker.point import Point
from gradcheck.numeric.line import Array, inner, random_direction, scale_of
from gradcheck.numeric.noise import DEVIATIONS, Table

APART = 4
"""The spacing of the points at which backward is run, in units of the dtype that it may round to: each is rounded
anew."""
FLOAT32 = 2.0**-23
"""In which a backward may compute though its inputs are float64 (a cotangent that is cast)."""
COARSEST = 2.0**-10
"""Of float16. Points as far apart as the numbers of a coarser dtype are no longer close."""


@functools.cache
def table(coarsest: float) -> Table:
    """12 points and sixth to eighth differences, as for rounding of the forward that hides between close values."""
    return Table(12, APART * coarsest, range(6, 9))


def claim_rounding(
    point: Point, direction: Sequence[Array | None], cotangent: Array, size: float, random: np.random.Generator
) -> float:
    """The rounding error of the claimed uᵀJ d, by high differences of it at a few close points and cotangents.

    A backward may compute in the dtype that its inputs were given in, though they are float64 here, or in float32
    whatever they are. No more is granted than `UNITS` of that dtype, relative to `size`, how large the claim can be:
    more is structure of a wrong backward.
    """
    coarsest = max(point.coarsest, FLOAT32)
    if not size > 0 or coarsest > COARSEST:
        return 0.0
    moves = point.direction(random)
    turn = random_direction(cotangent, scale_of(cotangent) * (cotangent != 0), random)

    def claimed(t: float) -> float:
        moved = [x if d is None else (x + t * d).astype(x.dtype) for x, d in zip(point.x, moves, strict=True)]
        gradients = point.vjp(cotangent + t * turn, moved)
        return sum(inner(gradients[k], d) for k, d in enumerate(direction) if d is not None)

    nodes = table(coarsest)
    try:
        values = np.array([[claimed(t)] for t in nodes.nodes.tolist()])
    except Exception:  # it is not asked to work elsewhere
        return 0.0
    found = DEVIATIONS * float(nodes.deviation(np, values)[0])
    return min(found, UNITS * coarsest * size) if found == found else 0.0
