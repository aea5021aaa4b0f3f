"""Outputs and gradients of a case as they travel with its result, and whether those of two backends are the same."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.result import Value

MOST_ELEMENTS = 4096
"""Elements of a Tensor that travel; of a larger one as many, evenly spaced."""
DTYPE_NAME = re.compile(r"[a-z][a-z0-9_]{2,20}")
"""The name of a dtype."""
ROUNDING_RTOL = {
    np.dtype("float64"): 1e-12,
    np.dtype("complex128"): 1e-12,
    np.dtype("float32"): 16 * 2.0**-23,
    np.dtype("complex64"): 16 * 2.0**-23,
    np.dtype("float16"): 4 * 2.0**-10,
    np.dtype(ml_dtypes.bfloat16): 4 * 2.0**-7,
}
"""How far two backends may lie apart, relative to the largest element of the Tensor, by its dtype.

Of 2,083 Tensors of the bundled scenarios on five releases none lay further from the engine's than 1.4e-14 in float64,
3.7e-7 (3 spacings at 1) in float32, and 2.3e-2 (3 spacings) in bfloat16.
"""


def value_of(name: str, array: Any) -> Value:
    """The value of an array in the host's memory, or of None."""
    if array is None:
        return Value(name=name)
    flat = np.asarray(array).reshape(-1)
    if flat.size > MOST_ELEMENTS:
        flat = flat[np.linspace(0, flat.size - 1, MOST_ELEMENTS).astype(int)]
    data = base64.b64encode(np.ascontiguousarray(flat).tobytes()).decode()
    return Value(name=name, dtype=np.asarray(array).dtype.name, shape=np.asarray(array).shape, data=data)


def elements(value: Value) -> np.ndarray[Any, Any]:
    """The elements that have come."""
    dtype = np.dtype(ml_dtypes.bfloat16 if value.dtype == "bfloat16" else value.dtype)
    return np.frombuffer(base64.b64decode(value.data), dtype)


def is_whole(value: Value) -> bool:
    """Whether its data are those of an array of its shape and dtype, as `value_of` makes them; or there is no array."""
    if not value.dtype:
        return not value.shape and not value.data
    if not DTYPE_NAME.fullmatch(value.dtype):  # NumPy reads some texts as whole structures
        return False
    try:
        found = elements(value)
    except (TypeError, ValueError):
        return False
    numbers = found.dtype.kind in "biufc" or value.dtype in ml_dtypes.__all__
    return numbers and found.dtype.name == value.dtype and found.size == min(math.prod(value.shape), MOST_ELEMENTS)


def kind(value: Value) -> str:
    """``float32 of shape [2, 3]``, or ``none``."""
    return f"{value.dtype} of shape {list(value.shape)}" if value.dtype else "none"


def differences(ours: Sequence[Value], theirs: Sequence[Value], names: tuple[str, str]) -> list[str]:
    """In what the values of one backend differ from those of another, a line for each; `names` are the backends'."""
    one, other = ({value.name: value for value in values} for values in (ours, theirs))
    found = (difference(name, one, other, names) for name in dict.fromkeys([*one, *other]))
    return [line for line in found if line]


def difference(name: str, one: Mapping[str, Value], other: Mapping[str, Value], backends: tuple[str, str]) -> str:
    """In what one value differs; empty if in nothing that its dtype's rounding does not explain."""
    if name not in one or name not in other:
        return f"{name}: there is none on {backends[name in one]}"
    a, b = one[name], other[name]
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{name}: {kind(a)} on {backends[0]}, {kind(b)} on {backends[1]}"
    if a.data == b.data:
        return ""
    x, y = elements(a), elements(b)
    rtol = ROUNDING_RTOL.get(x.dtype, 0.0)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        error = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, abs(x - y))
    finite = np.concatenate([abs(side[np.isfinite(side)]) for side in (x, y)])
    largest = float(finite.max(initial=0.0))
    wrong = ~(error <= rtol * largest)
    if not wrong.any():
        return ""
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    values = f"{x[worst]:.8g} on {backends[0]}, {y[worst]:.8g} on {backends[1]}"
    share = f"{int(wrong.sum())} of {wrong.size} elements differ"
    relative = f"by up to {error[worst] / largest:.1e} of the largest, bar {rtol:.0e}" if largest else ""
    return f"{name}: {values} ({', '.join(filter(None, [share, relative]))})"
