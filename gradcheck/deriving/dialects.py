"""Tables of how derived code writes operations: with Paddle's names, or with NumPy's.

A rule's result is a template of the text, with names replaced by their values. Keywords whose value
is None or False are left out. An operation without a rule is the call of the library's function of
that name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

import pylayer.paddle as paddle
from gradcheck.deriving.call import LayerCall
from gradcheck.deriving.graph import NotDerived, Traced, traced_shape
from gradcheck.deriving.numbers import plain_number, source_of
from gradcheck.deriving.rules import TextRule, rules_of

USUAL_FORMS = """
    add(a, b) -> a + b
    subtract(a, b) -> a - b
    multiply(a, b) -> a * b
    divide(a, b) -> a / b
    remainder(a, b) -> a % b
    pow(a, 1) -> a
    pow(a, b) -> a ** b
    neg(a - b) -> b - a
    neg(a) -> -a
    square(x) -> x * x                      if is_name(x)
    a @ b -> a @ b
    greater_than(a, b) -> a > b
    greater_equal(a, b) -> a >= b
    less_than(a, b) -> a < b
    less_equal(a, b) -> a <= b
    equal(a, b) -> a == b
    not_equal(a, b) -> a != b
    logical_and(a, b) -> a & b
    logical_or(a, b) -> a | b
    logical_not(a) -> ~a
    cast(x, dtype) -> x.astype(dtype)
    inside_bounds(x, None, high) -> (x <= high).astype(own_dtype)
    inside_bounds(x, low, None) -> (x >= low).astype(own_dtype)
    inside_bounds(x, low, high) -> ((x >= low) & (x <= high)).astype(own_dtype)
    tie_share(a, b) -> (a > b).astype(own_dtype) + 0.5 * (a == b).astype(own_dtype)
    scattered_at(x, index) -> x[index]
    unbind(x, axis) -> x[part_at(axis, output)]
    broadcast_view(x, shape) -> broadcast_to(x, shape)
"""
PADDLE_CALLS = """
    matrix_transpose(x) @ matrix_transpose(y) -> paddle.matmul(x, y, transpose_x=True, transpose_y=True)
    matrix_transpose(x) @ y -> paddle.matmul(x, y, transpose_x=True)
    x @ matrix_transpose(y) -> paddle.matmul(x, y, transpose_y=True)
    matrix_transpose(x) -> x.t()            if x.ndim == 2
    matrix_transpose(x) -> x.swapaxes(-1, -2)
    transpose(x, perm) -> x.transpose(plain_list(perm))
    reshape(x, shape) -> x.unsqueeze(new_axes(x, shape))  if new_axes(x, shape) != []
    reshape(x, shape) -> x.reshape(shape)
    broadcast_to(x, shape) -> x.expand(shape)
    sum(x, axis, dtype, keepdim) -> x.sum(axis=short(axis, x), dtype=dtype, keepdim=keepdim)
    mean(x, axis, keepdim) -> x.mean(axis=short(axis, x), keepdim=keepdim)
    max(x, axis, keepdim) -> x.max(axis=short(axis, x), keepdim=keepdim)
    min(x, axis, keepdim) -> x.min(axis=short(axis, x), keepdim=keepdim)
    cumsum(x, axis, dtype) -> x.cumsum(axis=short(axis, x))
    flip(x, axis) -> x.flip(short(axis, x))
    norm(x, axis, keepdim) -> paddle.linalg.norm(x, axis=short(axis, x), keepdim=keepdim)
    softmax(x, axis) -> paddle.nn.functional.softmax(x, axis=short(axis, x))
    log_softmax(x, axis) -> paddle.nn.functional.log_softmax(x, axis=short(axis, x))
    clip(x, min, max) -> paddle.clip(x, min, max)
    where(c, x, 0) -> paddle.where(c, x, paddle.zeros_like(x))
    where(c, 0, y) -> paddle.where(c, paddle.zeros_like(y), y)
    where(c, x, n) -> paddle.where(c, x, paddle.full_like(x, n))
    where(c, n, y) -> paddle.where(c, paddle.full_like(y, n), y)
    where(c, x, y) -> paddle.where(c, x, y)
    where(c, k, n) -> paddle.where(c, paddle.full([], k, own_dtype), paddle.full([], n, own_dtype))
    einsum_explicit(operands, equation) -> paddle.einsum(equation, *operands)
    concat(parts, axis, bounds) -> paddle.concat(parts, axis=short(axis, parts[0]))
    stack(parts, axis) -> paddle.stack(parts, axis=axis)
    split(x, ends, axis) -> paddle.split(x, sections(x, ends, axis), axis=axis)[output]
    unfold(x, kernel, strides, pads, dilations) -> paddle.nn.functional.unfold(x, plain_list(kernel), plain_list(strides), sides(pads), plain_list(dilations))
    fold(x, space, kernel, strides, pads, dilations) -> paddle.nn.functional.fold(x, space, plain_list(kernel), plain_list(strides), sides(pads), plain_list(dilations))
    getitem(x, index) -> paddle.take_along_axis(x, positions(index), position_axis(index))  if positions(index) is not None
    getitem(x, index) -> x[index]
    setitem(x, index, value) -> out = x.clone(); out[index] = value
    scatter_sum(g, shape, index) -> paddle.put_along_axis(zeros(shape), positions(index), g, position_axis(index), reduce='add')  if positions(index) is not None
    scatter_sum(g, shape, index) -> out = zeros(shape); out[index] = g  if is_once(index)
    scatter_sum(g, shape, index) -> paddle.index_add(zeros(shape), first_row(index), along_rows(index), g)  if along_rows(index) is not None
    scatter_sum(g, shape, index) -> paddle.scatter_nd_add(zeros(shape), first_row(index).unsqueeze(-1), g)  if len(rows(index)) == 1
    scatter_sum(g, shape, index) -> paddle.scatter_nd_add(zeros(shape), paddle.stack(rows(index), axis=-1), g)
    zeros(shape) -> paddle.zeros_like(whole(shape))  if whole(shape)
    zeros(shape) -> paddle.zeros(shape, dtype=own_dtype)
"""  # noqa: E501 - a rule is a line
RANK_CALLS = """
    rank_sum(x, n) -> out = x; paddle.distributed.all_reduce(out)  if is_new(x) and not is_name(x)
    rank_sum(x, n) -> out = x.clone(); paddle.distributed.all_reduce(out)
    rank_kept(x, root, k) -> x if paddle.distributed.get_rank() == root else paddle.zeros_like(x)
    reshape(rank_gather(x, n, k), s) -> out = []; paddle.distributed.all_gather(out, x); out = paddle.concat(out)  if is_joined([n, *x.shape], s)
    rank_gather(x, n, k) -> out = []; paddle.distributed.all_gather(out, x); out = paddle.stack(out)
    rank_scatter(reshape(x, s), n, k) -> out = zeros(s[1:]); paddle.distributed.reduce_scatter(out, x)  if is_joined(s, x.shape)
    rank_scatter(x, n, k) -> out = paddle.zeros_like(x[0]); paddle.distributed.reduce_scatter(out, [*x])
    reshape(rank_exchange(reshape(x, s), k), t) -> out = paddle.zeros_like(x); paddle.distributed.alltoall_single(out_tensor=out, in_tensor=x)  if list(t) == list(x.shape)
    rank_exchange(x, k) -> out = paddle.zeros_like(x); paddle.distributed.alltoall_single(out_tensor=out, in_tensor=x)
"""  # noqa: E501 - a rule is a line
STATIC_CALLS = """
    broadcast_to(x, shape) -> x.expand_as(whole(shape))  if whole(shape)
"""
"""Rules for a program, which may not know a size until it runs. Paddle's ``x.shape`` has -1 for
such a size: `reshape` accepts -1, `expand` does not, and arithmetic with it gives wrong numbers.
"""
NUMPY_CALLS = """
    matrix_transpose(x) -> x.T              if x.ndim == 2
    matrix_transpose(x) -> np.swapaxes(x, -1, -2)
    transpose(x, perm) -> x.transpose(plain_list(perm))
    reshape(x, shape) -> np.expand_dims(x, new_axes(x, shape))  if new_axes(x, shape) != []
    reshape(x, shape) -> x.reshape(shape)
    broadcast_to(x, shape) -> np.broadcast_to(x, shape)
    sum(x, axis, dtype, keepdim) -> x.sum(axis=short(axis, x), dtype=dtype, keepdims=keepdim)
    mean(x, axis, keepdim) -> x.mean(axis=short(axis, x), keepdims=keepdim)
    max(x, axis, keepdim) -> x.max(axis=short(axis, x), keepdims=keepdim)
    min(x, axis, keepdim) -> x.min(axis=short(axis, x), keepdims=keepdim)
    norm(x, axis, keepdim) -> np.linalg.norm(x, axis=short(axis, x), keepdims=keepdim)
    sigmoid(x) -> 1 / (1 + np.exp(-x))
    rsqrt(x) -> 1 / np.sqrt(x)
    relu(x) -> np.maximum(x, 0)
    einsum_explicit(operands, equation) -> np.einsum(equation, *operands)
    concat(parts, axis, bounds) -> np.concatenate(parts, axis=short(axis, parts[0]))
    stack(parts, axis) -> np.stack(parts, axis=axis)
    split(x, ends, axis) -> np.split(x, plain_list(ends), axis=axis)[output]
    getitem(x, index) -> np.take_along_axis(x, positions(index), position_axis(index))  if positions(index) is not None
    getitem(x, index) -> x[index]
    setitem(x, index, value) -> out = x.copy(); out[index] = value
    scatter_sum(g, shape, index) -> out = zeros(shape); out[index] = g  if is_once(index)
    scatter_sum(g, shape, index) -> out = zeros(shape); np.add.at(out, index, g)
    zeros(shape) -> np.zeros_like(whole(shape))  if whole(shape)
    zeros(shape) -> np.zeros(shape, dtype=own_dtype)
"""  # noqa: E501 - a rule is a line


SIZE = "{}.shape[{}]"
"""The expression for the size of a Tensor along an axis, as an item of a shape."""


@dataclass(frozen=True)
class Dialect:
    """The library's names with which a backward is written."""

    library: str
    rules: dict[str, list[TextRule]]
    modules: Mapping[str, ModuleType]
    """The modules in which functions are looked up, by the name that code uses for them."""
    count: str = "{}.size"
    """The expression for the number of elements of a Tensor."""
    size: str = SIZE
    """The expression for the size of a Tensor along an axis, in arithmetic."""
    saved: str = "ctx.saved_tensor()"
    """The expression by which backward reads the Tensors that forward saved."""

    def function(self, name: str) -> tuple[str, list[inspect.Parameter]]:
        """The text of a library function with its parameters, or without them if they are not
        known.

        Raises:
            NotDerived: the library has no such function.
        """
        for prefix, module in self.modules.items():
            if hasattr(module, name):
                try:
                    signature = inspect.signature(getattr(module, name))
                except (TypeError, ValueError):  # a builtin
                    return f"{prefix}.{name}", []
                return f"{prefix}.{name}", list(signature.parameters.values())
        raise NotDerived(f"no public function of {self.library} computes {name}")


PADDLE = Dialect(
    "Paddle",
    rules_of(RANK_CALLS, PADDLE_CALLS, USUAL_FORMS),
    {
        "paddle": paddle,
        "paddle.nn.functional": paddle.nn.functional,
        "paddle.linalg": paddle.linalg,
    },
)
STATIC = replace(
    PADDLE, rules=rules_of(STATIC_CALLS + PADDLE_CALLS, USUAL_FORMS), size="paddle.shape({})[{}]"
)
NUMPY = Dialect("NumPy", rules_of(NUMPY_CALLS, USUAL_FORMS), {"np": np, "np.linalg": np.linalg})


def dialect_of(call: LayerCall) -> Dialect:
    """The names with which a backward on Tensors is written."""
    if call.played is None:
        return PADDLE if call.static is None else STATIC
    names = call.played.names
    rules = library_rules(names.calls)
    return Dialect(names.library, rules, names.modules, names.element_count, saved=names.saved)


@functools.cache
def library_rules(calls: str) -> dict[str, list[TextRule]]:
    """The rules of a library's table of calls, read once."""
    return rules_of(calls, USUAL_FORMS)


# -------------------------------------------------------- functions for conditions of rules
def short(axis: Any, x: Traced) -> Any:
    """An axis in the usual notation: a single axis without a list, the last axis as −1."""
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    return -1 if type(axis) is int and axis == x.ndim - 1 > 0 else axis


def plain_list(sizes: Sequence[Any]) -> list[Any]:
    """Numbers written by their values, not by their sources."""
    return list(map(plain_number, sizes))


def part_at(axis: int, number: int) -> tuple[Any, ...]:
    """The index of one part along an axis."""
    return *[slice(None)] * int(axis), number


def sections(x: Traced, ends: Sequence[Any], axis: int) -> Any:
    """The sizes of the parts that end at some positions; the number of parts if the sizes are
    equal.
    """
    sizes = [after - before for before, after in pairwise([0, *ends, x.shape[axis]])]
    return len(sizes) if len(set(sizes)) == 1 else sizes


def sides(pads: Sequence[Any]) -> list[int]:
    """Paddings that are equal on both sides. Raises NotDerived: they differ."""
    if any(before != after for before, after in pads):
        raise NotDerived("windows with a padding that differs from side to side")
    return [int(before) for before, _ in pads]


def new_axes(x: Traced, shape: Sequence[Any]) -> Any:
    """The axes of size 1 that a shape has and a value lacks: an axis, or a list; an empty list if
    the shapes differ in another way.
    """
    remaining, axes = list(traced_shape(x)), []
    for axis, size in enumerate(shape):
        if size == 1 and source_of(size) is None and remaining[:1] != [1]:
            axes.append(axis)
        elif remaining[:1] == [size]:
            remaining.pop(0)
        else:
            return []
    if remaining or not axes:
        return []
    axes = [-1 if axis == len(shape) - 1 else axis for axis in axes]
    return axes[0] if len(axes) == 1 else axes


def index_parts(index: Any) -> list[Any]:
    """The parts of an index."""
    return list(index) if type(index) is tuple else [index]


def positions(index: Any) -> Any:
    """The indices along an axis, if the index is one of ``take_along_axis``: along the other axes,
    each element has its own position; None for any other index.
    """
    parts = index_parts(index)
    if all(isinstance(item, Traced) and item.traced.operation == "positions" for item in parts):
        return parts[0].traced.arguments[0]
    return None


def position_axis(index: Any) -> int:
    """The axis of an index of ``take_along_axis``."""
    axis: int = index[0].traced.arguments[2]
    return axis


def rows(index: Any) -> list[Any]:
    """The parts of an index that are positions along an axis."""
    return [item for item in index_parts(index) if isinstance(item, (Traced, list))]


def first_row(index: Any) -> Any:
    """The first part of an index that is positions along an axis."""
    return rows(index)[0]


def is_once(index: Any) -> bool:
    """Whether an index selects no position twice: it consists of numbers and slices, or of one
    mask.

    Raises NotDerived: a mask, or a slice, is next to positions.
    """
    arrays, parts = rows(index), index_parts(index)
    masks = [item for item in arrays if isinstance(item, Traced) and item.array.dtype.kind == "b"]
    if (masks and len(parts) > 1) or (0 < len(arrays) < len(parts) and along_rows(index) is None):
        raise NotDerived("an index of several kinds")
    return not arrays or bool(masks)


def along_rows(index: Any) -> int | None:
    """The axis indexed by a list of positions, if all other axes are whole; None for other
    indices.
    """
    arrays, parts = rows(index), index_parts(index)
    rest = [item for item in parts if item is not arrays[0]]
    is_list = len(np.shape(getattr(arrays[0], "array", arrays[0]))) == 1
    if not is_list or any(item != slice(None) for item in rest if not isinstance(item, Traced)):
        return None
    return parts.index(arrays[0]) if len(arrays) == 1 else None


def is_new(x: Traced) -> bool:
    """Whether a value is a new array, which the code may overwrite."""
    return x.traced.operation in ("add", "subtract", "multiply", "divide", "matmul", "sum", "mean")


def is_joined(stacked: Sequence[int], joined: Sequence[int]) -> bool:
    """Whether the shape `joined` is the shape `stacked` with its first two axes joined."""
    count, rows, *rest = stacked
    return list(joined) == [count * rows, *rest]


HELPERS: dict[str, Any] = {
    f.__name__: f
    for f in (
        short,
        plain_list,
        part_at,
        sections,
        sides,
        new_axes,
        positions,
        position_axis,
        rows,
        first_row,
    )
}
HELPERS |= {f.__name__: f for f in (is_once, along_rows, is_new, is_joined, len)}
