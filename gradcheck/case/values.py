"""Comparison of a case's values with the expected ones, and with those of another backend."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Backend
from gradcheck.case.defaults import BACKENDS_RTOL, RTOL
from gradcheck.checking.precision import distance, largest, wide
from gradcheck.result import Value
from gradcheck.spec.model import Message
from gradcheck.support.foreign import repr_of, text_of, type_name

MOST_ELEMENTS = 4096
"""The most elements of a Tensor that a process sends; of a larger one it sends this many, evenly
spaced.
"""


def value_of(name: str, array: Any) -> Value:
    """The value of an array in the host's memory, or of None."""
    if array is None:
        return Value(name=name)
    values = np.asarray(array)
    flat = values.reshape(-1)
    if flat.size > MOST_ELEMENTS:
        flat = flat[np.linspace(0, flat.size - 1, MOST_ELEMENTS).astype(int)]
    data = base64.b64encode(np.ascontiguousarray(flat).tobytes()).decode()
    return Value(name=name, dtype=values.dtype.name, shape=values.shape, data=data)


def elements(value: Value) -> np.ndarray[Any, Any]:
    """The elements that were sent."""
    dtype = np.dtype(ml_dtypes.bfloat16 if value.dtype == "bfloat16" else value.dtype)
    return np.frombuffer(base64.b64decode(value.data), dtype)


def differences(
    ours: Sequence[Value], theirs: Sequence[Value], backends: tuple[str, str]
) -> list[str]:
    """The differences between the values of two backends, one line each."""
    our_values, their_values = (
        {value.name: value for value in values} for values in (ours, theirs)
    )
    lines = []
    for name in dict.fromkeys([*our_values, *their_values]):
        if name not in our_values or name not in their_values:
            lines.append(f"{name}: missing on {backends[name in our_values]}")
        elif text := difference(our_values[name], their_values[name], backends):
            lines.append(f"{name}: {text}")
    return lines


def difference(ours: Value, theirs: Value, backends: tuple[str, str]) -> str:
    """The difference between two values; empty if their dtype's rounding explains it."""
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        kinds = (
            f"{v.dtype} of shape {list(v.shape)}" if v.dtype else "none" for v in (ours, theirs)
        )
        return ", ".join(f"{kind} on {name}" for kind, name in zip(kinds, backends, strict=True))
    if ours.data == theirs.data:
        return ""
    rtol = BACKENDS_RTOL.get(ours.dtype, 0.0)
    x, y = (wide(elements(value)) * 1.0 for value in (ours, theirs))  # also for integers, booleans
    with np.errstate(all="ignore"):
        error = np.where(np.isnan(x) & np.isnan(y), 0.0, distance(x, y))
    scale = max(largest(x), largest(y))
    wrong = error > rtol * scale
    if not wrong.any():
        return ""
    worst = int(np.argmax(error))
    share = f"{int(wrong.sum())} of {wrong.size} elements differ"
    if scale:
        share += f", by up to {error[worst] / scale:.1e} of the largest, tolerance {rtol:.0e}"
    return f"{x[worst]:.8g} on {backends[0]}, {y[worst]:.8g} on {backends[1]} ({share})"


SAMPLE = 4
"""Random numbers, of 24 bits each, that identify a generator's state."""


def values_of_program(
    namespace: Mapping[str, Any], before: Mapping[str, Any], backend: Backend
) -> Iterator[tuple[str, Any]]:
    """The Tensors and arrays in a program's namespace, by names such as ``y``, ``x.grad``,
    ``outs[1]``.

    `before` are the names that the program was given. Their unchanged values do not count, nor do
    names that start with an underscore. Lists and tuples are searched one level deep.
    """
    tensor_type, variable_type = backend.paddle.Tensor, backend.paddle.static.Variable
    for name, value in namespace.items():
        if name.startswith("_") or before.get(name) is value:
            continue
        items = [(name, value)]
        if isinstance(value, (list, tuple)):
            items += [(f"{name}[{k}]", item) for k, item in enumerate(value)]
        for place, item in items:
            # to isinstance, Paddle's eager Tensors are Variables
            if isinstance(item, tensor_type) and not issubclass(type(item), variable_type):
                yield place, item
                if item.is_leaf and item.grad is not None:
                    yield f"{place}.grad", item.grad
            elif isinstance(item, np.ndarray) and item.dtype.kind in "biufc":
                yield place, item


def has_drawn(paddle: Any, seed: int) -> bool:
    """Whether the generator was used since `seed` was set: its numbers differ between backends."""
    numbers = paddle.rand([SAMPLE]).numpy()
    paddle.seed(seed)
    return bool((numbers != paddle.rand([SAMPLE]).numpy()).any())


def mismatch(got: Any, expected: Any, rtol: float | None) -> str:
    """How `got` differs from the expected value, in one line; empty if it does not.

    None, booleans and strings are compared by equality, also in lists, and numbers and lists of
    them elementwise, after their shapes: ``|got - expected| <= rtol * |expected|``, NaN equal to
    NaN. Values are in the host's memory.
    """
    if expected is None or isinstance(expected, (bool, str)):
        return plain_mismatch(got, expected)
    wanted_text = f"expected {value_text(expected)}, got "
    try:
        values, wanted = np.asarray(got), np.asarray(expected)
    except (TypeError, ValueError):
        return f"{wanted_text}{type_name(got)} {value_text(got)}"
    if {"O", "U"} & {values.dtype.kind, wanted.dtype.kind}:  # None or text: nothing is close to it
        is_same = values.tolist() == wanted.tolist()
        return "" if is_same else wanted_text + value_text(values)
    if values.shape != wanted.shape and () in (values.shape, wanted.shape):
        return wanted_text + value_text(values)
    if values.shape != wanted.shape:
        shapes = f"expected shape {list(wanted.shape)}, got {list(values.shape)}"
        return f"{shapes}: {value_text(values)}"
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


def plain_mismatch(got: Any, expected: bool | str | None) -> str:
    """How `got` differs from an expected None, boolean or string."""
    kind = ""
    if isinstance(expected, str):
        kind = "" if isinstance(got, str) else "the text "
        got = text_of(got)
    elif isinstance(got, np.ndarray) and got.dtype == bool and got.size == 1:
        got = bool(got)
    is_same = type(got) is type(expected) and got == expected
    return "" if is_same else f"expected {kind}{expected!r}, got {value_text(got)}"


def value_text(value: Any) -> str:
    """A value, short enough for a line."""
    text = " ".join(repr_of(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def message_matches(pattern: Message, message: str) -> bool:
    """Whether a message holds the expected text: a substring, or ``{re: …}``."""
    if isinstance(pattern, str):
        return pattern in message
    return re.search(pattern.re, message) is not None
