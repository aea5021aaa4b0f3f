"""One-expression edits of a backward, the plainest first."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradcheck.deriving.source import FunctionNode

MODULES = ("paddle", "F", "np", "numpy", "nn")
"""Names of modules, as people write them: no values."""
OTHER_OPERATORS: dict[type, tuple[str, ...]] = {
    ast.Add: ("-", "*"),
    ast.Sub: ("+", "*"),
    ast.Mult: ("/", "@", "+", "-"),
    ast.Div: ("*",),
    ast.MatMult: ("*",),
}
"""The operators that are tried in place of one."""
SUMS = ("sum(axis=0)", "sum(axis=[0, 1])", "sum(axis=-1)")
KEPT_SUMS = ("sum(axis=0, keepdim=True)", "sum(axis=-1, keepdim=True)")
TURNS = ("t()", "swapaxes(-1, -2)")


@dataclass
class EditPlace:
    """An expression of a backward, and the field of the node that holds it."""

    expression: ast.expr
    holder: ast.AST
    field: str
    position: int | None
    """Its place in the field, if that is a list."""

    def put(self, expression: ast.expr) -> None:
        """Have another expression there."""
        if self.position is None:
            setattr(self.holder, self.field, expression)
        else:
            getattr(self.holder, self.field)[self.position] = expression


@dataclass
class Edit:
    """New text in place of an expression."""

    tier: int
    """How plain it is: 0 is a slip of one token."""
    place: EditPlace
    text: str

    @property
    def size(self) -> int:
        """How much is changed: a sign or an operator is one token."""
        is_operator = self.tier == 0 and isinstance(self.place.expression, ast.BinOp)
        return 1 if is_operator else len(self.text.lstrip("-"))


class EditWords:
    """What edits are made of.

    Args:
        names: the variables and attributes that backward can read.
        make_parts: gives the expressions of a right backward in these names; called once, where
            plainer edits were in vain.
    """

    def __init__(self, names: Sequence[str], make_parts: Callable[[], Sequence[str]]) -> None:
        self.names, self.make_parts = names, make_parts

    @cached_property
    def parts(self) -> Sequence[str]:
        """Expressions of a right backward."""
        return self.make_parts()


Kind = Callable[[Any, str, EditWords], Iterator[str]]
KINDS: list[tuple[int, type, Kind]] = []
"""The kinds of edits: how plain they are, of which expressions, and the new texts."""


def kind(tier: int, of: type = ast.expr) -> Callable[[Kind], Kind]:
    """Add a kind of edits. It takes an expression, its text, and the words."""

    def add(function: Kind) -> Kind:
        KINDS.append((tier, of, function))
        return function

    return add


TIERS = 4


def edits(
    function: FunctionNode, words: EditWords, useless: Sequence[ast.AST] = ()
) -> Iterator[Edit]:
    """All edits of a backward, the plainest first, shorter ones before longer ones.

    Args:
        useless: parts in which nothing is changed.
    """
    places_and_texts = [
        (place, ast.unparse(place.expression)) for place in edit_places(function, useless)
    ]
    for tier in range(TIERS):
        found = [
            Edit(tier, place, new)
            for place, text in places_and_texts
            for new in texts_of(tier, place.expression, text, words)
        ]
        yield from sorted(found, key=lambda edit: edit.size)


def texts_of(tier: int, expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """The texts that are tried in place of an expression in one tier."""
    for its_tier, of, texts in KINDS:
        if its_tier == tier and isinstance(expression, of):
            yield from texts(expression, text, words)


def edit_places(function: FunctionNode, useless: Sequence[ast.AST]) -> Iterator[EditPlace]:
    """The expressions of a backward that may be changed."""
    waiting: list[ast.AST] = [part for part in function.body if part not in useless]
    while waiting:
        holder = waiting.pop(0)
        for name, value in ast.iter_fields(holder):
            items = value if isinstance(value, list) else [value]
            for number, item in enumerate(items):
                if not isinstance(item, ast.AST) or item in useless or reads_saved(item):
                    continue
                waiting.append(item)
                if isinstance(item, ast.expr) and may_change(holder, name, item):
                    position = number if isinstance(value, list) else None
                    yield EditPlace(item, holder, name, position)


def reads_saved(node: ast.AST) -> bool:
    """Whether an expression is the call that reads what was saved."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_call and node.func.attr == "saved_tensor"  # type: ignore[attr-defined]


def may_change(holder: ast.AST, field: str, expression: ast.expr) -> bool:
    """Whether an expression is a value that may be changed: not a target, a function or a module,
    and not a statement of its own."""
    if isinstance(holder, ast.Expr) or field in ("func", "targets", "target"):
        return False
    if isinstance(getattr(expression, "ctx", None), ast.Store):
        return False
    if isinstance(expression, (ast.Tuple, ast.Slice, ast.JoinedStr)):
        return False
    if isinstance(expression, ast.Name):
        return expression.id not in (*MODULES, "ctx")
    is_attribute = isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name)
    return not (is_attribute and expression.value.id in MODULES)  # type: ignore[attr-defined]


# --------------------------------------------------------------------------- a slip of one token
@kind(0, ast.Name)
def another_name(expression: ast.Name, text: str, words: EditWords) -> Iterator[str]:
    """Another variable."""
    yield from (name for name in words.names if name != text)


@kind(0, ast.Attribute)
def another_attribute(expression: ast.Attribute, text: str, words: EditWords) -> Iterator[str]:
    """Another variable in place of an attribute of ctx."""
    if text in words.names:
        yield from (name for name in words.names if name != text)


@kind(0, ast.Constant)
def another_number(expression: ast.Constant, text: str, words: EditWords) -> Iterator[str]:
    """A neighbour, the double, a half, the negative of a number."""
    value: Any = expression.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        others = (-value, value - 1, value + 1, value * 2, value / 2, value * 3)
        yield from map(repr, dict.fromkeys(v for v in others if v not in (value, 1)))
    if isinstance(value, bool):
        yield repr(not value)


@kind(0, ast.UnaryOp)
def without_sign(expression: ast.UnaryOp, text: str, words: EditWords) -> Iterator[str]:
    """Without the sign."""
    yield ast.unparse(expression.operand)


@kind(0, ast.BinOp)
def another_operator(expression: ast.BinOp, text: str, words: EditWords) -> Iterator[str]:
    """Another operator."""
    left, right = (f"({ast.unparse(side)})" for side in (expression.left, expression.right))
    for operator in OTHER_OPERATORS.get(type(expression.op), ()):
        yield f"{left} {operator} {right}"


@kind(0, ast.Call)
def another_reduction(expression: ast.Call, text: str, words: EditWords) -> Iterator[str]:
    """A sum for a mean and the reverse; keepdim put in or left out."""
    if not isinstance(expression.func, ast.Attribute):
        return
    name, arguments = expression.func.attr, [*expression.args, *expression.keywords]
    inside = [ast.unparse(argument) for argument in arguments]
    kept = [argument for argument in inside if not argument.startswith("keepdim")]
    owner = ast.unparse(expression.func.value)
    if len(kept) < len(inside):
        yield f"{owner}.{name}({', '.join(kept)})"
    if name in ("sum", "mean"):
        yield f"{owner}.{'mean' if name == 'sum' else 'sum'}({', '.join(inside)})"
        if len(kept) == len(inside):
            yield f"{owner}.{name}({', '.join([*inside, 'keepdim=True'])})"


# --------------------------------------------------------------------------- something left out
@kind(1, ast.BinOp)
def one_operand(expression: ast.BinOp, text: str, words: EditWords) -> Iterator[str]:
    """One operand alone, or both in the other order."""
    left, right = ast.unparse(expression.left), ast.unparse(expression.right)
    yield left
    yield right
    if isinstance(expression.op, (ast.Sub, ast.MatMult, ast.Div)):
        sign = {ast.Sub: "-", ast.MatMult: "@", ast.Div: "/"}[type(expression.op)]
        yield f"({right}) {sign} ({left})"


@kind(1, ast.Call)
def one_argument(expression: ast.Call, text: str, words: EditWords) -> Iterator[str]:
    """An argument of a call, or what a method is of."""
    yield from (ast.unparse(a) for a in expression.args if not isinstance(a, ast.Constant))
    if isinstance(expression.func, ast.Attribute):
        owner = ast.unparse(expression.func.value)
        if owner not in MODULES:
            yield owner


@kind(1)
def another_multiple(expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """The negative, the double, the half, the square, and the rest to 1."""
    if not isinstance(expression, ast.Constant):
        yield from (f"-({text})", f"2 * ({text})", f"0.5 * ({text})", f"({text}) * ({text})")
        yield f"1 - ({text})"


# --------------------------------------------------------------------------- something put in
@kind(2, ast.Constant)
def number_one(expression: ast.Constant, text: str, words: EditWords) -> Iterator[str]:
    """The number 1, after all that is plainer: a factor or a power of 1 is better left out."""
    if type(expression.value) in (int, float):
        yield "1"


@kind(2)
def another_factor(expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """A variable as a factor or divisor."""
    if not isinstance(expression, ast.Constant):
        yield from (f"({text}) * {name}" for name in words.names)
        yield from (f"({text}) / {name}" for name in words.names)


@kind(2)
def another_shape(expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """A sum over an axis, or a transposition."""
    if not isinstance(expression, ast.Constant):
        yield from (f"({text}).{method}" for method in (*SUMS, *KEPT_SUMS, *TURNS))


@kind(2)
def right_part(expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """A part of a right backward."""
    yield from (part for part in words.parts if part != text)


@kind(3)
def right_factor(expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """A part of a right backward as a factor."""
    if not isinstance(expression, ast.Constant):
        yield from (f"({text}) * ({part})" for part in words.parts)


@kind(3)
def another_term(expression: ast.expr, text: str, words: EditWords) -> Iterator[str]:
    """A variable as a term."""
    if not isinstance(expression, ast.Constant):
        for name in words.names:
            yield from (f"({text}) + {name}", f"({text}) - {name}", f"{name} - ({text})")
