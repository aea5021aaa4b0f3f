"""Complex numbers. As in Paddle, the gradient of a real function of a + bi is the derivative by a
plus i times the derivative by b.
"""

from __future__ import annotations

import math
from types import ModuleType

from pylayer.ops.arguments import require
from pylayer.ops.creation import ones_like
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import atan2, cos, floating, sign, sin
from pylayer.ops.indexing import where_
from pylayer.ops.shape import cast
from pylayer.tape.op import Operation, composed, op, unary
from pylayer.tape.vjp import Function
from pylayer.tensor.array import Array
from pylayer.tensor.tensor import Tensor


@op(real=lambda g, F: F.real(g), imag=lambda g, F: F.imag(g))
def complex_(xp: ModuleType, real: Array, imag: Array) -> Array:
    """The complex numbers with these parts, which are broadcast and must both be float32 or both
    float64.
    """
    fits = real.dtype == imag.dtype and real.dtype.kind == "f" and real.dtype.itemsize >= 4
    require(fits, "the parts must both be float32 or both be float64", real, imag)
    return real + 1j * imag


def _component(name: str, vjp: Function) -> Operation:
    """The real or the imaginary part, a view; a ValueError if `x` is not complex."""

    def forward(xp: ModuleType, x: Array) -> Array:
        require(x.dtype.kind == "c", f"the Tensor must be complex, but is {x.dtype}")
        return getattr(x, name)

    return op(view=True, x=vjp)(composed(name, forward))


real, imag = (
    _component("real", lambda g, F: F.complex(g, g * 0)),
    _component("imag", lambda g, F: F.complex(g * 0, g)),
)
conj = unary("conj", lambda g, F: F.conj(g), lambda xp: xp.conjugate)


COMPLEX, REAL = {"f4": "c8", "f8": "c16"}, {"c8": "f4", "c16": "f8"}
"""The complex dtype for a real one, and the real dtype for a complex one."""


@op(view=True, x=lambda g, F: F.as_real(g))
def as_complex(xp: ModuleType, x: Array) -> Array:
    """The last axis, of size 2, read as real and imaginary parts: a view."""
    require(x.ndim > 0 and x.shape[-1] == 2, "the last axis must be of size 2", x)
    require(x.dtype.str[1:] in COMPLEX, "the Tensor must be float32 or float64", x)
    dense = not x.size or x.strides[-1] == x.dtype.itemsize
    require(dense, "the stride of the last axis must be 1. Call contiguous() before", x)
    return x.view(COMPLEX[x.dtype.str[1:]])[..., 0]


@op(view=True, x=lambda g, F: F.complex(F.getitem(g, (..., 0)), F.getitem(g, (..., 1))))
def as_real(xp: ModuleType, x: Array) -> Array:
    """Real and imaginary parts along a new last axis, of size 2: a view."""
    require(x.dtype.kind == "c", "the Tensor must be complex", x)
    return x[..., None].view(REAL[x.dtype.str[1:]])


view_as_complex, view_as_real = as_complex, as_real


def as_complex_numbers(x: Tensor) -> Tensor:
    """Real numbers as complex ones of their precision; complex ones as they are."""
    if x.dtype.is_complex:
        return x
    return cast(x, "complex128" if x.dtype.name == "float64" else "complex64")


isreal = composed("isreal", lambda x: imag(x) == 0 if x.dtype.is_complex else ones_like(x, "bool"))


# --------------------------------------------------------------------------- angles
def sgn(x: Tensor) -> Tensor:
    """The sign; of a complex number z / |z|, and 0 for 0. A TypeError of integers."""
    require(x.dtype.rank > 1, "sgn(): needs floating-point or complex numbers", x, error=TypeError)
    if not x.dtype.is_complex:
        return sign(x)
    size = absolute(x)
    zero = size == 0
    return where_(zero, x * 0, x / where_(zero, 1.0, size))


def angle(x: Tensor) -> Tensor:
    """The angle of complex numbers; of real ones 0, or π where they are negative."""
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    x = floating(x)
    return where_(x < 0, x * 0 + math.pi, x * 0)


polar = composed("polar", lambda abs, angle: complex_(abs * cos(angle), abs * sin(angle)))
