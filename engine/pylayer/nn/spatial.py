"""Arguments that functions over spatial axes share: sizes per axis, and padding in its many
forms.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pylayer.ops.arguments import as_ints, require
from pylayer.ops.formats import FORMATS, are_channels_last, check_format
from pylayer.tensor.tensor import Tensor


def per_axis(value: Any, ndim: int, name: str) -> list[int]:
    """Expand an argument to one int per spatial axis; it is an int, or one int per axis.

    Raises:
        ValueError: the number of ints is neither one nor the number of axes.
    """
    numbers = as_ints(value)
    require(len(numbers) in (1, ndim), f"{name} should be an int or {ndim} of them, not {value!r}")
    return numbers * (ndim // len(numbers))


def check_space(name: str, x: Tensor, ndim: int, data_format: str) -> None:
    """Check that `x` has a batch, channels and `ndim` spatial axes, and that `data_format` is one
    for that number of axes.

    Raises:
        ValueError: `x` has a different number of axes, or the format is unknown.
    """
    check_format(data_format, FORMATS[ndim])
    require(x.ndim == ndim + 2, f"{name}(): the input of Op should be {ndim + 2}-D Tensor", x)


def padding_word(padding: Any) -> str:
    """``SAME`` or ``VALID``; empty if the padding is given in numbers. Raises ValueError for
    another word.
    """
    if not isinstance(padding, str):
        return ""
    word = padding.upper()
    known = word in ("SAME", "VALID")
    require(known, f"Unknown padding: '{padding}'. It can only be 'SAME' or 'VALID'")
    return word


def _flat(padding: Any) -> list[int]:
    """The numbers of a padding, given as one list or in pairs."""
    is_list = isinstance(padding, (list, tuple))
    is_nested = is_list and padding and isinstance(padding[0], (list, tuple))
    return as_ints(list(itertools.chain(*padding)) if is_nested else padding)


def pads_of(
    padding: Any,
    ndim: int,
    data_format: str,
    kernel: Sequence[int],
    strides: Sequence[int],
    space: Sequence[int],
) -> list[tuple[int, int]]:
    """Pairs (before, after), one per spatial axis.

    Args:
        padding: an int; one per axis; two per axis; pairs for all axes of the Tensor, or nested
            lists of these; ``"VALID"``, none; or ``"SAME"``, which makes the number of windows size
            / stride, rounded up.

    Raises:
        ValueError: an unknown text or a wrong number of ints, or padding of batch or channels.
    """
    word = padding_word(padding)
    if word == "SAME":
        axes = zip(space, strides, kernel, strict=True)
        totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in axes]
        return [(total // 2, total - total // 2) for total in totals]
    numbers = _flat(0 if word == "VALID" else padding)
    if len(numbers) == 2 * ndim + 4:  # includes batch and channels
        first = 2 if are_channels_last(data_format) else 4
        outside = numbers[:first] + numbers[first + 2 * ndim :]
        numbers = numbers[first : first + 2 * ndim]
        text = f"Non-zero padding({padding}) in the batch or channel dimensions is not supported"
        require(not any(outside), text)
    if len(numbers) == 2 * ndim:
        return list(zip(numbers[::2], numbers[1::2], strict=True))
    return [(n, n) for n in per_axis(numbers, ndim, "padding")]
