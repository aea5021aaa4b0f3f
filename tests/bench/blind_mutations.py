"""Mutations of the engine that nobody aimed: every place in its trees where one of a few changes can be made.

A change is to one expression or statement: another operator, another comparison, a condition negated, ``and`` for
``or``, another number or truth value, ``return None``, or a call left out. Annotations and the texts of messages stay.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

FILES = (
    "fast/walk.py", "layer/py_layer.py", "layer/recompute.py", "static/backward.py", "static/pylayer_op.py",
    "static/structure.py", "static/values.py", "tape/autograd.py", "tape/grad_mode.py", "tape/graph.py",
    "tape/hooks.py", "tape/node.py", "tape/symbol.py", "tape/versions.py",
)  # fmt: skip
"""What a PyLayer, a static_pylayer and the taking of gradients consist of."""

EQUIVALENTS = Path(__file__).with_name("blind_equivalents.yaml")
"""By id, or by its beginning (but the number of a change), mutations that no scenario could see, with the reason."""

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
"""What stands in place of an operator."""


class Blind(NamedTuple):
    """One change at one place of one file: the text from `start` to `end` becomes `new`."""

    id: str
    file: str
    start: int
    end: int
    new: str
    equivalent: str = ""
    breaks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is one of the definitions, not of a shorter way to what they define."""
        return not self.file.startswith("fast/")

    def applied(self, folder: Path) -> tuple[Path, str]:
        """The file of the engine in `folder` that it changes, and its text then."""
        path = folder / self.file
        source = path.read_bytes()
        return path, (source[: self.start] + self.new.encode() + source[self.end :]).decode()

    def lines(self, folder: Path) -> tuple[str, range]:
        """The file, and the numbers of the lines, that it changes."""
        source = (folder / self.file).read_bytes()
        return self.file, range(source.count(b"\n", 0, self.start) + 1, source.count(b"\n", 0, self.end) + 2)


def blind_mutations(folder: Path) -> list[Blind]:
    """All of them, in the order of the files."""
    reasons = yaml.safe_load(EQUIVALENTS.read_text(encoding="utf-8"))
    found: list[Blind] = []
    counts: Counter[str] = Counter()
    for file in FILES:
        source = (folder / file).read_text(encoding="utf-8")
        starts = [0]
        for line in source.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for node, function, other in changes(ast.parse(source)):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            name = f"{file} {function}: {ast.unparse(node)} -> {ast.unparse(other)}"
            counts[name] += 1
            name += f" #{counts[name]}" if counts[name] > 1 else ""
            new = f"({ast.unparse(other)})" if isinstance(other, ast.expr) else ast.unparse(other)
            named = (key for key in reasons if name.startswith(key) and not name.startswith(f"{key} #"))
            reason = next((reasons[key] for key in named), "")
            found.append(Blind(name, file, start, end, new, reason))
    return found


def drawn(folder: Path, count: int, seed: int) -> list[Blind]:
    """So many of them, drawn without replacement."""
    found = blind_mutations(folder)
    return random.Random(seed).sample(found, min(count, len(found)))


Place = ast.expr | ast.stmt


def changes(tree: ast.Module) -> Iterator[tuple[Place, str, Place]]:
    """Each expression or statement that can be changed, the function that it is in, and what takes its place."""
    for node, function in places(tree, ""):
        for old, new in changed(node):
            yield old, function, new


def places(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    """The nodes of a tree but for annotations, texts and ``strict=True``, each with the function around it."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}" if function else node.name
    yield node, function
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list") or getattr(node, "arg", None) == "strict":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from places(child, function)


def changed(node: ast.AST) -> Iterator[tuple[Place, Place]]:
    """What of a node may be changed, and what takes its place."""
    match node:
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            yield node, ast.BinOp(left, OPERATORS[type(operator)](), right)  # type: ignore[arg-type]
        case ast.BoolOp(operator, values):
            yield node, ast.BoolOp(OPERATORS[type(operator)](), values)  # type: ignore[arg-type]
        case ast.Compare(left, [operator], others):
            yield node, ast.Compare(left, [OPERATORS[type(operator)]()], others)  # type: ignore[list-item]
        case ast.UnaryOp(ast.Not(), operand):
            yield node, operand
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int(value)):
            yield node, ast.Constant(value + 1)
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield node, ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()):
            yield node, ast.Pass()
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield from negated(test)
        case ast.comprehension(_, _, tests):
            for test in tests:
                yield from negated(test)


def negated(test: ast.expr) -> Iterator[tuple[Place, Place]]:
    """A condition and its opposite, unless that is a change of the condition itself."""
    if not isinstance(test, (ast.Compare, ast.UnaryOp)):
        yield test, ast.UnaryOp(ast.Not(), test)
