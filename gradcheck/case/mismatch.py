"""Held against what a scenario expects: values, and the exceptions and warnings of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.support.foreign import repr_of, text_of, type_name

RTOL = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "complex64": 1e-6, "float64": 1e-12, "complex128": 1e-12}
"""Relative tolerance for a value of a dtype, where the scenario gives none: a few units in its last place."""


def mismatch(got: Any, expected: Any, rtol: float | None, to_numpy: Callable[[Any], Any]) -> str:
    """Why `got` is not what was expected, in one line; empty if it is.

    None, booleans and strings are compared by equality, also in lists, and numbers and lists of them elementwise, after
    their shapes: ``|got - expected| <= rtol * |expected|``, NaN equal to NaN.
    """
    if expected is None or isinstance(expected, (bool, str)):
        plain = got if got is None or isinstance(got, (bool, str)) else to_numpy(got)
        if isinstance(plain, np.ndarray) and plain.dtype == bool and plain.size == 1:
            plain = bool(plain)
        if isinstance(expected, str) and not isinstance(plain, str):
            plain = text_of(got)
        same = type(plain) is type(expected) and plain == expected
        return "" if same else f"expected {expected!r}, got {value_text(plain)}"
    if got is None or isinstance(got, str):
        return f"expected {value_text(expected)}, got {repr_of(got)}"
    try:
        values, wanted = np.asarray(to_numpy(got)), np.asarray(expected)
    except (TypeError, ValueError):
        return f"expected {value_text(expected)}, got {type_name(got)} {value_text(got)}"
    if values.dtype == object:
        return "" if got == expected else f"expected {value_text(expected)}, got {repr_of(got)}"
    if "U" in (values.dtype.kind, wanted.dtype.kind):  # text among them: nothing is close to it
        same = values.tolist() == wanted.tolist()
        return "" if same else f"expected {value_text(expected)}, got {value_text(values)}"
    if values.shape != wanted.shape:
        return f"expected shape {list(wanted.shape)}, got {list(values.shape)}: {value_text(values)}"
    tolerance = RTOL.get(values.dtype.name, 0.0) if rtol is None else rtol
    if values.dtype.name == "bfloat16":
        values = values.astype(np.float32)
    close = np.isclose(values, wanted, rtol=tolerance, atol=0.0, equal_nan=True)
    if close.all():
        return ""
    index = tuple(int(k) for k in np.argwhere(~close)[0])
    where = f" at {list(index)}" if index else ""
    share = f"{(~close).sum()} of {close.size} differ"
    return f"expected {wanted[index]!s}{where}, got {values[index]!s} (rtol {tolerance:g}, {share})"


def value_text(value: Any) -> str:
    """A value, short enough for a line."""
    text = " ".join(repr_of(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def message_matches(pattern: Any, message: str) -> bool:
    """Whether a message holds the expected text: a substring, or ``{re: …}``."""
    if pattern is None:
        return True
    if isinstance(pattern, str):
        return pattern in message
    return re.search(pattern.re, message) is not None
