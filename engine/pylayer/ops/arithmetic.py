"""Elementwise operations beyond the everyday ones: remainders, integers, bits, angles."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import binary, composed, op, unary
from pylayer.ops.complexes import complex_
from pylayer.ops.complexes import imag as imag_part
from pylayer.ops.complexes import real as real_part
from pylayer.ops.creation import ones_like, to_tensor
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import atan2, cos, multiply, neg, pow, remainder, sign, sin, tanh, trunc
from pylayer.ops.indexing import where_
from pylayer.ops.logic import isinf, less_than, logical_and
from pylayer.ops.shape import astype, cast
from pylayer.tensor import Tensor

floor_mod, negative = remainder, neg


# --------------------------------------------------------------------------- of floating-point numbers
copysign = binary(
    "copysign", lambda g, F, x, out: g * F.sign(x) * F.sign(out), lambda g: g * 0, numbers=True, floating=True
)
hypot_ = binary("hypot", lambda g, x, out: g * x / out, lambda g, y, out: g * y / out)
nextafter = binary("nextafter", promote=False)
heaviside = binary("heaviside", lambda g: g * 0, lambda g, F, x: F.where(x == 0, g, 0))
logaddexp = binary(
    "logaddexp", lambda g, F, x, out: g * F.exp(x - out), lambda g, F, y, out: g * F.exp(y - out), floating=True
)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """√(x² + y²), without overflow; a TypeError if one is no Tensor."""
    for value in (x, y):
        if not isinstance(value, Tensor):
            raise TypeError(f"x and y must be tensor type, but got {type(value)}")
    return hypot_(x, y)


frac = composed("frac", lambda x: x - trunc(x))


def positive(x: Tensor) -> Tensor:
    """x itself; a TypeError of bools."""
    if x.dtype.name == "bool":
        raise TypeError("The `+` operator, on a bool tensor is not supported.")
    return x


def _floating(x: Tensor) -> Tensor:
    return cast(x, "float32") if x.dtype.rank < 2 else x


deg2rad = composed("deg2rad", lambda x: _floating(x) * (math.pi / 180.0))
rad2deg = composed("rad2deg", lambda x: _floating(x) * (180.0 / math.pi))
stanh = composed("stanh", lambda x, scale_a=0.67, scale_b=1.7159: tanh(x * scale_a) * scale_b)


def sinc(x: Tensor) -> Tensor:
    """sin(πx) / (πx), and 1 at 0."""
    zero = x == 0
    at = where_(zero, 1.0, x * math.pi)
    return where_(zero, 1.0, sin(at) / at)


def ldexp(x: Tensor, y: Tensor) -> Tensor:
    """x · 2^y, in floating point; a TypeError if one is no Tensor."""
    for letter, value in (("x", x), ("y", y)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{letter} must be tensor type, but got {type(value)}")
    wide = "float64" if "float64" in (x.dtype.name, y.dtype.name) else "float32"
    return multiply(astype(x, wide), pow(to_tensor(2, wide), astype(y, wide)))


@op()
def frexp(xp: ModuleType, x: Array) -> tuple[Array, Array]:
    """Mantissas in [½, 1) and exponents of 2, both of the dtype of x."""
    mantissa, exponent = xp.frexp(x)
    return mantissa, exponent.astype(x.dtype)


# --------------------------------------------------------------------------- integers and bits
def _integers(name: str, one_dtype: bool) -> Any:
    """An operation of two on integers, of one dtype or any."""

    def bind(xp: ModuleType) -> Any:
        def forward(x: Array, y: Array) -> Array:
            if x.dtype.kind not in "iu" or y.dtype.kind not in "iu" or (one_dtype and x.dtype != y.dtype):
                kind = "integers of one dtype" if one_dtype else "integers"
                raise ValueError(f"the Tensors must be of {kind}, but are {x.dtype} and {y.dtype}")
            return getattr(xp, name)(x, y)

        return forward

    return binary(name, forward=bind, promote=not one_dtype)


gcd, lcm = _integers("gcd", False), _integers("lcm", False)
left_shift, right_shift = _integers("left_shift", True), _integers("right_shift", True)


bitwise_left_shift = composed("bitwise_left_shift", lambda x, y, is_arithmetic=True, out=None: left_shift(x, y))


@op(inputs=("x", "y"))
def logical_right_shift(xp: ModuleType, x: Array, y: Array) -> Array:
    """The bits of x moved down, zeros coming in also for negative numbers."""
    unsigned = xp.dtype(f"u{x.dtype.name.removeprefix('u')}")
    return xp.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


def bitwise_right_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None) -> Tensor:
    """The bits of x moved down by y, the sign coming in if `is_arithmetic`, else zeros."""
    return right_shift(x, y) if is_arithmetic else logical_right_shift(x, y)


bitwise_invert = composed("bitwise_invert", lambda x, out=None: ~x)


# --------------------------------------------------------------------------- signs and kinds of numbers
signbit = unary("signbit")


isposinf = composed("isposinf", lambda x: logical_and(isinf(x), x > 0))
isneginf = composed("isneginf", lambda x: logical_and(isinf(x), x < 0))
isreal = composed("isreal", lambda x: imag_part(x) == 0 if x.dtype.is_complex else ones_like(x, "bool"))
less = composed("less", lambda x, y: less_than(x, y))


# --------------------------------------------------------------------------- angles
def sgn(x: Tensor) -> Tensor:
    """The sign; of a complex number z / |z|, and 0 for 0. A TypeError of integers."""
    if x.dtype.rank < 2:
        raise TypeError(
            f"The data type of input must be one of ['float16', 'float32', 'float64', 'complex64', 'complex128'], "
            f"but got {x.dtype}"
        )
    if not x.dtype.is_complex:
        return sign(x)
    size = absolute(x)
    zero = size == 0
    return where_(zero, x * 0, x / where_(zero, 1.0, size))


def angle(x: Tensor) -> Tensor:
    """The angle of complex numbers; of real ones 0, or π where they are negative."""
    if x.dtype.is_complex:
        return atan2(imag_part(x), real_part(x))
    x = _floating(x)
    return where_(x < 0, x * 0 + math.pi, x * 0)


polar = composed("polar", lambda abs, angle: complex_(abs * cos(angle), abs * sin(angle)))
