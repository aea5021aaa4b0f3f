"""Python code in specs: compiled within limits and inspected, never run; calls written as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from gradcheck.support.syntax_tree import last_name

MAX_NESTING = 200
"""The most levels of a syntax tree. Python's own limit depends on the available stack, and is about
900.
"""
MAX_COMPILED = 100_000
"""The most nodes of code, each of which is a few instructions: a case has the compiled code in
memory, about 50 MB at most.
"""

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Fields of Python's syntax trees that hold a name.
_NAMING = ("id", "attr", "name", "asname", "arg")

CompileMode = Literal["exec", "eval"]


class TooLargeError(Exception):
    """The code would be too large once compiled."""


class PythonCode:
    """Python code that passed `check`; `mode` is that of `compile`."""

    def __init__(self, source: str, mode: CompileMode) -> None:
        self.source, self.mode = source, mode

    @cached_property
    def tree(self) -> ast.AST:
        """Its syntax tree. The syntax tree; made on demand, because most code is only compiled."""
        return ast.parse(self.source, "<spec>", self.mode)

    @property
    def module(self) -> ast.Module:
        """The syntax tree of statements."""
        assert isinstance(self.tree, ast.Module)
        return self.tree

    @cached_property
    def words(self) -> set[str]:
        """All names in the code."""
        return words(self.tree)

    def check(self) -> None:
        """Compile the code with Python, unless that could take forever.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, TooLargeError: the
                code cannot, or must not, be compiled.
        """
        # Each level of the tree has a token.
        if len(_TOKEN.findall(self.source)) > MAX_NESTING and _depth(self.tree) > MAX_NESTING:
            raise RecursionError
        if "finally" in self.source:
            _compiled_size(self.tree)
        compile(self.source, "<spec>", self.mode, dont_inherit=True)


def _depth(node: ast.AST) -> int:
    """The number of levels of a syntax tree. Raises RecursionError if there are very many."""
    return 1 + max(map(_depth, ast.iter_child_nodes(node)), default=0)


def _compiled_size(node: ast.AST) -> tuple[int, int]:
    """The number of nodes that are compiled for `node`, and the number of nodes among them that
    leave a block.

    Python compiles the body of a ``finally`` for the usual end of its ``try``, for an exception,
    and once more for each ``return``, ``break`` and ``continue`` in it: nested, 20 lines of code
    fill the memory.

    Raises:
        TooLargeError: there are more than `MAX_COMPILED`.
    """
    final = getattr(node, "finalbody", [])
    size, leaving = _total_size(child for child in ast.iter_child_nodes(node) if child not in final)
    final_size, final_leaving = _total_size(final)
    times = 2 + leaving
    size += 1 + times * final_size
    leaving += isinstance(node, (ast.Return, ast.Break, ast.Continue)) + times * final_leaving
    if size > MAX_COMPILED:
        raise TooLargeError
    return size, leaving


def _total_size(nodes: Iterable[ast.AST]) -> tuple[int, int]:
    """Sum `_compiled_size` over several nodes."""
    size = leaving = 0
    for node in nodes:
        its_size, its_leaving = _compiled_size(node)
        size, leaving = size + its_size, leaving + its_leaving
    return size, leaving


def words(tree: ast.AST) -> set[str]:
    """All names in code, whether it reads, sets or only mentions them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        fields = vars(node)
        names.update(value for field in _NAMING if isinstance(value := fields.get(field), str))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            names.update(node.names)
    return names


def read_and_bound(expression: ast.AST) -> tuple[list[str], set[str]]:
    """The names that an expression reads, and the names that it binds: arguments of lambdas,
    targets of comprehensions.
    """
    read, bound = list[str](), set[str]()
    for node in ast.walk(expression):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name):
            read.append(node.id) if isinstance(node.ctx, ast.Load) else bound.add(node.id)
    return read, bound


class _Bindings(ast.NodeVisitor):
    """Collects the names that statements bind, except within functions and classes."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        self.names.add(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815 - called by ast

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add((node.asname or node.name).partition(".")[0])


def bound_names(body: list[ast.stmt]) -> set[str]:
    """The names that a module or class with this body binds; ``*`` among them if there may be
    others.
    """
    bindings = _Bindings()
    for statement in body:
        bindings.visit(statement)
    return bindings.names


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
