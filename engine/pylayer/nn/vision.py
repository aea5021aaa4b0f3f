"""Image functions of `paddle.nn.functional`: `unfold`, `fold`, `pixel_shuffle` and its inverse."""

from __future__ import annotations

from typing import Any

from pylayer.nn.checks import check_positive
from pylayer.nn.spatial import pads_of, per_axis
from pylayer.nn.windows import fold_, unfold_
from pylayer.ops.arguments import as_ints
from pylayer.ops.formats import FORMATS, channels_back, channels_first, check_format
from pylayer.ops.shape import reshape, transpose
from pylayer.tensor.tensor import Tensor


# --------------------------------------------------------------------------- windows as columns
def _pair(value: Any) -> list[int]:
    return per_axis(value, 2, "the size")


def _pads(paddings: Any) -> list[tuple[int, int]]:
    """Pads from one int, two, or four in the order top, left, bottom, right."""
    numbers = as_ints(paddings)
    if len(numbers) == 4:
        return [(numbers[0], numbers[2]), (numbers[1], numbers[3])]
    return pads_of(numbers, 2, "NCHW", [], [], [])


def unfold(
    x: Tensor, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1
) -> Tensor:
    """The windows of images, [batch, channels, height, width], as columns: [batch, channels ·
    kernel, windows].
    """
    kernel, steps, gaps = _pair(kernel_sizes), _pair(strides), _pair(dilations)
    check_positive("unfold", kernel_sizes=kernel, strides=steps, dilations=gaps)
    return unfold_(x, kernel, steps, _pads(paddings), gaps)


def fold(
    x: Tensor,
    output_sizes: Any,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
) -> Tensor:
    """The adjoint of `unfold`: columns summed into images of `output_sizes`."""
    kernel, steps, gaps = _pair(kernel_sizes), _pair(strides), _pair(dilations)
    check_positive("fold", kernel_sizes=kernel, strides=steps, dilations=gaps)
    return fold_(x, _pair(output_sizes), kernel, steps, _pads(paddings), gaps)


# --------------------------------------------------------------------------- pixels and channels
def pixel_shuffle(x: Tensor, upscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """Channels made pixels: [N, C·r², H, W] to [N, C, H·r, W·r] (Shi et al., 2016)."""
    check_format(data_format, FORMATS[2])
    check_positive("pixel_shuffle", upscale_factor=upscale_factor)
    x = channels_first(x, data_format)
    r, (batch, channels, height, width) = upscale_factor, x.shape
    blocks = reshape(x, [batch, channels // (r * r), r, r, height, width])
    mixed = transpose(blocks, [0, 1, 4, 2, 5, 3])
    shuffled = reshape(mixed, [batch, channels // (r * r), height * r, width * r])
    return channels_back(shuffled, data_format)


def pixel_unshuffle(x: Tensor, downscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """The inverse of `pixel_shuffle`."""
    check_format(data_format, FORMATS[2])
    check_positive("pixel_unshuffle", downscale_factor=downscale_factor)
    x = channels_first(x, data_format)
    r, (batch, channels, height, width) = downscale_factor, x.shape
    blocks = reshape(x, [batch, channels, height // r, r, width // r, r])
    mixed = transpose(blocks, [0, 1, 3, 5, 2, 4])
    columns = reshape(mixed, [batch, channels * r * r, height // r, width // r])
    return channels_back(columns, data_format)
