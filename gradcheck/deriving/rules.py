"""Rules as text, ``pattern -> result  if condition``: used to simplify a trace, and to write it as
code.

A pattern is an expression of operations: ``x - y`` is ``subtract(x, y)``, ``-x`` is ``neg(x)``.
The names k and n match numbers; x, y and z match Tensors; other names match anything; ``*rest``
matches the remaining arguments. Factors and terms match in either order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, NoneType
from typing import Any

from gradcheck.deriving.graph import Node, Traced
from gradcheck.deriving.numbers import is_number, source_of

OPERATOR_NAMES = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.MatMult: "matmul",
}
COMMUTATIVE = ("add", "multiply")
NUMBERS, TENSORS = ("k", "n"), ("x", "y", "z")

MayOpen = Callable[[Node], bool]
"""A function: whether a rule may look at the operation that made a value; otherwise the value is a
leaf.
"""
Bound = dict[str, Any]


@dataclass(frozen=True)
class Pattern:
    """An operation and its arguments, which are patterns, names, or constants."""

    operation: str
    arguments: tuple[Pattern | ast.expr, ...]

    @classmethod
    def of(cls, node: ast.expr) -> Pattern | ast.expr:
        """The pattern of an expression."""
        if isinstance(node, ast.BinOp):
            return cls(OPERATOR_NAMES[type(node.op)], (cls.of(node.left), cls.of(node.right)))
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            return cls(node.func.id, tuple(map(cls.of, node.args)))
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.operand, ast.Constant):
                return ast.Constant(-node.operand.value)  # type: ignore[operator]
            return cls("neg", (cls.of(node.operand),))
        return node

    def matches(self, name: str, values: Sequence[Any], may_open: MayOpen) -> Iterator[Bound]:
        """Yield the bindings of names with which an operation matches this pattern."""
        orders = [self.arguments]
        if self.operation in COMMUTATIVE:
            orders.append(self.arguments[::-1])
        if name == self.operation:
            for order in orders:
                yield from matches_all(order, values, {}, may_open)


def matches_all(
    patterns: Sequence[Any], values: Sequence[Any], bound: Bound, may_open: MayOpen
) -> Iterator[Bound]:
    """Yield the bindings of names with which values match the same number of patterns."""
    if patterns and isinstance(patterns[0], ast.Starred):
        yield {**bound, ast.unparse(patterns[0].value): tuple(values)}
    elif patterns and values:
        for more in matches_one(patterns[0], values[0], bound, may_open):
            yield from matches_all(patterns[1:], values[1:], more, may_open)
    elif not patterns and not values:
        yield bound


def matches_one(pattern: Any, value: Any, bound: Bound, may_open: MayOpen) -> Iterator[Bound]:
    """Yield the bindings of names with which a value matches a pattern."""
    if isinstance(pattern, ast.Name):
        if is_of_kind(pattern.id, value) and is_same(bound.get(pattern.id, value), value):
            yield {**bound, pattern.id: value}
    elif isinstance(pattern, ast.Constant):
        is_plain = isinstance(value, (int, float, NoneType)) and source_of(value) is None
        if is_plain and value == pattern.value:
            yield bound
    elif isinstance(value, Traced) and may_open(value.traced):
        node = value.traced
        for inner in pattern.matches(node.operation, node.arguments, may_open):
            if all(is_same(bound.get(name, item), item) for name, item in inner.items()):
                yield bound | inner


def is_of_kind(name: str, value: Any) -> bool:
    """Whether a name may stand for this kind of value."""
    if name in NUMBERS:
        return is_number(value)
    return name not in TENSORS or isinstance(value, Traced)


def is_same(value: Any, other: Any) -> bool:
    """Whether two values are the same value of the trace, or the same object."""
    if isinstance(value, Traced) and isinstance(other, Traced):
        return value.traced is other.traced
    return value is other


@dataclass(frozen=True)
class TextRule:
    """One rule: a line of a table."""

    pattern: Pattern
    result: ast.Module
    code: CodeType | None
    """The result as code; None if it is statements."""
    condition: CodeType

    @classmethod
    def of(cls, line: str) -> TextRule:
        """The rule of a line."""
        left, _, rest = line.partition(" -> ")
        right, _, condition = rest.partition("  if ")
        pattern = Pattern.of(ast.parse(left.strip(), mode="eval").body)
        assert isinstance(pattern, Pattern)
        text = right.strip()
        code = None if ";" in text else compile(text, line, "eval")
        test = compile(condition.strip() or "True", line, "eval")
        return cls(pattern, ast.parse(text), code, test)

    def bindings(
        self, name: str, values: Sequence[Any], scope: Mapping[str, Any], may_open: MayOpen
    ) -> Iterator[Bound]:
        """The bindings of names if the rule applies to an operation."""
        for bound in self.pattern.matches(name, values, may_open):
            if eval(self.condition, {**scope, **bound}):
                yield bound


def rules_of(*lines: str) -> dict[str, list[TextRule]]:
    """A table of rules, by the operation to which they apply."""
    table: dict[str, list[TextRule]] = {}
    for rule in map(TextRule.of, lines_with_rules(lines)):
        table.setdefault(rule.pattern.operation, []).append(rule)
    return table


def lines_with_rules(lines: Iterable[str]) -> Iterator[str]:
    """The lines of the texts, without comments and empty lines."""
    for text in lines:
        yield from (line for line in text.splitlines() if line.partition("#")[0].strip())
