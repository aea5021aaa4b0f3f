"""`paddle.nn.functional`'s resampling of images: grids, windows as columns, shuffled pixels."""

from __future__ import annotations

import itertools
import math
from typing import Any

from pylayer.nn.checks import check_count, check_format, check_positive
from pylayer.nn.spatial import channels_back, channels_first, pads_of, per_axis
from pylayer.nn.windows import fold_, unfold_
from pylayer.ops.arguments import as_ints, require
from pylayer.ops.creation import linspace, meshgrid, ones_like
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import clip, floor, minimum, round
from pylayer.ops.joining import concat, stack
from pylayer.ops.linalg import matmul
from pylayer.ops.padding import pad_
from pylayer.ops.positions import take_along_axis
from pylayer.ops.shape import astype, broadcast_to, reshape, transpose, unsqueeze
from pylayer.tensor import Tensor


# --------------------------------------------------------------------------- grids
def affine_grid(theta: Tensor, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Tensor:
    """Where the affine maps `theta`, [batch, n, n + 1], take a grid over [-1, 1]: [batch, *space, n]."""
    space = as_ints(out_shape)[2:]
    axes = [linspace(-1.0, 1.0, n, theta.dtype) * (1.0 if align_corners else (n - 1) / n) for n in space]
    points = meshgrid(axes)[::-1]
    homogeneous = stack([*points, ones_like(points[0])], -1)
    flat = reshape(homogeneous, [1, -1, len(space) + 1])
    moved = matmul(broadcast_to(flat, [theta.shape[0], *flat.shape[1:]]), theta, transpose_y=True)
    return reshape(moved, [theta.shape[0], *space, len(space)])


def _reflected(at: Tensor, size: int, aligned: bool) -> Tensor:
    """A position mirrored at both ends until it lies between them."""
    span = 2.0 * (size - 1 if aligned else size)
    if not span:
        return at * 0.0
    distance = absolute(at if aligned else at + 0.5)
    rest = distance - floor(distance / span).detach() * span
    folded = minimum(rest, span - rest)
    return folded if aligned else clip(folded - 0.5, 0.0, float(size - 1))


def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    name: str | None = None,
) -> Tensor:
    """`x`, [batch, channels, *space], at the points `grid`, [batch, *out, n], in [-1, 1], the last axis first.

    Args:
        mode: bilinear or nearest.
        padding_mode: what lies outside: zeros, the border, or the reflection.

    Raises:
        ValueError: another mode.
    """
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"The mode of grid sample function should be in ['bilinear', 'nearest'], but got: {mode}")
    if padding_mode not in ("zeros", "reflection", "border"):
        raise ValueError(
            f"The padding mode of grid sample function should be in ['zeros', 'reflection', 'border'], but got: "
            f"{padding_mode}"
        )
    batch, channels, *space = x.shape
    ndim = len(space)
    ats = []
    for k, size in enumerate(space):
        unit = grid[..., ndim - 1 - k]
        at = (unit + 1.0) * (0.5 * (size - 1)) if align_corners else ((unit + 1.0) * size - 1.0) * 0.5
        if padding_mode == "border":
            at = clip(at, 0.0, float(size - 1))
        elif padding_mode == "reflection":
            at = _reflected(at, size, align_corners)
        ats.append(at)
    rows = reshape(x, [batch, channels, -1])
    total: Any = None
    lows = [round(at).detach() if mode == "nearest" else floor(at).detach() for at in ats]
    for corner in itertools.product((0,) if mode == "nearest" else (0, 1), repeat=ndim):
        weight: Any = 1.0
        flat: Any = 0
        for at, low, step, size in zip(ats, lows, corner, space, strict=True):
            position = low + float(step)
            inside = astype((position >= 0) & (position <= size - 1), x.dtype)
            share = inside if mode == "nearest" else inside * (at - low if step else 1.0 - (at - low))
            weight = share * weight
            flat = flat * size + astype(clip(position, 0.0, float(size - 1)), "int64")
        picked = take_along_axis(
            rows, broadcast_to(reshape(flat, [batch, 1, -1]), [batch, channels, math.prod(grid.shape[1:-1])]), 2
        )
        term = reshape(picked, [batch, channels, *grid.shape[1:-1]]) * unsqueeze(weight, 1)
        total = term if total is None else total + term
    return total  # type: ignore[no-any-return]


# --------------------------------------------------------------------------- windows as columns
def _two(value: Any) -> list[int]:
    return per_axis(value, 2, "the size")


def _around(paddings: Any) -> list[tuple[int, int]]:
    """Pads from one int, two, or four in the order top, left, bottom, right."""
    numbers = as_ints(paddings)
    if len(numbers) == 4:
        return [(numbers[0], numbers[2]), (numbers[1], numbers[3])]
    return pads_of(numbers, 2, "NCHW", [], [], [])


def unfold(
    x: Tensor,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """The windows of images, [batch, channels, height, width], as columns: [batch, channels · kernel, windows]."""
    kernel, steps, apart = _two(kernel_sizes), _two(strides), _two(dilations)
    check_positive("unfold", kernel_sizes=kernel, strides=steps, dilations=apart)
    return unfold_(x, kernel, steps, _around(paddings), apart)


def fold(
    x: Tensor,
    output_sizes: Any,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """The adjoint of `unfold`: columns added up in images of `output_sizes`."""
    kernel, steps, apart = _two(kernel_sizes), _two(strides), _two(dilations)
    check_positive("fold", kernel_sizes=kernel, strides=steps, dilations=apart)
    return fold_(x, _two(output_sizes), kernel, steps, _around(paddings), apart)


# --------------------------------------------------------------------------- pixels and channels
def pixel_shuffle(x: Tensor, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Channels made pixels: [N, C·r², H, W] to [N, C, H·r, W·r] (Shi et al., 2016)."""
    check_format(data_format, "NCHW", "NHWC")
    check_count("upscale_factor", upscale_factor)
    x = channels_first(x, data_format)
    r, (batch, channels, height, width) = upscale_factor, x.shape
    apart = reshape(x, [batch, channels // (r * r), r, r, height, width])
    mixed = transpose(apart, [0, 1, 4, 2, 5, 3])
    return channels_back(reshape(mixed, [batch, channels // (r * r), height * r, width * r]), data_format)


def pixel_unshuffle(x: Tensor, downscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """The inverse of `pixel_shuffle`."""
    check_format(data_format, "NCHW", "NHWC")
    check_count("Downscale factor", downscale_factor)
    x = channels_first(x, data_format)
    r, (batch, channels, height, width) = downscale_factor, x.shape
    apart = reshape(x, [batch, channels, height // r, r, width // r, r])
    mixed = transpose(apart, [0, 1, 3, 5, 2, 4])
    return channels_back(reshape(mixed, [batch, channels * r * r, height // r, width // r]), data_format)


def channel_shuffle(x: Tensor, groups: int, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Channels of all groups in turn (Zhang et al., 2018)."""
    check_format(data_format, "NCHW", "NHWC")
    check_count("groups", groups)
    x = channels_first(x, data_format)
    batch, channels, height, width = x.shape
    apart = reshape(x, [batch, groups, channels // groups, height, width])
    return channels_back(reshape(transpose(apart, [0, 2, 1, 3, 4]), [batch, channels, height, width]), data_format)


def temporal_shift(
    x: Tensor, seg_num: int, shift_ratio: float = 0.25, name: str | None = None, data_format: str = "NCHW"
) -> Tensor:
    """Some channels of a video's frames from the frame before, some from the one after (Lin et al., 2019)."""
    check_format(data_format, "NCHW", "NHWC")
    require(0 < shift_ratio < 0.5, f"temporal_shift(): shift_ratio should be between 0 and 0.5, not {shift_ratio}")
    x = channels_first(x, data_format)
    channels = x.shape[1]
    frames = reshape(x, [-1, seg_num, *x.shape[1:]])
    back, forth = int(channels * shift_ratio), int(channels * 2 * shift_ratio)
    sides = [(0, 0)] * (frames.ndim - 2)
    before = pad_(frames[:, :-1], [(0, 0), (1, 0), *sides], 0.0)
    after = pad_(frames[:, 1:], [(0, 0), (0, 1), *sides], 0.0)
    shifted = concat([before[:, :, :back], after[:, :, back:forth], frames[:, :, forth:]], 2)
    return channels_back(reshape(shifted, x.shape), data_format)
