"""Adaptive pooling of `paddle.nn.functional`: a requested number of windows, with sizes that cover
each axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pylayer.nn.families import over_axes
from pylayer.nn.spatial import check_space
from pylayer.ops.formats import FORMATS, channels_back, channels_first
from pylayer.ops.indexing import along, getitem
from pylayer.ops.joining import concat
from pylayer.ops.positions import take_along_axis
from pylayer.ops.reduction import mean
from pylayer.ops.shape import reshape
from pylayer.ops.sorting import argmax
from pylayer.tensor.array import XP
from pylayer.tensor.tensor import Tensor

Space = Sequence[int]


def _sizes(output_size: Any, ndim: int, space: Space) -> list[int]:
    sizes = output_size if isinstance(output_size, (list, tuple)) else [output_size] * ndim
    return [n if size is None else int(size) for size, n in zip(sizes, space, strict=True)]


def _spans(size: int, count: int) -> list[range]:
    """The begin and end of each of `count` windows over an axis."""
    return [range(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def _adaptive_avg(
    name: str, ndim: int, x: Tensor, output_size: Any, data_format: str = ""
) -> Tensor:
    """The means of `output_size` windows that cover each axis; a size of None keeps an axis."""
    check_space(name, x, ndim, data_format)
    x = channels_first(x, data_format)
    for axis, count in enumerate(_sizes(output_size, ndim, x.shape[2:]), start=2):
        spans = _spans(x.shape[axis], count)
        windows = [along(x, axis, slice(span.start, span.stop)) for span in spans]
        none = along(x, axis, slice(0))  # the result if there are no windows
        x = concat([none, *(mean(window, axis, True) for window in windows)], axis)
    return channels_back(x, data_format)


def _adaptive_max(
    name: str, ndim: int, x: Tensor, output_size: Any, return_mask: bool = False
) -> Any:
    """The largest elements of windows that cover each axis, and with `return_mask` their positions
    when flattened.

    There are `output_size` windows; a size of None keeps an axis.
    """
    check_space(name, x, ndim, FORMATS[ndim][0])
    space = x.shape[2:]
    counts = _sizes(output_size, ndim, space)
    xp = XP[type(x.array)]
    flat: Any = 0
    for k, spans in enumerate(map(_spans, space, counts)):
        # all rows get one length: a shorter span repeats its last position
        step, longest = math.prod(space[k + 1 :]), max(map(len, spans))
        rows = xp.asarray(
            [[span[min(j, len(span) - 1)] * step for j in range(longest)] for span in spans]
        )
        shape = [1] * (2 * ndim)
        shape[k], shape[ndim + k] = counts[k], longest
        flat = flat + rows.reshape(shape)
    places = flat.reshape(math.prod(counts), -1)
    candidates = getitem(reshape(x, [*x.shape[:2], -1]), (..., Tensor(places)))
    chosen = argmax(candidates, -1, True)
    largest = reshape(take_along_axis(candidates, chosen, -1), [*x.shape[:2], *counts])
    if not return_mask:
        return largest
    rows = xp.arange(math.prod(counts))
    where = places[rows, chosen.array[..., 0]]
    return largest, Tensor(where.reshape(largest.shape).astype("int32"))


_AVG, _MAX = "x output_size data_format", "x output_size return_mask"

adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = over_axes(
    _adaptive_avg, "adaptive_avg_pool{}d", {1: "x output_size", 2: _AVG, 3: _AVG}
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = over_axes(
    _adaptive_max, "adaptive_max_pool{}d", dict.fromkeys((1, 2, 3), _MAX)
)
