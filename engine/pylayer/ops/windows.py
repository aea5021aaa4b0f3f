"""Sliding windows over the last axes, as strided views: what convolution, pooling, unfold and fold are made of.

Arrays are [batch, channels, *space]. `pads` are pairs (before, after), one per spatial axis, as `kernel`, `strides` and
`dilations` have one number per spatial axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import op

Numbers = Sequence[int]
Pads = Sequence[tuple[int, int]]


def padded(xp: ModuleType, x: Array, pads: Pads, value: Any = 0) -> Array:
    """`x` with `value` around its spatial axes, contiguous; `x` itself if there is nothing to add."""
    if not any(n for pair in pads for n in pair):
        return xp.ascontiguousarray(x)
    sizes = [n + before + after for n, (before, after) in zip(x.shape[2:], pads, strict=True)]
    out = xp.full((*x.shape[:2], *sizes), value, x.dtype)
    out[inside(x.shape[2:], pads)] = x
    return out


def inside(space: Numbers, pads: Pads) -> tuple[Any, ...]:
    """The index of what was there before padding."""
    return (..., *(slice(before, before + n) for n, (before, _) in zip(space, pads, strict=True)))


def window_counts(space: Numbers, kernel: Numbers, strides: Numbers, pads: Pads, dilations: Numbers) -> list[int]:
    """How many windows fit along each axis, one at least."""
    counts = [
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, s, (before, after), d in zip(space, kernel, strides, pads, dilations, strict=True)
    ]
    if min(counts) < 1:
        raise ValueError(f"a window of {list(kernel)} does not fit into {list(space)} with padding {list(pads)}")
    return counts


def windows(xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, dilations: Numbers) -> Array:
    """The view [batch, channels, *kernel, *counts] of contiguous, padded `x`."""
    counts = window_counts(x.shape[2:], kernel, strides, [(0, 0)] * len(kernel), dilations)
    steps = x.strides[2:]
    return xp.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *kernel, *counts),
        (
            *x.strides[:2],
            *(d * step for d, step in zip(dilations, steps, strict=True)),
            *(s * step for s, step in zip(strides, steps, strict=True)),
        ),
    )


def shifts(kernel: Numbers, strides: Numbers, dilations: Numbers, counts: Numbers) -> Iterator[tuple[Any, Any]]:
    """Per element of the kernel, its index and that of where it stands in all windows of a padded array."""
    for at in itertools.product(*map(range, kernel)):
        first = [d * k for d, k in zip(dilations, at, strict=True)]
        yield at, (..., *(slice(f, f + s * n, s) for f, s, n in zip(first, strides, counts, strict=True)))


# --------------------------------------------------------------------------- unfold and fold
@op(x=lambda g, F, x_shape, kernel, strides, pads, dilations: F.fold(g, x_shape[2:], kernel, strides, pads, dilations))
def unfold_(xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, pads: Pads, dilations: Numbers) -> Array:
    """The windows as columns: [batch, channels · kernel, counts]."""
    view = windows(xp, padded(xp, x, pads), kernel, strides, dilations)
    return view.reshape(x.shape[0], x.shape[1] * math.prod(kernel), -1).copy()


@op(x=lambda g, F, kernel, strides, pads, dilations: F.unfold(g, kernel, strides, pads, dilations))
def fold_(
    xp: ModuleType, x: Array, space: Numbers, kernel: Numbers, strides: Numbers, pads: Pads, dilations: Numbers
) -> Array:
    """Columns added up where `unfold` takes them from: [batch, channels, *space]."""
    counts = window_counts(space, kernel, strides, pads, dilations)
    parts = x.reshape(x.shape[0], -1, *kernel, *counts)
    return folded(xp, parts, space, strides, pads, dilations)


def folded(xp: ModuleType, parts: Array, space: Numbers, strides: Numbers, pads: Pads, dilations: Numbers) -> Array:
    """The sum [batch, channels, *space] of `parts`, [batch, channels, *kernel, *counts], at their places."""
    ndim = len(space)
    kernel, counts = parts.shape[2 : 2 + ndim], parts.shape[2 + ndim :]
    sizes = [n + before + after for n, (before, after) in zip(space, pads, strict=True)]
    out = xp.zeros((*parts.shape[:2], *sizes), parts.dtype)
    for at, place in shifts(kernel, strides, dilations, counts):
        out[place] += parts[(slice(None), slice(None), *at)]
    return xp.ascontiguousarray(out[inside(space, pads)])


# --------------------------------------------------------------------------- sums
@op(x=lambda g, F, x_shape, kernel, strides, pads: F.window_spread(g, x_shape[2:], kernel, strides, pads))
def window_sum(xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, pads: Pads) -> Array:
    """The sums of the windows: [batch, channels, *counts]."""
    once = [1] * len(kernel)
    counts = window_counts(x.shape[2:], kernel, strides, pads, once)
    wide = padded(xp, x, pads)
    out = xp.zeros((*x.shape[:2], *counts), x.dtype)
    for _, place in shifts(kernel, strides, once, counts):
        out += wide[place]
    return out


@op(g=lambda h, F, kernel, strides, pads: F.window_sum(h, kernel, strides, pads))
def window_spread(xp: ModuleType, g: Array, space: Numbers, kernel: Numbers, strides: Numbers, pads: Pads) -> Array:
    """Each element of `g` added at all places of its window: [batch, channels, *space]."""
    sizes = [n + before + after for n, (before, after) in zip(space, pads, strict=True)]
    out = xp.zeros((*g.shape[:2], *sizes), g.dtype)
    for _, place in shifts(kernel, strides, [1] * len(kernel), g.shape[2:]):
        out[place] += g
    return xp.ascontiguousarray(out[inside(space, pads)])


@op()
def window_argmax(xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, pads: Pads) -> Array:
    """Per window the position of its largest element, the first of several, in the flattened space of `x`."""
    space, once = x.shape[2:], [1] * len(kernel)
    lowest = -xp.inf if x.dtype.kind == "f" else xp.iinfo(x.dtype).min
    wide = padded(xp, x, pads, lowest)
    counts = window_counts(space, kernel, strides, pads, once)
    numbers = xp.zeros((1, 1, *wide.shape[2:]), "int64")
    numbers[inside(space, pads)] = xp.arange(math.prod(space)).reshape(space)
    best, found = None, None
    for _, place in shifts(kernel, strides, once, counts):
        here, number = wide[place], numbers[place]
        if best is None:
            best, found = here.copy(), xp.broadcast_to(number, here.shape).copy()
        else:
            larger = (here > best) | (here != here)  # NaN is the largest
            best, found = xp.where(larger, here, best), xp.where(larger, number, found)
    return found
