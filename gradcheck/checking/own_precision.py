"""Is a gradient computed well? In the dtypes that the layer itself computes in, casts and all, it may lose no more
digits than automatic differentiation does there, and than its own operations round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.checking.arrays import EPSILON, FEW, MANY, Array, distance, even_weights, finite_or_zero, module_of
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry, FlatOutputs, Point

DRAWS = 3
"""Perturbed runs: of three, an entry's largest response is small by a factor of 10 once in 1,000."""


def wrong_in_own_precision(point: Point, random: np.random.Generator, rtol: float) -> tuple[list[Entry], str]:
    """The entries of the gradient of a random sum of the outputs in which the layer's own backward, in the dtypes that
    it was given, loses more digits than it may; and the dtype that it computes in.

    None if it computes in nothing but double precision, or if its outputs do not fit its dtype.
    """
    if point.as_given and not point.casts_left_out:
        return [], ""
    problem, inputs = point.problem, list(point.problem.inputs)
    tape = point.recorded(inputs, own=True) if point.reruns is not None else None
    outputs = FlatOutputs(
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
    if tape is not None:
        right = point.of_moved(tape.gradient(parts))
        mine = point.measured_claim(parts, random, own=True)
        taped = point.measured_tape(tape, parts, right, random, own=True)
        for one in (mine, taped):
            for _ in range(DRAWS):  # by 14 standard deviations of a rounding
                one.responses = one.perturbed(FEW * epsilon, one.responses)
        claimed = mine.plain
        # no rounding explains a gradient that is not finite
        own = [finite_or_zero(c, o) for c, o in zip(claimed, mine.responses, strict=True)]
        # another formula has other intermediates: of 297 right layers in float32 none needed more than 0.15 of this
        most = [float(np.max(response, initial=0.0)) for response in taped.responses]
        bounds = [o + m + FEW * epsilon * abs(t) for o, m, t in zip(own, most, right, strict=True)]
    else:
        claimed, right = point.of_moved(problem.vjp(inputs, parts)), point.vjp(cotangent)
        bounds = [opaque_bound(point.x[k], outputs.vector * cotangent, g, epsilon) for k, g in enumerate(right)]
    wrong = []
    for number, (c, t, bound) in enumerate(zip(claimed, right, bounds, strict=True)):
        bar = float(limits.smallest_normal) + bound + rtol * abs(t)
        off = ~(distance(c, t) <= bar) & (abs(t) <= float(limits.max))
        for i in module_of(t).flatnonzero(off).tolist():
            values = [float(v.reshape(-1)[i].real) for v in (c, t, bar)]
            wrong.append(Entry(number, i, SUM_OF_OUTPUTS, *values))
    return wrong, name


def opaque_bound(x: Array, terms: Array, gradient: Array, epsilon: float) -> float:
    """How far the gradient of a sum of some terms may be off for one input, where nothing sees the operations: those
    that are left of it, and the difference of two numbers as large as the outputs, over the scale of the inputs."""
    scale, largest = float(abs(x).max(initial=0.0)), float(abs(terms).max(initial=0.0))
    natural = max(largest / scale if scale else 0.0, min(largest, 1.0))
    return epsilon * (MANY * float(abs(gradient).max(initial=0.0)) + 2 * natural)


def lost_digits(point: Point, entries: Sequence[Entry], name: str) -> str:
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
