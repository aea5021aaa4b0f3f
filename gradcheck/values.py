"""Outputs and gradients of a case as they travel with its result, and whether those of two backends are the same."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from pydantic import BaseModel, ConfigDict

MOST = 4096
"""Elements of a Tensor that travel; of a larger one as many, evenly spaced."""
RTOL = {
    np.dtype("float64"): 1e-12,
    np.dtype("complex128"): 1e-12,
    np.dtype("float32"): 64 * 2.0**-23,
    np.dtype("complex64"): 64 * 2.0**-23,
    np.dtype("float16"): 4 * 2.0**-10,
    np.dtype(ml_dtypes.bfloat16): 4 * 2.0**-7,
}
"""How far two backends may lie apart, relative to the largest element of the Tensor, by its dtype."""


class Value(BaseModel):
    """One output or gradient: its dtype, its shape, and its elements in row-major order."""

    model_config = ConfigDict(frozen=True)

    name: str
    dtype: str = ""
    """Empty: there is none."""
    shape: tuple[int, ...] = ()
    data: str = ""
    """The bytes of the elements, or of `MOST` of them, in base64."""

    @classmethod
    def of(cls, name: str, array: Any) -> Value:
        """The value of an array in the host's memory, or of None."""
        if array is None:
            return cls(name=name)
        flat = np.asarray(array).reshape(-1)
        if flat.size > MOST:
            flat = flat[np.linspace(0, flat.size - 1, MOST).astype(int)]
        data = base64.b64encode(np.ascontiguousarray(flat).tobytes()).decode()
        return cls(name=name, dtype=np.asarray(array).dtype.name, shape=np.asarray(array).shape, data=data)

    def elements(self) -> np.ndarray[Any, Any]:
        """Those that have come."""
        dtype = np.dtype(ml_dtypes.bfloat16 if self.dtype == "bfloat16" else self.dtype)
        return np.frombuffer(base64.b64decode(self.data), dtype)

    def kind(self) -> str:
        """``float32 of shape [2, 3]``, or ``none``."""
        return f"{self.dtype} of shape {list(self.shape)}" if self.dtype else "none"


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
        return f"{name}: {a.kind()} on {backends[0]}, {b.kind()} on {backends[1]}"
    if a.data == b.data:
        return ""
    x, y = a.elements(), b.elements()
    rtol = RTOL.get(x.dtype, 0.0)
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
