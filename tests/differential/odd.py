"""Odd inputs made of usual ones: the same call with a Tensor transposed, empty, 0-d, of another dtype, with a NaN."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from described import Arguments, T


def transposed(x: T) -> T:
    """A matrix as a transposed view of another."""
    return dataclasses.replace(x, transposed=True) if x.values.ndim > 1 else x


def without_elements(x: T) -> T:
    """The Tensor with a first axis of size 0."""
    return dataclasses.replace(x, values=x.values[:0]) if x.values.ndim else x


def of_one_element(x: T) -> T:
    """The first element as a 0-d Tensor."""
    return dataclasses.replace(x, values=x.values.reshape(-1)[0].reshape(())) if x.values.size else x


def with_nan(x: T) -> T:
    """The Tensor with a NaN for its first element."""
    if not x.values.size or x.values.dtype.kind not in "fc":
        return x
    values = x.values.copy()
    values.reshape(-1)[0] = np.nan
    return dataclasses.replace(x, values=values)


def of_dtype(dtype: str, held: str) -> Callable[[T], T]:
    """What makes floating Tensors Tensors of another dtype, described by arrays that NumPy can hold."""

    def change(x: T) -> T:
        return dataclasses.replace(x, values=x.values.astype(held), dtype=dtype) if x.dtype.startswith("float") else x

    return change


def complex_of(x: T) -> T:
    """The complex Tensor with imaginary parts that are the real ones in reverse."""
    if not x.dtype.startswith("float"):
        return x
    values = x.values.astype("complex128")
    values = values + 1j * values.reshape(-1)[::-1].reshape(values.shape)
    return dataclasses.replace(x, values=values, dtype="complex128")


TENSORS: dict[str, tuple[Callable[[T], T], bool]] = {
    "transposed": (transposed, True),
    "empty": (without_elements, True),
    "0-d": (of_one_element, False),
    "NaN": (with_nan, False),
    "float16": (of_dtype("float16", "float16"), True),
    "bfloat16": (of_dtype("bfloat16", "float32"), True),
    "complex": (complex_of, True),
}
"""What is done to a Tensor, and whether to all of a call, or to the first alone."""

AXES = ("axis", "dim", "axis1", "axis2", "dim1", "dim2", "start_axis", "stop_axis")
ODDITIES = (*TENSORS, "negative axis")


def odd(arguments: Arguments, oddity: str) -> Arguments | None:
    """The same call with an odd input, or None if there is nothing in it that can be made so odd."""
    if oddity == "negative axis":
        return with_negative_axes(arguments)
    change, everywhere = TENSORS[oddity]
    pending = [True]

    def changed(value: Any) -> Any:
        if isinstance(value, T) and pending[0]:
            new = change(value)
            pending[0] = everywhere or new is value
            return new
        if type(value) in (list, tuple):
            return type(value)(map(changed, value))
        return value

    found = Arguments(changed(arguments.args), {k: changed(v) for k, v in arguments.kwargs.items()})
    same = all(a is b for a, b in zip(found.tensors(), arguments.tensors(), strict=True))
    return None if same else found


def with_negative_axes(arguments: Arguments) -> Arguments | None:
    """Axes counted from the end; None if none is given by its name."""
    first = next(iter(arguments.tensors()), None)
    if first is None:
        return None

    def negative(key: str, value: Any) -> Any:
        is_axis = key in AXES and isinstance(value, int) and 0 <= value < first.values.ndim
        return value - first.values.ndim if is_axis else value

    kwargs = {k: negative(k, v) for k, v in arguments.kwargs.items()}
    return None if kwargs == arguments.kwargs else Arguments(arguments.args, kwargs)
