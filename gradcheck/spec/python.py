"""Python code in specs: parsed and inspected, never run; calls written as code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from gradcheck.support.syntax_tree import last_name

# Fields of Python's syntax trees that hold a name.
_NAMING = ("id", "attr", "name", "asname", "arg")
_BINDING: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name"),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name"),
    ast.MatchMapping: "rest",
    ast.arg: "arg",
}
"""Nodes that bind a name, other than assignments and imports → the field with the name."""

CompileMode = Literal["exec", "eval"]


class PythonCode:
    """The syntax tree of Python code; `mode` is that of `compile`.

    Nothing is compiled: Python repeats the body of a ``finally`` for every return in its ``try``,
    so that 20 nested lines would fill the memory.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python, or nested too deeply
            for it.
    """

    def __init__(self, source: str, mode: CompileMode) -> None:
        self.tree: ast.AST = ast.parse(source, "<spec>", mode)
        self.source = source

    @property
    def module(self) -> ast.Module:
        """The syntax tree of statements."""
        assert isinstance(self.tree, ast.Module)
        return self.tree

    @cached_property
    def words(self) -> set[str]:
        """All names in the code."""
        return words(self.tree)

    def place_of(self, name: ast.Name) -> tuple[int, int, int]:
        """Return the line and column, from 1, and the width of a name in the code."""
        line = self.source.split("\n")[name.lineno - 1].encode()
        return name.lineno, len(line[: name.col_offset].decode()) + 1, len(name.id)

    @cached_property
    def read_and_bound(self) -> tuple[dict[str, ast.Name], set[str]]:
        """See the function of this name."""
        return read_and_bound(self.tree)


def words(tree: ast.AST) -> set[str]:
    """All names in code, whether it reads, sets or only mentions them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        fields = vars(node)
        names.update(value for field in _NAMING if isinstance(value := fields.get(field), str))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            names.update(node.names)
    return names


def read_and_bound(tree: ast.AST) -> tuple[dict[str, ast.Name], set[str]]:
    """The names that code reads, each with the first place where it does; and the names that it
    binds in any scope, ``*`` among them if there may be others.

    The annotations of variables are left out: within functions they are not evaluated.
    """
    read, bound, nodes = dict[str, ast.Name](), set[str](), [tree]
    for node in nodes:  # which grows
        if isinstance(node, ast.AnnAssign):
            nodes += [part for part in (node.target, node.value) if part]
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
            elif _position(node) < _position(read.get(node.id, node)) or node.id not in read:
                read[node.id] = node
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif (field := _BINDING.get(type(node))) and (name := getattr(node, field)):
            bound.add(name)
    return read, bound


def _position(node: ast.Name) -> tuple[int, int]:
    return node.lineno, node.col_offset


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """The names that a module or class with this body binds, without those within functions and
    classes; ``*`` among them if there may be others.
    """
    names, nodes = set[str](), [*body]
    for node in nodes:  # which grows
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        nodes += ast.iter_child_nodes(node)
    return names


LAYER_BASES = ("PyLayer", "Function")
"""The classes of Paddle and torch from which layers derive."""


def layer_classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    """The layers that a layer's source defines, by name: classes that derive from PyLayer or
    Function, or from another of them.
    """
    layers: dict[str, ast.ClassDef] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(
            last_name(base) in (*LAYER_BASES, *layers) for base in node.bases
        ):
            layers[node.name] = node
    return layers


def functions_in(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    """The functions that a module or class with this body defines, by name."""
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def static_forward(tree: ast.Module) -> ast.FunctionDef | None:
    """The ``forward_fn`` that a layer's source defines, if it does."""
    return functions_in(tree.body).get("forward_fn")


def called_with_arguments(tree: ast.AST) -> set[str]:
    """The names that code calls with arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {last_name(call.func) for call in calls if call.args or call.keywords}


def written_arguments(arguments: Iterable[str], keywords: Mapping[str, Any]) -> str:
    """The arguments of a call, as code: some expressions, then keywords with their values."""
    return ", ".join([*arguments, *(f"{key}={literal(keywords[key])}" for key in keywords)])


def literal(value: Any) -> str:
    """A YAML value as Python code, including numbers that are not finite."""
    if isinstance(value, float) and not isfinite(value):
        return f"float('{value}')"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)
