"""`paddle.nn.functional`'s pooling over one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pylayer.array import XP
from pylayer.nn.spatial import channels_back, channels_first, check_space, pads_of, per_axis
from pylayer.ops.activation import relu
from pylayer.ops.creation import zeros
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import pow, sign
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import setitem
from pylayer.ops.shape import reshape
from pylayer.ops.windows import window_argmax, window_counts, window_sum
from pylayer.tensor import Tensor

Space = Sequence[int]


# --------------------------------------------------------------------------- windows of one size
def _window(
    name: str, ndim: int, x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, data_format: str
) -> tuple[Tensor, list[int], list[int], list[tuple[int, int]], list[int]]:
    """`x` with channels first, kernel, strides, pads, and how far windows reach beyond these pads with `ceil_mode`."""
    check_space(name, x, ndim)
    x = channels_first(x, data_format)
    kernel = per_axis(kernel_size, ndim, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, ndim, "stride")
    pads = pads_of(padding, ndim, data_format, kernel, strides, x.shape[2:])
    if ceil_mode and isinstance(padding, str) and padding.upper() == "VALID":
        raise ValueError('When padding is "VALID", ceil_mode must be False.')
    window_counts(x.shape[2:], kernel, strides, pads, [1] * ndim)  # which says what does not fit
    beyond = [
        -(n + b + a - k) % s if ceil_mode else 0
        for n, (b, a), k, s in zip(x.shape[2:], pads, kernel, strides, strict=True)
    ]
    return x, kernel, strides, pads, beyond


def _wider(pads: list[tuple[int, int]], beyond: Space) -> list[tuple[int, int]]:
    return [(before, after + extra) for (before, after), extra in zip(pads, beyond, strict=True)]


def _max_pool(name: str, ndim: int, x: Tensor, *arguments: Any, return_mask: bool) -> Any:
    """The largest element of every window, and with `return_mask` its position in the flattened space."""
    data_format = arguments[-1]
    x, kernel, strides, pads, beyond = _window(name, ndim, x, *arguments)
    found = window_argmax(x, kernel, strides, _wider(pads, beyond))
    flat = take_along_axis(reshape(x, [*x.shape[:2], -1]), reshape(found, [*x.shape[:2], -1]), 2)
    out = channels_back(reshape(flat, found.shape), data_format)
    return (out, channels_back(found.astype("int32"), data_format)) if return_mask else out


def _avg_pool(name: str, ndim: int, x: Tensor, *arguments: Any, exclusive: bool, divisor: Any = None) -> Tensor:
    """The mean of every window, over the elements that are there (`exclusive`) or over padding, too."""
    data_format = arguments[-1]
    x, kernel, strides, pads, beyond = _window(name, ndim, x, *arguments)
    total = window_sum(x, kernel, strides, _wider(pads, beyond))
    if divisor is not None:  # Paddle's mean, times the size of the window, by the divisor
        total = total * (math.prod(kernel) / divisor)
    if not any(n for pair in pads for n in pair) and not any(beyond):
        return channels_back(total / float(math.prod(kernel)), data_format)
    xp = XP[type(x.array)]
    sizes = x.shape[2:] if exclusive else [n + b + a for n, (b, a) in zip(x.shape[2:], pads, strict=True)]
    around = _wider(pads if exclusive else [(0, 0)] * ndim, beyond)
    ones = Tensor(xp.ones((1, 1, *sizes), x.array.dtype))
    return channels_back(total / window_sum(ones, kernel, strides, around), data_format)


def max_pool1d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Any:
    """The largest element of every window of `x`, [batch, channels, length]; of equal ones the first has the gradient.

    Args:
        stride: the kernel's size unless given.
        padding: elements that are never the largest; see `pylayer.nn.spatial.pads_of`.
        return_mask: a pair is returned, the second int32 positions, which `max_unpool1d` takes.
        ceil_mode: windows may reach beyond the end.

    Raises:
        ValueError: shapes that do not fit.
    """
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, "NCL", return_mask=return_mask)


def max_pool2d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """`max_pool1d` over two axes."""
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, data_format, return_mask=return_mask)


def max_pool3d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Any:
    """`max_pool1d` over three axes."""
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, data_format, return_mask=return_mask)


def avg_pool1d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Tensor:
    """The mean of every window of `x`, [batch, channels, length].

    Args:
        exclusive: padding does not count.

    Raises:
        ValueError: shapes that do not fit.
    """
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, "NCL", exclusive=exclusive)


def avg_pool2d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """`avg_pool1d` over two axes; `divisor_override` takes the place of the number of elements."""
    arguments = (kernel_size, stride, padding, ceil_mode, data_format)
    return _avg_pool("avg_pool2d", 2, x, *arguments, exclusive=exclusive, divisor=divisor_override)


def avg_pool3d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Tensor:
    """`avg_pool2d` over three axes."""
    arguments = (kernel_size, stride, padding, ceil_mode, data_format)
    return _avg_pool("avg_pool3d", 3, x, *arguments, exclusive=exclusive, divisor=divisor_override)


def _lp_pool(name: str, ndim: int, x: Tensor, p: float, *arguments: Any) -> Tensor:
    """The p-norm of every window, without absolute values, as in Paddle."""
    data_format = arguments[-1]
    x, kernel, strides, pads, beyond = _window(name, ndim, x, *arguments)
    if p == math.inf:
        return _max_pool(name, ndim, x, *arguments, return_mask=False)  # type: ignore[no-any-return]
    total = window_sum(pow(x, float(p)), kernel, strides, _wider(pads, beyond))
    return channels_back(pow(sign(total) * relu(absolute(total)), 1.0 / p), data_format)


def lp_pool1d(
    x: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "NCL",
    name: str | None = None,
) -> Tensor:
    """The root of the sum of powers of every window; the largest element for a `norm_type` of infinity."""
    return _lp_pool("lp_pool1d", 1, x, norm_type, kernel_size, stride, padding, ceil_mode, data_format)


def lp_pool2d(
    x: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """`lp_pool1d` over two axes."""
    return _lp_pool("lp_pool2d", 2, x, norm_type, kernel_size, stride, padding, ceil_mode, data_format)


def _max_unpool(
    name: str, ndim: int, x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    check_space(name, x, ndim)
    kernel = per_axis(kernel_size, ndim, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, ndim, "stride")
    pads = pads_of(padding, ndim, "NC", kernel, strides, x.shape[2:])
    space = [(n - 1) * s - b - a + k for n, s, (b, a), k in zip(x.shape[2:], strides, pads, kernel, strict=True)]
    if output_size is not None:
        space = [int(n) for n in output_size][-ndim:]
    batch, channels = x.shape[:2]
    rows = reshape(x, [batch * channels, -1])
    places = reshape(indices, [batch * channels, -1])
    xp = XP[type(x.array)]
    row = Tensor(xp.arange(batch * channels).reshape(-1, 1))
    empty = zeros([batch * channels, math.prod(space)], x.dtype)
    return reshape(setitem(empty, (row, places), rows), [batch, channels, *space])  # type: ignore[no-any-return]


def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "NCL",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """Zeros with the elements of `x` at `indices`, the mask of `max_pool1d`."""
    return _max_unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "NCHW",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """`max_unpool1d` over two axes."""
    return _max_unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "NCDHW",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """`max_unpool1d` over three axes."""
    return _max_unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)
