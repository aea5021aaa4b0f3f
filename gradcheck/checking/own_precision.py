"""Is a gradient computed well? In the dtypes that the layer itself computes in, casts and all, it may lose no more
digits than automatic differentiation does there, and than its own operations round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.checking.arrays import EPSILON, Array, distance, module_of
from gradcheck.checking.cotangents import even_weights
from gradcheck.checking.outputs import Outputs
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry, Point
from gradcheck.checking.precision import noting, perturbing
from gradcheck.checking.tape import Tape, perturbed_gradient

EPSILONS = 4.0
"""Epsilons by which every operation is perturbed to see how the rounding of its results moves a gradient."""
OF_TAPE = 8.0
"""How many times what the tape's own gradient moves is granted: another formula for the same gradient, of other
intermediates."""
DRAWS = 3
"""Perturbed runs: of three, an entry's largest response is small by a factor of 10 once in 1,000."""
OPAQUE = 32.0
"""Epsilons, relative to the largest entry, that are granted where nothing sees the operations: 5 bits for some ten
operations in a row."""
OF_OUTPUTS = 2.0
"""Epsilons of the outputs, over the scale of the inputs, that are granted there as well: the difference of two numbers
as large as the outputs, each rounded."""


def wrong_in_own_precision(point: Point, random: np.random.Generator, rtol: float) -> tuple[list[Entry], str]:
    """The entries of the gradient of a random sum of the outputs in which the layer's own backward, in the dtypes that
    it was given, loses more digits than it may; and the dtype that it computes in.

    None if it computes in nothing but double precision, or if its outputs do not fit its dtype.
    """
    if point.as_given and not point.casts_left_out:
        return [], ""
    problem, inputs = point.problem, list(point.problem.inputs)
    tape = point.recorded(inputs, own=True) if point.reruns is not None else None
    outputs = Outputs(
        problem.forward(inputs) if problem.outputs is None else list(problem.outputs), point.outputs.active
    )
    epsilon = max(EPSILON[name] for name in (*point.casts, *(inputs[k].dtype.name for k in point.moved)))
    if tape is not None:
        epsilon = max(epsilon, tape.coarsest)
    name = next(n for n, e in EPSILON.items() if e == epsilon)
    limits: Any = ml_dtypes.finfo(name)  # type: ignore[no-untyped-call]
    if not bool((abs(outputs.vector) <= float(limits.max)).all()):  # they overflow there
        return [], name
    cotangent = even_weights(outputs.vector, random)
    parts = outputs.split(cotangent)
    point.spent.on(vjps=1)
    claimed = point.of_moved(problem.vjp(inputs, parts))
    if tape is not None:
        right = point.of_moved(tape.gradient(parts))
        bounds = by_perturbation(point, tape, parts, right, epsilon, random)
    else:
        right = point.vjp(cotangent)
        bounds = [opaque_bound(point.x[k], outputs.vector * cotangent, g, epsilon) for k, g in enumerate(right)]
    wrong = []
    for number, (c, t, bound) in enumerate(zip(claimed, right, bounds, strict=True)):
        bar = float(limits.smallest_normal) + bound + rtol * abs(t)
        off = ~(distance(c, t) <= bar) & (abs(t) <= float(limits.max))
        for i in module_of(t).flatnonzero(off).tolist():
            values = [float(v.reshape(-1)[i].real) for v in (c, t, bar)]
            wrong.append(Entry(number, i, SUM_OF_OUTPUTS, *values))
    return wrong, name


def by_perturbation(
    point: Point,
    tape: Tape,
    cotangents: Sequence[Array | None],
    right: Sequence[Array],
    epsilon: float,
    random: np.random.Generator,
) -> list[Array]:
    """Per moved input, how far the layer's own gradient may be off the tape's."""
    reruns, inputs = point.problem.reruns, list(point.problem.inputs)
    assert reruns is not None
    choices: list[Array] = []
    plain = point.of_moved(reruns.gradients(inputs, cotangents, noting(choices), own=True))
    own: list[Any] = [0.0 for _ in right]
    by_tape: list[Any] = [0.0 for _ in right]
    for _ in range(DRAWS):
        point.spent.on(evaluations=1, vjps=1)
        change = perturbing(EPSILONS * epsilon, random, choices)
        moved = point.of_moved(reruns.gradients(inputs, cotangents, change, own=True))
        # no rounding explains a gradient that is not finite
        own = [
            np.maximum(o, module_of(p).where(np.isfinite(p), distance(m, p), 0.0))
            for o, m, p in zip(own, moved, plain, strict=True)
        ]
        change = perturbing(EPSILONS * epsilon, random, tape.choices)
        again = reruns.recording(inputs, change, own=True)
        assert again is not None
        change = perturbing(EPSILONS * epsilon, random, [])
        moved = point.of_moved(perturbed_gradient(Tape(again), cotangents, change))
        by_tape = [np.maximum(b, distance(m, t)) for b, m, t in zip(by_tape, moved, right, strict=True)]
    return [
        o + OF_TAPE * float(np.max(b, initial=0.0)) + EPSILONS * epsilon * abs(t)
        for o, b, t in zip(own, by_tape, right, strict=True)
    ]


def opaque_bound(x: Array, terms: Array, gradient: Array, epsilon: float) -> float:
    """How far the gradient of a sum of some terms may be off for one input, where nothing sees the operations."""
    scale, largest = float(abs(x).max(initial=0.0)), float(abs(terms).max(initial=0.0))
    natural = max(largest / scale if scale else 0.0, min(largest, 1.0))
    return epsilon * (OPAQUE * float(abs(gradient).max(initial=0.0)) + OF_OUTPUTS * natural)


def told(point: Point, entries: Sequence[Entry], name: str) -> str:
    """How many decimal digits are lost in the worst of some entries, of how many that a dtype has."""
    errors = [abs(e.analytic - e.numeric) / abs(e.numeric) for e in entries if e.numeric]
    left_out = point.reruns.left_out if point.reruns is not None else set[str]()
    casts = sorted(cast for cast in left_out if EPSILON[cast] > EPSILON[name])
    text = digits(max([e for e in errors if e == e], default=1.0), name)
    return f"{text}, with casts to {', '.join(casts)}" if casts else text


def digits(error: float, name: str) -> str:
    """How many decimal digits a relative error leaves, of how many that a dtype has."""
    known = round(-np.log10(EPSILON[name]))
    lost = min(max(round(known + np.log10(error)), 1), known) if error else 1
    return f"right, but {lost} of {known} digits are lost in {name}"
