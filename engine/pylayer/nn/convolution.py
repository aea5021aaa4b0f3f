"""Convolutions of `paddle.nn.functional` over one, two and three axes, plain and transposed."""

from __future__ import annotations

from typing import Any

from pylayer.nn.checks import check_positive
from pylayer.nn.families import over_axes
from pylayer.nn.spatial import check_space, padding_word, pads_of, per_axis
from pylayer.nn.windows import conv, conv_input
from pylayer.ops.arguments import require
from pylayer.ops.elementwise import check_same_dtype
from pylayer.ops.formats import channels_back, channels_first
from pylayer.ops.shape import reshape
from pylayer.tensor.tensor import Tensor


def _add_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + reshape(bias, [1, -1, *[1] * (x.ndim - 2)])


def _conv(
    name: str,
    ndim: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "",
) -> Tensor:
    """Correlation of `x`, [batch, in, *space], with `weight`, [out, in / groups, *kernel], plus a
    bias per channel.

    Args:
        padding: see `pylayer.nn.spatial.pads_of`; ``SAME`` treats dilations as 1, as in Paddle.
        data_format: the position of channels in `x`; it does not change the weight's shape.

    Raises:
        ValueError: shapes or dtypes do not match.
    """
    check_space(name, x, ndim, data_format)
    check_same_dtype(name, [x, weight])
    x = channels_first(x, data_format)
    strides, dilations = per_axis(stride, ndim, "stride"), per_axis(dilation, ndim, "dilation")
    check_positive(name, stride=strides, dilation=dilations)
    pads = pads_of(padding, ndim, data_format, weight.shape[2:], strides, x.shape[2:])
    if padding_word(padding) == "SAME":
        dilations = [1] * ndim
    return channels_back(
        _add_bias(conv(x, weight, strides, pads, dilations, groups), bias), data_format
    )


def _conv_transpose(
    name: str,
    ndim: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_size: Any = None,
    data_format: str = "",
) -> Tensor:
    """The adjoint of the convolution in its input, with `weight` of shape [in, out / groups,
    *kernel].

    A convolution maps several sizes to that of `x`; `output_padding` is added to the smallest of
    them, or `output_size` selects one.

    Raises:
        ValueError: shapes or dtypes do not match, or `output_size` is not one of these sizes.
    """
    check_space(name, x, ndim, data_format)
    check_same_dtype(name, [x, weight])
    x = channels_first(x, data_format)
    strides, dilations = per_axis(stride, ndim, "stride"), per_axis(dilation, ndim, "dilation")
    check_positive(name, stride=strides, groups=groups)
    if padding_word(padding) == "SAME":
        dilations = [1] * ndim
    pads = pads_of(padding, ndim, data_format, weight.shape[2:], strides, x.shape[2:])
    axes = zip(x.shape[2:], strides, pads, dilations, weight.shape[2:], strict=True)
    least = [(n - 1) * s - before - after + d * (k - 1) + 1 for n, s, (before, after), d, k in axes]
    if output_size is None:
        extra = per_axis(output_padding, ndim, "output_padding")
        limits = list(map(max, strides, dilations))
    else:
        sizes = per_axis(output_size, ndim, "output_size")
        extra, limits = [n - low for n, low in zip(sizes, least, strict=True)], strides
    fits = all(0 <= more < limit for more, limit in zip(extra, limits, strict=True))
    text = f"{name}(): output_size of Op({name}) should be {least} and less than {limits} more"
    require(fits, f"{text}, but is {extra} more")
    space = [low + more for low, more in zip(least, extra, strict=True)]
    return channels_back(
        _add_bias(conv_input(x, weight, space, strides, pads, dilations, groups), bias), data_format
    )


_PLAIN = "x weight bias stride padding dilation groups data_format"
_TRANSPOSED = "x weight bias stride padding output_padding {} output_size data_format"

conv1d, conv2d, conv3d = over_axes(_conv, "conv{}d", dict.fromkeys((1, 2, 3), _PLAIN))
conv1d_transpose, conv2d_transpose, conv3d_transpose = over_axes(
    _conv_transpose,
    "conv{}d_transpose",
    {
        ndim: _TRANSPOSED.format("dilation groups" if ndim == 2 else "groups dilation")
        for ndim in (1, 2, 3)
    },
)
