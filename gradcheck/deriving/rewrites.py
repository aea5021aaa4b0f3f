"""Simpler forms of the operations of a backward, found while it is traced.

The result of a rule is computed by operations that go through the tracer again, and are simplified
in turn: numbers and signs move out, expansions are left to broadcasting, chains of reshapes and
transpositions become one, a sum over n divided by n becomes a mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcheck.deriving.graph import (
    Node,
    Traced,
    listed_axes,
    nodes_in,
    operation_name,
    sourced_sizes,
    traced_shape,
)
from gradcheck.deriving.numbers import factors_of, is_number, number_key, source_of
from gradcheck.deriving.ranks import THIS_RANK, rank_gather, rank_scatter, rank_sum, varies
from gradcheck.deriving.rules import rules_of
from pylayer.ops.creation import zeros_like
from pylayer.ops.joining import concat
from pylayer.tape.vjp import OPS
from pylayer.tensor.dtype import as_dtype

ELEMENTWISE = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
LINEAR = ("sum", "reshape", "broadcast_to", "transpose", "matrix_transpose", "getitem", "cumsum")
"""Operations out of which a sign can be moved."""

COPIES = """
    conj(x) -> x                            if x.array.dtype.kind != "c"
    clone(x) -> x
"""
PARTS_OF_RANKS = """
    concat(parts, 0, bounds) -> joined(parts)  if are_all_ranks(parts)
    stack(parts, 0) -> parts[0].traced.arguments[0]  if are_all_ranks(parts)
"""
RANKS = """
    # sums over ranks: of a value that is the same on all ranks, and of several values
    rank_sum(x, n) -> n * x                 if not varies(x.traced)
    rank_sum(-x, n) -> -rank_sum(x, n)
    rank_sum(k * x, n) -> k * rank_sum(x, n)
    rank_sum(x, n) + rank_sum(y, n) -> rank_sum(x + y, n)
    (z + rank_sum(x, n)) + rank_sum(y, n) -> z + rank_sum(x + y, n)

    rank_sum(scatter_sum(x, s, k), n) -> rank_gather(x, n, k)  if is_this_rank(k)

    # a part of a sum
    getitem(rank_sum(x, n), k) -> rank_scatter(x, n, k)  if is_this_rank(k)
    getitem(reshape(rank_sum(x, n), s), k) -> rank_scatter(reshape(x, s), n, k)  if is_this_rank(k)
"""
REWRITES = (
    COPIES,
    PARTS_OF_RANKS,
    RANKS,
    """
    cast(x, dtype) -> x                     if as_dtype(dtype).numpy == x.array.dtype

    # products
    1 * x -> x
    -1 * x -> -x
    0 * x -> zeros_like(x)
    zeros_like(x) * y -> zeros_like(x)
    k * -x -> -k * x                        if source_of(k) is None
    a * -y -> -(a * y)
    k * (n * x) -> (k * n) * x
    x * (k * y) -> k * (x * y)
    k * broadcast_to(x, s) -> broadcast_to(k * x, s)

    # quotients; a sum over n, divided by n, is a mean
    -x / a -> -(x / a)
    (k * x) / a -> k * (x / a)
    sum(x, axis, dtype, keepdim) / n -> mean(x, axis, keepdim)  if is_count(n, x, axis)
    (x * y) / n -> (x / n) * y              if holds_sum(x, n)
    reshape(x, s) / n -> reshape(x / n, s)  if holds_sum(x, n)
    broadcast_to(x, s) / k -> broadcast_to(x / k, s)

    # sums
    - -x -> x
    -(k * x) -> -k * x                      if source_of(k) is None
    x + x -> 2 * x
    (x + y) + y -> x + 2 * y
    (x - y) + y -> x
    (x - y) - y -> x - 2 * y
    x + 0 -> x
    x - 0 -> x
    x + zeros_like(y) -> x
    x - zeros_like(y) -> x
    a + -y -> a - y
    a - -y -> a + y
    scatter_sum(*a) + scatter_sum(*b) -> join_pieces(a, b)           if fills_whole(a, b)
    (z + scatter_sum(*a)) + scatter_sum(*b) -> z + join_pieces(a, b)  if fills_whole(a, b)

    # form
    broadcast_view(x, shape) -> broadcast_to(x, shape)
    reshape(x, shape) -> x                  if tuple(shape) == traced_shape(x)
    broadcast_to(x, shape) -> x             if tuple(shape) == traced_shape(x)
    reshape(reshape(x, s), shape) -> reshape(x, shape)
    reshape(broadcast_to(x, s), shape) -> broadcast_to(x, shape)  if not traced_shape(x)
    reshape(sum(x, axis, dtype, True), shape) -> sum(x, axis, dtype)  if is_kept(x, axis, shape)
    reshape(k * x, shape) -> k * reshape(x, shape)
    sum(k * x, *rest) -> k * sum(x, *rest)
    broadcast_to(broadcast_to(x, s), shape) -> broadcast_to(x, shape)
    broadcast_to(reshape(x, s), shape) -> broadcast_to(x, shape)  if is_led_by_ones(s, x)
    broadcast_to(k * reshape(x, s), shape) -> broadcast_to(k * x, shape)  if is_led_by_ones(s, x)
    broadcast_to(reshape(x, s) / n, shape) -> broadcast_to(x / n, shape)  if is_led_by_ones(s, x)
    transpose(x, axes) -> x                 if list(axes) == list(range(x.ndim))
    transpose(x, axes) -> matrix_transpose(x)  if swaps_last(axes)
    transpose(transpose(x, order), axes) -> transpose(x, [order[k] for k in axes])
    matrix_transpose(matrix_transpose(x)) -> x
    matrix_transpose(transpose(x, axes)) -> x  if swaps_last(axes)
    matrix_transpose(x @ y) -> matrix_transpose(y) @ matrix_transpose(x)  if x.ndim > 1 < y.ndim
    """,
    *(f"{name}(-x, *rest) -> -{name}(x, *rest)" for name in LINEAR),
)
SIMPLER_FORMS = {False: rules_of(COPIES, PARTS_OF_RANKS), True: rules_of(*REWRITES)}
"""The rules, by whether they are for backward."""


def simplify(
    name: str, values: Sequence[Any], in_backward: bool, may_open: Callable[[Node], bool]
) -> Any:
    """A simpler form of an operation; None if there is none."""
    wanted = joint_shape(*values) if name in ELEMENTWISE else None
    for rule in SIMPLER_FORMS[in_backward].get(name, ()):
        for bound in rule.bindings(name, values, SCOPE, may_open):
            result = eval(rule.code, {**SCOPE, **bound})  # type: ignore[arg-type]
            if wanted in (None, traced_shape(result)):
                return result
    if in_backward and name in ELEMENTWISE:
        tidied = without_expansions(name, values)
        if any(new is not old for new, old in zip(tidied, values, strict=True)):
            return OPS[name].apply(*tidied)
    return None


# -------------------------------------------------------- functions for conditions of rules
def are_all_ranks(parts: Sequence[Any]) -> bool:
    """Whether Tensors are all the parts of a collective's result, in the order of the ranks."""
    nodes = nodes_in(list(parts))
    if len(nodes) < len(parts) or nodes[0].operation != "unbind" or nodes != nodes[0].siblings:
        return False
    return operation_name(nodes[0].arguments[0]) in ("rank_gather", "rank_exchange")


def joined(parts: Sequence[Any]) -> Any:
    """The concatenation of the Tensors of all ranks."""
    whole = parts[0].traced.arguments[0]
    count, rows, *rest = whole.shape
    return OPS["reshape"].apply(whole, [count * rows, *rest])


def is_this_rank(number: Any) -> bool:
    """Whether an index is this rank's number."""
    return source_of(number) == THIS_RANK


def is_count(count: Any, x: Traced, axis: Any) -> bool:
    """Whether a number is the number of elements along some axes of a value."""
    sizes = sourced_sizes(x.traced)
    counted = [sizes[k] for k in listed_axes(axis, x.ndim)]
    return Counter(map(number_key, factors_of(count))) == Counter(map(number_key, counted))


def holds_sum(x: Traced, count: Any) -> bool:
    """Whether a value is a sum over `count` elements, possibly times a factor or in another
    shape.
    """
    name, arguments = x.traced.operation, x.traced.arguments
    if name == "sum":
        return x.traced.in_backward and is_count(count, arguments[0], arguments[1])
    inner = [value for value in arguments if isinstance(value, Traced)]
    is_open = name in ("multiply", "reshape") and x.traced.in_backward
    return is_open and any(holds_sum(value, count) for value in inner)


def is_kept(x: Traced, axis: Any, shape: Sequence[Any]) -> bool:
    """Whether a shape is a value's shape without the summed axes."""
    summed = listed_axes(axis, x.ndim)
    return [n for k, n in enumerate(traced_shape(x)) if k not in summed] == list(shape)


def is_led_by_ones(shape: Sequence[Any], x: Traced) -> bool:
    """Whether a shape is a value's shape with leading axes of size 1."""
    extra = len(shape) - x.ndim
    return extra > 0 and tuple(shape) == (1,) * extra + traced_shape(x)


def swaps_last(axes: Sequence[int]) -> bool:
    """Whether an order of axes swaps only the last two."""
    count = len(axes)
    return count > 1 and list(axes) == [*range(count - 2), count - 1, count - 2]


def span_of(shape: Sequence[int], index: Any) -> Any:
    """The axis along which an index takes one part, and its begin and end; None if it is another
    index.
    """
    parts = list(index) if type(index) is tuple else [index]
    if not all(isinstance(item, slice) or item is Ellipsis for item in parts):
        return None
    if Ellipsis in parts:
        position = parts.index(Ellipsis)
        parts[position : position + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    spans = [
        (axis, *item.indices(size))
        for axis, (item, size) in enumerate(zip(parts, shape, strict=False))
    ]
    cut = [span for span, size in zip(spans, shape, strict=False) if span[1:] != (0, size, 1)]
    return cut[0] if len(cut) == 1 and cut[0][3] == 1 else None


def fills_whole(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two parts that are written into zeros lie next to each other along one axis and fill
    it.
    """
    spans = [span_of(list(map(int, shape)), index) for _, shape, index in (first, second)]
    if None in spans:
        return False
    (axis, start, middle, _), (other_axis, begin, end, _) = sorted(spans)
    return (axis, start, middle) == (other_axis, 0, begin) and end == first[1][axis]


def join_pieces(first: Sequence[Any], second: Sequence[Any]) -> Any:
    """The two parts, concatenated."""
    shape = list(map(int, first[1]))
    parts = sorted((first, second), key=lambda piece: span_of(shape, piece[2]))
    return concat([piece[0] for piece in parts], span_of(shape, first[2])[0])


def joint_shape(*values: Any) -> tuple[int, ...]:
    """The shape to which values broadcast."""
    return np.broadcast_shapes(*map(traced_shape, values))


def without_expansions(name: str, values: Sequence[Any]) -> list[Any]:
    """The operands without expansions that broadcasting makes anyway; in a product, numbers come
    first, then the factor through which a cotangent flows.
    """
    operands, result_shape = list(values), joint_shape(*values)
    for position in (0, 1):
        other = operands[1 - position]
        while isinstance(other, Traced) and operation_name(operands[position]) in OPENED:
            node = operands[position].traced
            inner, shape = node.arguments
            is_needless = node.operation == "broadcast_to" or is_led_by_ones(shape, inner)
            if not node.in_backward or not is_needless or joint_shape(inner, other) != result_shape:
                break
            operands[position] = inner
    if name == "multiply" and precedence(operands[1]) < precedence(operands[0]):
        operands.reverse()
    return operands


OPENED = ("broadcast_to", "reshape")


def precedence(factor: Any) -> int:
    """The position of a factor in a product."""
    if is_number(factor):
        return 0
    return 1 if factor.traced.flows else 2


def total(x: Any, axis: Any, dtype: Any, keepdim: bool = False) -> Any:
    """The operation `sum`."""
    return OPS["sum"].apply(x, axis, dtype, keepdim)


SCOPE: dict[str, Any] = {
    **{name: OPS[name].apply for name in (*LINEAR, "mean", "broadcast_view")},
    "sum": total,
    **{
        f.__name__: f
        for f in (is_count, holds_sum, is_kept, is_led_by_ones, swaps_last, fills_whole)
    },
    **{f.__name__: f for f in (are_all_ranks, joined, is_this_rank)},
    **{f.__name__: f for f in (rank_gather, rank_sum, rank_scatter, varies)},
    **{
        f.__name__: f
        for f in (fills_whole, join_pieces, traced_shape, source_of, zeros_like, as_dtype)
    },
}
"""The names that rules use."""
