"""Complex numbers. As in Paddle the gradient of a real function of a + bi is that in a plus i times that in b."""

from __future__ import annotations

from types import ModuleType

from pylayer.array import Array
from pylayer.invalid import invalid
from pylayer.op import Operation, composed, op
from pylayer.ops.indexing import getitem
from pylayer.ops.joining import stack
from pylayer.tensor import Tensor
from pylayer.vjp import Function


@op(real=lambda g, F: F.real(g), imag=lambda g, F: F.imag(g))
def complex_(xp: ModuleType, real: Array, imag: Array) -> Array:
    """The complex numbers with these parts, which broadcast and are both float32 or both float64."""
    if real.dtype != imag.dtype or real.dtype.kind != "f" or real.dtype.itemsize < 4:
        text = "the parts must both be float32 or both be float64, but are"
        raise ValueError(f"{text} {real.dtype} and {imag.dtype}")
    return real + 1j * imag


def _part(name: str, vjp: Function) -> Operation:
    """The real or the imaginary part; a ValueError of what is not complex."""

    def forward(xp: ModuleType, x: Array) -> Array:
        if x.dtype.kind != "c":
            raise ValueError(f"the Tensor must be complex, but is {x.dtype}")
        return getattr(x, name).copy()

    return op(x=vjp)(composed(name, forward))


real, imag = _part("real", lambda g, F: F.complex(g, g * 0)), _part("imag", lambda g, F: F.complex(g * 0, g))


@op(x=lambda g, F: F.conj(g))
def conj(xp: ModuleType, x: Array) -> Array:
    """The complex conjugate; a copy of a real Tensor."""
    return xp.conjugate(x)


def as_complex(x: Tensor) -> Tensor:
    """The last axis, of size 2, read as real and imaginary parts."""
    if not x.ndim or x.shape[-1] != 2:
        raise invalid(f"as_complex(): the last axis must be of size 2, but the shape is {x.shape}")
    return complex_(getitem(x, (..., 0)), getitem(x, (..., 1)))


as_real = composed("as_real", lambda x: stack([real(x), imag(x)], -1))
