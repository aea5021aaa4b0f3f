"""Padding: elements added around a Tensor."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import as_ints, one_of, require
from pylayer.ops.formats import FORMATS, are_channels_last, check_format
from pylayer.ops.indexing import along, getitem
from pylayer.tape.op import op
from pylayer.tensor.array import Array
from pylayer.tensor.tensor import Tensor


@op(
    x=lambda g, F, x_shape, widths: F.getitem(
        g, tuple(slice(w[0], w[0] + n) for w, n in zip(widths, x_shape, strict=True))
    )
)
def pad_(xp: ModuleType, x: Array, widths: Sequence[tuple[int, int]], value: float) -> Array:
    """`x` with `value` added around it; the counts before and after each axis are not negative."""
    return xp.pad(x, widths, constant_values=value)


_SOURCE = {
    "reflect": lambda k, n: abs(k) if k < n else 2 * (n - 1) - k,
    "replicate": lambda k, n: min(max(k, 0), n - 1),
    "circular": lambda k, n: k % n,
}
"""By mode, the index of the element that fills position k of an axis of n elements."""


def pad(
    x: Tensor,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str | None = None,
    pad_from_left_axis: bool = True,
) -> Tensor:
    """`x` with elements added around it, or removed if a number is negative; `mode` is constant
    or one of `_SOURCE`.

    Args:
        pad: pairs (before, after): for each axis in order if there are as many pairs as axes (from
            the last axis backwards if not `pad_from_left_axis`), otherwise for the last spatial
            axes, from the last backwards.
        data_format: names the spatial axes: C last (``NHWC``) means that the last axis is not one
            of them. With mode constant it is used only if there are as many pairs as spatial axes.
    """
    one_of("pad(): `mode`", mode, "constant", *_SOURCE)
    widths = _widths(x, as_ints(pad), mode, data_format, pad_from_left_axis)
    if any(n < 0 for pair in widths for n in pair):
        sizes = zip(widths, x.shape, strict=True)
        x = getitem(x, tuple(slice(max(-b, 0), n - max(-a, 0)) for (b, a), n in sizes))
        widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    if mode == "constant":
        return pad_(x, widths, value)
    for axis, (before, after) in enumerate(widths):
        size = x.shape[axis]
        enough = mode != "reflect" or max(before, after) < max(size, 1)
        require(enough, f"pad(): reflect takes less than the {size} elements of axis {axis}")
        if before or after:
            places = [_SOURCE[mode](k, size) for k in range(-before, size + after)]
            x = along(x, axis, places)
    return x


def _widths(
    x: Tensor, numbers: list[int], mode: str, data_format: str | None, from_left: bool
) -> list[tuple[int, int]]:
    """The numbers of elements before and after each axis of `x`, from the arguments of `pad`."""
    pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    fits = not len(numbers) % 2 and len(pairs) <= x.ndim
    require(fits, f"pad(): {x.ndim} axes take up to {x.ndim} pairs of numbers, not {numbers}", x)
    rest = [(0, 0)] * (x.ndim - len(pairs))
    if not rest:
        return pairs if mode == "constant" and from_left else pairs[::-1]
    is_spatial = mode != "constant" or len(pairs) == x.ndim - 2
    if not is_spatial or data_format is None:
        return rest + pairs[::-1]
    formats = FORMATS.get(x.ndim - 2, (data_format,))
    check_format(data_format, formats, AssertionError)
    beyond = 1 if are_channels_last(data_format) else 0  # axes after the spatial ones
    return [*rest[beyond:], *pairs[::-1], *rest[:beyond]]
