"""Derivatives by the complex step, for functions so flat that no difference of theirs is seen beside their rounding.

f'(x) = Im f(x + i h) / h takes no difference, so that h can be tiny and nothing is rounded away (Squire and Trapp,
"Using complex variables to estimate derivatives of real functions", SIAM Review 40, 1998): tanh at 30 is 1 to the last
bit, and its derivative still comes out as 3.5e-26. It holds for analytic functions, whose code keeps complex numbers as
they are; abs and real do not. So it is believed only where, at multiples of the inputs at which differences can tell,
it gives the same as they do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from gradcheck.numeric.derivative import Array, Function, Line, at_one_step, module_of
from gradcheck.numeric.scan import Derivative

STEP = 2.0**-100
NEARBY = [(2.0**-49, 1.25), (-(2.0**-49), 0.75), (2.0**-48, 1.125)]
"""Shifts along the direction, and factors of the step, that show the rounding errors of the value."""
DIGITS = 1e-3
"""No more digits are expected than this: complex functions may have fewer than real ones (NumPy's log1p near 0)."""
MULTIPLES = [4.0 ** (sign * k) for k in range(1, 13) for sign in (-1, 1)]
"""Of the inputs, at which differences may see what they do not see at the inputs themselves; near ones first."""
TRIAL_STEP = 5
RESOLVED = 1e-3
"""Differences with a bar of at most this share of their value can tell."""


def by_complex_step(f: Function, x: Sequence[Array], direction: Sequence[Array]) -> Derivative | None:
    """The derivative of all outputs of `f` at real `x` along `direction`; None if the complex step cannot tell.

    The bar is inf for outputs of which it is not to be believed.
    """
    found = _imaginary_parts(f, x, direction)
    if found is None or not bool((found.value != 0).any()):
        return None
    xp = module_of(found.value)
    evaluations = found.evaluations
    confirmed, refuted = xp.isnan(found.bar), xp.isnan(found.bar)
    for multiple in MULTIPLES:
        there = [a * multiple for a in x], [d * multiple for d in direction]
        by_differences, imaginary = at_one_step(f, *there, TRIAL_STEP), _imaginary_parts(f, *there)
        evaluations += by_differences.evaluations + len(NEARBY) + 1
        if imaginary is None:
            continue
        resolved = (by_differences.bar <= RESOLVED * abs(by_differences.value)) & (by_differences.value != 0)
        agree = abs(by_differences.value - imaginary.value) <= by_differences.bar + imaginary.bar
        confirmed, refuted = confirmed | (resolved & agree), refuted | (resolved & ~agree)
        if bool((confirmed | refuted).all()):
            break
    believed = confirmed & ~refuted
    if not bool(believed.any()):
        return None
    value, bar = xp.where(believed, found.value, 0.0), xp.where(believed, found.bar, xp.inf)
    return Derivative(value, bar, found.step, evaluations)


def _imaginary_parts(f: Function, x: Sequence[Array], direction: Sequence[Array]) -> Derivative | None:
    """Im f(x + i h d) / h with its bar; None if `f` gives real numbers."""
    line = Line(f, x, direction)
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        for shift, factor in [(0.0, 1.0), *NEARBY]:
            outputs = line.at(complex(shift, factor * STEP))
            if outputs.dtype.kind != "c":
                return None
            values.append(outputs.imag / (factor * STEP))
    value = values[0]
    xp = module_of(value)
    bar = 3 * abs(xp.stack(values[1:]) - value).max(axis=0) + DIGITS * abs(value)
    return Derivative(value, bar, xp.zeros(value.shape, dtype="int64"), line.evaluations)
