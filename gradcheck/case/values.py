"""Values of a case: held against what is expected, as they travel with its result, and beside another backend's."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Backend
from gradcheck.result import Value
from gradcheck.support.foreign import repr_of, text_of, type_name

MOST_ELEMENTS = 4096
"""Elements of a Tensor that travel; of a larger one as many, evenly spaced."""
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
    return Value(
        name=name, dtype=np.asarray(array).dtype.name, shape=np.asarray(array).shape, data=data
    )


def elements(value: Value) -> np.ndarray[Any, Any]:
    """The elements that have come."""
    dtype = np.dtype(ml_dtypes.bfloat16 if value.dtype == "bfloat16" else value.dtype)
    return np.frombuffer(base64.b64decode(value.data), dtype)


def differences(
    ours: Sequence[Value], theirs: Sequence[Value], names: tuple[str, str]
) -> list[str]:
    """In what the values of one backend differ from those of another, a line for each; `names` are the backends'."""
    one, other = ({value.name: value for value in values} for values in (ours, theirs))
    found = (difference(name, one, other, names) for name in dict.fromkeys([*one, *other]))
    return [line for line in found if line]


def difference(
    name: str, one: Mapping[str, Value], other: Mapping[str, Value], backends: tuple[str, str]
) -> str:
    """In what one value differs; empty if in nothing that its dtype's rounding does not explain."""
    if name not in one or name not in other:
        return f"{name}: there is none on {backends[name in one]}"
    a, b = one[name], other[name]
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        kinds = [f"{v.dtype} of shape {list(v.shape)}" if v.dtype else "none" for v in (a, b)]
        return f"{name}: {kinds[0]} on {backends[0]}, {kinds[1]} on {backends[1]}"
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
    relative = (
        f"by up to {error[worst] / largest:.1e} of the largest, bar {rtol:.0e}" if largest else ""
    )
    return f"{name}: {values} ({', '.join(filter(None, [share, relative]))})"


SAMPLE = 4
"""Random numbers by which the state of a generator is told from another: of 24 bits each."""


def left_by(
    namespace: Mapping[str, Any], before: Mapping[str, Any], backend: Backend
) -> Iterator[tuple[str, Any]]:
    """Names of a program and the Tensors and arrays they hold, as ``y``, ``x.grad`` of a leaf, ``outs[1]``.

    `before` are the names that the program was given; what these still hold is not its own, nor what has an underscore
    in front. Lists and tuples are looked into once.
    """
    for name, value in namespace.items():
        if name.startswith("_") or (name in before and before[name] is value):
            continue
        several = value if isinstance(value, (list, tuple)) else ()
        for place, one in [
            (name, value),
            *((f"{name}[{at}]", one) for at, one in enumerate(several)),
        ]:
            # isinstance says of Paddle's eager Tensors that they are Variables
            if isinstance(one, np.ndarray) and one.dtype.kind in "biufc":
                yield place, one
            elif isinstance(one, backend.paddle.Tensor) and not issubclass(
                type(one), backend.paddle.static.Variable
            ):
                yield place, one
                if one.is_leaf and one.grad is not None:
                    yield f"{place}.grad", one.grad


def has_drawn(paddle: Any, seed: int) -> bool:
    """Whether the generator is no longer as `seed` made it: what is computed from its numbers differs by backend."""
    now = paddle.rand([SAMPLE]).numpy()
    paddle.seed(seed)
    return bool((now != paddle.rand([SAMPLE]).numpy()).any())


RTOL = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-12,
    "complex128": 1e-12,
}
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
        return (
            f"expected shape {list(wanted.shape)}, got {list(values.shape)}: {value_text(values)}"
        )
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
    if pattern is None or isinstance(pattern, str):
        return (pattern or "") in message
    return re.search(pattern.re, message) is not None
