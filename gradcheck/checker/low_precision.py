"""A backward that computes in a lower precision than float64: how much of what it gives may be rounding, and whether
it is right in the inputs' own dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import is_differentiable
from gradcheck.checker.cotangents import even_weights
from gradcheck.checker.outputs import Outputs
from gradcheck.checker.point import SUM_OF_OUTPUTS, Point
from gradcheck.numeric.arrays import EPS, EPSILON, FLOAT32, Array, flat, inner, module_of, real, spacing, wide
from gradcheck.numeric.jacobian import Entry
from gradcheck.numeric.line import moved, random_direction, scale_of
from gradcheck.numeric.noise import DEVIATIONS, FLOAT32_AT_LEAST, high

SPACED = 4
"""The spacing of the points at which backward is run, in units of the dtype that it may round to: each is rounded
anew."""
COTANGENTS_NEARBY = 2.0**-11
"""How far apart cotangents are at which a gradient's rounding is measured, 12 of them: of a difference that cancels
down to 1e-4 of its terms (x − tanh x at 0.01) all others are rounded alike in float32."""
BACKWARD_UNITS = 32
"""Units in the last place that a backward in low precision may be off, relative to the largest gradient: 5 bits for
some ten operations in a row."""
NEIGHBOURS, NEARBY = 6, 2.0**-7
"""Points close by at which the error is looked at, and how close, relative to the inputs."""
SPREAD = 6
"""How many times the root mean square of the error there the error may be: rounding varies from point to point, a wrong
formula is off by the same everywhere, so that its error is one root mean square. By Student's t, 6 neighbours' is
exceeded 6 times once in 1,000."""
UNASKED = 4
"""Units of rounding granted unasked to a backward in a lower precision than float64, of how large the claim can be: a
few operations in a row."""
OF_OUTPUTS = 2.0
"""Units in the last place of the outputs, over the scale of the inputs, that a gradient may be off at least: the
difference of two numbers as large as the outputs, each rounded. A forward shows nothing smaller either."""


def allowances(
    point: Point, direction: Sequence[Array | None], cotangent: Array, gradients: Sequence[Array], size: float
) -> Iterator[float]:
    """What a claimed uᵀJ d may be off by its own rounding: at first what is granted unasked, then what is measured.

    Unasked is the rounding of the dtype that the inputs were given in; of float32 also if it is not seen, as that of a
    constant is not, of a coarser one if it is. `size` is how large the claim can be.
    """
    random = np.random.default_rng(point.spent.vjps)  # the looks that follow draw the same, measured or not
    epsilon = point.coarsest
    if epsilon > FLOAT32:
        epsilon = max(FLOAT32, epsilon_seen(point, cotangent, gradients, random))
    if epsilon > EPS:
        yield UNASKED * epsilon * size
    yield projection_rounding(point, direction, cotangent, size, random)


def most_allowed(point: Point, size: float) -> float:
    """No less than `allowances` gives in all."""
    return (UNASKED + BACKWARD_UNITS) * max(point.coarsest, FLOAT32) * size


def projection_rounding(
    point: Point, direction: Sequence[Array | None], cotangent: Array, size: float, random: np.random.Generator
) -> float:
    """The rounding error of the claimed uᵀJ d, by high differences of it at a few close points and cotangents.

    A backward may compute in the dtype that its inputs were given in, though they are float64 here, or in float32
    whatever they are. No more is granted than `BACKWARD_UNITS` of that dtype, relative to `size`, how large the claim
    can be: more is structure of a wrong backward.
    """
    coarsest = max(point.coarsest, FLOAT32)
    if not size > 0 or coarsest > EPSILON["float16"]:  # points as far apart as coarser numbers are no longer close
        return 0.0
    moves = point.direction(random)
    turn = turned(cotangent, random)

    def claimed(t: float) -> float:
        gradients = point.vjp(cotangent + t * turn, moved(point.x, moves, t))
        return sum(inner(gradients[k], d) for k, d in enumerate(direction) if d is not None)

    try:
        found = float(strays(lambda t: np.array([claimed(t)]), SPACED * coarsest)[0])
    except Exception:  # it is not asked to work elsewhere
        return 0.0
    return min(found, BACKWARD_UNITS * coarsest * size) if found == found else 0.0


def turned(cotangent: Array, random: np.random.Generator) -> Array:
    """A random direction for a cotangent; elements that are 0 stay so."""
    return random_direction(cotangent, scale_of(cotangent) * (cotangent != 0), random)


def gradient_rounding(point: Point, cotangent: Array, random: np.random.Generator) -> list[float]:
    """How far the elements of the gradient of every moved input may be off by rounding, at most, measured at cotangents
    nearby.

    Rounding varies between these; what is linear does not, however far apart they are, and other functions of the
    cotangent, clipping or squaring it, are smooth there or nearly so.
    """
    turn = turned(cotangent, random)
    return largest_parts(strays(lambda t: real(flat(point.vjp(cotangent + t * turn))), COTANGENTS_NEARBY), point.x)


def strays_from_tape(point: Point, cotangent: Array, random: np.random.Generator) -> list[float]:
    """How far the elements of the gradient of every moved input may be off the tape's by rounding, at most: from points
    and cotangents close by, between which an error of another kind is smooth."""
    coarsest = max(point.coarsest, FLOAT32)
    spacing, held = SPACED * coarsest, coarsest > EPSILON["float16"]  # coarser numbers are no longer close
    turn = turned(cotangent, random) * (COTANGENTS_NEARBY / spacing)
    moves = point.direction(random, [None for _ in point.x] if held else None)

    def apart(t: float) -> Array:
        x, u = moved(point.x, moves, t), cotangent + t * turn
        tape = point.recorded(point.at(x))
        assert tape is not None
        taped = point.of_moved(tape.gradient(point.outputs.split(u)))
        return real(flat([a - b for a, b in zip(point.vjp(u, x), taped, strict=True)]))

    try:
        return largest_parts(strays(apart, spacing), point.x)
    except Exception:  # it is not asked to work elsewhere, nor to be recorded there
        return [0.0 for _ in point.x]


def largest_parts(values: Array, like: Sequence[Array]) -> list[float]:
    """Per array the largest of its part of a flat real vector, NaN left out."""
    ends = np.cumsum([0, *(x.size * (2 if x.dtype.kind == "c" else 1) for x in like)]).tolist()
    parts = [values[start:end] for start, end in itertools.pairwise(ends)]
    return [float(part[part == part].max(initial=0.0)) for part in parts]


def epsilon_seen(point: Point, cotangent: Array, gradients: Sequence[Array], random: np.random.Generator) -> float:
    """The spacing of the dtype that backward is seen to round to: float64's, or float32's and more, up to that of the
    inputs as they were given."""
    pairs = zip(gradient_rounding(point, cotangent, random), gradients, strict=True)
    seen = max(rounding / (float(abs(g).max()) or 1.0) for rounding, g in pairs if g.size)
    float32 = FLOAT32
    return min(max(float32, seen), max(float32, point.coarsest)) if seen > FLOAT32_AT_LEAST * EPS else EPS


def strays(values: Callable[[float], Array], spacing: float) -> Array:
    """How far every element of what is computed near 0 may be off by rounding, from points so far apart."""
    nodes = high(spacing)
    rows = [values(t) for t in nodes.nodes.tolist()]
    return DEVIATIONS * nodes.deviation(module_of(rows[0]).stack(rows))


def wrong_in_low_precision(point: Point, random: np.random.Generator, rtol: float) -> list[Entry]:
    """The elements on which the gradients of a random sum of the outputs differ too much; none if there is no lower
    dtype.

    Inputs are moved, and cotangents of another size taken: a gradient is linear in these, its rounding is not, also
    where it is frozen between close points (x − tanh x at 0.01).

    The bound per element is the sum of `BACKWARD_UNITS` of the dtype, of the largest gradient; of `OF_OUTPUTS`, of its
    natural size; and of how much the error varies between points close by. What the dtype cannot hold is not compared.
    """
    if point.as_given:
        return []
    low_inputs = list(point.problem.inputs)
    low_outputs = Outputs(point.problem.forward(low_inputs), point.outputs.active)
    eps = max(spacing(low_inputs[k]) for k in point.moved)
    smallest, largest = range_of(low_inputs, point.moved)
    if not bool((abs(low_outputs.vector) <= largest).all()):  # they overflow there
        return []
    cotangent = even_weights(point.outputs.vector, random)

    def nudged(x: Array) -> Array:
        factor = 1 + NEARBY * (random.integers(0, 2, x.shape) * 2 - 1)
        return module_of(x).asarray(x * factor, dtype=x.dtype) if is_differentiable(x) else x

    def vjp(inputs: Sequence[Array], cotangents: Sequence[Array | None]) -> list[Array]:
        return point.of_moved(point.problem.vjp(list(inputs), list(cotangents)))

    def both(inputs: Sequence[Array], cotangent: Array) -> list[tuple[Array, Array]]:
        low = low_outputs.split(cotangent)
        exact = [None if u is None else wide(u) for u in low]
        return list(zip(vjp(inputs, low), vjp([wide(x) for x in inputs], exact), strict=True))

    here = both(low_inputs, cotangent)
    squares: list[Any] = [0.0 for _ in here]
    for _ in range(NEIGHBOURS):
        near, factor = [nudged(x) for x in low_inputs], 1 + random.random()
        try:
            there = both(near, factor * nudged(cotangent))
        except Exception:  # outside of its domain: there the error shows at other sizes of the cotangent alone
            there = both(low_inputs, factor * nudged(cotangent))
        for number, ((a, b), (c, d)) in enumerate(zip(there, here, strict=True)):
            change = abs((a - b) / factor - (c - d))
            squares[number] = squares[number] + module_of(a).where(np.isfinite(change), change, 0.0) ** 2
    wrong = []
    for number, ((a, b), square) in enumerate(zip(here, squares, strict=True)):
        if not a.size:
            continue
        size = BACKWARD_UNITS * float(abs(b).max()) + OF_OUTPUTS * natural_size(point, number, cotangent)
        usual = sorted(square.reshape(-1).tolist())[a.size // 2]  # of one element a few may agree by chance
        strayed = SPREAD * module_of(a).sqrt(module_of(a).maximum(square, usual) / NEIGHBOURS)
        bar = smallest + eps * size + strayed + rtol * abs(b)
        for i in module_of(a).flatnonzero(~(abs(a - b) <= bar) & (abs(b) <= largest)).tolist():
            values = [float(v.reshape(-1)[i].real) for v in (a, b, bar)]
            wrong.append(Entry(number, i, SUM_OF_OUTPUTS, *values))
    return wrong


def range_of(inputs: Sequence[Array], moved: Sequence[int]) -> tuple[float, float]:
    """The smallest normal number and the largest one of the dtype among them that holds least."""
    limits: list[Any] = [ml_dtypes.finfo(inputs[k].real.dtype) for k in moved]  # type: ignore[no-untyped-call]
    return max(float(f.smallest_normal) for f in limits), min(float(f.max) for f in limits)


def natural_size(point: Point, number: int, cotangent: Array) -> float:
    """How large the gradient of an input is if the outputs are proportional to it; or the outputs themselves, as where
    they saturate (1 − y²), if they are small beside 1. Beside it rounding errors are small, also where the gradient is
    nothing but these."""
    x = point.x[number]
    size = float(abs(x).max()) if x.size else 0.0
    largest = float(abs(cotangent * point.outputs.vector).max())
    return max(largest / size if size else 0.0, saturated_size(point, cotangent))


def saturated_size(point: Point, cotangent: Array) -> float:
    """How large the outputs are, or 1 if they are larger, times the cotangent: what 1 − y² is computed from."""
    return min(float(abs(cotangent * point.outputs.vector).max()), float(abs(cotangent).max()))
