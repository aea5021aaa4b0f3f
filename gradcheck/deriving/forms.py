"""How operations are written that have no function of their own, or a better form than its call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradcheck.deriving.graph import Node, NotDerived, Traced, operation_name, traced_shape
from gradcheck.deriving.numbers import is_number, source_of
from gradcheck.deriving.printing import (
    AND,
    CALL,
    COMPARISON,
    EXPONENT,
    FORMS,
    OR,
    PRODUCT,
    SIGN,
    SUM,
    Form,
    Printer,
    Text,
    positions_in,
    public_function,
    shorter_axis,
)
from gradcheck.deriving.simplify import swaps_last

INFIX = {
    "add": ("+", SUM),
    "subtract": ("-", SUM),
    "multiply": ("*", PRODUCT),
    "divide": ("/", PRODUCT),
    "remainder": ("%", PRODUCT),
    "greater_than": (">", COMPARISON),
    "greater_equal": (">=", COMPARISON),
    "less_than": ("<", COMPARISON),
    "less_equal": ("<=", COMPARISON),
    "equal": ("==", COMPARISON),
    "not_equal": ("!=", COMPARISON),
    "logical_and": ("&", AND),
    "logical_or": ("|", OR),
}
"""Operators, and how strongly they hold their operands together."""
UNGROUPED = ("add", "multiply", "logical_and", "logical_or")
"""Operators that need no parentheses around the same operator on their right."""
METHOD_FORMS = ("sum", "max", "min", "cumsum", "flip")
"""Functions that are written as methods."""
IN_FUNCTIONAL = ("softmax", "log_softmax")


def form(*names: str) -> Callable[[Form], Form]:
    """Add the form of some operations."""

    def add(function: Form) -> Form:
        for name in names:
            FORMS[name] = function
        return function

    return add


# --------------------------------------------------------------------------- operators
@form(*INFIX)
def infix(printer: Printer, node: Node, x: Any, y: Any) -> Text:
    """An operator between its operands."""
    sign, strength = INFIX[node.operation]
    is_inner_quotient = operation_name(y) in ("divide", "matmul", "remainder")
    is_grouped = node.operation not in UNGROUPED or is_inner_quotient or strength == COMPARISON
    left = printer.within(x, strength + (strength == COMPARISON))
    right = printer.within(y, strength + is_grouped)
    return Text(f"{left} {sign} {right}", strength)


@form("pow")
def power(printer: Printer, node: Node, x: Any, y: Any) -> Text:
    """A power; the first one is the value."""
    if is_number(y) and y == 1:
        return printer.value(x)
    return Text(f"{printer.within(x, EXPONENT + 1)} ** {printer.within(y, EXPONENT)}", EXPONENT)


@form("neg")
def negative(printer: Printer, node: Node, x: Any) -> Text:
    """A minus sign."""
    return Text(f"-{printer.within(x, PRODUCT)}", PRODUCT)


@form("square")
def square(printer: Printer, node: Node, x: Any) -> Text:
    """A value times itself, if it has a name."""
    text = printer.value(x).text
    return (
        Text(f"{text} * {text}", PRODUCT)
        if text.isidentifier()
        else (Text(f"paddle.square({text})", CALL))
    )


@form("logical_not")
def negation(printer: Printer, node: Node, x: Any) -> Text:
    """A tilde."""
    return Text(f"~{printer.within(x, SIGN)}", SIGN)


@form("matmul")
def matrix_product(printer: Printer, node: Node, x: Any, y: Any) -> Text:
    """A product of matrices; transposed ones are named in the call."""
    operands = []
    options = ""
    for letter, value in zip("xy", (x, y), strict=True):
        node = value.traced
        is_written = node not in printer.variables and not printer.is_leaf(node)
        if is_written and node.operation == "matrix_transpose" and value.ndim > 1:
            options += f", transpose_{letter}=True"
            value = node.arguments[0]
        operands.append(value)
    left, right = operands
    if options:
        texts = f"{printer.value(left).text}, {printer.value(right).text}"
        return Text(f"paddle.matmul({texts}{options})", CALL)
    return Text(f"{printer.within(left, PRODUCT)} @ {printer.within(right, SIGN)}", PRODUCT)


# --------------------------------------------------------------------------- functions
@form(*METHOD_FORMS)
def method(printer: Printer, node: Node, x: Any, *rest: Any) -> Text:
    """A method of the Tensor."""
    _, function = public_function(node.operation)
    text = printer.call("", node.operation, function, (x, *rest), {}, node).text
    inside = text.removeprefix(f".{node.operation}(").removesuffix(")")
    options = inside.removeprefix(printer.value(x).text).removeprefix(", ")
    return printer.method(x, node.operation, options)


@form("mean")
def mean(printer: Printer, node: Node, x: Any, axis: Any = None, keepdim: bool = False) -> Text:
    """The method `mean`."""
    axis = shorter_axis(axis, [x.traced])
    options = [f"axis={printer.value(axis).text}"] if axis is not None else []
    return printer.method(x, "mean", *options, "keepdim=True" if keepdim else "")


@form("norm")
def norm(printer: Printer, node: Node, x: Any, axis: Any, keepdim: bool) -> Text:
    """The 2-norm, as a function of paddle.linalg."""
    options = f"axis={printer.value(axis).text}, keepdim={keepdim}"
    return Text(f"paddle.linalg.norm({printer.value(x).text}, {options})", CALL)


@form(*IN_FUNCTIONAL)
def functional(printer: Printer, node: Node, x: Any, axis: Any = -1) -> Text:
    """A function of paddle.nn.functional."""
    axis = shorter_axis(axis, [x.traced])
    is_last = (type(axis) is int and axis == -1) or x.ndim == 1
    option = "" if is_last and source_of(axis) is None else f", axis={printer.value(axis).text}"
    return Text(f"paddle.nn.functional.{node.operation}({printer.value(x).text}{option})", CALL)


@form("cast")
def cast(printer: Printer, node: Node, x: Any, dtype: Any) -> Text:
    """The method `astype`."""
    return printer.method(x, "astype", printer.dtype(dtype))


@form("clip")
def clip(printer: Printer, node: Node, x: Any, low: Any, high: Any) -> Text:
    """The function `clip`."""
    bounds = ", ".join(printer.value(bound).text for bound in (low, high))
    return Text(f"paddle.clip({printer.value(x).text}, {bounds})", CALL)


@form("einsum_explicit")
def einsum(printer: Printer, node: Node, operands: Sequence[Any], equation: str) -> Text:
    """The function `einsum`."""
    texts = ", ".join(printer.value(operand).text for operand in operands)
    return Text(f"paddle.einsum({equation!r}, {texts})", CALL)


@form("where")
def where(printer: Printer, node: Node, condition: Any, x: Any, y: Any) -> Text:
    """The function `where`, its zeros like the other value."""
    texts = [printer.value(condition).text]
    for value, other in ((x, y), (y, x)):
        if not is_number(value):
            texts.append(printer.value(value).text)
        elif value == 0 and isinstance(other, Traced) and traced_shape(other) == node.shape:
            texts.append(f"paddle.zeros_like({printer.variable(other)})")
        else:
            number = printer.scalar(value).text
            texts.append(f"paddle.full([], {number}, {printer.dtype(node.array.dtype)})")
    return Text(f"paddle.where({', '.join(texts)})", CALL)


@form("inside_bounds")
def inside_bounds(printer: Printer, node: Node, x: Any, low: Any, high: Any) -> Text:
    """1 where a value is inside some bounds."""
    tests = [
        f"({printer.within(x, SUM)} {sign} {printer.within(bound, SUM)})"
        for sign, bound in ((">=", low), ("<=", high))
        if bound is not None
    ]
    both = tests[0] if len(tests) == 1 else f"({' & '.join(tests)})"
    return Text(f"{both}.astype({printer.dtype(node.array.dtype)})", CALL)


@form("tie_share")
def tie_share(printer: Printer, node: Node, x: Any, y: Any) -> Text:
    """1 where x is larger, ½ where both are equal."""
    dtype = printer.dtype(node.array.dtype)
    left, right = printer.within(x, SUM), printer.within(y, SUM)
    return Text(
        f"({left} > {right}).astype({dtype}) + 0.5 * ({left} == {right}).astype({dtype})", SUM
    )


# --------------------------------------------------------------------------- shape
@form("matrix_transpose")
def matrix_transpose(printer: Printer, node: Node, x: Any) -> Text:
    """The method for matrices, or for the last two of more axes."""
    return printer.method(x, "t") if x.ndim == 2 else printer.method(x, "swapaxes", "-1", "-2")


@form("transpose")
def transpose(printer: Printer, node: Node, x: Any, axes: Any) -> Text:
    """The method `transpose`."""
    order = [int(axis) for axis in axes]
    if swaps_last(order):
        return matrix_transpose(printer, node, x)
    return printer.method(x, "transpose", repr(order))


@form("reshape")
def reshape(printer: Printer, node: Node, x: Any, shape: Any) -> Text:
    """`unsqueeze` where axes of size 1 come in, else `reshape`."""
    axes = new_axes(traced_shape(x), shape)
    if axes:
        places = repr(axes[0] if len(axes) == 1 else axes)
        return printer.method(x, "unsqueeze", places)
    return printer.method(x, "reshape", printer.value(list(shape)).text)


def new_axes(before: Sequence[int], after: Sequence[Any]) -> list[int]:
    """The axes of size 1 that one shape has and another has not; none if they differ otherwise."""
    left, axes = list(before), []
    for axis, size in enumerate(after):
        is_new = size == 1 and source_of(size) is None and not (left and left[0] == 1)
        if is_new:
            axes.append(axis)
        elif left and left[0] == size:
            left.pop(0)
        else:
            return []
    if left or len(axes) != len(after) - len(before):
        return []
    return [-1 if axis == len(after) - 1 else axis for axis in axes]


@form("broadcast_to", "broadcast_view")
def expand(printer: Printer, node: Node, x: Any, shape: Any) -> Text:
    """The method `expand`."""
    return printer.method(x, "expand", printer.value(list(shape)).text)


@form("concat")
def concat(printer: Printer, node: Node, parts: Sequence[Any], axis: Any, bounds: Any) -> Text:
    """The function `concat`."""
    texts = ", ".join(printer.value(part).text for part in parts)
    place = printer.value(shorter_axis(axis, [node])).text
    return Text(f"paddle.concat([{texts}], axis={place})", CALL)


@form("split")
def split(printer: Printer, node: Node, x: Any, ends: Sequence[Any], axis: Any) -> Text:
    """One of the parts that the function `split` gives."""
    bounds = [*ends, x.shape[axis]]
    sections = [bounds[0], *(b - a for a, b in pairwise(bounds))]
    count = len(sections) if len(set(sections)) == 1 else sections
    texts = f"{printer.value(x).text}, {printer.value(count).text}, axis={axis}"
    return Text(f"paddle.split({texts})[{node.output}]", CALL)


@form("unbind")
def unbind(printer: Printer, node: Node, x: Any, axis: Any) -> Text:
    """A slice along an axis."""
    places = ", ".join([":"] * (int(axis) % x.ndim) + [str(node.output)])
    return Text(f"{printer.within(x, CALL)}[{places}]", CALL)


@form("stack")
def stack(printer: Printer, node: Node, parts: Sequence[Any], axis: Any) -> Text:
    """The function `stack`."""
    texts = ", ".join(printer.value(part).text for part in parts)
    return Text(f"paddle.stack([{texts}], axis={printer.value(axis).text})", CALL)


@form("unfold")
def unfold(printer: Printer, node: Node, x: Any, *options: Any) -> Text:
    """The function `unfold`."""
    return windows(printer, node, x, [], options)


@form("fold")
def fold(printer: Printer, node: Node, x: Any, sizes: Any, *options: Any) -> Text:
    """The function `fold`."""
    return windows(printer, node, x, [printer.value(list(sizes)).text], options)


def windows(printer: Printer, node: Node, x: Any, first: list[str], options: Sequence[Any]) -> Text:
    """A function of windows: sizes, strides, paddings and dilations follow the value."""
    kernel, strides, paddings, dilations = options
    if any(before != after for before, after in paddings):
        raise NotDerived(f"{node.operation} with a padding that differs from side to side")
    lists = [list(kernel), list(strides), [before for before, _ in paddings], list(dilations)]
    texts = [printer.value(x).text, *first, *(repr([int(n) for n in sizes]) for sizes in lists)]
    return Text(f"paddle.nn.functional.{node.operation}({', '.join(texts)})", CALL)


# --------------------------------------------------------------------------- positions
def index_text(printer: Printer, index: Any) -> str:
    """The text of an index."""
    return ", ".join(
        part_text(printer, part) for part in (index if type(index) is tuple else (index,))
    )


def part_text(printer: Printer, part: Any) -> str:
    """The text of a part of an index."""
    if part is Ellipsis:
        return "..."
    if not isinstance(part, slice):
        return printer.value(part).text
    ends = [part.start, part.stop] if part.step is None else [part.start, part.stop, part.step]
    texts: list[str] = ["" if end is None else printer.value(end).text for end in ends]
    if texts[0] == "0":
        texts[0] = ""
    return ":".join(texts)


@form("getitem")
def getitem(printer: Printer, node: Node, x: Any, index: Any) -> Text:
    """An index, or `take_along_axis`."""
    positions = positions_in(index)
    if positions is not None:
        texts = [printer.value(value).text for value in (x, *positions)]
        return Text(f"paddle.take_along_axis({', '.join(texts)})", CALL)
    return Text(f"{printer.within(x, CALL)}[{index_text(printer, index)}]", CALL)


@form("scattered_at")
def scattered_at(printer: Printer, node: Node, g: Any, index: Any) -> Text:
    """An index."""
    return Text(f"{printer.within(g, CALL)}[{index_text(printer, index)}]", CALL)


@form("setitem")
def setitem(printer: Printer, node: Node, x: Any, index: Any, value: Any) -> Text:
    """A copy, written at an index."""
    copy = f"{printer.within(x, CALL)}.clone()"
    return assigned(printer, node, copy, index, value)


def assigned(printer: Printer, node: Node, start: str, index: Any, value: Any) -> Text:
    """A variable that begins with some text, written at an index."""
    place, text = index_text(printer, index), printer.value(value).text
    name = printer.unused(printer.stem(node))
    printer.lines += [f"{name} = {start}", f"{name}[{place}] = {text}"]
    printer.variables[node] = name
    return Text(name)


def is_whole_axis(part: Any) -> bool:
    """Whether a part of an index is all of an axis."""
    return isinstance(part, slice) and part == slice(None)


def zeros(printer: Printer, node: Node, shape: Any) -> str:
    """Zeros of a shape: like a Tensor at hand, if one has it."""
    whole = printer.value(list(shape)).text
    like = whole.removesuffix(".shape")
    if like != whole and like.isidentifier():
        return f"paddle.zeros_like({like})"
    return f"paddle.zeros({whole}, dtype={printer.dtype(node.array.dtype)})"


@form("scatter_sum")
def scatter_sum(printer: Printer, node: Node, g: Any, shape: Any, index: Any) -> Text:
    """Zeros with values added at an index: written there, where no place comes twice."""
    parts = index if type(index) is tuple else (index,)
    start = zeros(printer, node, shape)
    positions = positions_in(index)
    if positions is not None:
        places = printer.value(positions[0]).text
        value = printer.value(g).text
        return Text(
            f"paddle.put_along_axis({start}, {places}, {value}, {positions[1]}, reduce='add')", CALL
        )
    tensors = [part for part in parts if isinstance(part, (Traced, list))]
    if not tensors:
        return assigned(printer, node, start, index, g)
    if isinstance(tensors[0], Traced) and tensors[0].array.dtype.kind == "b":
        if len(parts) == 1:
            return assigned(printer, node, start, index, g)
        raise NotDerived("a mask as a part of an index")
    value = printer.value(g).text
    is_alone = all(part is tensors[0] or is_whole_axis(part) for part in parts)
    rows = [positions_text(printer, part) for part in tensors]
    if is_alone and len(np.shape(getattr(tensors[0], "array", tensors[0]))) == 1:
        axis = [part is tensors[0] for part in parts].index(True)
        return Text(f"paddle.index_add({start}, {rows[0]}, {axis}, {value})", CALL)
    if len(tensors) < len(parts):
        raise NotDerived("an index of several kinds")
    place = f"{rows[0]}.unsqueeze(-1)"
    if len(rows) > 1:
        place = f"paddle.stack([{', '.join(rows)}], axis=-1)"
    return Text(f"paddle.scatter_nd_add({start}, {place}, {value})", CALL)


def positions_text(printer: Printer, part: Any) -> str:
    """The text of positions along an axis, as a Tensor."""
    text = printer.value(part).text
    return text if isinstance(part, Traced) else f"paddle.to_tensor({text})"
