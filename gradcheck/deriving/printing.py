"""The text of a backward: the values of a trace as Python expressions, with the names used in
forward.

A value that forward names is saved and read by that name; any other value is written out. A value
that is used more than once, or is long, gets a name. A backward is written twice: the first time
shows how often each value is used, and what is saved.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcheck.deriving.dialects import HELPERS, NUMPY, SIZE, Dialect
from gradcheck.deriving.graph import Node, NotDerived, Traced, nodes_in, sourced_sizes
from gradcheck.deriving.numbers import (
    Argument,
    Arithmetic,
    Called,
    SizeOf,
    factors_of,
    is_number,
    number_key,
    plain_number,
    source_of,
)
from gradcheck.deriving.trace import Trace, traced_inputs
from pylayer.tensor.dtype import DType
from pylayer.tensor.size import Size

LONGEST = 88
"""The most characters of an expression without a name: with indent and a name, a line of 100."""
STEMS = {
    **dict.fromkeys(("greater_than", "less_than", "greater_equal", "less_equal"), "mask"),
    **dict.fromkeys(("equal", "logical_not", "inside_bounds", "cast"), "mask"),
    "sum": "total",
    "sigmoid": "s",
    "exp": "e",
    "softmax": "p",
    "log_softmax": "logp",
}
"""Names for values, by the operation that makes them."""
ASSOCIATIVE = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
NUMBER_OPERATORS = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
}
"""Operators of numbers."""


def names_in_forward(trace: Trace, dialect: Dialect, inputs_only: bool) -> dict[Node, str]:
    """The names by which a backward can read values of forward: attributes of ctx, variables that
    forward can save, and inputs. An input that forward rebinds is kept by another name.

    Args:
        inputs_only: whether only inputs may be saved.
    """
    inputs = {
        node: name if node in nodes_in(trace.locals.get(name)) else f"{name}_in"
        for name, node in trace.inputs.items()
    }
    if inputs_only:
        return inputs
    tensors = traced_inputs(dict(reversed(trace.locals.items())))
    left_out = set() if dialect is NUMPY else trace.arrays
    named = {node: name for name, node in tensors.items() if name not in left_out}
    return inputs | named | names_on_context(trace, dialect)


def names_on_context(trace: Trace, dialect: Dialect) -> dict[Node, str]:
    """The Tensors that are attributes of ctx; in NumPy code they are arrays."""
    names = {node: f"ctx.{name}" for name, node in traced_inputs(trace.attributes).items()}
    if dialect is not NUMPY:
        return names
    return {n: name if name in trace.arrays else f"{name}.numpy()" for n, name in names.items()}


def keys_in(value: Any) -> Any:
    """A key of a number, or of numbers in a list; otherwise None."""
    if isinstance(value, list):
        return tuple(map(keys_in, value))
    return number_key(value) if is_number(value) else None


class Printer:
    """Writes the gradients of a trace.

    Args:
        trace: of forward.
        dialect: the library's names.
        names: of the values that can be read.
        is_fixed: whether only these values can be read, because forward must not save more.
        first: the printer that wrote the same before.
    """

    def __init__(
        self,
        trace: Trace,
        dialect: Dialect,
        names: Mapping[Node, str],
        is_fixed: bool = False,
        first: Printer | None = None,
    ) -> None:
        self.trace, self.dialect, self.names, self.is_fixed = trace, dialect, names, is_fixed
        self.first = first or self
        self.saved: dict[Node, str] = {}
        """The values of forward that are read, and their names in forward."""
        self.attributes: dict[str, str] = {}
        """The attributes of ctx that are read, and their values in forward."""
        self.lines: list[str] = []
        self.results: list[str] = []
        self.variables: dict[Node, str] = {}
        self.known: dict[Node, ast.expr] = {}
        self.uses = Counter[Node]()
        self.cotangents = [node for node in self.trace.cotangents if node is not None]
        local_names = {node: name for name, node in traced_inputs(trace.locals).items()}
        self.local_names = local_names if is_fixed else {}
        """Names that forward uses for the values that backward recomputes."""
        self.taken = {*dir(builtins), "paddle", "torch", "ctx", "F", "np"}
        self.taken |= set() if is_fixed else trace.locals.keys()
        self.taken |= {node.name for node in self.cotangents} | {*names.values()}
        known = {**self.local_names, **names}
        gradients = self.trace.gradient_of.items()
        self.gradient_names = {gradient: known[n] for n, gradient in gradients if n in known}
        self.helpers = HELPERS | {"is_name": self.is_name, "whole": self.whole}

    # ----------------------------------------------------------------- the whole
    def write(self) -> None:
        """Write the gradients of the inputs: `results`, and `lines` before them."""
        for node in self.trace.nodes:
            if self.first.uses[node] > 1 and self.first is not self and self.is_written(node):
                self.assign(node, self.stem(node))
        gradients = self.trace.gradients
        self.results = [
            self.gradient(name, gradients[name]) if name in gradients else "None"
            for name in self.trace.gradient_slots
        ]

    def gradient(self, name: str, node: Node | None) -> str:
        """The expression for the gradient of an input: a variable if there are several
        gradients.
        """
        input_node = self.trace.inputs[name]
        if node is None:
            zeros = [list(sourced_sizes(input_node))]
            return (
                ast.unparse(self.operation("zeros", zeros, input_node))
                if input_node.needs_gradient
                else "None"
            )
        text = ast.unparse(self.expression(node))
        is_alone = sum(other is not None for other in self.trace.gradients.values()) == 1
        return text if is_alone or text.isidentifier() else self.assign(node, f"d{name}")

    # ----------------------------------------------------------------- names
    def is_leaf(self, node: Node) -> bool:
        """Whether a value is read, not computed."""
        return node in self.names or node.operation in ("cotangent", "input", "constant")

    def is_written(self, node: Node) -> bool:
        """Whether a value is written out; a leaf with its sign changed is not."""
        if node.operation == "neg" and self.is_leaf(node.arguments[0].traced):
            return False
        return not self.is_leaf(node) and node not in self.variables

    def is_name(self, value: Any) -> bool:
        """Whether a value has a name."""
        return not self.is_written(value.traced)

    def stem(self, node: Node) -> str:
        """The first letters of a value's name."""
        if node in self.gradient_names:
            return "d" + self.gradient_names[node].removeprefix("ctx.")
        if node in self.local_names:
            return self.local_names[node]
        return "g" if node.flows else STEMS.get(node.operation, "t")

    def unused_name(self, stem: str) -> str:
        """An unused name."""
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}{number}"
        self.taken.add(name)
        return name

    def assign(self, node: Node, stem: str) -> str:
        """Give a value a name."""
        written = self.tree(node)
        if node not in self.variables:  # a long one was named while it was written
            self.variables[node] = self.unused_name(stem)
            self.lines.append(f"{self.variables[node]} = {ast.unparse(written)}")
        return self.variables[node]

    def readable(self) -> dict[Node, str]:
        """The values that have a name in backward."""
        if self.is_fixed:
            return {**self.names, **self.variables}
        flowing = {node: node.name for node in self.cotangents}
        return flowing | self.first.saved | self.variables

    def known_numbers(self, size: str = SIZE) -> dict[Any, str]:
        """The numbers, shapes and counts of elements that backward can read, by their keys: from
        the first available value that has them, otherwise from attributes of ctx.

        Args:
            size: the expression for the size of a Tensor along an axis, such as `SIZE`.
        """
        attributes = self.trace.attributes.items()
        known = {keys_in(value): f"ctx.{name}" for name, value in attributes}
        for node, name in reversed(self.readable().items()):
            keys = keys_in(list(sourced_sizes(node)))
            sizes = reversed([*enumerate(keys)])
            known |= {key: size.format(name, axis) for axis, key in sizes}
            known |= {keys: f"{name}.shape", product_key(keys): self.dialect.count.format(name)}
        return known

    # ----------------------------------------------------------------- expressions
    def expression(self, node: Node) -> ast.expr:
        """The expression of a value, counted as used."""
        self.uses[node] += 1
        return self.tree(node)

    def tree(self, node: Node) -> ast.expr:
        """The expression of a value: its name, or the operation that computes it."""
        if self.is_leaf(node):
            return parse_expression(self.leaf(node))
        if node not in self.known:
            self.known[node] = self.operation(node.operation, node.arguments, node)
            if node not in self.variables and len(ast.unparse(self.known[node])) > LONGEST:
                self.assign(node, self.stem(node))
        return ast.Name(self.variables[node]) if node in self.variables else self.known[node]

    def leaf(self, node: Node) -> str:
        """The name of a value that is read."""
        if node.operation == "cotangent" and not self.is_fixed:
            return node.name
        if node in self.names:
            name = self.names[node]
            if not name.startswith("ctx."):
                self.saved[node] = name
            return name
        if node.operation == "constant":
            for name, value in self.trace.call.written_forward.__globals__.items():
                if value is node.call:
                    return str(name)
            raise NotDerived("forward uses a Tensor that has no name in its module")
        raise NotDerived(f"backward cannot read {node.name}")

    def operation(self, name: str, arguments: Sequence[Any], node: Node) -> ast.expr:
        """The expression of an operation, by the first rule for it, or as a call."""
        scope = self.helpers | {"output": node.output, "own_dtype": node.array.dtype}
        for rule in self.dialect.rules.get(name, ()):
            for bound in rule.bindings(name, arguments, scope, self.is_written):
                *statements, last = rule.result.body
                if not statements:
                    filled: ast.expr = self.fill_template(last.value, scope | bound, node)  # type: ignore[attr-defined]
                    return filled
                return self.after(rule.result.body, scope | bound, node)
        return self.call(node)

    def after(self, statements: Sequence[ast.stmt], scope: dict[str, Any], node: Node) -> ast.Name:
        """The variable for a value, after the statements of its template, which compute ``out``."""
        variable = ast.Name(self.unused_name(self.stem(node)))
        filled_statements = [
            self.fill_template(each, scope | {"out": variable}, node) for each in statements
        ]
        self.lines += [
            ast.unparse(ast.fix_missing_locations(statement)) for statement in filled_statements
        ]
        self.variables[node] = variable.id
        return variable

    def fill_template(self, template: Any, scope: dict[str, Any], node: Node) -> Any:
        """A template with its names replaced by their values."""
        return Filling(self, scope, node).visit(copy.deepcopy(template))

    def call(self, node: Node) -> ast.expr:
        """The call of the library's function, without arguments that equal the defaults."""
        name = node.operation.rstrip("_")
        path, parameters = self.dialect.function(name)
        names = getattr(node.call, "arguments", [p.name for p in parameters])
        defaults = {p.name: p.default for p in parameters}
        args, keywords = [], dict(node.keywords)
        for name, value in zip(names, node.arguments, strict=False):
            default = defaults.get(name, inspect.Parameter.empty)
            if default is inspect.Parameter.empty:
                args.append(self.value(value))
            elif isinstance(value, Traced) or source_of(value) or value != default:
                keywords[name] = value
        named = [ast.keyword(name, self.value(value)) for name, value in keywords.items()]
        return ast.Call(parse_expression(path), args, named)

    # ----------------------------------------------------------------- values
    def value(self, value: Any) -> ast.expr:
        """The expression of an operation's argument."""
        if isinstance(value, ast.expr):
            return value
        if isinstance(value, Traced):
            return self.expression(value.traced)
        if is_number(value):
            return self.number(value)
        if isinstance(value, Size) or type(value) is list:
            return self.shape(list(value)) or ast.List(list(map(self.value_in_list, value)))
        if type(value) is tuple:
            return ast.Tuple(list(map(self.value, value)))
        if isinstance(value, slice):
            ends = value.start or None, value.stop, value.step
            if self.dialect.size != SIZE and any(map(source_of, ends)):
                raise NotDerived("backward takes a slice at a size that a program may not know")
            return ast.Slice(*(None if end is None else self.value(end) for end in ends))
        if isinstance(value, (DType, np.dtype)):
            return self.dtype(value)
        if isinstance(value, np.ndarray):
            raise NotDerived("forward uses an array that has no name")
        return ast.Constant(value)

    def value_in_list(self, value: Any) -> ast.expr:
        """The expression of an item of a list; a number there is an item of a shape."""
        return self.number(value, SIZE) if is_number(value) else self.value(value)

    def dtype(self, dtype: Any) -> ast.expr:
        """The expression of a dtype: the dtype of a cotangent, or its name."""
        wanted = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype)
        alike = (name for node, name in self.readable().items() if node.array.dtype == wanted)
        name = next(alike, "")
        return parse_expression(f"{name}.dtype") if name else ast.Constant(str(wanted))

    def number(self, value: Any, size: str = "") -> ast.expr:
        """The expression of a number, by its source if it has one.

        Args:
            size: as in `known_numbers`; the dialect's `size` if empty.
        """
        size = size or self.dialect.size
        source = source_of(value)
        if source is None:
            return plain(value)
        if isinstance(source, Argument) and self.trace.call.takes_arrays:
            return ast.Name(source.name)  # its backward has the same arguments
        known = self.known_numbers(size)
        factors = product_key(tuple(map(number_key, factors_of(value))))
        text = known.get(number_key(value)) or known.get(factors)
        if text:
            return parse_expression(text)
        if isinstance(source, SizeOf):
            return self.size_of(source, size)
        if isinstance(source, Argument):
            return self.on_context(source.name)
        if isinstance(source, Called):
            return parse_expression(source.text)
        for name, variable in self.trace.locals.items():
            if isinstance(variable, float) and number_key(variable) == number_key(value):
                with suppress(NotDerived):
                    return self.on_context(name)
        return self.arithmetic(source, size)

    def size_of(self, source: SizeOf, size: str) -> ast.expr:
        """The expression for the size of a value along an axis, if no available value has it."""
        if not self.is_fixed:
            return ast.Subscript(self.shape_of(source.node), ast.Constant(source.axis))
        value = ast.unparse(self.expression(source.node))
        return parse_expression(size.format(f"({value})", source.axis))

    def on_context(self, name: str) -> ast.expr:
        """The attribute of ctx for a number, which forward must set."""
        if self.is_fixed:
            raise NotDerived(f"{name} is not saved")
        self.attributes.setdefault(name, name)
        return parse_expression(f"ctx.{name}")

    def arithmetic(self, source: Arithmetic, size: str) -> ast.expr:
        """The expression of a computed number; `size` as in `known_numbers`."""
        left, *right = [self.number(operand, size) for operand in source.operands]
        if not right:
            return ast.UnaryOp(ast.USub(), left)
        if source.operator == "*" and number_key(source.operands[0]) == number_key(1):
            return right[0]
        return reassociate(ast.BinOp(left, NUMBER_OPERATORS[source.operator](), right[0]))

    # ----------------------------------------------------------------- shapes
    def shape(self, sizes: list[Any]) -> ast.expr | None:
        """A list of sizes as the shape of a value; None if no value has that shape."""
        text = self.known_numbers().get(keys_in(sizes))
        source = next(filter(None, map(source_of, sizes)), None)
        if source is None or text:
            return parse_expression(text) if source and text else None
        if isinstance(source, SizeOf) and keys_in(sizes) == keys_in([*sourced_sizes(source.node)]):
            return self.shape_of(source.node)
        return None

    def whole(self, sizes: list[Any]) -> ast.expr | None:
        """The name of an available value of some shape."""
        name, _, end = self.known_numbers().get(keys_in(sizes), "").rpartition(".")
        return parse_expression(name) if end == "shape" else None

    def shape_of(self, node: Node) -> ast.expr:
        """The shape of a value that is not available: an attribute of ctx, if forward names the
        value.
        """
        name = self.names.get(node, "")
        if self.is_fixed or not name or name.startswith("ctx."):
            return ast.Attribute(self.expression(node), "shape")
        self.attributes[f"{name}_shape"] = f"{name}.shape"
        return parse_expression(f"ctx.{name}_shape")


def product_key(keys: tuple[Any, ...]) -> Any:
    """A key of a product of numbers, in any order."""
    return frozenset(Counter(keys).items())


class Filling(ast.NodeTransformer):
    """Replaces names by their values in a template of a printer."""

    def __init__(self, printer: Printer, scope: dict[str, Any], node: Node) -> None:
        self.printer, self.scope, self.node = printer, scope, node

    def visit_Name(self, name: ast.Name) -> ast.expr:
        """Replace a name by its value."""
        return self.printer.value(self.scope[name.id]) if name.id in self.scope else name

    def visit_Call(self, call: ast.Call) -> ast.expr:
        """Replace a call of a helper or of an operation."""
        if not isinstance(call.func, ast.Name):
            self.generic_visit(call)
            call.keywords = [k for k in call.keywords if not is_left_out(k.value)]
            call.args = [argument for each in call.args for argument in unpacked_argument(each)]
            return call
        arguments = [
            eval(compile(ast.Expression(argument), "<rule>", "eval"), dict(self.scope))
            for argument in call.args
        ]
        if call.func.id in self.scope:
            return self.printer.value(self.scope[call.func.id](*arguments))
        return self.printer.operation(call.func.id, arguments, self.node)

    def visit_BinOp(self, operation: ast.BinOp) -> ast.expr:
        """Remove needless parentheses from an operation."""
        self.generic_visit(operation)
        return reassociate(operation)


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression."""
    return ast.parse(text, mode="eval").body


def plain(value: Any) -> ast.expr:
    """A number without a source."""
    number = plain_number(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    constant = ast.Constant(abs(number))
    return ast.UnaryOp(ast.USub(), constant) if number < 0 else constant


def is_left_out(value: ast.expr) -> bool:
    """Whether a keyword with this value can be left out."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def unpacked_argument(argument: ast.expr) -> list[ast.expr]:
    """The arguments that one argument expands to: a starred list gives one per item."""
    is_list = isinstance(argument, ast.Starred) and isinstance(argument.value, ast.List)
    return argument.value.elts if is_list else [argument]  # type: ignore[attr-defined]


def reassociate(new: ast.BinOp) -> ast.BinOp:
    """A sum or product without parentheses around one on its right, or a quotient there."""
    right = new.right
    if not isinstance(right, ast.BinOp) or not isinstance(new.op, ASSOCIATIVE):
        return new
    is_quotient = isinstance(new.op, ast.Mult) and isinstance(right.op, ast.Div)
    if type(right.op) is not type(new.op) and not is_quotient:
        return new
    return ast.BinOp(reassociate(ast.BinOp(new.left, new.op, right.left)), right.op, right.right)
