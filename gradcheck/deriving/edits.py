"""One-expression edits of a backward, the plainest first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from string import Formatter
from typing import Any

from gradcheck.deriving.source import FunctionNode
from gradcheck.support.syntax_tree import reads_saved_tensors

MODULES = ("paddle", "torch", "F", "np", "numpy", "nn", "ctx")
"""Usual names of modules, which are not values."""
SLIP, OMISSION, PUT_IN, LAST = range(4)
EDITS: list[tuple[int, tuple[type, ...], str]] = [
    (SLIP, (ast.Name, ast.Attribute), "{name}"),
    (SLIP, (ast.Constant, ast.UnaryOp), "{number}"),
    (SLIP, (ast.UnaryOp,), "{operand}"),
    (SLIP, (ast.Add,), "{left} - {right} | {left} * {right}"),
    (SLIP, (ast.Sub,), "{left} + {right} | {left} * {right}"),
    (
        SLIP,
        (ast.Mult,),
        "{left} / {right} | {left} @ {right} | {left} + {right} | {left} - {right}",
    ),
    (SLIP, (ast.Div, ast.MatMult), "{left} * {right}"),
    (SLIP, (ast.Call,), "{owner}.{method}({inside})"),
    (OMISSION, (ast.BinOp,), "{left} | {right}"),
    (OMISSION, (ast.Sub,), "{right} - {left}"),
    (OMISSION, (ast.MatMult,), "{right} @ {left}"),
    (OMISSION, (ast.Div,), "{right} / {left}"),
    (OMISSION, (ast.Call,), "{argument} | {owner}"),
    (OMISSION, (ast.expr,), "-{e} | 2 * {e} | 0.5 * {e} | {e} * {e} | 1 - {e}"),
    (PUT_IN, (ast.Constant,), "{one}"),
    (PUT_IN, (ast.expr,), "{e} * {name} | {e} / {name}"),
    (PUT_IN, (ast.expr,), "{e}.sum(axis=0) | {e}.sum(axis=[0, 1]) | {e}.sum(axis=-1)"),
    (PUT_IN, (ast.expr,), "{e}.sum(axis=0, keepdim=True) | {e}.sum(axis=-1, keepdim=True)"),
    (PUT_IN, (ast.expr,), "{e}.t() | {e}.swapaxes(-1, -2) | {part}"),
    (LAST, (ast.expr,), "{e} * ({part}) | {e} + {name} | {e} - {name} | {name} - {e}"),
]
"""Rows of: the cost of an edit (plain ones first), the expressions or operators that it replaces,
and the new texts. If a name in braces has several texts, each of them is tried; `e` is the
expression, in parentheses.
"""
TEMPLATES = [
    (
        tier,
        kinds,
        text,
        list(dict.fromkeys(name for _, name, *_ in Formatter().parse(text) if name)),
    )
    for tier, kinds, texts in EDITS
    for text in texts.split(" | ")
]
"""The rows of `EDITS`, split to one text each, with the names in that text."""


class Texts(dict[ast.expr, str]):
    """The texts of expressions, cached."""

    def __missing__(self, expression: ast.expr) -> str:
        self[expression] = ast.unparse(expression)
        return self[expression]


@dataclass
class Edit:
    """New text in place of an expression."""

    expression: ast.expr
    text: str


def edits(
    places: Sequence[ast.expr], texts: Texts, names: Sequence[str], make_parts: Any
) -> Iterator[Edit]:
    """All edits of some expressions, the plainest first; among these, small changes first.

    Args:
        texts: of the expressions.
        names: the variables and attributes that can be read.
        make_parts: returns expressions of a right backward; called if no plainer edit works.
    """
    holes = {
        place: {
            "name": [name for name in names if name != texts[place]],  # nobody writes g - g
            **holes_of(place, texts, names),
        }
        for place in places
    }
    parts: Sequence[str] = ()
    for tier in range(LAST + 1):
        if tier == PUT_IN:
            parts = make_parts()
        candidates = [
            Edit(place, text)
            for place in places
            for text in dict.fromkeys(texts_of(tier, place, {**holes[place], "part": parts}))
            if text != texts[place]
        ]
        yield from sorted(
            candidates, key=lambda edit: change_of(tier, edit, texts[edit.expression])
        )


def change_of(tier: int, edit: Edit, old: str) -> tuple[int, int]:
    """How much an edit changes: a sign, an operator, then the length of the inserted or removed
    text; and the total length.
    """
    length = len(edit.text.lstrip("-"))
    if tier == SLIP and isinstance(edit.expression, (ast.BinOp, ast.UnaryOp)):
        return int(isinstance(edit.expression, ast.BinOp)), length
    return abs(len(old) - len(edit.text)) if tier == OMISSION else length, length


def texts_of(tier: int, place: ast.expr, holes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The texts that are tried in place of an expression in one tier."""
    kinds = {type(place), type(getattr(place, "op", None)), ast.expr, type(place).__base__}
    for its_tier, node_types, template, fields in TEMPLATES:
        if its_tier == tier and not kinds.isdisjoint(node_types):
            for values in product(*(holes.get(name, ()) for name in fields)):
                yield template.format(**dict(zip(fields, values, strict=True)))


def holes_of(place: Any, texts: Texts, names: Sequence[str]) -> dict[str, Sequence[str]]:
    """The texts for the names in templates, for one expression."""
    holes: dict[str, Sequence[str]] = {"e": [f"({texts[place]})"]}
    match place:
        case ast.Constant(value=bool(value)):
            return {"number": [repr(not value)]}
        case ast.Constant(value=int(value) | float(value)):
            return {"number": [repr(n) for n in near(value) if n != 1], "one": ["1"]}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value) | float(value))):
            return {**holes, "number": list(map(repr, near(-value)))}
        case ast.Constant():
            return {}
        case ast.UnaryOp():
            return {**holes, "operand": [texts[place.operand]]}
        case ast.BinOp():
            left, right = (f"({texts[side]})" for side in (place.left, place.right))
            return {**holes, "left": [left], "right": [right]}
        case ast.Call():
            arguments = [texts[a] for a in place.args if not isinstance(a, ast.Constant)]
            return {**holes, "argument": arguments, **holes_of_method(place, texts)}
        case ast.Attribute() if texts[place] not in names:
            return {**holes, "name": []}
    return holes


def near(value: float) -> list[float]:
    """Numbers that may be meant instead of a written one. An axis -2 is more likely a mistake for
    -1 than for 2, so that the other sign comes after the neighbours.
    """
    return list(dict.fromkeys([value - 1, value + 1, -value, value * 2, value / 2, value * 3]))


def holes_of_method(call: ast.Call, texts: Texts) -> dict[str, Sequence[str]]:
    """Edits of a method call: sum for mean and the reverse; with and without keepdim."""
    if not isinstance(call.func, ast.Attribute):
        return {}
    owner, name = texts[call.func.value], call.func.attr
    inside = [ast.unparse(argument) for argument in (*call.args, *call.keywords)]
    without = [argument for argument in inside if not argument.startswith("keepdim")]
    methods = {"sum": ["sum", "mean"], "mean": ["mean", "sum"]}.get(name, [name])
    with_keepdim = [
        [*without, f"{word}=True"] for word in ("keepdim", "keepdims") if len(methods) > 1
    ]
    arguments = [inside, without, *with_keepdim]
    return {
        "owner": [] if owner in MODULES and name not in ("sum", "mean") else [f"({owner})"],
        "method": methods,
        "inside": list(dict.fromkeys(", ".join(a) for a in arguments)),
    }


def places_in(function: FunctionNode) -> list[ast.expr]:
    """The expressions of a backward that may be changed: values, not targets, functions, modules,
    or expressions that read saved Tensors.
    """
    places: list[ast.expr] = []
    waiting = [(statement, "body") for statement in function.body]
    while waiting:
        node, field = waiting.pop(0)
        if reads_saved_tensors(node):
            continue
        if isinstance(node, ast.expr) and field not in NOT_VALUES and may_change(node):
            places.append(node)
            if is_signed_number(node):
                continue
        is_target = field in TARGETS
        for name, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            item_field = field if is_target and name != "slice" else name
            waiting += [(item, item_field) for item in items if isinstance(item, ast.AST)]  # type: ignore[misc]
    return places


def is_signed_number(node: ast.AST) -> bool:
    """Whether an expression is a number with a sign, which is edited as a whole."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


TARGETS = ("targets", "target")
"""Fields of assignment targets: only an index in them is a value."""
NOT_VALUES = ("func", *TARGETS)
"""Fields of nodes whose expressions are not values."""


def may_change(node: ast.expr) -> bool:
    """Whether an expression has a value: it is not a target, a module or one of its names."""
    is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
    if is_stored or isinstance(node, (ast.Tuple, ast.Slice, ast.JoinedStr)):
        return False
    first = getattr(node, "value", None) if isinstance(node, ast.Attribute) else node
    name = getattr(first, "id", "")
    return name not in MODULES or (name == "ctx" and isinstance(node, ast.Attribute))
