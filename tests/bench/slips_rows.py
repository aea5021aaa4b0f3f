"""The rows of slips.py: layers, and mistakes in their backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Row:
    """A layer, what draws its inputs, mistakes, and options of its check.

    A mistake is a text of backward, of which the first is replaced, what stands there by mistake, and parts of the
    lines of forward at which the cause may be named, separated by ``|``.
    """

    layer: type
    inputs: Callable[[np.random.Generator], Sequence[Any]]
    mistakes: Sequence[tuple[str, str, str]]
    options: dict[str, Any] = field(default_factory=dict)


def rows_into(rows: list[Row]) -> Callable[..., Callable[[type], type]]:
    """A decorator that puts a layer into a list."""

    def row(inputs: Any, *mistakes: tuple[str, str, str], **options: Any) -> Callable[[type], type]:
        def put(layer: type) -> type:
            rows.append(Row(layer, inputs, mistakes, options))
            return layer

        return put

    return row
