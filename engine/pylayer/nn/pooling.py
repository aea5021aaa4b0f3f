"""Pooling of `paddle.nn.functional` over one, two and three axes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pylayer.nn.checks import check_positive
from pylayer.nn.families import over_axes
from pylayer.nn.spatial import check_space, padding_word, pads_of, per_axis
from pylayer.nn.windows import LOWEST, Pads, window_argmax, window_counts, window_sum
from pylayer.ops.arguments import require
from pylayer.ops.creation import ones
from pylayer.ops.formats import FORMATS, channels_back, channels_first, check_format
from pylayer.ops.indexing import where_
from pylayer.ops.padding import pad_
from pylayer.ops.positions import take_along_axis
from pylayer.ops.shape import reshape
from pylayer.tensor.tensor import Tensor


# --------------------------------------------------------------------------- windows of one size
class Windows(NamedTuple):
    """Windows over spatial axes: `extended_pads` are `pads` plus the extent by which ceil_mode lets
    windows exceed them.
    """

    kernel: list[int]
    strides: list[int]
    pads: Pads
    extended_pads: Pads


def _windows_over(
    name: str,
    ndim: int,
    x: Tensor,
    window: tuple[Any, Any, Any],
    ceil_mode: bool,
    data_format: str,
) -> tuple[Tensor, Windows]:
    """`x` with channels first, and its windows for a kernel size, a stride and a padding."""
    kernel_size, stride, padding = window
    check_space(name, x, ndim, data_format)
    x = channels_first(x, data_format)
    kernel = per_axis(kernel_size, ndim, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, ndim, "stride")
    check_positive(name, kernel_size=kernel, stride=strides)
    pads = pads_of(padding, ndim, data_format, kernel, strides, x.shape[2:])
    window_counts(x.shape[2:], kernel, strides, pads, [1] * ndim)  # raises if one does not fit
    if not ceil_mode:
        return x, Windows(kernel, strides, pads, pads)
    text = 'When padding is "VALID", ceil_mode must be False'
    require(padding_word(padding) != "VALID", text)
    axes = zip(x.shape[2:], pads, kernel, strides, strict=True)
    extended_pads = [
        (before, after + -(n + before + after - k) % s) for n, (before, after), k, s in axes
    ]
    return x, Windows(kernel, strides, pads, extended_pads)


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
    """The largest element of every window of `x`, [batch, channels, *space]; among equal ones the
    first gets the gradient.

    Args:
        stride: the kernel's size unless given.
        padding: adds elements that are never the largest; see `pylayer.nn.spatial.pads_of`.
            return_mask: also return the int32 positions in the flattened space.
        ceil_mode: windows may reach beyond the end.

    Raises:
        ValueError: shapes do not match, or a mask is requested with channels last.
    """
    if return_mask:
        check_format(data_format, FORMATS[ndim][:1])
    x, (kernel, strides, _, extended_pads) = _windows_over(
        name, ndim, x, (kernel_size, stride, padding), ceil_mode, data_format
    )
    positions = window_argmax(x, kernel, strides, extended_pads)
    is_inside = positions >= 0  # a window of only padding has no position
    places = reshape(where_(is_inside, positions, 0), [*x.shape[:2], -1])
    values = take_along_axis(reshape(x, [*x.shape[:2], -1]), places, 2)
    largest = where_(is_inside, reshape(values, positions.shape), LOWEST)
    largest = channels_back(largest, data_format)
    return (largest, positions.astype("int32")) if return_mask else largest


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
        exclusive: do not count padding.
        divisor_override: replaces the number of elements.

    Raises:
        ValueError: shapes do not match.
    """
    x, (kernel, strides, pads, extended_pads) = _windows_over(
        name, ndim, x, (kernel_size, stride, padding), ceil_mode, data_format
    )
    if not exclusive:  # the padding becomes a part of `x`; what is beyond it does not count
        x = pad_(x, [(0, 0), (0, 0), *pads], 0.0)
        extended_pads = [
            (0, wide[1] - pad[1]) for wide, pad in zip(extended_pads, pads, strict=True)
        ]
    counts = window_sum(ones([1, 1, *x.shape[2:]], x.dtype), kernel, strides, extended_pads)
    total = window_sum(x, kernel, strides, extended_pads)
    if divisor_override is not None:  # as in Paddle: the mean · the window's size / the divisor
        total = total * float(math.prod(kernel)) / float(divisor_override)
    return channels_back(total / counts, data_format)


# --------------------------------------------------------------------- over one, two and three axes
_WINDOW = "kernel_size stride padding"
_MAX = f"x {_WINDOW} return_mask ceil_mode"
_AVG = f"x {_WINDOW} ceil_mode exclusive divisor_override data_format"

max_pool1d, max_pool2d, max_pool3d = over_axes(
    _max_pool, "max_pool{}d", {1: _MAX, 2: f"{_MAX} data_format", 3: f"{_MAX} data_format"}
)
avg_pool1d, avg_pool2d, avg_pool3d = over_axes(
    _avg_pool, "avg_pool{}d", {1: f"x {_WINDOW} exclusive ceil_mode", 2: _AVG, 3: _AVG}
)
