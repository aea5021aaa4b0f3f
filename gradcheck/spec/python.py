"""Python code in specs: parsed and inspected, never run; calls written as code."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from gradcheck.support.syntax_tree import last_name

# Fields of Python's syntax trees that hold a name.
_NAMING = ("id", "attr", "name", "asname", "arg")
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
        self.top_scope = symtable.symtable(source, "<spec>", mode)

    @property
    def module(self) -> ast.Module:
        """The syntax tree of statements."""
        assert isinstance(self.tree, ast.Module)
        return self.tree

    @cached_property
    def words(self) -> set[str]:
        """All names in the code."""
        return words(self.tree)

    @cached_property
    def global_names(self) -> tuple[dict[str, int], set[str]]:
        """The global names that the code reads, each with the first line of a scope that reads it,
        and the global names that it binds.
        """
        read, bound, scopes = dict[str, int](), set[str](), [self.top_scope]
        for scope in scopes:  # the list grows in the loop
            scopes += scope.get_children()
            for symbol in scope.get_symbols():
                if not symbol.is_global() and scope is not self.top_scope:
                    continue
                if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                    bound.add(symbol.get_name())
                if symbol.is_referenced():
                    read.setdefault(symbol.get_name(), scope.get_lineno())
        return read, bound

    def place_of(self, name: str, first_line: int) -> tuple[int, int, int] | None:
        """Return the line, column (both from 1) and width of the first use of a name at or after a
        line; None if it is used only in annotations, which need not be evaluated.
        """
        places, nodes = [], [self.tree]
        for node in nodes:  # the list grows in the loop
            for field, part in ast.iter_fields(node):
                if field not in ("annotation", "returns"):
                    nodes += [
                        p
                        for p in (part if isinstance(part, list) else [part])
                        if isinstance(p, ast.AST)
                    ]
            if isinstance(node, ast.Name) and node.id == name and node.lineno >= first_line:
                places.append((node.lineno, node.col_offset))
        if not places:
            return None
        line, offset = min(places)
        before = self.source.split("\n")[line - 1].encode()[:offset]
        return line, len(before.decode()) + 1, len(name)


def words(tree: ast.AST) -> set[str]:
    """All names in code, whether it reads, sets or only mentions them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        fields = vars(node)
        names.update(value for field in _NAMING if isinstance(value := fields.get(field), str))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            names.update(node.names)
    return names


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """The names that a module or class with this body binds, without those within functions and
    classes; ``*`` among them if there may be others.
    """
    names, nodes = set[str](), [*body]
    for node in nodes:  # the list grows in the loop
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


def first_arguments(tree: ast.AST, function: str) -> set[str]:
    """The first arguments of the calls of a function, as text."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return {ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == function}


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
