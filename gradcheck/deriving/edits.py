"""One-expression edits of a backward, the plainest first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from string import Formatter
from typing import Any

from gradcheck.deriving.source import FunctionNode

MODULES = ("paddle", "F", "np", "numpy", "nn", "ctx")
"""Names of modules, as people write them: no values."""
SLIP, LEFT_OUT, PUT_IN, LAST = range(4)
EDITS: list[tuple[int, type, str]] = [
    *((SLIP, kind, "{name}") for kind in (ast.Name, ast.Attribute)),
    (SLIP, ast.Constant, "{number}"),
    (SLIP, ast.UnaryOp, "{operand}"),
    *((SLIP, ast.Add, f"{{left}} {sign} {{right}}") for sign in "-*"),
    *((SLIP, ast.Sub, f"{{left}} {sign} {{right}}") for sign in "+*"),
    *((SLIP, ast.Mult, f"{{left}} {sign} {{right}}") for sign in "/@+-"),
    *((SLIP, kind, "{left} * {right}") for kind in (ast.Div, ast.MatMult)),
    (SLIP, ast.Call, "{owner}.{method}({inside})"),
    *((LEFT_OUT, ast.BinOp, side) for side in ("{left}", "{right}")),
    (LEFT_OUT, ast.Sub, "{right} - {left}"),
    (LEFT_OUT, ast.MatMult, "{right} @ {left}"),
    (LEFT_OUT, ast.Div, "{right} / {left}"),
    *((LEFT_OUT, ast.Call, part) for part in ("{argument}", "{owner}")),
    *((LEFT_OUT, ast.expr, text) for text in ("-{e}", "2 * {e}", "0.5 * {e}", "{e} * {e}")),
    (LEFT_OUT, ast.expr, "1 - {e}"),
    (PUT_IN, ast.Constant, "{one}"),
    *((PUT_IN, ast.expr, text) for text in ("{e} * {name}", "{e} / {name}")),
    *((PUT_IN, ast.expr, f"{{e}}.sum(axis={axis})") for axis in ("0", "[0, 1]", "-1")),
    *((PUT_IN, ast.expr, f"{{e}}.sum(axis={axis}, keepdim=True)") for axis in ("0", "-1")),
    *((PUT_IN, ast.expr, text) for text in ("{e}.t()", "{e}.swapaxes(-1, -2)", "{part}")),
    (LAST, ast.expr, "{e} * ({part})"),
    *((LAST, ast.expr, text) for text in ("{e} + {name}", "{e} - {name}", "{name} - {e}")),
]
"""How plain an edit is, of which expressions or operators, and the new text. Of a name in braces
that stands for several texts, each is tried; `e` is the expression, in parentheses."""
NEEDS_PARTS = "{part}"


@dataclass
class Edit:
    """New text in place of an expression."""

    tier: int
    expression: ast.expr
    text: str

    @property
    def size(self) -> int:
        """How much is changed: a sign or an operator is one token."""
        is_operator = self.tier == SLIP and isinstance(self.expression, ast.BinOp)
        return 1 if is_operator else len(self.text.lstrip("-"))


def edits(places: Sequence[ast.expr], names: Sequence[str], make_parts: Any) -> Iterator[Edit]:
    """All edits of some expressions, the plainest first, shorter ones before longer ones.

    Args:
        names: the variables and attributes that can be read.
        make_parts: gives expressions of a right backward; called where plainer edits were in vain.
    """
    words: dict[str, Sequence[str]] = {"name": names}
    for tier in range(LAST + 1):
        if tier == PUT_IN:
            words["part"] = make_parts()
        found = [
            Edit(tier, place, text)
            for place in places
            for text in dict.fromkeys(texts_of(tier, place, words))
        ]
        yield from sorted(found, key=lambda edit: edit.size)


def texts_of(tier: int, place: ast.expr, words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The texts that are tried in place of an expression in one tier."""
    own = ast.unparse(place)
    holes = {**words, **holes_of(place, words["name"])}
    for its_tier, kind, template in EDITS:
        if (its_tier == tier and isinstance(place, (kind,))) or (
            its_tier == tier and isinstance(getattr(place, "op", None), kind)
        ):
            fields = dict.fromkeys(name for _, name, *_ in Formatter().parse(template) if name)
            for values in product(*(holes.get(name, ()) for name in fields)):
                text = template.format(**dict(zip(fields, values, strict=True)))
                if text != own:
                    yield text


def holes_of(place: Any, names: Sequence[str]) -> dict[str, Sequence[str]]:
    """The texts for the names in templates that an expression has."""
    text = ast.unparse(place)
    holes: dict[str, Sequence[str]] = {"e": [f"({text})"]}
    if isinstance(place, ast.Constant):
        value, is_number = place.value, type(place.value) in (int, float)
        near = (-value, value - 1, value + 1, value * 2, value / 2, value * 3) if is_number else ()
        numbers = [other for other in dict.fromkeys(near) if other not in (value, 1)]
        holes = {"number": list(map(repr, numbers)), "one": ["1"] if is_number else []}
        if isinstance(value, bool):
            holes["number"] = [repr(not value)]
    elif isinstance(place, ast.Attribute) and text not in names:
        holes["name"] = []
    elif isinstance(place, ast.UnaryOp):
        holes["operand"] = [ast.unparse(place.operand)]
    elif isinstance(place, ast.BinOp):
        holes["left"] = [f"({ast.unparse(place.left)})"]
        holes["right"] = [f"({ast.unparse(place.right)})"]
    elif isinstance(place, ast.Call):
        holes["argument"] = [ast.unparse(a) for a in place.args if not isinstance(a, ast.Constant)]
        holes |= holes_of_method(place)
    return holes


def holes_of_method(call: ast.Call) -> dict[str, Sequence[str]]:
    """The same of the call of a method: a sum for a mean and the reverse; with and without
    keepdim."""
    if not isinstance(call.func, ast.Attribute):
        return {}
    owner, name = ast.unparse(call.func.value), call.func.attr
    inside = [ast.unparse(argument) for argument in (*call.args, *call.keywords)]
    without = [argument for argument in inside if not argument.startswith("keepdim")]
    methods = {"sum": ["sum", "mean"], "mean": ["mean", "sum"]}.get(name, [name])
    arguments = [inside, without, *([[*without, "keepdim=True"]] if len(methods) > 1 else [])]
    return {
        "owner": [] if owner in MODULES and name not in ("sum", "mean") else [owner],
        "method": methods,
        "inside": list(dict.fromkeys(", ".join(a) for a in arguments)),
    }


def places_in(function: FunctionNode, useless: Sequence[ast.AST]) -> list[ast.expr]:
    """The expressions of a backward that may be changed: values, not targets, functions, modules,
    or what reads saved Tensors."""
    places: list[ast.expr] = []
    waiting: list[ast.AST] = [part for part in function.body if part not in useless]
    while waiting:
        holder = waiting.pop(0)
        for name, value in ast.iter_fields(holder):
            for item in value if isinstance(value, list) else [value]:
                if not isinstance(item, ast.AST) or item in useless or reads_saved(item):
                    continue
                waiting.append(item)
                is_value = name not in ("func", "targets", "target") and may_change(item)
                if is_value and not isinstance(holder, ast.Expr):
                    places.append(item)  # type: ignore[arg-type]
    return places


def reads_saved(node: ast.AST) -> bool:
    """Whether an expression is the call that reads what was saved."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".saved_tensor")


def may_change(node: ast.AST) -> bool:
    """Whether a node is an expression with a value: not a target, a module or one of its names."""
    if isinstance(node, (ast.Tuple, ast.Slice, ast.JoinedStr)) or not isinstance(node, ast.expr):
        return False
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    first = node.value if isinstance(node, ast.Attribute) else node
    is_context = isinstance(node, ast.Attribute) and getattr(first, "id", "") == "ctx"
    return is_context or getattr(first, "id", "") not in MODULES
