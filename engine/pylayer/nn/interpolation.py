"""`paddle.nn.functional`'s interpolation over one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.array import XP
from pylayer.nn.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from pylayer.nn.spatial import channels_back, channels_first, per_axis
from pylayer.ops.linalg import matmul
from pylayer.ops.shape import moveaxis
from pylayer.tensor import Tensor


def _nearest(at: float) -> dict[int, float]:
    return {math.floor(at): 1.0}


def _linear(at: float) -> dict[int, float]:
    low = math.floor(max(at, 0.0))
    share = max(at, 0.0) - low
    return {low: 1.0 - share, low + 1: share}


def _cubic(at: float) -> dict[int, float]:
    """Cubic convolution with a = −3/4 (Keys, 1981, equation 4)."""
    a, low = -0.75, math.floor(at)
    t = at - low

    def near(d: float) -> float:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: float) -> float:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return {low - 1: far(t + 1), low: near(t), low + 1: near(1 - t), low + 2: far(2 - t)}


_TAPS: dict[str, Callable[[float], dict[int, float]]] = {
    "nearest": _nearest, "linear": _linear, "bilinear": _linear, "trilinear": _linear, "bicubic": _cubic,
}  # fmt: skip
"""Per mode, the elements that a position takes its value from, and their shares."""

_NDIM = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_AVERAGES: dict[int, Callable[..., Tensor]] = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def _resampled(x: Tensor, axis: int, size: int, ratio: float, mode: str, centred: bool) -> Tensor:
    """One axis resampled: a product with the matrix of shares."""
    length = x.shape[axis]
    rows = [[0.0] * size for _ in range(length)]
    for k in range(size):
        at = ratio * (k + 0.5) - 0.5 if centred else ratio * k
        for position, share in _TAPS[mode](at).items():
            rows[min(max(position, 0), length - 1)][k] += share
    weights = Tensor(XP[type(x.array)].asarray(rows, x.array.dtype))
    return moveaxis(matmul(moveaxis(x, axis, -1), weights), -1, axis)


def interpolate(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """`x`, [batch, channels, *space], resampled to `size`, or to its own sizes times `scale_factor`.

    Args:
        mode: nearest, linear (one axis), bilinear, bicubic (two), trilinear (three), or area (means).
        align_corners: the centres of the outermost elements stay where they are, else their edges.
        align_mode: 1 counts positions from the edge of the first element in the linear modes.
        data_format: with C last, channels are the last axis.

    Raises:
        ValueError: another mode, one for another number of axes, both or neither of size and factor; or `antialias`,
            which the engine lacks.
    """
    data_format = data_format or "NCHW"
    ndim = x.ndim - 2
    mode = mode.lower()
    if mode not in (*_TAPS, "area") or not 1 <= ndim <= 3 or _NDIM.get(mode, ndim) != ndim:
        raise ValueError(
            f"interpolate(): mode {mode!r} is not for {ndim} spatial axes; the modes are {', '.join(_TAPS)} and area."
        )
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate(): one of size and scale_factor should be set, and not both.")
    if align_corners and mode in ("nearest", "area"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias:
        raise ValueError("interpolate(): antialias=True is not part of the bundled engine.")
    x = channels_first(x, data_format)
    space = x.shape[2:]
    factors: list[float | None] = [None] * ndim
    if size is not None:
        sizes = per_axis(size, ndim, "size")
    else:
        given = scale_factor.tolist() if isinstance(scale_factor, Tensor) else scale_factor
        given = list(given) if isinstance(given, (list, tuple)) else [given] * ndim
        scales = [float(f) for f in given]
        factors = [*scales]
        if not all(math.isfinite(n * f) for n, f in zip(space, scales, strict=True)):
            raise ValueError(f"interpolate(): scale_factor should be finite, but is {given}.")
        sizes = [int(n * float(f)) for n, f in zip(space, given, strict=True)]
        if recompute_scale_factor:
            factors = [None] * ndim
    if mode == "area":
        return channels_back(_AVERAGES[ndim](x, sizes if ndim > 1 else sizes[0]), data_format)
    centred = mode != "nearest" and not align_corners and (align_mode == 0 or mode == "bicubic")
    for k, (n, wanted, factor) in enumerate(zip(space, sizes, factors, strict=True)):
        if align_corners:
            ratio = (n - 1) / (wanted - 1) if wanted > 1 else 0.0
        else:
            ratio = 1 / factor if factor else n / wanted
        x = _resampled(x, k + 2, wanted, ratio, mode, centred)
    return channels_back(x, data_format)


def upsample(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """`interpolate` by its other name."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)
