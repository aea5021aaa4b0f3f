"""Strategies that draw arguments: dtypes, shapes, values with ties, zeros and infinities, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from described import Arguments, T
from hypothesis import strategies as st

Strategy = st.SearchStrategy

FLOATS = ("float64", "float32")
SMALL_FLOATS = ("float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
COMPLEX = ("complex128", "complex64")
REAL = (*FLOATS, *FLOATS, "float16", "int64", "int32")
NUMBERS = (*FLOATS, *FLOATS, *FLOATS, "float16", "bfloat16", "int64", "int32", "complex128", "bool")

SHAPES = ((), (1,), (3,), (2, 3), (1, 3), (3, 1), (2, 2, 3), (0,), (0, 3), (2, 0))
MATRICES = ((2, 3), (3, 3), (1, 2), (3, 2))
BROADCASTS = (
    ((2, 3), (2, 3)), ((2, 3), (2, 3)), ((3,), (3,)), ((), ()), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)),
    ((), (3,)), ((2, 3), ()), ((2, 2, 3), (2, 1, 3)), ((0, 3), (3,)), ((1,), (2, 3)), ((2, 3), (2,)), ((0,), (0,)),
)  # fmt: skip
"""Pairs of shapes; the last but one do not broadcast."""

KINDS = ("constant", "leaf", "leaf", "result")
USUAL = tuple(np.arange(-12, 13) / 4)
POSITIVE = tuple(np.arange(1, 13) / 4)
WITHIN = tuple(np.arange(-7, 8) / 8)
DISTINCT = tuple(np.arange(-20, 20) * 0.37 + 0.11)
SPECIAL = (*USUAL, *USUAL, float("nan"), float("inf"), float("-inf"), 1e-3, 1e4)


@st.composite
def arrays(draw: Any, dtype: str, shape: Sequence[int], values: Sequence[float] = USUAL) -> np.ndarray[Any, Any]:
    """An array of some of `values`, as `dtype` can hold them."""
    count = int(np.prod(shape))
    if dtype == "bool":
        values = (0.0, 1.0)
    elif dtype.startswith(("int", "uint")):
        values = [v for v in values if v == int(v)] if all(np.isfinite(values)) else range(-4, 5)
        values = [v for v in values if v >= 0] if dtype == "uint8" else values
        values = values or [1]
    drawn = [draw(st.sampled_from(values)) for _ in range(count)]
    if dtype.startswith("complex"):
        drawn = [complex(v, draw(st.sampled_from(values))) for v in drawn]
    return np.array(drawn).reshape(tuple(shape)).astype("float32" if dtype == "bfloat16" else dtype)


@st.composite
def tensors(
    draw: Any,
    dtypes: Sequence[str] = NUMBERS,
    shapes: Sequence[Sequence[int]] = SHAPES,
    values: Sequence[float] = USUAL,
    kinds: Sequence[str] = KINDS,
) -> T:
    """A Tensor; only floating and complex ones need a gradient."""
    dtype = draw(st.sampled_from(list(dtypes)))
    kind = draw(st.sampled_from(list(kinds))) if dtype.startswith(("float", "bfloat", "complex")) else "constant"
    return T(draw(arrays(dtype, draw(st.sampled_from(list(shapes))), values)), dtype, kind)


def tensor(
    dtype: str, shape: Sequence[int], values: Sequence[float] = USUAL, kinds: Sequence[str] = KINDS
) -> Strategy[T]:
    """A Tensor of this dtype and shape."""
    return tensors((dtype,), (tuple(shape),), values, kinds)


@st.composite
def distinct(draw: Any, dtype: str, shape: Sequence[int]) -> T:
    """A Tensor of elements that all differ."""
    order = draw(st.permutations(range(int(np.prod(shape)))))
    return T((np.array(order) * 0.61 - 1.17).reshape(shape).astype(dtype), dtype, draw(st.sampled_from(KINDS)))


def ints(shape: Sequence[int], size: int, dtype: str = "int64", least: int | None = None) -> Strategy[T]:
    """An index Tensor into an axis of `size`."""
    return tensor(dtype, shape, [float(k) for k in range(-size if least is None else least, size)], ("constant",))


def call(*parts: Any, **named: Any) -> Strategy[Arguments]:
    """Arguments from strategies and plain values; a named strategy may be left out."""
    return _call(parts, named)


@st.composite
def _call(draw: Any, parts: Sequence[Any], named: dict[str, Any]) -> Arguments:
    given = {k for k, v in named.items() if not isinstance(v, st.SearchStrategy) or draw(st.booleans())}
    kwargs = {k: drawn(draw, v) for k, v in named.items() if k in given}
    return Arguments(tuple(drawn(draw, p) for p in parts), kwargs)


def drawn(draw: Callable[[Any], Any], part: Any) -> Any:
    """What a strategy gives, or a plain value; also inside lists and tuples."""
    if isinstance(part, st.SearchStrategy):
        return draw(part)
    if type(part) in (list, tuple):
        return type(part)(drawn(draw, p) for p in part)
    return part


def one(*values: Any) -> Strategy[Any]:
    """One of these: strategies or plain values."""
    return st.sampled_from(values).flatmap(_filled)


def _filled(value: Any) -> Strategy[Any]:
    """A strategy for a value that may be one, or a list or tuple that holds some."""
    if isinstance(value, st.SearchStrategy):
        return value
    if type(value) in (list, tuple):
        return st.tuples(*map(_filled, value)).map(type(value))
    return st.just(value)


NOT_TENSORS = one([1.0, 2.0], np.ones(2), 1.5, None, "text")


def unary(dtypes: Sequence[str] = NUMBERS, values: Sequence[float] = USUAL) -> Strategy[Arguments]:
    """One Tensor, now and then something else."""
    usual = call(tensors(dtypes, values=values))
    return st.one_of(usual, usual, usual, usual, usual, usual, call(NOT_TENSORS))


@st.composite
def binary(
    draw: Any,
    dtypes: Sequence[str] = NUMBERS,
    left: Sequence[float] = USUAL,
    right: Sequence[float] = USUAL,
    other: Any = None,
) -> Arguments:
    """Two Tensors of shapes that mostly broadcast, mostly of one dtype; now and then a number or something else."""
    a, b = draw(st.sampled_from(BROADCASTS))
    dtype = draw(st.sampled_from(list(dtypes)))
    same = draw(st.integers(0, 3)) > 0
    x = draw(tensor(dtype, a, left))
    which = draw(st.integers(0, 19))
    if which == 0:
        return Arguments((draw(NOT_TENSORS), x) if draw(st.booleans()) else (x, draw(NOT_TENSORS)))
    if which == 1:
        return Arguments((x, draw(st.sampled_from([2, 2.5, True, -1, 0.0]))))
    y = draw(tensor(dtype if same else draw(st.sampled_from(list(dtypes))), b, right))
    return Arguments((x, y))


@st.composite
def operands(draw: Any, dtypes: Sequence[str] = NUMBERS, right: Sequence[float] = USUAL) -> Arguments:
    """As `binary`, the other operand often a number or an array, as operators have it."""
    if draw(st.integers(0, 2)):
        return draw(binary(dtypes, USUAL, right))  # type: ignore[no-any-return]
    x = draw(tensors(dtypes))
    number = st.sampled_from([2, 3, -1, 0, 2.5, -0.5, True, 1 + 2j, np.float64(1.5), np.int64(2), np.float32(0.5)])
    return Arguments((x, draw(one(number, number, number, np.array([1.0, 2.0, 3.0]), [1.0], "text", None))))


AXES = (None, 0, -1, 1, -2, 2, 5, [0], [0, 1], [], [-1, 0])


@st.composite
def reduction(
    draw: Any,
    dtypes: Sequence[str] = REAL,
    values: Sequence[float] = USUAL,
    axes: Sequence[Any] = AXES,
    shapes: Sequence[Sequence[int]] = SHAPES,
    **named: Any,
) -> Arguments:
    """A Tensor, an axis argument of any form, whether to keep it."""
    x = draw(tensors(dtypes, shapes, values))
    axis = draw(st.sampled_from([*axes, *(a for a in range(-x.values.ndim, x.values.ndim))]))
    kwargs = {"axis": axis} if draw(st.booleans()) or axis is not None else {}
    if draw(st.booleans()):
        kwargs["keepdim"] = draw(st.booleans())
    kwargs |= {k: drawn(draw, v) for k, v in named.items() if draw(st.integers(0, 3)) == 0}
    return Arguments((x,), kwargs)
