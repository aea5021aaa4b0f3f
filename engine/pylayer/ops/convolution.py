"""Convolution over any number of spatial axes, and its two adjoints: each a product with the windows as columns.

The three are the partial maps of one trilinear form, so each one's derivatives are the other two, to any order.
`pads` are pairs (before, after); `x` is [batch, in, *space], `w` [out, in / groups, *kernel].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import op
from pylayer.ops.windows import Numbers, Pads, folded, padded, window_counts, windows

COLUMNS = 2 << 20
"""Bytes of columns made at a time on the host, about what a core's second-level cache holds: for 32×16×32×32 with 3×3
in float64 one image at a time took 5.1 ms forward, the whole batch at once 8.7 (`tests/bench/convolution.py`)."""


def _blocks(xp: ModuleType, batch: int, each: int) -> Iterator[slice]:
    """Slices of the batch whose columns, of `each` bytes, fit; on a device the whole batch."""
    count = max(1, COLUMNS // max(each, 1)) if xp.__name__ == "numpy" else max(batch, 1)
    return (slice(k, k + count) for k in range(0, batch, count))


def _columns(xp: ModuleType, view: Array, block: slice, groups: int) -> Array:
    """Part of a view of windows as [batch, groups, in / groups · kernel, counts]."""
    part = view[block]
    ndim = (part.ndim - 2) // 2
    rows = math.prod(part.shape[1 : 2 + ndim]) // groups
    return part.reshape(part.shape[0], groups, rows, math.prod(part.shape[2 + ndim :]))


@op(
    x=lambda g, F, x_shape, w, strides, pads, dilations, groups: F.conv_input(
        g, w, x_shape[2:], strides, pads, dilations, groups
    ),
    w=lambda g, F, x, w_shape, strides, pads, dilations, groups: F.conv_weight(
        g, x, w_shape[2:], strides, pads, dilations, groups
    ),
)
def conv(xp: ModuleType, x: Array, w: Array, strides: Numbers, pads: Pads, dilations: Numbers, groups: int) -> Array:
    """Σ w · window for every window: [batch, out, *counts].

    Raises:
        ValueError: the channels do not fit, or no window does.
    """
    kernel = w.shape[2:]
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError(
            f"the number of input's channels should be equal to filter's channels * groups, but the input has "
            f"{x.shape[1]} channels, the filter {w.shape[1]} and groups is {groups}"
        )
    counts = window_counts(x.shape[2:], kernel, strides, pads, dilations)
    view = windows(xp, padded(xp, x, pads), kernel, strides, dilations)
    rows = w.reshape(groups, w.shape[0] // groups, -1)
    out = xp.empty((x.shape[0], groups, rows.shape[1], math.prod(counts)), x.dtype)
    for block in _blocks(xp, x.shape[0], view[:1].size * x.dtype.itemsize):
        out[block] = xp.matmul(rows, _columns(xp, view, block, groups))
    return out.reshape(x.shape[0], w.shape[0], *counts)


@op(
    g=lambda h, F, w, strides, pads, dilations, groups: F.conv(h, w, strides, pads, dilations, groups),
    w=lambda h, F, g, w_shape, strides, pads, dilations, groups: F.conv_weight(
        g, h, w_shape[2:], strides, pads, dilations, groups
    ),
)
def conv_input(
    xp: ModuleType,
    g: Array,
    w: Array,
    space: Numbers,
    strides: Numbers,
    pads: Pads,
    dilations: Numbers,
    groups: int,
) -> Array:
    """The adjoint of `conv` in its input, of spatial sizes `space`: a transposed convolution.

    With strides of 1 it is a convolution by the mirrored kernel, else columns are added up where they came from.
    """
    kernel, batch = w.shape[2:], g.shape[0]
    outs = w.shape[0] // groups
    counts = window_counts(space, kernel, strides, pads, dilations)
    if g.shape[1] != w.shape[0] or tuple(g.shape[2:]) != tuple(counts):
        raise ValueError(
            f"{g.shape[1]} channels of {list(g.shape[2:])} do not fit a filter for {w.shape[0]} of {counts}"
        )
    reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    if max(strides) == 1 and all(r >= max(pair) for r, pair in zip(reach, pads, strict=True)):
        mirrored = w[(..., *(slice(None, None, -1) for _ in kernel))].reshape(groups, outs, *w.shape[1:])
        swapped = mirrored.swapaxes(1, 2).reshape(groups * w.shape[1], outs, *kernel)
        around = [(r - before, r - after) for r, (before, after) in zip(reach, pads, strict=True)]
        mirror: Any = conv
        return mirror.op.kernels[type(g)](g, swapped, strides, around, dilations, groups)
    columns = xp.ascontiguousarray(w.reshape(groups, outs, -1).swapaxes(1, 2))
    flat = xp.ascontiguousarray(g).reshape(batch, groups, outs, -1)
    channels = w.shape[1] * groups
    out = xp.empty((batch, channels, *space), g.dtype)
    for block in _blocks(xp, batch, channels * math.prod(kernel) * math.prod(counts) * g.dtype.itemsize):
        parts = xp.matmul(columns, flat[block]).reshape(-1, channels, *kernel, *counts)
        out[block] = folded(xp, parts, space, strides, pads, dilations)
    return out


@op(
    g=lambda h, F, x, strides, pads, dilations, groups: F.conv(x, h, strides, pads, dilations, groups),
    x=lambda h, F, g, x_shape, strides, pads, dilations, groups: F.conv_input(
        g, h, x_shape[2:], strides, pads, dilations, groups
    ),
)
def conv_weight(
    xp: ModuleType,
    g: Array,
    x: Array,
    kernel: Numbers,
    strides: Numbers,
    pads: Pads,
    dilations: Numbers,
    groups: int,
) -> Array:
    """The adjoint of `conv` in its filter, of spatial sizes `kernel`."""
    batch, outs = g.shape[0], g.shape[1] // groups
    view = windows(xp, padded(xp, x, pads), kernel, strides, dilations)
    # The last windows may not reach as far as `x` does.
    view = view[(..., *(slice(n) for n in g.shape[2:]))]
    flat = xp.ascontiguousarray(g).reshape(batch, groups, outs, -1)
    total = xp.zeros((groups, x.shape[1] // groups * math.prod(kernel), outs), g.dtype)
    for block in _blocks(xp, batch, view[:1].size * x.dtype.itemsize):  # the larger factor as it lies: half the time
        total += xp.matmul(_columns(xp, view, block, groups), flat[block].swapaxes(-1, -2)).sum(0)
    return xp.ascontiguousarray(total.swapaxes(1, 2)).reshape(g.shape[1], x.shape[1] // groups, *kernel)
