"""The text of a backward: the values of a trace as Python's expressions, in the names of forward.

A value that forward names is saved and read by that name; any other value is written out. What is
used more than once, and what is long, gets a name. A backward is written twice: the first time
shows how often each value is used, and what is saved.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcheck.deriving.dialects import HELPERS, NUMPY, PADDLE, Dialect
from gradcheck.deriving.graph import Node, NotDerived, Traced, sizes_of
from gradcheck.deriving.numbers import (
    Argument,
    Arithmetic,
    SizeOf,
    factors_of,
    is_number,
    key_of,
    plain_number,
    source_of,
)
from gradcheck.deriving.trace import Trace
from pylayer.tensor.dtype import DType
from pylayer.tensor.size import Size

LONGEST = 88
"""Characters of an expression before it gets a name: with indent and the name, a line of 100."""
STEMS = {
    **dict.fromkeys(("greater_than", "less_than", "greater_equal", "less_equal"), "mask"),
    **dict.fromkeys(("equal", "logical_not", "inside_bounds", "cast"), "mask"),
    "sum": "total",
    "sigmoid": "s",
    "exp": "e",
    "softmax": "p",
    "log_softmax": "logp",
}
"""Names for values by the operation that makes them."""
ASSOCIATIVE = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
OPERATORS = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
}
"""Operators of numbers."""


class Names:
    """The names by which a backward reads the values and numbers of forward.

    Args:
        trace: of forward.
        dialect: the library's names.
        variables: those that a written backward has; None for one to be written, which may save
            whatever forward names.
        inputs_only: whether a backward to be written may save inputs alone.
    """

    def __init__(
        self,
        trace: Trace,
        dialect: Dialect = PADDLE,
        variables: Mapping[Node, str] | None = None,
        inputs_only: bool = False,
    ) -> None:
        self.trace, self.dialect = trace, dialect
        self.of: dict[Node, str] = dict(variables or {})
        self.is_fixed = variables is not None
        self.result = ""
        """The name that forward has to give to what it returns; empty if none is needed."""
        if not self.is_fixed:
            self.add_inputs()
        if not inputs_only:
            for name, value in trace.attributes.items():
                if isinstance(value, Traced):
                    self.of.setdefault(value.traced, self.on_context(name))
        if not self.is_fixed and not inputs_only:
            self.add_forward()

    def on_context(self, name: str) -> str:
        """A Tensor that is an attribute of ctx, in NumPy code as an array."""
        is_turned = self.dialect is NUMPY and name not in self.trace.arrays_on_context
        return f"ctx.{name}.numpy()" if is_turned else f"ctx.{name}"

    def add_forward(self) -> None:
        """Add the names of forward's variables, and of its result."""
        trace = self.trace
        arrays = trace.arrays if self.dialect is NUMPY else {}
        for name, value in (trace.locals | arrays).items():
            if isinstance(value, Traced):
                known = self.of.get(value.traced, "ctx.")
                if self.dialect is PADDLE and known.startswith("ctx."):
                    self.of[value.traced] = name
                self.of.setdefault(value.traced, name)
        if len(trace.returned) == 1 and trace.returned[0].traced not in self.of:
            self.result = next(n for n in ("y", "out", "result_") if n not in trace.locals)
            self.of[trace.returned[0].traced] = self.result

    def add_inputs(self) -> None:
        """Add the names of the inputs; one that forward rebinds is kept by another name."""
        for name, node in self.trace.inputs.items():
            now = self.trace.locals.get(name)
            is_kept = isinstance(now, Traced) and now.traced is node
            self.of.setdefault(node, name if is_kept else f"{name}_in")

    def attribute(self, value: Any) -> str:
        """The attribute of ctx that holds a number, or a list of numbers; empty if there is
        none."""
        wanted = keys_in(value)
        attributes = self.trace.attributes.items()
        return next((name for name, known in attributes if keys_in(known) == wanted), "")


def keys_in(value: Any) -> Any:
    """A key of a number with a source, or of numbers; None for anything else."""
    if isinstance(value, list):
        return [keys_in(item) for item in value]
    return key_of(value) if source_of(value) is not None else None


class Printer:
    """Writes the gradients of a trace.

    Args:
        names: of the values that can be read.
        first: the printer that wrote the same before.
    """

    def __init__(self, names: Names, first: Printer | None = None) -> None:
        self.names, self.trace, self.dialect = names, names.trace, names.dialect
        self.first = first or self
        self.saved: dict[Node, str] = {}
        """The values of forward that are read, and their names there."""
        self.attributes: dict[str, str] = {}
        """The attributes of ctx that are read, and their values in forward."""
        self.lines: list[str] = []
        self.variables: dict[Node, str] = {}
        self.known: dict[Node, ast.expr] = {}
        self.uses = Counter[Node]()
        self.cotangents = [node for node in self.trace.cotangents if node is not None]
        self.taken = {*self.trace.locals, *dir(builtins), "paddle", "ctx", "F", "np"}
        self.taken |= {node.name for node in self.cotangents} | {*names.of.values()}
        named = self.trace.gradient_of.items()
        self.gradient_names = {g: names.of[n] for n, g in named if n in names.of}
        self.helpers = HELPERS | {"is_name": self.is_name, "whole": self.whole}

    # ----------------------------------------------------------------- the whole
    def written(self) -> Printer:
        """The printer, once it wrote everything."""
        self.gradients()
        return self

    def gradients(self) -> list[str]:
        """The expressions of the gradients of the inputs; `lines` has what comes before."""
        for node in self.trace.nodes:
            if self.first.uses[node] > 1 and self.first is not self and self.is_written(node):
                self.assign(node, self.stem(node))
        return [self.gradient(name, node) for name, node in self.trace.gradients.items()]

    def gradient(self, name: str, node: Node | None) -> str:
        """The expression of the gradient of an input: beside others, a variable."""
        given = self.trace.inputs[name]
        if node is None:
            zeros = [list(sizes_of(given))]
            return (
                ast.unparse(self.operation("zeros", zeros, given))
                if given.needs_gradient
                else "None"
            )
        text = ast.unparse(self.expression(node))
        is_alone = sum(other is not None for other in self.trace.gradients.values()) == 1
        return text if is_alone or text.isidentifier() else self.assign(node, f"d{name}")

    # ----------------------------------------------------------------- names
    def is_leaf(self, node: Node) -> bool:
        """Whether a value is read, not computed."""
        return node in self.names.of or node.operation in ("cotangent", "input", "constant")

    def is_written(self, node: Node) -> bool:
        """Whether a value is written out; one with a sign alone is no more than its operand."""
        if node.operation == "neg" and self.is_leaf(node.arguments[0].traced):
            return False
        return not self.is_leaf(node) and node not in self.variables

    def is_name(self, value: Any) -> bool:
        """Whether a value has a name."""
        return not self.is_written(value.traced)

    def stem(self, node: Node) -> str:
        """What the name of a value begins with."""
        if node in self.gradient_names:
            return "d" + self.gradient_names[node].removeprefix("ctx.")
        return "g" if node.flows else STEMS.get(node.operation, "t")

    def unused(self, stem: str) -> str:
        """A name that nothing else has."""
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}{number}"
        self.taken.add(name)
        return name

    def assign(self, node: Node, stem: str) -> str:
        """Give a value a name."""
        written = self.tree(node)
        if node not in self.variables:  # else it was long, and has one
            self.variables[node] = self.unused(stem)
            self.lines.append(f"{self.variables[node]} = {ast.unparse(written)}")
        return self.variables[node]

    def readable(self) -> Iterator[tuple[Node, str]]:
        """The values that have a name in backward."""
        if not self.names.is_fixed:
            yield from ((node, node.name) for node in self.cotangents)
        yield from (self.names.of if self.names.is_fixed else self.first.saved).items()
        yield from self.variables.items()

    # ----------------------------------------------------------------- expressions
    def expression(self, node: Node) -> ast.expr:
        """A value, which is used."""
        self.uses[node] += 1
        return self.tree(node)

    def tree(self, node: Node) -> ast.expr:
        """A value: its name, or the operation that computes it."""
        if self.is_leaf(node):
            return parsed(self.leaf(node))
        if node not in self.known:
            self.known[node] = self.operation(node.operation, node.arguments, node)
            if node not in self.variables and len(ast.unparse(self.known[node])) > LONGEST:
                self.assign(node, self.stem(node))
        return ast.Name(self.variables[node]) if node in self.variables else self.known[node]

    def leaf(self, node: Node) -> str:
        """The name of a value that is read."""
        if node.operation == "cotangent" and not self.names.is_fixed:
            return node.name
        if node in self.names.of:
            name = self.names.of[node]
            if not name.startswith("ctx."):
                self.saved[node] = name
            return name
        if node.operation == "constant":
            for name, value in self.trace.function.__globals__.items():
                if value is node.call:
                    return str(name)
            raise NotDerived("forward uses a Tensor that has no name in its module")
        raise NotDerived(f"{node.name} is not saved")

    def operation(self, name: str, arguments: Sequence[Any], node: Node) -> ast.expr:
        """An operation, by the first rule for it, or as a call."""
        scope = self.helpers | {"output": node.output, "own_dtype": node.array.dtype}
        for rule in self.dialect.rules.get(name, ()):
            for bound in rule.bindings(name, arguments, scope, self.is_written):
                *statements, last = rule.result.body
                if not statements:
                    return self.filled(last.value, scope | bound, node)  # type: ignore[attr-defined]
                return self.after(rule.result.body, scope | bound, node)
        return self.call(node)

    def after(self, statements: Sequence[ast.stmt], scope: dict[str, Any], node: Node) -> ast.Name:
        """The variable `out` of a value, after statements that compute it."""
        out = ast.Name(self.unused(self.stem(node)))
        filled = [self.filled(each, scope | {"out": out}, node) for each in statements]
        self.lines += [ast.unparse(ast.fix_missing_locations(statement)) for statement in filled]
        self.variables[node] = out.id
        return out

    def filled(self, template: Any, scope: dict[str, Any], node: Node) -> Any:
        """A template with the values of its names put in."""
        if isinstance(template, list):
            return [self.filled(item, scope, node) for item in template]
        if isinstance(template, ast.Name) and template.id in scope:
            return self.value(scope[template.id])
        if isinstance(template, ast.Call) and isinstance(template.func, ast.Name):
            return self.asked(template, scope, node)
        if not isinstance(template, ast.AST):
            return template
        fields = ast.iter_fields(template)
        new = type(template)(**{name: self.filled(item, scope, node) for name, item in fields})
        if isinstance(new, ast.Call):
            new.keywords = [k for k in new.keywords if not is_left_out(k.value)]
            new.args = [a for arg in new.args for a in spread(arg)]
        return associated(new) if isinstance(new, ast.BinOp) else new

    def asked(self, template: ast.Call, scope: dict[str, Any], node: Node) -> ast.expr:
        """What a function of a template gives: a value, or an operation."""
        assert isinstance(template.func, ast.Name)
        arguments = [
            eval(compile(ast.Expression(argument), "<rule>", "eval"), dict(scope))
            for argument in template.args
        ]
        if template.func.id in scope:
            return self.value(scope[template.func.id](*arguments))
        return self.operation(template.func.id, arguments, node)

    def call(self, node: Node) -> ast.expr:
        """The call of the library's function, without arguments that are its defaults."""
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
        return ast.Call(parsed(path), args, named)

    # ----------------------------------------------------------------- values
    def value(self, value: Any) -> ast.expr:
        """An argument of an operation."""
        if isinstance(value, ast.expr):
            return value
        if isinstance(value, Traced):
            return self.expression(value.traced)
        if is_number(value):
            return self.number(value)
        if isinstance(value, Size) or type(value) is list:
            return self.shape(list(value)) or ast.List(list(map(self.value, value)))
        if type(value) is tuple:
            return ast.Tuple(list(map(self.value, value)))
        if isinstance(value, slice):
            ends = value.start or None, value.stop, value.step
            return ast.Slice(*(None if end is None else self.value(end) for end in ends))
        if isinstance(value, (DType, np.dtype)):
            return self.dtype(value)
        if isinstance(value, np.ndarray):
            raise NotDerived("forward uses an array that has no name")
        return ast.Constant(value)

    def dtype(self, dtype: Any) -> ast.expr:
        """A dtype: that of a cotangent, or its name."""
        wanted = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype)
        flowing = ((node, name) for node, name in self.readable() if node.flows)
        name = next((name for node, name in flowing if node.array.dtype == wanted), "")
        return parsed(f"{name}.dtype") if name else ast.Constant(str(wanted))

    def number(self, value: Any) -> ast.expr:
        """A number: by its source, if it has one."""
        source = source_of(value)
        if source is None:
            return plain(value)
        if isinstance(source, SizeOf):
            return self.size(value, source)
        if isinstance(source, Argument):
            return self.on_context(value, source.name)
        variables = {} if self.trace.takes_arrays else self.trace.locals
        for name, variable in variables.items():
            if isinstance(variable, float) and keys_in(variable) == keys_in(value):
                return self.on_context(value, name)
        return self.arithmetic(value, source)

    def on_context(self, value: Any, name: str) -> ast.expr:
        """The attribute of ctx that holds a number; forward has to set it if it does not."""
        if self.trace.takes_arrays:  # its backward takes what forward takes
            return ast.Name(name)
        known = self.names.attribute(value)
        if not known and self.names.is_fixed:
            raise NotDerived(f"{name} is not saved")
        if not known:
            self.attributes.setdefault(name, name)
        return parsed(f"ctx.{known or name}")

    def arithmetic(self, value: Any, source: Arithmetic) -> ast.expr:
        """A number that was computed."""
        factors = Counter(map(key_of, factors_of(value)))
        for node, name in self.readable():
            if len(node.shape) > 1 and Counter(map(key_of, sizes_of(node))) == factors:
                return parsed(f"{name}.size")
        left, *right = map(self.number, source.operands)
        if not right:
            return ast.UnaryOp(ast.USub(), left)
        if source.operator == "*" and type(source.operands[0]) is int and source.operands[0] == 1:
            return right[0]
        return associated(ast.BinOp(left, OPERATORS[source.operator](), right[0]))

    # ----------------------------------------------------------------- shapes
    def size(self, value: Any, source: SizeOf) -> ast.expr:
        """A size: of a value at hand, or of a shape on ctx."""
        for node, name in self.readable():
            for axis, size in enumerate(sizes_of(node)):
                if key_of(size) == key_of(value):
                    return parsed(f"{name}.shape[{axis}]")
        known = self.names.attribute(value)
        if known:
            return parsed(f"ctx.{known}")
        return ast.Subscript(self.shape_of(source.node), ast.Constant(source.axis))

    def shape(self, sizes: list[Any]) -> ast.expr | None:
        """A list of sizes as the shape of a value; None if it is of none."""
        if not any(source_of(size) is not None for size in sizes):
            return None
        whole = self.whole(sizes)
        if whole is not None:
            return ast.Attribute(whole, "shape")
        known = self.names.attribute(sizes)
        if known:
            return parsed(f"ctx.{known}")
        source = source_of(sizes[0])
        if isinstance(source, SizeOf) and list(map(key_of, sizes_of(source.node))) == list(
            map(key_of, sizes)
        ):
            return self.shape_of(source.node)
        return None

    def whole(self, sizes: Iterable[Any]) -> ast.expr | None:
        """A value at hand of some shape."""
        wanted = list(map(key_of, sizes))
        for node, name in self.readable():
            if list(map(key_of, sizes_of(node))) == wanted:
                return parsed(name)
        return None

    def shape_of(self, node: Node) -> ast.expr:
        """The shape of a value that is not at hand: on ctx, if forward names the value."""
        name = self.names.of.get(node, "")
        if self.names.is_fixed or not name or name.startswith("ctx."):
            return ast.Attribute(self.expression(node), "shape")
        self.attributes[f"{name}_shape"] = f"{name}.shape"
        return parsed(f"ctx.{name}_shape")


def parsed(text: str) -> ast.expr:
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
    """Whether a keyword of this value says nothing."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def spread(argument: ast.expr) -> list[ast.expr]:
    """The arguments that an argument is: of a starred list, its items."""
    is_list = isinstance(argument, ast.Starred) and isinstance(argument.value, ast.List)
    return argument.value.elts if is_list else [argument]  # type: ignore[attr-defined]


def associated(new: ast.BinOp) -> ast.BinOp:
    """A sum or product without parentheses around one on its right, or a quotient there."""
    right = new.right
    if not isinstance(right, ast.BinOp) or not isinstance(new.op, ASSOCIATIVE):
        return new
    is_quotient = isinstance(new.op, ast.Mult) and isinstance(right.op, ast.Div)
    if type(right.op) is not type(new.op) and not is_quotient:
        return new
    return ast.BinOp(associated(ast.BinOp(new.left, new.op, right.left)), right.op, right.right)
