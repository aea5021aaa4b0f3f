"""Checks of backwards that are declared not to be the derivative (``differs``,
``straight-through``, ``zero``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradcheck.backends.base import Array, Cotangents, is_differentiable
from gradcheck.checking.precision import wide
from gradcheck.checking.problem import Problem
from gradcheck.result import Index

AGREES = "expected a backward that is not the derivative, but here it is"
"""The start of the reason for a failure that another point may resolve, because backward and
derivative may differ there.
"""
LARGER = 64
"""The factor from the first test cotangent to the second: a backward that clips does so at one of
the sizes.
"""
SMALL_MOVE, LARGE_MOVE = 2.0**-20, 2.0**-14
"""Two small moves, relative to an input's element, that distinguish steps from slopes."""
FLAT = 2.0**-36
"""Threshold for the change of an output, relative to the largest: between rounding (2⁻⁵²) and the
change by a slope of 1 (`SMALL_MOVE`).
"""


def not_zero(problem: Problem, random: np.random.Generator) -> str:
    """The first element of a gradient that is not zero, in words; empty if there is none."""
    for size in (1, LARGER):
        cotangents = [cotangent(a, size, random) for a in problem.outputs or ()]
        for name, gradient, _ in gradients(problem, cotangents):
            if gradient is not None and (place := first(wide(gradient) != 0)) is not None:
                value = f"the gradient of {problem.element(name, place)} is {gradient[place]:.8g}"
                return f"expected a gradient of zeros (expect='zero'), but {value}"
    return ""


def not_straight_through(problem: Problem, random: np.random.Generator) -> str:
    """Why backward is not straight-through; empty if it is.

    The reason names the first element of a gradient that is not the cotangent's, or the first
    output element that varies smoothly with its input.
    """
    expected = (
        "expected backward to pass the cotangent on unchanged (expect='straight-through'), but"
    )
    outputs = problem.outputs or ()
    if [is_differentiable(output) for output in outputs] != [True]:
        count = f"{len(outputs)} outputs that claim a gradient, not one floating one"
        return f"{expected} the function has {count}"
    for size in (1, LARGER):
        incoming = cotangent(outputs[0], size, random)
        assert incoming is not None
        for name, gradient, x in gradients(problem, [incoming]):
            if gradient is None or incoming.shape != x.shape:
                got = "none" if gradient is None else f"one of shape {list(x.shape)}"
                shape = list(incoming.shape)
                return f"{expected} {name} gets {got}, where the cotangent has shape {shape}"
            place = first(wide(gradient) != wide(incoming))
            if place is not None:
                got = f"the gradient of {problem.element(name, place)} is {gradient[place]:.8g}"
                return f"{expected} {got}, the cotangent {incoming[place]:g}"
    place, has_steps = sloping_element(problem, random)
    if place is not None:
        return (
            "expected a step function (expect='straight-through'), but "
            f"{problem.element(problem.output_names[0], place)} has a slope that is not 1: "
            "the cotangent passed on is not its derivative"
        )
    return "" if has_steps else f"{AGREES} (expect='straight-through')"


def cotangent(output: Array, size: int, random: np.random.Generator) -> Array | None:
    """Random multiples of 1/8 up to 2 in magnitude, times `size`: every floating dtype represents
    them exactly.
    """
    if not is_differentiable(output):
        return None
    eighths = random.integers(1, 17, output.shape) * random.choice([-1, 1], output.shape)
    return (wide(output) * 0 + size * eighths / 8).astype(output.dtype)


def gradients(
    problem: Problem, cotangents: Cotangents
) -> Iterator[tuple[str, Array | None, Array]]:
    """The names of the inputs that need a gradient, backward's gradients, and the inputs."""
    claimed = problem.vjp(list(problem.inputs), cotangents)
    rows = zip(problem.names, claimed, problem.inputs, problem.differentiable, strict=True)
    return ((name, gradient, x) for name, gradient, x, needed in rows if needed)


def sloping_element(problem: Problem, random: np.random.Generator) -> tuple[Index | None, bool]:
    """The first element of the output with a slope other than 1, and whether any element changes in
    steps.

    The outputs at two small moves, one 64 times the other, are compared with those at the point. A
    step function does not change, or jumps by the same amount for both; a function with a slope
    changes in proportion. A step function may be the identity elsewhere, like a threshold that
    passes large values through; passing the cotangent on is right there.
    """
    inputs, moves = [wide(x) for x in problem.inputs], list[Array]()
    for x, needed in zip(inputs, problem.differentiable, strict=True):
        # moves have random signs; an element that is 0 moves as far as the largest one
        size = np.where(x == 0, abs(x).max(initial=0.0) or 1.0, abs(x))
        moves.append(size * random.choice([-1.0, 1.0], x.shape) if needed else np.zeros(x.shape))

    def output(t: float) -> Array:
        shifted = [x + t * d if d.any() else x for x, d in zip(inputs, moves, strict=True)]
        return wide(problem.forward(shifted)[0])

    try:
        start = wide(problem.forward(inputs)[0])
        near, far = output(SMALL_MOVE) - start, output(LARGE_MOVE) - start
    except Exception:  # it accepts only its own dtype, in which so small a move may vanish
        return None, True
    same = sum(SMALL_MOVE * d for d in moves if d.any())
    is_identity = abs(near - same) <= SMALL_MOVE * abs(same)
    is_proportional = abs(near * (LARGE_MOVE / SMALL_MOVE) - far) <= abs(far) / 2
    slopes = is_proportional & (abs(near) > FLAT * abs(start).max())
    return first(slopes & ~is_identity), not is_identity.all()


def first(chosen: Array) -> Index | None:
    """The index of the first element in a mask."""
    return next((tuple(map(int, index)) for index in np.argwhere(np.asarray(chosen))), None)
