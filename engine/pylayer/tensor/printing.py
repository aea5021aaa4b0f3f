"""Values as text, laid out like Paddle 3.3.1 (observed rule 74).

A whole float has no decimals, other floats have eight. All elements have the width of the widest
one at the edges of the axes; there is a column for the sign if one of these is negative.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

PRECISION = 8
EDGE = 3
"""Elements shown at each end of a shortened axis."""
LONG = 1000
"""Number of elements above which axes are shortened."""
LINE = 80


def text_of(values: np.ndarray[Any, Any], indent: int) -> str:
    """The nested lists of `values`; lines after the first are indented by `indent` and by the depth
    of the list.
    """
    elements = np.concatenate([np.ravel(at_the_edges(values)), np.zeros(0, values.dtype)])
    width = max((len(item_text(item)) for item in elements), default=0)
    return nested_text(values, indent, width, bool((elements < 0).any()), values.size > LONG)


def at_the_edges(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`values` without the elements that are further than `EDGE` from both ends of an axis."""
    for axis, size in enumerate(values.shape):
        if size > 2 * EDGE:
            values = np.take(values, [*range(EDGE), *range(size - EDGE, size)], axis)
    return values


def item_text(item: Any) -> str:
    """One element, not padded."""
    if item.dtype.kind == "f":
        return f"{item:.{PRECISION}f}" if item != np.ceil(item) else f"{item:.0f}."  # NaN is not
    if item.dtype.kind == "c":
        return (
            f"({item.real:.{PRECISION}f}{'+' if item.imag >= 0 else ''}{item.imag:.{PRECISION}f}j)"
        )
    return str(item)


def nested_text(
    values: np.ndarray[Any, Any], indent: int, width: int, signed: bool, cut: bool
) -> str:
    """A list of elements, broken into lines; or of lists, with an empty line for every further axis
    between them.

    Elements have `width` columns, the first of them for the sign if `signed`.
    """
    if not values.ndim:
        text = item_text(values[()])
        sign = " " if signed and len(text) < width and not values[()] < 0 else ""
        return f"{sign}{text}".ljust(width)
    size = len(values)
    shown = chain(range(EDGE), range(size - EDGE, size)) if cut and size > 2 * EDGE else range(size)
    parts = [nested_text(values[k, ...], indent + 1, width, signed, cut) for k in shown]
    if len(parts) < size:
        parts.insert(EDGE, "...")
    if values.ndim > 1:
        return f"[{(',' + chr(10) * (values.ndim - 1) + ' ' * (indent + 1)).join(parts)}]"
    per_line = max(1, (LINE - indent) // (width + 2))
    lines = [", ".join(parts[k : k + per_line]) for k in range(0, len(parts), per_line)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
