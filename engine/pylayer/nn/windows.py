"""Sliding windows over the last axes, from which convolution, pooling, unfold and fold are built.

Arrays are [batch, channels, *space], filters [out, in / groups, *kernel]. `pads` are pairs (before,
after), one per spatial axis, just as `kernel`, `strides` and `dilations` have one number per
spatial axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import require
from pylayer.tape.op import op
from pylayer.tensor.array import Array

LOWEST = -3.4028234663852886e38
"""The value from which Paddle starts its search for the largest element of a window, in every
dtype: the smallest number of float32.
"""

# ------------------------------------------------------------------------ windows, as strided views
Numbers = Sequence[int]
Pads = Sequence[tuple[int, int]]


def pad_space(xp: ModuleType, x: Array, pads: Pads, value: Any = 0) -> Array:
    """`x` padded with `value` around its spatial axes, contiguous; `x` itself if no padding is
    added.
    """
    if not any(n for pair in pads for n in pair):
        return xp.ascontiguousarray(x)
    sizes = [n + before + after for n, (before, after) in zip(x.shape[2:], pads, strict=True)]
    result = xp.full((*x.shape[:2], *sizes), value, x.dtype)
    result[inside(x.shape[2:], pads)] = x
    return result


def inside(space: Numbers, pads: Pads) -> tuple[Any, ...]:
    """The index of the unpadded part."""
    return (..., *(slice(before, before + n) for n, (before, _) in zip(space, pads, strict=True)))


def window_counts(
    space: Numbers, kernel: Numbers, strides: Numbers, pads: Pads, dilations: Numbers
) -> list[int]:
    """The number of windows along each axis, at least one."""
    counts = [
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, s, (before, after), d in zip(space, kernel, strides, pads, dilations, strict=True)
    ]
    if min(counts) < 1:
        raise ValueError(
            f"a window of {list(kernel)} does not fit into {list(space)} with padding {list(pads)}"
        )
    return counts


def windows(
    xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, dilations: Numbers
) -> Array:
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


def shifts(
    kernel: Numbers, strides: Numbers, dilations: Numbers, counts: Numbers
) -> Iterator[tuple[Any, Any]]:
    """The index of each element of the kernel, and the index of its positions in all windows of a
    padded array.
    """
    for offset in itertools.product(*map(range, kernel)):
        first = [d * k for d, k in zip(dilations, offset, strict=True)]
        yield (
            offset,
            (
                ...,
                *(slice(f, f + s * n, s) for f, s, n in zip(first, strides, counts, strict=True)),
            ),
        )


# --------------------------------------------------------------------------- unfold and fold
@op(
    x=lambda g, F, x_shape, kernel, strides, pads, dilations: F.fold(
        g, x_shape[2:], kernel, strides, pads, dilations
    )
)
def unfold_(
    xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, pads: Pads, dilations: Numbers
) -> Array:
    """The windows as columns: [batch, channels · kernel, counts]."""
    view = windows(xp, pad_space(xp, x, pads), kernel, strides, dilations)
    return view.reshape(x.shape[0], x.shape[1] * math.prod(kernel), -1).copy()


@op(x=lambda g, F, kernel, strides, pads, dilations: F.unfold(g, kernel, strides, pads, dilations))
def fold_(
    xp: ModuleType,
    x: Array,
    space: Numbers,
    kernel: Numbers,
    strides: Numbers,
    pads: Pads,
    dilations: Numbers,
) -> Array:
    """Columns summed at the positions from which `unfold` takes them: [batch, channels, *space]."""
    counts = window_counts(space, kernel, strides, pads, dilations)
    parts = x.reshape(x.shape[0], -1, *kernel, *counts)
    return add_windows(xp, parts, space, strides, pads, dilations)


def add_windows(
    xp: ModuleType, parts: Array, space: Numbers, strides: Numbers, pads: Pads, dilations: Numbers
) -> Array:
    """The sum, [batch, channels, *space], of `parts`, [batch, channels, *kernel, *counts], each
    added at its position.
    """
    ndim = len(space)
    kernel, counts = parts.shape[2 : 2 + ndim], parts.shape[2 + ndim :]
    sizes = [n + before + after for n, (before, after) in zip(space, pads, strict=True)]
    sums = xp.zeros((*parts.shape[:2], *sizes), parts.dtype)
    for offset, place in shifts(kernel, strides, dilations, counts):
        sums[place] += parts[(slice(None), slice(None), *offset)]
    return xp.ascontiguousarray(sums[inside(space, pads)])


# --------------------------------------------------------------------------- sums
@op(
    x=lambda g, F, x_shape, kernel, strides, pads: F.window_spread(
        g, x_shape[2:], kernel, strides, pads
    )
)
def window_sum(xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, pads: Pads) -> Array:
    """The sums of the windows: [batch, channels, *counts]."""
    once = [1] * len(kernel)
    counts = window_counts(x.shape[2:], kernel, strides, pads, once)
    wide = pad_space(xp, x, pads)
    sums = xp.zeros((*x.shape[:2], *counts), x.dtype)
    for _, place in shifts(kernel, strides, once, counts):
        sums += wide[place]
    return sums


@op(g=lambda h, F, kernel, strides, pads: F.window_sum(h, kernel, strides, pads))
def window_spread(
    xp: ModuleType, g: Array, space: Numbers, kernel: Numbers, strides: Numbers, pads: Pads
) -> Array:
    """Each element of `g` added at all positions of its window: [batch, channels, *space]."""
    once, (batch, channels, *counts) = [1] * len(kernel), g.shape
    parts = xp.broadcast_to(
        g.reshape(batch, channels, *once, *counts), (batch, channels, *kernel, *counts)
    )
    return add_windows(xp, parts, space, strides, pads, once)


@op()
def window_argmax(xp: ModuleType, x: Array, kernel: Numbers, strides: Numbers, pads: Pads) -> Array:
    """The position of each window's largest element, the first of several, in the flattened space
    of `x`.

    It is -1 if a window has only padding or numbers up to `LOWEST`.
    """
    space, once = x.shape[2:], [1] * len(kernel)
    lowest = LOWEST if x.dtype.kind == "f" else xp.iinfo(x.dtype).min
    wide = pad_space(xp, x, pads, lowest)
    counts = window_counts(space, kernel, strides, pads, once)
    numbers = xp.full((1, 1, *wide.shape[2:]), -1, "int64")
    numbers[inside(space, pads)] = xp.arange(math.prod(space)).reshape(space)
    best = xp.full((*x.shape[:2], *counts), lowest, x.dtype)
    positions = xp.full(best.shape, -1, "int64")
    for _, place in shifts(kernel, strides, once, counts):
        values, candidates = wide[place], numbers[place]
        larger = (values > best) | (values != values)  # NaN is the largest
        best, positions = xp.where(larger, values, best), xp.where(larger, candidates, positions)
    return positions


# --------------------------------------------------------------------------- convolution
# Over any number of spatial axes, and its two adjoints: each a product with the windows as columns.
# The three are the
# partial maps of one trilinear form, so each one's derivatives are the other two, to any order.
COLUMNS = 1 << 20
"""Bytes of columns made at a time on the host: half of a core's second-level cache. For 32×16×32×32
with 3×3 in float32 the forward took 2.5 ms, with twice as many bytes 4.6 ms, with a quarter 3.4 ms.
"""

TALL = 32
"""The fewest rows of columns, per element of the kernel's first axis, for which separate products
are used: with 21 rows (3 channels, 7×7) they took 1.6 times as long as one product, with 48 rows
(16 channels, 3×3) half as long.
"""


def _blocks(xp: ModuleType, batch: int, each: int) -> Iterator[slice]:
    """Slices of the batch whose columns, of `each` bytes, fit the limit; on a device the whole
    batch.
    """
    count = max(1, COLUMNS // max(each, 1)) if xp.__name__ == "numpy" else max(batch, 1)
    return (slice(k, k + count) for k in range(0, batch, count))


def _columns(
    xp: ModuleType,
    x: Array,
    kernel: Numbers,
    counts: Numbers,
    strides: Numbers,
    pads: Pads,
    dilations: Numbers,
    groups: int,
) -> Iterator[tuple[slice, slice, Array]]:
    """The windows of `x` as columns, in parts: the slice of the batch, the slice of the kernel's
    first axis, and the columns, [batch, groups, in / groups · kernel, counts].

    With a stride of 1 along the first axis, only windows over the other axes are copied, if they
    are tall enough: the columns of one element of that axis are a view of these, which a product
    reads in place.
    """
    rows, wide = x.shape[1] // groups * math.prod(kernel[1:]), pad_space(xp, x, pads)
    first = 1 if strides[0] == 1 and rows >= TALL else kernel[0]
    view = windows(xp, wide, (first, *kernel[1:]), strides, dilations)
    # The last window may end before `x` does.
    view = view[(..., slice(None), *(slice(n) for n in counts[1:]))]
    for block in _blocks(xp, x.shape[0], view[:1].size * x.dtype.itemsize):
        copied = view[block].reshape(
            -1, groups, rows * first, view.shape[2 + len(kernel)], math.prod(counts[1:])
        )
        for k in range(0, kernel[0], first):
            shifted = (..., slice(k * dilations[0], k * dilations[0] + counts[0]), slice(None))
            yield block, slice(k, k + first), copied[shifted].reshape(*copied.shape[:3], -1)
        # The caller drops the columns too; the next ones then lie in the same memory, in the cache.
        del copied


@op(
    x=lambda g, F, x_shape, w, strides, pads, dilations, groups: F.conv_input(
        g, w, x_shape[2:], strides, pads, dilations, groups
    ),
    w=lambda g, F, x, w_shape, strides, pads, dilations, groups: F.conv_weight(
        g, x, w_shape[2:], strides, pads, dilations, groups
    ),
)
def conv(
    xp: ModuleType,
    x: Array,
    w: Array,
    strides: Numbers,
    pads: Pads,
    dilations: Numbers,
    groups: int,
) -> Array:
    """Σ w · window for every window: [batch, out, *counts]."""
    kernel = w.shape[2:]
    fits = x.shape[1] == w.shape[1] * groups and w.shape[0] % groups == 0
    text = "the number of input's channels should be equal to filter's channels * groups"
    text = f"{text}, but the input has {x.shape[1]}, the filter {w.shape[1]} and groups is {groups}"
    require(fits, text)
    counts = window_counts(x.shape[2:], kernel, strides, pads, dilations)
    outs = w.shape[0] // groups
    result = xp.empty((x.shape[0], groups, outs, math.prod(counts)), x.dtype)
    for block, kernel_rows, columns in _columns(
        xp, x, kernel, counts, strides, pads, dilations, groups
    ):
        product = xp.matmul(w[:, :, kernel_rows].reshape(groups, outs, -1), columns)
        del columns
        if kernel_rows.start:
            product += result[block]
        result[block] = product
    return result.reshape(x.shape[0], w.shape[0], *counts)


@op(
    g=lambda h, F, w, strides, pads, dilations, groups: F.conv(
        h, w, strides, pads, dilations, groups
    ),
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

    With strides of 1 it is a convolution with the mirrored kernel; otherwise columns are summed at
    the positions that they came from.
    """
    kernel, batch = w.shape[2:], g.shape[0]
    outs = w.shape[0] // groups
    counts = window_counts(space, kernel, strides, pads, dilations)
    if g.shape[1] != w.shape[0] or tuple(g.shape[2:]) != tuple(counts):
        text = f"do not fit a filter for {w.shape[0]} of {counts}"
        raise ValueError(f"{g.shape[1]} channels of {list(g.shape[2:])} {text}")
    reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    if max(strides) == 1 and all(r >= max(pair) for r, pair in zip(reach, pads, strict=True)):
        mirrored = w[(..., *(slice(None, None, -1) for _ in kernel))].reshape(
            groups, outs, *w.shape[1:]
        )
        swapped = mirrored.swapaxes(1, 2).reshape(groups * w.shape[1], outs, *kernel)
        mirror_pads = [
            (r - before, r - after) for r, (before, after) in zip(reach, pads, strict=True)
        ]
        mirror: Any = conv
        return mirror.op.kernels[type(g)](g, swapped, strides, mirror_pads, dilations, groups)
    columns = xp.ascontiguousarray(w.reshape(groups, outs, -1).swapaxes(1, 2))
    flat = xp.ascontiguousarray(g).reshape(batch, groups, outs, -1)
    channels = w.shape[1] * groups
    result = xp.empty((batch, channels, *space), g.dtype)
    for block in _blocks(
        xp, batch, channels * math.prod(kernel) * math.prod(counts) * g.dtype.itemsize
    ):
        parts = xp.matmul(columns, flat[block]).reshape(-1, channels, *kernel, *counts)
        result[block] = add_windows(xp, parts, space, strides, pads, dilations)
    return result


@op(
    g=lambda h, F, x, strides, pads, dilations, groups: F.conv(
        x, h, strides, pads, dilations, groups
    ),
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
    outs, ins = g.shape[1] // groups, x.shape[1] // groups
    flat = xp.ascontiguousarray(g).reshape(g.shape[0], groups, outs, -1).swapaxes(-1, -2)
    total = xp.zeros((groups, ins, *kernel, outs), g.dtype)
    for block, kernel_rows, columns in _columns(
        xp, x, kernel, g.shape[2:], strides, pads, dilations, groups
    ):
        place = total[:, :, kernel_rows]
        # The product with the larger factor untransposed.
        place += xp.matmul(columns, flat[block]).sum(0).reshape(place.shape)
        del columns
    return xp.ascontiguousarray(xp.moveaxis(total, -1, 1)).reshape(g.shape[1], ins, *kernel)
