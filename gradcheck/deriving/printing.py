"""The text of a backward: the values of a trace as expressions, in the names of forward.

A value that forward names is saved and read by that name; any other value is written out. What is
used more than once, and what is long, gets a name.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from gradcheck.deriving.graph import Node, NotDerived, Traced, nodes_in
from gradcheck.deriving.numbers import (
    Argument,
    Arithmetic,
    SizeOf,
    is_number,
    plain_number,
    size_factors,
    source_of,
)
from gradcheck.deriving.trace import Trace
from pylayer.tensor.dtype import DType
from pylayer.tensor.size import Size

COMPARISON, OR, AND, SUM, PRODUCT, SIGN, EXPONENT, CALL, ATOM = range(9)
"""How strongly the parts of an expression hold together."""

LONGEST = 88
"""Characters of an expression before it gets a name: with indent and the name, a line of 100."""

STEMS = {
    "greater_than": "mask",
    "less_than": "mask",
    "greater_equal": "mask",
    "less_equal": "mask",
    "equal": "mask",
    "logical_not": "mask",
    "inside_bounds": "mask",
    "cast": "mask",
    "sum": "total",
    "sigmoid": "s",
    "exp": "e",
    "softmax": "p",
    "log_softmax": "logp",
}
"""Names for values by the operation that makes them."""
USUAL_NUMBERS = (0.0, 0.5, 1.0, -1.0, 2.0)
"""Numbers that are written as they are, whatever else has the same value."""
KEEPS_NO_SHAPE = (
    "matmul",
    "bmm",
    "transpose",
    "matrix_transpose",
    "reshape",
    "getitem",
    "concat",
    "einsum_explicit",
    "broadcast_to",
    "broadcast_view",
)
"""Operations whose result may have the shape of an argument by chance alone."""


class Text(NamedTuple):
    """An expression, and how strongly it holds together."""

    text: str
    strength: int = ATOM


Form = Callable[..., Text]
"""Writes an operation, given the printer, the node, and the operation's arguments."""
FORMS: dict[str, Form] = {}
"""By operation; others are written as calls of Paddle's function of that name."""


class Names:
    """The names by which a backward reads the values and numbers of forward.

    Args:
        trace: of forward.
        saved: those of saved Tensors as a written backward has them; None for one to be written,
            which may save whatever forward names.
        inputs_only: whether a backward to be written may save inputs alone.
    """

    def __init__(
        self, trace: Trace, saved: Mapping[Node, str] | None = None, inputs_only: bool = False
    ) -> None:
        self.trace = trace
        self.of: dict[Node, str] = dict(saved or {})
        self.is_fixed = saved is not None
        self.result = ""
        """The name that forward has to give to what it returns; empty if none is needed."""
        attributes = trace.attributes.items()
        on_context = {v.traced: f"ctx.{n}" for n, v in attributes if isinstance(v, Traced)}
        if self.is_fixed:
            self.of.update(on_context)
        elif inputs_only:
            self.add_inputs()
        else:
            self.add_forward(on_context)

    def add_forward(self, on_context: Mapping[Node, str]) -> None:
        """Add the names of forward's variables, and of its result."""
        trace = self.trace
        for name, value in trace.locals.items():
            if isinstance(value, Traced):
                self.of.setdefault(value.traced, name)
        self.add_inputs()
        for node, name in on_context.items():
            self.of.setdefault(node, name)
        if len(trace.returned) == 1 and trace.returned[0].traced not in self.of:
            names = (name for name in ("y", "out", "result_") if name not in trace.locals)
            self.result = next(names)
            self.of[trace.returned[0].traced] = self.result

    def add_inputs(self) -> None:
        """Add the names of the inputs; one that forward rebinds is kept by another name."""
        for name, node in self.trace.inputs.items():
            now = self.trace.locals.get(name)
            is_kept = isinstance(now, Traced) and now.traced is node
            self.of.setdefault(node, name if is_kept else f"{name}_in")

    def attribute(self, source: Any) -> str:
        """The attribute of ctx that holds a number of some source; empty if there is none."""
        for name, value in self.trace.attributes.items():
            if source_of(value) == source:
                return name
        return ""


class Printer:
    """Writes the gradients of a trace.

    Args:
        names: of the values that can be read.
        saved: those that an earlier printer of the same trace saved: their shapes can be read.
    """

    def __init__(self, names: Names, saved: Iterable[Node] = ()) -> None:
        self.names, self.trace = names, names.trace
        self.known_saved = set(saved)
        self.saved: dict[Node, str] = {}
        """The values of forward that are read, and their names there."""
        self.attributes: dict[str, str] = {}
        """The attributes of ctx that are read, and their values in forward."""
        self.lines: list[str] = []
        self.variables: dict[Node, str] = {}
        self.uses: dict[Node, int] = {}
        self.cotangents = [node for node in self.trace.cotangents if node is not None]
        self.taken = {*self.trace.locals, *dir(builtins), "paddle", "ctx", "F", "np"}
        self.taken |= {node.name for node in self.cotangents} | {*names.of.values()}
        named = self.trace.gradient_of.items()
        self.gradient_names = {g: names.of[n] for n, g in named if n in names.of}

    # ----------------------------------------------------------------- the whole
    def gradients(self) -> list[str]:
        """The expressions of the gradients of the inputs; `lines` has what comes before."""
        roots = [node for node in self.trace.gradients.values() if node is not None]
        written = self.count_uses(roots)
        for node in self.trace.nodes:
            is_shared = self.uses.get(node, 0) > 1 or node.operation == "scatter_sum"
            if node in written and is_shared and not self.is_negative_leaf(node):
                self.assign(node, self.stem(node))
        return [
            self.no_gradient(name) if node is None else self.gradient(name, node, len(roots) > 1)
            for name, node in self.trace.gradients.items()
        ]

    def no_gradient(self, name: str) -> str:
        """The expression for an input without a gradient: zeros if it needs one."""
        node = self.trace.inputs[name]
        if not node.needs_gradient:
            return "None"
        shape = self.shape(node)
        like = shape.removesuffix(".shape")
        if like.isidentifier():
            return f"paddle.zeros_like({like})"
        return f"paddle.zeros({shape}, dtype={self.dtype(node.array.dtype)})"

    def gradient(self, name: str, node: Node, is_one_of_several: bool) -> str:
        """The expression of the gradient of an input: with others, a variable."""
        text = self.expression(node).text
        if not is_one_of_several or text.isidentifier():
            return text
        return self.variables.get(node) or self.assign(node, f"d{name}")

    def count_uses(self, roots: Iterable[Node]) -> set[Node]:
        """Count how often each value is read; the values that are written out."""
        written: set[Node] = set()
        waiting = list(roots)
        for node in waiting:
            self.uses[node] = self.uses.get(node, 0) + 1
        while waiting:
            node = waiting.pop()
            if node in written or self.is_leaf(node):
                continue
            written.add(node)
            for read in read_in_text(node):
                self.uses[read] = self.uses.get(read, 0) + 1
                waiting.append(read)
        return written

    def is_leaf(self, node: Node) -> bool:
        """Whether a value is read, not computed."""
        if node.operation in ("cotangent", "input", "constant"):
            return True
        return not node.in_backward and node in self.names.of

    def is_negative_leaf(self, node: Node) -> bool:
        """Whether a value is a leaf with a sign, which needs no name."""
        return node.operation == "neg" and self.is_leaf(node.arguments[0].traced)

    # ----------------------------------------------------------------- names
    def unused(self, stem: str) -> str:
        """A name that nothing else has."""
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}{number}"
        self.taken.add(name)
        return name

    def stem(self, node: Node) -> str:
        """What the name of a value begins with."""
        if node in self.gradient_names:
            return "d" + self.gradient_names[node].removeprefix("ctx.")
        return "g" if node.flows else STEMS.get(node.operation, "t")

    def assign(self, node: Node, stem: str) -> str:
        """Give a value a name."""
        if node not in self.variables:
            text = self.expression(node).text
            if node in self.variables:  # it was long, and got one
                return self.variables[node]
            name = self.unused(stem)
            self.lines.append(f"{name} = {text}")
            self.variables[node] = name
        return self.variables[node]

    def variable(self, value: Any) -> str:
        """The name of a Tensor, which gets one if it has none."""
        text = self.value(value).text
        return text if text.isidentifier() else self.assign(value.traced, self.stem(value.traced))

    # ----------------------------------------------------------------- expressions
    def expression(self, node: Node) -> Text:
        """The text of a value."""
        if node in self.variables:
            return Text(self.variables[node])
        if self.is_leaf(node):
            return Text(self.leaf(node))
        written = self.written(node)
        if len(written.text) > LONGEST:
            name = self.unused(self.stem(node))
            self.lines.append(f"{name} = {written.text}")
            self.variables[node] = name
            return Text(name)
        return written

    def leaf(self, node: Node) -> str:
        """The name of a value that is read."""
        if node.operation == "cotangent":
            return node.name
        if node in self.names.of:
            name = self.names.of[node]
            if not name.startswith("ctx."):
                self.saved[node] = name
            return name
        if node.operation == "constant":
            names = self.trace.function.__globals__.items()
            for name, value in names:
                if value is node.call:
                    return str(name)
            raise NotDerived("forward uses a Tensor that has no name in its module")
        raise NotDerived(f"{node.name} is not saved")

    def written(self, node: Node) -> Text:
        """The text of an operation."""
        if node.operation in FORMS:
            return FORMS[node.operation](self, node, *node.arguments)
        if not hasattr(node.call, "kernels"):  # it makes a Tensor
            return self.call("paddle", node.operation, node.call, node.arguments, node.keywords)
        prefix, function = public_function(node.operation.rstrip("_"))
        return self.call(prefix, node.operation.rstrip("_"), function, node.arguments, {}, node)

    def call(
        self,
        prefix: str,
        name: str,
        function: Any,
        arguments: Iterable[Any],
        keywords: Mapping[str, Any],
        node: Node | None = None,
    ) -> Text:
        """The call of a function of Paddle's, without arguments that are its defaults.

        Args:
            node: of an operation, whose arguments have names of their own.
        """
        parameters = {p.name: p for p in parameters_of(function)}
        names = list(parameters)
        texts = []
        for position, value in enumerate(arguments):
            key = names[position] if position < len(names) else ""
            if node is not None and node.call.arguments[position] in parameters and position:
                key = node.call.arguments[position]
            default = parameters[key].default if key else inspect.Parameter.empty
            if position and is_default(value, default):
                continue
            if key == "axis":
                value = shorter_axis(value, nodes_in(list(arguments)))
            text = self.value(value).text
            is_named = position and default is not inspect.Parameter.empty
            texts.append(f"{key}={text}" if is_named else text)
        texts += [f"{key}={self.value(value).text}" for key, value in keywords.items()]
        return Text(f"{prefix}.{name}({', '.join(texts)})", CALL)

    def method(self, x: Any, name: str, *texts: str) -> Text:
        """The call of a method of a Tensor."""
        return Text(f"{self.within(x, CALL)}.{name}({', '.join(filter(None, texts))})", CALL)

    def within(self, value: Any, least: int) -> str:
        """The text of a value as part of an expression, in parentheses if it needs them."""
        text, strength = self.scalar(value) if is_number(value) else self.value(value)
        return f"({text})" if strength < least else text

    # ----------------------------------------------------------------- values
    def value(self, value: Any) -> Text:
        """The text of an argument of an operation."""
        if isinstance(value, Traced):
            return self.expression(value.traced)
        if is_number(value):
            return self.number(value)
        if isinstance(value, Size) or type(value) is list:
            whole = self.whole_shape(value)
            return Text(whole or f"[{', '.join(self.value(item).text for item in value)}]")
        if type(value) is tuple:
            comma = "," if len(value) == 1 else ""
            return Text(f"({', '.join(self.value(item).text for item in value)}{comma})")
        if isinstance(value, (DType, np.dtype)):
            return Text(self.dtype(value))
        if isinstance(value, np.ndarray):
            raise NotDerived("forward uses an array that has no name")
        return Text(repr(value))

    def dtype(self, dtype: Any) -> str:
        """The text of a dtype: that of a cotangent, or its name."""
        wanted = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype)
        for node in self.cotangents:
            if node.array.dtype == wanted:
                return f"{node.name}.dtype"
        return repr(str(wanted))

    def number(self, value: Any) -> Text:
        """The text of a number: by its source, if it has one."""
        source = source_of(value)
        if isinstance(source, Argument):
            return Text(self.on_context(source, source.name, source.name))
        if isinstance(source, SizeOf):
            place = self.readable_size(source)
            return Text(f"{self.shape(place.node)}[{place.axis}]")
        if isinstance(source, Arithmetic):
            return self.arithmetic(value, source)
        if isinstance(value, float) and isfinite(value) and value == int(value):
            value = int(value)
        return Text(repr(value), ATOM if value >= 0 else SIGN)

    def on_context(self, source: Any, name: str, expression: str) -> str:
        """The attribute of ctx that holds a number; forward has to set it if it does not."""
        known = self.names.attribute(source)
        if known:
            return f"ctx.{known}"
        if self.names.is_fixed:
            raise NotDerived(f"{name} is not saved")
        self.attributes.setdefault(name, expression)
        return f"ctx.{name}"

    def arithmetic(self, value: Any, source: Arithmetic) -> Text:
        """The text of a number that was computed."""
        factors = size_factors(value)
        if len(factors) > 1 and len({factor.node for factor in factors}) == 1:
            node = factors[0].node
            if sorted(factor.axis for factor in factors) == list(range(node.array.ndim)):
                return Text(self.element_count(node))
        if len(source.operands) == 1:
            return Text(f"-{self.within(source.operands[0], SIGN)}", SIGN)
        left, right = source.operands
        if source.operator == "*" and type(left) is int and left == 1:
            return self.number(right)
        strength = {"+": SUM, "-": SUM, "**": EXPONENT}.get(source.operator, PRODUCT)
        return Text(
            f"{self.within(left, strength)} {source.operator} {self.within(right, strength + 1)}",
            strength,
        )

    def scalar(self, value: Any) -> Text:
        """The text of a number next to a Tensor: that of forward's variable, if it has one."""
        source = source_of(value)
        for name, variable in self.trace.locals.items():
            if not isinstance(variable, float):
                continue
            is_computed = isinstance(source, Arithmetic)
            if is_computed and source_of(variable) == source:
                return self.on_forward(source, name)
            if source is None and variable is value and value not in USUAL_NUMBERS:
                return self.on_forward(None, name)
        return self.number(value)

    def on_forward(self, source: Any, name: str) -> Text:
        """The text of a number that is a variable of forward."""
        if self.names.is_fixed and not (source and self.names.attribute(source)):
            return self.number_without_name(self.trace.locals[name])
        return Text(self.on_context(source, name, name))

    def number_without_name(self, value: Any) -> Text:
        """The text of a number, written out."""
        return self.number(value) if source_of(value) is not None else Text(repr(value))

    # ----------------------------------------------------------------- shapes
    def whole_shape(self, sizes: Iterable[Any]) -> str:
        """The text of a shape, if some sizes are all of one value; else empty."""
        sources = [source_of(size) for size in sizes]
        nodes = {source.node for source in sources if isinstance(source, SizeOf)}
        if len(nodes) != 1 or not all(isinstance(source, SizeOf) for source in sources):
            return ""
        node = nodes.pop()
        axes = [source.axis for source in sources if isinstance(source, SizeOf)]
        return self.shape(node) if axes == list(range(node.array.ndim)) else ""

    def shape(self, node: Node) -> str:
        """The text of the shape of a value: that of one at hand, or an attribute of ctx."""
        outputs = zip(self.trace.cotangents, self.trace.returned, strict=True)
        for cotangent, output in outputs:
            if cotangent is not None and node in (cotangent, output.traced):
                return f"{cotangent.name}.shape"
        if node in self.variables:
            return f"{self.variables[node]}.shape"
        if node in self.saved or node in self.known_saved:
            return f"{self.leaf(node)}.shape"
        if not node.in_backward and node in self.names.of:
            return self.saved_shape(node)
        alike = [read for read in node.read() if read.shape == node.shape]
        if alike and node.operation not in KEEPS_NO_SHAPE:
            readable = [read for read in alike if read in self.saved or read in self.names.of]
            return self.shape((readable or alike)[0])
        return f"{self.within(node.tensor, CALL)}.shape"

    def readable_size(self, size: SizeOf) -> SizeOf:
        """The same size of a value that can be read, where that is known."""
        while not self.is_at_hand(size.node):
            origin = origin_of(size)
            if origin is None:
                break
            size = origin
        return size

    def is_at_hand(self, node: Node) -> bool:
        """Whether a value has a name in backward, or a shape on ctx."""
        return self.is_leaf(node) or node in self.variables

    def saved_shape(self, node: Node) -> str:
        """The text of the shape of a value of forward that is not saved itself."""
        name = self.names.of[node]
        if self.names.is_fixed or name.startswith("ctx."):
            return f"{self.leaf(node)}.shape"
        for attribute, value in self.trace.attributes.items():
            if isinstance(value, list) and self.is_shape_of(value, node):
                return f"ctx.{attribute}"
        self.attributes[f"{name}_shape"] = f"{name}.shape"
        return f"ctx.{name}_shape"

    def is_shape_of(self, sizes: list[Any], node: Node) -> bool:
        """Whether sizes are the shape of a value."""
        wanted = [SizeOf(node, axis) for axis in range(len(node.shape))]
        return [source_of(size) for size in sizes] == wanted

    def element_count(self, node: Node) -> str:
        """The text of the number of elements of a value."""
        shape = self.shape(node)
        saved = re.fullmatch(r"ctx\.(\w+)_shape", shape)
        if not saved or shape.removeprefix("ctx.") not in self.attributes:
            is_tensors = shape.endswith(".shape")
            return f"{shape.removesuffix('.shape')}.size" if is_tensors else f"math.prod({shape})"
        name = self.attributes[f"{saved[1]}_shape"].removesuffix(".shape")
        self.attributes[f"{saved[1]}_size"] = f"{name}.size"
        return f"ctx.{saved[1]}_size"


def origin_of(size: SizeOf) -> SizeOf | None:
    """The same size of an argument of the operation that made a value; None if it is not known."""
    node, axis = size.node, size.axis
    for argument in nodes_in(node.arguments):
        if node.operation in ("sum", "mean", "max", "min", "logsumexp", "norm"):
            before = kept_axis(node, argument, axis)
            return None if before is None else SizeOf(argument, before)
        is_alike = len(argument.shape) == len(node.shape) and node.operation not in KEEPS_NO_SHAPE
        if is_alike and argument.shape[axis] == node.shape[axis] != 1:
            return SizeOf(argument, axis)
    return None


def kept_axis(node: Node, argument: Node, axis: int) -> int | None:
    """The axis of what was reduced that an axis of the result is; None for one that was reduced."""
    count = len(argument.shape)
    axes = node.arguments[1]
    listed = range(count) if axes is None else [axes] if isinstance(axes, int) else axes
    reduced = {int(reduced) % count for reduced in listed}
    if len(node.shape) == count:
        return None if axis in reduced else axis
    return [k for k in range(count) if k not in reduced][axis]


def read_in_text(node: Node) -> list[Node]:
    """The values that the text of an operation reads: of positions along an axis, the indices."""
    if node.operation in ("getitem", "scatter_sum"):
        positions = positions_in(node.arguments[-1])
        if positions is not None:
            return nodes_in((node.arguments[0], positions[0]))
    return list(node.read())


def positions_in(index: Any) -> tuple[Any, int] | None:
    """The indices and the axis of an index of one's own positions along the other axes, as
    ``take_along_axis`` has it; None for any other index."""
    parts = index if type(index) is tuple else ()
    for part in parts:
        if not isinstance(part, Traced) or part.traced.operation != "positions":
            return None
    return (parts[0].traced.arguments[0], parts[0].traced.arguments[2]) if parts else None


def public_function(name: str) -> tuple[str, Any]:
    """Paddle's function of the name of an operation, and the module in which it is.

    Raises:
        NotDerived: there is none.
    """
    import pylayer.paddle as paddle

    modules = {
        "paddle": paddle,
        "paddle.nn.functional": paddle.nn.functional,
        "paddle.linalg": paddle.linalg,
    }
    for prefix, module in modules.items():
        if hasattr(module, name):
            return prefix, getattr(module, name)
    raise NotDerived(f"no public function of Paddle computes {name}")


def parameters_of(function: Any) -> list[inspect.Parameter]:
    """The parameters of a function; none where they are not known."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def is_default(value: Any, default: Any) -> bool:
    """Whether an argument is the default of its parameter."""
    if isinstance(value, Traced) or default is inspect.Parameter.empty:
        return False
    if value is default:
        return True
    return is_number(value) and source_of(value) is None and bool(value == default)


def shorter_axis(axis: Any, tensors: list[Node]) -> Any:
    """An axis as people write it: one alone without a list, the last one as −1."""
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    if tensors and type(axis) is int and axis == tensors[0].array.ndim - 1 > 0:
        return -1
    return plain_number(axis) if type(axis) is int else axis
