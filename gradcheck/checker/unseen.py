"""What differences cannot see: a function so flat that its derivative does not stand out of its rounding errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcheck.checker.at_point import AtPoint
from gradcheck.checker.outputs import Outputs, widened
from gradcheck.checker.problem import Array
from gradcheck.numeric.complex_step import MULTIPLES, RESOLVED, TRIAL_STEP
from gradcheck.numeric.derivative import at_one_step
from gradcheck.numeric.probe import Point, Probe, compare, weights
from gradcheck.numeric.scan import Derivative

SEEN = 1e-2
"""If no derivative stands out of its bar by so much, differences have verified nothing."""
NEAR_STEP, NEAR = 15, 1e-2
"""A function responds if a step as small as this one gives the same derivative, but for that share."""
UNSEEN = (
    "the derivative is too small to be seen beside the rounding errors of the forward here (saturated, or flat), so "
    "nothing could be verified{}. Choose inputs at which the outputs respond"
)


def seen(derivative: Derivative) -> bool:
    """Whether the derivative of some output stands out of its bar."""
    size = abs(derivative.value)
    return bool(((derivative.bar <= SEEN * size) & (size != 0)).any())


def why_unseen(at: AtPoint, point: Point, probe: Probe, random: np.random.Generator) -> str:
    """Why nothing was verified, where nothing is seen; empty if the gradient could be verified all the same.

    A gradient that is not zero is held against the complex step. One of zero agrees with a function that does not
    change at all, unless backward gives nothing else where the function does.
    """
    if not any(bool((part != 0).any()) for part in (probe.derivative.value, *probe.gradients)):
        multiple = zero_where_it_responds(at, point, probe.direction, random)
        if multiple is None:
            return ""
        return UNSEEN.format(f": at {multiple:g} times the inputs, where it responds, the gradient is 0 as well")
    exact = None if at.complex() else point.by_complex_step(probe.direction)
    if exact is None:
        return UNSEEN.format("")
    cotangent = weights(exact, exact.value, random)
    found = compare(cotangent, exact, at.vjp(cotangent), probe.direction, 0.0)
    if found.ratio <= 1:
        return ""
    return UNSEEN.format(
        f" (the gradient is {found.analytic / found.numeric + 0.0:.3g} times what a complex step gives)"
    )


def zero_where_it_responds(
    at: AtPoint, point: Point, direction: Sequence[Array], random: np.random.Generator
) -> float | None:
    """The nearest multiple of the inputs at which the function responds, if the gradient is 0 even there."""
    for multiple in MULTIPLES:
        moved, step = [x * multiple for x in point.inputs], [d * multiple for d in direction]
        derivative = at_one_step(point.function, moved, step, TRIAL_STEP)
        responds = (derivative.bar <= RESOLVED * abs(derivative.value)) & (derivative.value != 0)
        point.evaluations += derivative.evaluations
        if not bool(responds.any()):
            continue
        near = at_one_step(point.function, moved, step, NEAR_STEP)  # far from 0, floor looks smooth from afar
        point.evaluations += near.evaluations
        responds &= abs(near.value - derivative.value) <= NEAR * abs(derivative.value)
        if not bool(responds.any()):
            continue
        inputs = list(at.inputs)
        for k, x in zip(at.moved, moved, strict=True):
            inputs[k] = x
        outputs = Outputs(at.problem.forward(inputs), at.outputs.active)
        try:
            gradients = at.vjp_at(weights(derivative, widened(outputs.vector), random), inputs, outputs)
        except Exception:  # it is not asked to work at other inputs
            return None
        return None if any(bool((g != 0).any()) for g in gradients) else multiple
    return None
