"""Arrays of any module, dtype and shape: their precision, and many of them as one flat real vector."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from gradcheck.backends.base import Array as Array

NumpyArray = np.ndarray[Any, Any]

EPS = 2.0**-52
"""The spacing of float64 at 1."""
EPSILON = {
    "float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": EPS, "complex64": 2.0**-23,
    "complex128": EPS,
}  # fmt: skip
"""The spacing of the numbers of a dtype at 1: 2 to the power of minus the bits after the point."""
FLOAT32 = EPSILON["float32"]
FEW = 4.0
"""Epsilons that few roundings make: a result's own, those of what it was computed from, the sums inside of one
operation. What is measured decides, and this is granted beside it."""
MANY = 16.0
"""Epsilons that a dozen operations make whose errors do not cancel: 4 bits; so many times the response to perturbations
of one epsilon is granted (`checking.precision`). A rounding is 0.29 epsilon in the mean square, so this is 55 of its
standard deviations: room for one entry's two responses that are small by chance (fewer than one in 1,000 is small by a
factor of 55 in both), and for operations that are off by some epsilon (tanh, erf). With 4 and with 64 the benches give
the same; what moves is how small an effect is told from nothing where nothing sees the code."""
CLEAR = 2.0**10
"""What is so many times its bound, or so many epsilons, is so by no chance."""
SMALLEST = {
    "float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022,
    "complex64": 2.0**-126, "complex128": 2.0**-1022,
}  # fmt: skip
"""The smallest normal number of a dtype: below it the spacing of numbers does not shrink."""

RANDOM_SIGNS = 5.0
"""A sum of bounded errors with random signs exceeds the root of the sum of their bounds' squares so many times once in
100,000 (Hoeffding 1963: 2 exp(−5² / 2)), and FAIL takes two looks. The signs are those of cotangent and direction."""


def module_of(array: Array) -> Any:
    """The array module (NumPy, CuPy) of an array."""
    return np if isinstance(array, np.ndarray) else import_module(type(array).__module__.partition(".")[0])


@functools.cache
def dtype_name(dtype: Any) -> str:
    """The name of a dtype, which NumPy puts together each time that it is asked for."""
    return dtype.name  # type: ignore[no-any-return]


def spacing(array: Array) -> float:
    """The relative spacing of an array's floating dtype."""
    return EPSILON[dtype_name(array.dtype)]


def wide(array: Array) -> Array:
    """A floating array in float64, a complex one in complex128; others unchanged."""
    if array.dtype.kind not in "fcV":  # V: bfloat16
        return array
    return array.astype("complex128" if array.dtype.kind == "c" else "float64", copy=False)


def as_array(value: Any) -> Array:
    """A NumPy scalar, as arithmetic of 0-d arrays gives, as such an array; others unchanged."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def axes_of(axis: Any) -> tuple[int, ...] | None:
    """The axes that a reduction is given, of Paddle's ways to say so; None for all."""
    return None if axis is None or axis == [] else tuple(np.atleast_1d(axis).tolist())


def only(number: int, value: Array, arrays: Sequence[Array]) -> list[Array | None]:
    """A direction, or masks, over `arrays` of which one alone takes part."""
    return [value if k == number else None for k in range(len(arrays))]


def finite(a: Array | None) -> bool:
    """Whether all elements are finite; None has none."""
    return a is None or bool((abs(a) < np.inf).all())


def finite_or_zero(of: Array, values: Array) -> Array:
    """Values, 0 where those of another array are not finite."""
    return module_of(of).where(np.isfinite(of), values, 0.0)


def flat(arrays: Sequence[Array]) -> Array:
    """All elements of `arrays` in one vector; complex if one of them is."""
    return np.concatenate([a.reshape(-1) for a in arrays]) if len(arrays) > 1 else arrays[0].reshape(-1)


def array_and_element(arrays: Sequence[Array], position: int) -> tuple[int, int]:
    """Which of the arrays, and which element of it, stands at a position of their flat vector."""
    for number, array in enumerate(arrays):
        if position < array.size:
            return number, position
        position -= array.size
    raise IndexError(position)


def flat_real(arrays: Sequence[Array]) -> Array:
    """The same in float64, in memory of its own; of a complex one, real and imaginary parts in turn."""
    vector = flat(arrays)
    if vector.dtype.kind == "c":
        return vector.astype("complex128").view("float64")
    return vector.astype("float64")


def shares(gradient: Array, direction: Array) -> Array:
    """conj(gradient) · direction, element by element; 0 where the direction is, also if the gradient is infinite."""
    found = (gradient.conj() if gradient.dtype.kind == "c" else gradient) * direction
    return found if np.isfinite(complex(found.sum())) else np.where(direction != 0, found, 0)


def inner(gradient: Array, direction: Array) -> float:
    """Re Σ conj(gradient) · direction: the derivative along the direction."""
    return float(shares(gradient, direction).real.sum())


def root_of_squares(terms: Array) -> float:
    """The root of the sum of squares, also where squares would leave the range of float64."""
    sizes = abs(terms)
    unit = float(sizes.max()) if sizes.size else 0.0
    if not 0 < unit < np.inf:
        return unit
    sizes /= unit
    sizes *= sizes
    return unit * math.sqrt(float(sizes.sum()))


def distance(a: Array, b: Array) -> Array:
    """|a − b|; 0 where both are equal, infinities included; inf where one alone is not finite."""
    with np.errstate(invalid="ignore"):
        apart = abs(a - b) if a.dtype.kind != "b" else 1.0 * (a != b)
    return np.where(a == b, 0.0, np.where(np.isnan(apart), np.inf, apart))


def even_weights(like: Array, random: np.random.Generator) -> Array:
    """Random signs and magnitudes from 1/2 to 3/2, in the shape of a vector."""
    drawn = random.uniform(-1, 1, like.shape)
    return np.asarray(drawn + np.copysign(0.5, drawn), like=like)
