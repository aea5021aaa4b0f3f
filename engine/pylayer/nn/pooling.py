"""`paddle.nn.functional`'s pooling over one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pylayer.nn.checks import check_format, check_positive
from pylayer.nn.families import over_axes
from pylayer.nn.spatial import (
    FORMATS,
    channels_back,
    channels_first,
    check_space,
    pads_of,
    per_axis,
)
from pylayer.nn.windows import LOWEST, window_argmax, window_counts, window_sum
from pylayer.ops.activation import relu
from pylayer.ops.creation import zeros
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import pow, sign
from pylayer.ops.indexing import setitem, where_
from pylayer.ops.positions import take_along_axis
from pylayer.ops.shape import reshape
from pylayer.tensor.array import XP
from pylayer.tensor.tensor import Tensor

Space = Sequence[int]


# --------------------------------------------------------------------------- windows of one size
def _window(
    name: str,
    ndim: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    data_format: str,
) -> tuple[Tensor, list[int], list[int], list[tuple[int, int]], list[int]]:
    """`x` with channels first, kernel, strides, pads, and how far windows reach beyond these pads with `ceil_mode`."""
    check_space(name, x, ndim, data_format)
    x = channels_first(x, data_format)
    kernel = per_axis(kernel_size, ndim, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, ndim, "stride")
    check_positive(name, kernel_size=kernel, stride=strides)
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


def _max_pool(
    name: str,
    ndim: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "",
) -> Any:
    """The largest element of every window of `x`, [batch, channels, *space]; of equal ones the first has the gradient.

    Args:
        stride: the kernel's size unless given.
        padding: elements that are never the largest; see `pylayer.nn.spatial.pads_of`.
        return_mask: a pair is returned, the second int32 positions in the flattened space, which `max_unpool` takes.
        ceil_mode: windows may reach beyond the end.

    Raises:
        ValueError: shapes that do not fit, or a mask of channels that stand last.
    """
    if return_mask:
        check_format(data_format, FORMATS[ndim])
    x, kernel, strides, pads, beyond = _window(
        name, ndim, x, kernel_size, stride, padding, ceil_mode, data_format
    )
    found = window_argmax(x, kernel, strides, _wider(pads, beyond))
    somewhere = found >= 0
    places = reshape(where_(somewhere, found, 0), [*x.shape[:2], -1])
    flat = take_along_axis(reshape(x, [*x.shape[:2], -1]), places, 2)
    out = channels_back(where_(somewhere, reshape(flat, found.shape), LOWEST), data_format)
    return (out, found.astype("int32")) if return_mask else out


def _avg_pool(
    name: str,
    ndim: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
    data_format: str = "",
) -> Tensor:
    """The mean of every window of `x`, [batch, channels, *space].

    Args:
        exclusive: padding does not count.
        divisor_override: takes the place of the number of elements.

    Raises:
        ValueError: shapes that do not fit.
    """
    x, kernel, strides, pads, beyond = _window(
        name, ndim, x, kernel_size, stride, padding, ceil_mode, data_format
    )
    total = window_sum(x, kernel, strides, _wider(pads, beyond))
    if divisor_override is not None:  # Paddle's mean, times the size of the window, by the divisor
        total = total * float(math.prod(kernel)) / float(divisor_override)
    if not any(n for pair in pads for n in pair) and not any(beyond):
        return channels_back(total / float(math.prod(kernel)), data_format)
    xp = XP[type(x.array)]
    sizes = (
        x.shape[2:]
        if exclusive
        else [n + b + a for n, (b, a) in zip(x.shape[2:], pads, strict=True)]
    )
    around = _wider(pads if exclusive else [(0, 0)] * ndim, beyond)
    ones = Tensor(xp.ones((1, 1, *sizes), x.array.dtype))
    return channels_back(total / window_sum(ones, kernel, strides, around), data_format)


def _lp_pool(
    name: str,
    ndim: int,
    x: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "",
) -> Tensor:
    """The root of the sum of powers of every window, without absolute values, as in Paddle.

    For a `norm_type` of infinity it is the largest element.
    """
    window = (kernel_size, stride, padding)
    if norm_type == math.inf:
        return _max_pool(name, ndim, x, *window, False, ceil_mode, data_format)  # type: ignore[no-any-return]
    x, kernel, strides, pads, beyond = _window(name, ndim, x, *window, ceil_mode, data_format)
    total = window_sum(pow(x, float(norm_type)), kernel, strides, _wider(pads, beyond))
    return channels_back(pow(sign(total) * relu(absolute(total)), 1.0 / norm_type), data_format)


def _max_unpool(
    name: str,
    ndim: int,
    x: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "",
    output_size: Any = None,
) -> Tensor:
    """Zeros with the elements of `x` at `indices`, the mask of `max_pool`."""
    check_format(data_format, FORMATS[ndim])
    check_space(name, x, ndim, data_format)
    kernel = per_axis(kernel_size, ndim, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, ndim, "stride")
    pads = pads_of(padding, ndim, "NC", kernel, strides, x.shape[2:])
    space = [
        (n - 1) * s - b - a + k
        for n, s, (b, a), k in zip(x.shape[2:], strides, pads, kernel, strict=True)
    ]
    if output_size is not None:
        space = [int(n) for n in output_size][-ndim:]
    batch, channels = x.shape[:2]
    rows = reshape(x, [batch * channels, -1])
    places = reshape(indices, [batch * channels, -1])
    xp = XP[type(x.array)]
    row = Tensor(xp.arange(batch * channels).reshape(-1, 1))
    empty = zeros([batch * channels, math.prod(space)], x.dtype)
    return reshape(setitem(empty, (row, places), rows), [batch, channels, *space])


# --------------------------------------------------------------------------- over one, two and three axes
_WINDOW = "kernel_size stride padding"
_MAX = f"x {_WINDOW} return_mask ceil_mode"
_AVG = f"x {_WINDOW} ceil_mode exclusive divisor_override data_format"
_LP = f"x norm_type {_WINDOW} ceil_mode data_format"
_UNPOOL = f"x indices {_WINDOW} data_format output_size"

max_pool1d, max_pool2d, max_pool3d = over_axes(
    _max_pool, "max_pool{}d", {1: _MAX, 2: f"{_MAX} data_format", 3: f"{_MAX} data_format"}
)
avg_pool1d, avg_pool2d, avg_pool3d = over_axes(
    _avg_pool, "avg_pool{}d", {1: f"x {_WINDOW} exclusive ceil_mode", 2: _AVG, 3: _AVG}
)
lp_pool1d, lp_pool2d = over_axes(_lp_pool, "lp_pool{}d", {1: _LP, 2: _LP})
max_unpool1d, max_unpool2d, max_unpool3d = over_axes(
    _max_unpool, "max_unpool{}d", dict.fromkeys((1, 2, 3), _UNPOOL)
)
