"""Simpler forms of the operations of a backward, found while it is traced.

Each rule is a function of the values of one operation. It returns the Tensor that the operation
gives, in a simpler form, or None. Operations in a rule come to the tracer again, and are
simplified in turn: numbers and signs move out, expansions are left to broadcasting, chains of
reshapes and transpositions become one, a sum over n divided by n becomes a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gradcheck.deriving.graph import Node, Traced, operation_name, traced_shape
from gradcheck.deriving.numbers import is_number, size_factors, source_of
from pylayer.ops.creation import zeros_like
from pylayer.ops.joining import concat
from pylayer.tape.vjp import OPS
from pylayer.tensor.dtype import as_dtype


class TracerState(Protocol):
    """The state of the tracer that rules read."""

    in_backward: bool
    named: set[Node]


SimplifyRule = Callable[..., Any]
ALWAYS: dict[str, list[SimplifyRule]] = {}
"""Rules by operation, for forward too."""
RULES: dict[str, list[SimplifyRule]] = {}
"""Rules by operation, for backward alone."""

EXPANSIONS = ("broadcast_view", "broadcast_to")
ARITHMETIC = ("add", "subtract", "multiply", "divide")
ELEMENTWISE = (*ARITHMETIC, "maximum", "minimum")
LINEAR = (
    "sum",
    "reshape",
    *EXPANSIONS,
    "transpose",
    "matrix_transpose",
    "getitem",
    "cumsum",
    "flip",
)
"""Operations through which a sign moves out."""


def simplifies(
    *names: str, table: dict[str, list[SimplifyRule]] = RULES
) -> Callable[[SimplifyRule], SimplifyRule]:
    """Add a rule for some operations. It takes the operation's name and its values."""

    def add(function: SimplifyRule) -> SimplifyRule:
        for name in names:
            table.setdefault(name, []).append(function)
        return function

    return add


def simplified(name: str, values: Sequence[Any], tracer: TracerState) -> Any:
    """A simpler form of an operation; None if there is none."""
    for simplify in ALWAYS.get(name, ()):
        if (found := simplify(name, *values)) is not None:
            return found
    if not tracer.in_backward:
        return None
    for simplify in RULES.get(name, ()):
        if (found := simplify(name, *values)) is not None:
            return found
    if name in ("multiply", "divide"):
        found = number_to_front(name, values, tracer.named)
        if found is not None:
            return found
    if name in ELEMENTWISE:
        tidied = without_expansions(name, values)
        if any(new is not old for new, old in zip(tidied, values, strict=True)):
            return apply(name, *tidied)
    return None


def apply(name: str, *values: Any) -> Any:
    """The result of an operation, as the tracer gives it."""
    return OPS[name].apply(*values)


def neg(x: Any) -> Any:
    """The negative of a Tensor or a number."""
    return -x if is_number(x) else apply("neg", x)


def arguments_of(value: Traced) -> tuple[Any, ...]:
    """The arguments of the operation that made a Tensor of the trace."""
    return value.traced.arguments


def is_same_value(a: Any, b: Any) -> bool:
    """Whether two values are one value of the trace."""
    return isinstance(a, Traced) and isinstance(b, Traced) and a.traced is b.traced


def is_backwards(value: Any, *operations: str) -> bool:
    """Whether a value was made by one of some operations of the backward."""
    return operation_name(value) in operations and value.traced.in_backward


def is_zero(value: Any) -> bool:
    """Whether a value is a zero, or a Tensor of zeros."""
    if is_number(value):
        return bool(value == 0) and source_of(value) is None
    return operation_name(value) == "zeros_like"


def swapped_operands(x: Any, y: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Two operands in both orders."""
    return (x, y), (y, x)


# --------------------------------------------------------------------------- copies
@simplifies("conj", table=ALWAYS)
def conjugate_of_real(name: str, x: Any) -> Any:
    """A real value is its own conjugate."""
    return x if x.array.dtype.kind != "c" else None


@simplifies("clone", "assign", table=ALWAYS)
def copy_of_value(name: str, x: Any) -> Any:
    """A copy is the value."""
    return x


@simplifies("cast")
def cast_to_own_dtype(name: str, x: Any, dtype: Any) -> Any:
    """A cast to the dtype that a value has is the value."""
    return x if as_dtype(dtype).numpy == x.array.dtype else None


# --------------------------------------------------------------------------- products
@simplifies("multiply")
def product_with_one_or_zero(name: str, x: Any, y: Any) -> Any:
    """1 x is x, −1 x is −x, and 0 x is 0."""
    for number, other in swapped_operands(x, y):
        if is_number(number) and source_of(number) is None and abs(number) in (0, 1):
            if number == 0:
                return zeros_like(other)
            return other if number == 1 else neg(other)
        if operation_name(number) == "zeros_like" and traced_shape(number) == joint_shape(x, y):
            return number
    return None


@simplifies("multiply")
def product_with_sign(name: str, x: Any, y: Any) -> Any:
    """A sign moves out of a product, or into its number."""
    for factor, other in swapped_operands(x, y):
        if operation_name(factor) == "neg":
            inner = arguments_of(factor)[0]
            return (
                apply(name, -other, inner) if is_number(other) else neg(apply(name, inner, other))
            )
    return None


@simplifies("multiply")
def product_of_numbers(name: str, x: Any, y: Any) -> Any:
    """3 (2 x) is 6 x."""
    for number, product in swapped_operands(x, y):
        if is_number(number) and operation_name(product) == "multiply":
            inner, other = number_first(*arguments_of(product))
            if is_number(inner) and not is_number(other):
                return apply(name, inner * number, other)
    return None


def number_first(x: Any, y: Any) -> tuple[Any, Any]:
    """Two factors, a number before a Tensor."""
    return (y, x) if is_number(y) else (x, y)


def number_to_front(name: str, values: Sequence[Any], named: set[Node]) -> Any:
    """The number of a factor before the whole product, or quotient of Tensors."""
    x, y = values
    if not (isinstance(x, Traced) and isinstance(y, Traced)):
        return None
    for position, factor in enumerate((x, y) if name == "multiply" else (x,)):
        if operation_name(factor) == "multiply" and factor.traced not in named:
            number, rest = number_first(*arguments_of(factor))
            if is_number(number):
                inner = (rest, y) if position == 0 else (x, rest)
                return apply("multiply", number, apply(name, *inner))
    return None


@simplifies("divide")
def quotient_as_mean(name: str, x: Any, y: Any) -> Any:
    """A sum over n, divided by n, is a mean."""
    return mean_of_sum(x, y) if is_number(y) and size_factors(y) else None


def mean_of_sum(x: Any, count: Any) -> Any:
    """x / count as a mean, where a sum in x is over `count` elements; else None."""
    if not is_backwards(x, "sum", "multiply", "neg", "reshape"):
        return None
    arguments, operation = arguments_of(x), operation_name(x)
    if operation == "sum":
        return mean_over_axis(x, count)
    if operation == "multiply":
        for factor, other in swapped_operands(*arguments):
            if (mean := mean_of_sum(factor, count)) is not None:
                return apply("multiply", mean, other)
        return None
    mean = mean_of_sum(arguments[0], count)
    return None if mean is None else apply(operation, mean, *arguments[1:])


def mean_over_axis(total: Traced, count: Any) -> Any:
    """A sum over one axis, whose size is `count`, as a mean."""
    x, axes, _, keepdim = arguments_of(total)
    axes = [axes] if isinstance(axes, int) else list(axes or ())
    factors = size_factors(count)
    if len(axes) != 1 or len(factors) != 1:
        return None
    sized, axis = factors[0].node, factors[0].axis
    is_same_axis = sized.array.ndim == x.ndim and axis == axes[0] % x.ndim
    if is_same_axis and sized.shape[axis] == traced_shape(x)[axis]:
        return apply("mean", x, arguments_of(total)[1], keepdim)
    return None


@simplifies("divide")
def quotient_with_sign(name: str, x: Any, y: Any) -> Any:
    """A sign moves out of a dividend."""
    return neg(apply(name, arguments_of(x)[0], y)) if operation_name(x) == "neg" else None


# --------------------------------------------------------------------------- sums
@simplifies("neg")
def sign_of_term(name: str, x: Any) -> Any:
    """−(−x) is x, −(x − y) is y − x, −(2 x) is −2 x."""
    operation = operation_name(x)
    if operation == "neg":
        return arguments_of(x)[0]
    if operation == "subtract" and not any(map(is_number, arguments_of(x))):
        return apply("subtract", arguments_of(x)[1], arguments_of(x)[0])
    if operation == "multiply":
        number, other = number_first(*arguments_of(x))
        if is_number(number):
            return apply("multiply", -number, other)
    return None


@simplifies("add")
def sum_of_equal_terms(name: str, x: Any, y: Any) -> Any:
    """x + x is 2 x, also where one x is in a sum; (x − y) + y is x."""
    if is_same_value(x, y):
        return apply("multiply", 2, x)
    if operation_name(x) == "add":
        for term, other in swapped_operands(*arguments_of(x)):
            if is_same_value(term, y):
                return apply("add", other, apply("multiply", 2, y))
    if operation_name(x) == "subtract" and is_same_value(arguments_of(x)[1], y):
        rest = arguments_of(x)[0]
        if traced_shape(rest) == traced_shape(x):
            return rest
    return None


@simplifies("subtract")
def difference_of_equal_terms(name: str, x: Any, y: Any) -> Any:
    """(x − y) − y is x − 2 y."""
    if operation_name(x) == "subtract" and is_same_value(arguments_of(x)[1], y):
        return apply(name, arguments_of(x)[0], apply("multiply", 2, y))
    return None


@simplifies("add", "subtract")
def sum_with_zero_or_sign(name: str, x: Any, y: Any) -> Any:
    """x + 0 is x; x + (−y) is x − y, and the like."""
    shape = joint_shape(x, y)
    if is_zero(y) and isinstance(x, Traced) and traced_shape(x) == shape:
        return x
    if name == "add" and is_zero(x) and isinstance(y, Traced) and traced_shape(y) == shape:
        return y
    if operation_name(y) == "neg":
        return apply("subtract" if name == "add" else "add", x, arguments_of(y)[0])
    if name == "add" and operation_name(x) == "neg" and not is_number(y):
        return apply("subtract", y, arguments_of(x)[0])
    return None


@simplifies("add")
def sum_of_parts(name: str, x: Any, y: Any) -> Any:
    """Two parts that fill a Tensor, each put into zeros, are joined."""
    if operation_name(y) != "scatter_sum":
        return None
    if operation_name(x) == "scatter_sum":
        return concatenated(x.traced, y.traced)
    if operation_name(x) == "add":
        for part, other in swapped_operands(*arguments_of(x)):
            if operation_name(part) == "scatter_sum":
                whole = concatenated(part.traced, y.traced)
                if whole is not None:
                    return apply("add", other, whole)
    return None


def concatenated(first: Node, second: Node) -> Any:
    """Two parts next to each other along one axis, concatenated if they fill it; else None."""
    spans = [span_of(first), span_of(second)]
    if None in spans:
        return None
    parts = sorted(zip(spans, (first, second), strict=True), key=lambda part: part[0])
    (axis, start, middle), (other_axis, begin, end) = (span for span, _ in parts)
    if (axis, start, middle) != (other_axis, 0, begin) or end != first.shape[axis]:
        return None
    return concat([node.arguments[0] for _, node in parts], axis)


def span_of(node: Node) -> Any:
    """The axis along which a part is put into zeros, and its begin and end; None if it is not one
    part of one axis."""
    index = node.arguments[2]
    parts = list(index) if type(index) is tuple else [index]
    if not all(isinstance(part, slice) or part is Ellipsis for part in parts):
        return None
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(node.shape) - len(parts) + 1)
    spans = []
    for axis, (part, size) in enumerate(zip(parts, node.shape, strict=False)):
        start, stop, step = part.indices(size)
        if (start, stop, step) != (0, size, 1):
            spans.append((axis, start, stop, step))
    if len(spans) != 1 or spans[0][3] != 1:
        return None
    return spans[0][:3]


# --------------------------------------------------------------------------- form
@simplifies("reshape", *EXPANSIONS)
def form_that_is_there(name: str, x: Any, shape: Any) -> Any:
    """A value that has the shape already is itself; chains of the same operation are one."""
    if tuple(shape) == traced_shape(x):
        return x
    if name == "reshape" and is_backwards(x, "reshape"):
        return apply(name, arguments_of(x)[0], shape)
    if name in EXPANSIONS and operation_name(x) in EXPANSIONS:
        return apply(name, arguments_of(x)[0], shape)
    if name in EXPANSIONS and (inner := without_leading_ones(x)) is not None:
        return apply(name, inner, shape)
    return None


@simplifies("reshape")
def sum_without_kept_axes(name: str, x: Any, shape: Any) -> Any:
    """A reshape that drops the axes that a sum kept is the sum that does not keep them."""
    if not is_backwards(x, "sum"):
        return None
    inner, axes, dtype, is_kept = arguments_of(x)
    if not is_kept or axes is None:
        return None
    reduced = {axis % inner.ndim for axis in ([axes] if isinstance(axes, int) else axes)}
    kept = [size for axis, size in enumerate(traced_shape(inner)) if axis not in reduced]
    return apply("sum", inner, axes, dtype, False) if kept == list(shape) else None


@simplifies("reshape")
def number_out_of_reshape(name: str, x: Any, shape: Any) -> Any:
    """A number moves out of a reshape."""
    if is_backwards(x, "multiply"):
        number, other = number_first(*arguments_of(x))
        if is_number(number):
            return apply("multiply", number, apply(name, other, shape))
    return None


@simplifies("reshape")
def expansion_in_other_shape(name: str, x: Any, shape: Any) -> Any:
    """A scalar that was expanded is expanded to the other shape."""
    if is_backwards(x, *EXPANSIONS) and not traced_shape(arguments_of(x)[0]):
        return apply(operation_name(x), arguments_of(x)[0], shape)
    return None


def without_leading_ones(x: Any) -> Any:
    """The value that a reshape only gave leading axes of size 1; None if there is none."""
    if not is_backwards(x, "reshape"):
        return None
    inner = arguments_of(x)[0]
    extra = x.ndim - inner.ndim
    return inner if extra > 0 and traced_shape(x) == (1,) * extra + traced_shape(inner) else None


def swaps_last(axes: Sequence[int]) -> bool:
    """Whether an order of axes swaps the last two alone."""
    count = len(axes)
    return count > 1 and list(axes) == [*range(count - 2), count - 1, count - 2]


@simplifies("transpose")
def order_of_axes(name: str, x: Any, axes: Any) -> Any:
    """Chains of transpositions are one; one of the last two axes is that of matrices."""
    if list(axes) == list(range(x.ndim)):
        return x
    if swaps_last(axes):
        return apply("matrix_transpose", x)
    if operation_name(x) == "transpose":
        inner, order = arguments_of(x)
        return apply(name, inner, [order[axis] for axis in axes])
    return None


@simplifies("matrix_transpose")
def transpose_of_matrices(name: str, x: Any) -> Any:
    """(xᵀ)ᵀ is x, and (x y)ᵀ is yᵀ xᵀ."""
    if operation_name(x) == name:
        return arguments_of(x)[0]
    if operation_name(x) == "transpose" and swaps_last(arguments_of(x)[1]):
        return arguments_of(x)[0]
    if is_backwards(x, "matmul"):
        left, right = arguments_of(x)
        if left.ndim > 1 < right.ndim:
            return apply("matmul", apply(name, right), apply(name, left))
    return None


@simplifies(*LINEAR)
def sign_out_of_linear(name: str, x: Any, *rest: Any) -> Any:
    """A sign moves out of a linear operation."""
    return neg(apply(name, arguments_of(x)[0], *rest)) if operation_name(x) == "neg" else None


@simplifies("sum")
def number_out_of_sum(name: str, x: Any, axis: Any, *rest: Any) -> Any:
    """A number moves out of a sum."""
    if axis is not None and operation_name(x) == "multiply":
        number, other = number_first(*arguments_of(x))
        if is_number(number):
            return apply("multiply", number, apply(name, other, axis, *rest))
    return None


@simplifies(*ARITHMETIC)
def scale_before_expansion(name: str, x: Any, y: Any) -> Any:
    """A number is applied before a value is expanded, which leaves less to compute."""
    for position, (value, number) in enumerate(swapped_operands(x, y)):
        if is_backwards(value, *EXPANSIONS) and is_number(number):
            inner, shape = arguments_of(value)
            scaled = apply(name, inner, number) if position == 0 else apply(name, number, inner)
            return apply(operation_name(value), scaled, shape)
    return None


def joint_shape(*values: Any) -> tuple[int, ...]:
    """The shape to which values broadcast."""
    return np.broadcast_shapes(*map(traced_shape, values))


def without_expansions(name: str, values: Sequence[Any]) -> list[Any]:
    """The operands without what broadcasting does by itself; of a product the number first, then
    the factor through which a cotangent flows."""
    operands, whole = list(values), joint_shape(*values)
    for position in (0, 1):
        while isinstance(operands[1 - position], Traced):
            value = operands[position]
            inner = without_leading_ones(value)
            if is_backwards(value, *EXPANSIONS):
                inner = arguments_of(value)[0]
            if inner is None or joint_shape(inner, operands[1 - position]) != whole:
                break
            operands[position] = inner
    if name == "multiply" and precedence(operands[1]) < precedence(operands[0]):
        operands.reverse()
    return operands


def precedence(factor: Any) -> int:
    """The place of a factor in a product."""
    if is_number(factor):
        return 0
    return 1 if factor.traced.flows else 2
