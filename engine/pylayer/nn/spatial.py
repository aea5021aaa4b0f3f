"""The arguments that layers over space share: sizes per axis, padding in its many forms, and where channels stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.nn.checks import check_format
from pylayer.ops.arguments import as_int, as_ints
from pylayer.ops.shape import moveaxis
from pylayer.tensor.invalid import invalid
from pylayer.tensor.tensor import Tensor

FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}
"""Where channels stand unless said otherwise, by the number of spatial axes."""

ALL_FORMATS = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")
"""What functions over any number of spatial axes take."""


def per_axis(value: Any, ndim: int, what: str) -> list[int]:
    """One int per spatial axis, from an int or as many.

    Raises:
        ValueError: there are neither one nor as many as axes.
    """
    numbers = as_ints(value)
    if len(numbers) not in (1, ndim):
        raise ValueError(f"{what} should be an int or {ndim} of them, but is {value!r}.")
    return numbers * ndim if len(numbers) == 1 else numbers


def channels_first(x: Tensor, data_format: str) -> Tensor:
    """`x` with its channels as the second axis."""
    return moveaxis(x, -1, 1) if data_format.endswith("C") and x.ndim > 2 else x


def channels_back(x: Tensor, data_format: str) -> Tensor:
    """`x` with its channels where `data_format` has them."""
    return moveaxis(x, 1, -1) if data_format.endswith("C") and x.ndim > 2 else x


def check_space(name: str, x: Tensor, ndim: int, data_format: str) -> None:
    """Check that `x` has a batch, channels and `ndim` spatial axes, and that `data_format` is one of as many.

    Raises:
        ValueError: it has not, or is none.
    """
    check_format(data_format, FORMATS[ndim], FORMATS[ndim].replace("C", "") + "C")
    if x.ndim != ndim + 2:
        raise invalid(
            f"{name}(): the input of Op should be {ndim + 2}-D Tensor, but has shape {x.shape}"
        )


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
        padding: an int; one per axis; two per axis; pairs for all axes of the Tensor, or nested lists of these;
            ``"VALID"``, none; or ``"SAME"``, as much as keeps the number of windows at size / stride, rounded up.

    Raises:
        ValueError: another text or number of ints, or padding of batch or channels.
    """
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"Unknown padding: '{padding}'. It can only be 'SAME' or 'VALID'.")
        if padding.upper() == "VALID":
            return [(0, 0)] * ndim
        totals = [
            max((-(-n // s) - 1) * s + k - n, 0)
            for n, s, k in zip(space, strides, kernel, strict=True)
        ]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [(as_int(before), as_int(after)) for before, after in padding]
        if len(pairs) == ndim + 2:
            outside = [0, ndim + 1] if data_format.endswith("C") else [0, 1]
            if any(pairs[k] != (0, 0) for k in outside):
                raise ValueError(
                    f"Non-zero padding({padding}) in the batch or channel dimensions is not supported."
                )
            pairs = [pair for k, pair in enumerate(pairs) if k not in outside]
        numbers = [n for pair in pairs for n in pair]
    else:
        numbers = as_ints(padding)
    if len(numbers) == 2 * ndim + 4:
        numbers = numbers[2:-2] if data_format.endswith("C") else numbers[4:]
    if len(numbers) == 2 * ndim:
        return list(zip(numbers[::2], numbers[1::2], strict=True))
    return [(n, n) for n in per_axis(numbers, ndim, "padding")]
