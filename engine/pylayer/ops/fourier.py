"""Discrete Fourier transforms: `paddle.fft`.

One operation, the complex transform along an axis, and its adjoint, the other direction, carry the
derivatives; the transforms of real numbers use it, and symmetry for their other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import as_ints, normal_axis, one_of, require
from pylayer.ops.complexes import as_complex_numbers, conj, real
from pylayer.ops.creation import _numpy_dtype
from pylayer.ops.indexing import along
from pylayer.ops.joining import concat
from pylayer.ops.padding import pad_
from pylayer.ops.shape import cast, roll
from pylayer.tape.op import composed, op
from pylayer.tensor.array import Array, default_module
from pylayer.tensor.tensor import Tensor


@op(x=lambda g, F, axis, inverse: F.fourier(g, axis, not inverse))
def fourier(xp: ModuleType, x: Array, axis: int, inverse: bool) -> Array:
    """Σ exp(∓2πi j k / n) x_k along an axis, without a factor: the adjoint of either direction is
    the other.
    """
    transformed = xp.fft.ifft(x, axis=axis, norm="forward") if inverse else xp.fft.fft(x, axis=axis)
    return transformed.astype(x.dtype)


def _resize(x: Tensor, n: int, axis: int) -> Tensor:
    """An array truncated, or padded with zeros, along an axis."""
    more = n - x.shape[axis]
    if more <= 0:
        return along(x, axis, slice(n))
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, more)
    return pad_(x, widths, 0.0)


def _scale(x: Tensor, count: int, inverse: bool, norm: str) -> Tensor:
    """A transform divided by n if this direction is normalised, by √n for ortho."""
    if norm == "ortho":
        return x * (1 / math.sqrt(count))
    return x * (1 / count) if (norm == "backward") == inverse else x


def _transform(x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    axis = normal_axis(axis, x.ndim)
    x = as_complex_numbers(x) if n is None else _resize(as_complex_numbers(x), n, axis)
    return _scale(fourier(x, axis, inverse), x.shape[axis], inverse, norm)


def _mirror_frequencies(x: Tensor, n: int, axis: int) -> Tensor:
    """All `n` frequencies of a real signal, from the first half; only the real parts of the first
    and the middle one are used.
    """
    half = _resize(x, n // 2 + 1, axis)
    rest = along(half, axis, slice(1, (n + 1) // 2))
    first, middle = (cast(real(along(half, axis, slice(k, k + 1))), x.dtype) for k in (0, n // 2))
    mirrored = conj(along(rest, axis, slice(None, None, -1)))
    return concat([first, rest, mirrored] if n % 2 else [first, rest, middle, mirrored], axis)


# --------------------------------------------------------------------------- one axis
def _to_real(x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    """The real transform of a conjugate-symmetric signal, from the first half of the signal: `n`
    numbers, by default an even number of them.
    """
    axis = normal_axis(axis, x.ndim)
    count = 2 * (x.shape[axis] - 1) if n is None else n
    require(count > 0, f"Invalid FFT argument n({count}), it should be a positive integer", x)
    return real(
        _transform(
            _mirror_frequencies(as_complex_numbers(x), count, axis), None, axis, norm, inverse
        )
    )


def _half(x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    """The first n // 2 + 1 elements of the transform of real numbers; the others mirror them."""
    spectrum, axis = _transform(x, n, axis, norm, inverse), normal_axis(axis, x.ndim)
    return along(spectrum, axis, slice(spectrum.shape[axis] // 2 + 1))


def _along_one(name: str, transform: Callable[..., Tensor], inverse: bool) -> Callable[..., Tensor]:
    """A transform of `x`, truncated or padded to `n`, along an axis; `norm` says which direction
    divides, or both.
    """

    def transform_along(
        x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        one_of("fft: `norm`", norm, "backward", "ortho", "forward")
        positive = n is None or (isinstance(n, int) and n > 0)
        require(positive, f"Invalid FFT argument n({n}), it should be a positive integer")
        return transform(x, n, axis, norm, inverse)

    return composed(name, transform_along)


fft, ifft = _along_one("fft", _transform, False), _along_one("ifft", _transform, True)
rfft, irfft = _along_one("rfft", _half, False), _along_one("irfft", _to_real, True)
hfft, ihfft = _along_one("hfft", _to_real, False), _along_one("ihfft", _half, True)


# --------------------------------------------------------------------------- several axes
def _over(
    x: Tensor,
    s: Any,
    axes: Any,
    norm: str,
    transform: Callable[..., Tensor],
    last: Callable[..., Tensor],
) -> Tensor:
    """Apply `last` along the last axis, then `transform` along the others; `last` is applied at the
    end
    if it gives real numbers.
    """
    named = _named_axes(x, axes)
    sizes: list[int | None] = [None] * len(named) if s is None else list(as_ints(s))
    if axes is None:
        named = named[-len(sizes) :]
    text = f"Length of s ({len(sizes)}) and length of axes ({len(named)}) does not match"
    require(len(sizes) == len(named), text)
    at_the_end = last in (irfft, hfft)
    if not at_the_end:
        x = last(x, sizes[-1], named[-1], norm)
    for size, axis in zip(sizes[:-1], named[:-1], strict=True):
        x = transform(x, size, axis, norm)
    return last(x, sizes[-1], named[-1], norm) if at_the_end else x


def _named_axes(x: Tensor, axes: Any) -> list[int]:
    """The given axes, counted from the front, in their order and possibly repeated; by default all
    axes.
    """
    numbers = range(x.ndim) if axes is None else as_ints(axes)
    return [normal_axis(k, x.ndim) for k in numbers]


def _along_several(
    name: str, transform: Callable[..., Tensor], last: Callable[..., Tensor]
) -> list[Callable[..., Tensor]]:
    """The transforms over several axes, with sizes `s`: `last` along the last one, `transform`
    along the others; by default over all axes, and over the last two.
    """
    return [
        composed(
            f"{name}n",
            lambda x, s=None, axes=None, norm="backward": _over(x, s, axes, norm, transform, last),
        ),
        composed(
            f"{name}2",
            lambda x, s=None, axes=(-2, -1), norm="backward": _over(
                x, s, axes, norm, transform, last
            ),
        ),
    ]


fftn, fft2 = _along_several("fft", fft, fft)
ifftn, ifft2 = _along_several("ifft", ifft, ifft)
rfftn, rfft2 = _along_several("rfft", fft, rfft)
irfftn, irfft2 = _along_several("irfft", ifft, irfft)
hfftn, hfft2 = _along_several("hfft", fft, hfft)
ihfftn, ihfft2 = _along_several("ihfft", ifft, ihfft)


# --------------------------------------------------------------------------- frequencies
fftfreq = composed(
    "fftfreq",
    lambda n, d=1.0, dtype=None: Tensor(
        (default_module().fft.fftfreq(n) / d).astype(_numpy_dtype(dtype))
    ),
)
rfftfreq = composed(
    "rfftfreq",
    lambda n, d=1.0, dtype=None: Tensor(
        (default_module().fft.rfftfreq(n) / d).astype(_numpy_dtype(dtype))
    ),
)


def _roll_axes(x: Tensor, axes: Any, shift_of: Callable[[int], int]) -> Tensor:
    named = _named_axes(x, axes)
    return roll(x, [shift_of(x.shape[k]) for k in named], named)


fftshift = composed("fftshift", lambda x, axes=None: _roll_axes(x, axes, lambda n: n // 2))
ifftshift = composed("ifftshift", lambda x, axes=None: _roll_axes(x, axes, lambda n: -(n // 2)))
