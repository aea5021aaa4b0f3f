"""The axis of channels by Paddle's `data_format`: ``NCHW`` has them second, ``NHWC`` last."""

from __future__ import annotations

from typing import Any

from pylayer.ops.shape import moveaxis
from pylayer.tensor.tensor import Tensor

FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
"""The usual format, with channels second, and the one with channels last, by number of spatial
axes.
"""

SPATIAL_FORMATS = ("NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")
"""Formats of any number of spatial axes."""

ALL_FORMATS = ("NC", *SPATIAL_FORMATS)
"""Formats of any number of spatial axes, or none."""


def check_format(
    data_format: Any, formats: tuple[str, ...], error: type[Exception] = ValueError
) -> None:
    """Raise `error` unless `data_format` is one of the formats."""
    if data_format not in formats:
        expected = " or ".join(map(repr, formats))
        raise error(
            f"Attr(data_format) should be {expected}. Received Attr(data_format): {data_format}."
        )


def are_channels_last(data_format: str) -> bool:
    """Whether channels are the last axis; in ``NC`` they are also the second axis."""
    return data_format.endswith("C") and data_format != "NC"


def _move_channels(x: Tensor, data_format: str, source: int, destination: int) -> Tensor:
    moves = are_channels_last(data_format) and x.ndim > 2
    return moveaxis(x, source, destination) if moves else x


def channels_first(x: Tensor, data_format: str) -> Tensor:
    """`x` with its channels as the second axis."""
    return _move_channels(x, data_format, -1, 1)


def channels_back(x: Tensor, data_format: str) -> Tensor:
    """`x` with its channels at the position that `data_format` gives."""
    return _move_channels(x, data_format, 1, -1)
