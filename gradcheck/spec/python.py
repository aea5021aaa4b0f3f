"""Python code that is compiled and looked at, never run; within limits, for what Python makes of it
may be endless.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice
from typing import Literal

from gradcheck.support.syntax_tree import last_name

MAX_NESTING = 200
"""Levels of the syntax tree. Python's own limit depends on the stack that is there, and is reached
at about 900.
"""
MAX_COMPILED = 100_000
"""Nodes, each of which is a few instructions: a case has the compiled code in memory, some 50 MB of
it at most.
"""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NAMING = (
    "id",
    "attr",
    "name",
    "asname",
    "arg",
)  # fields of Python's syntax trees that hold a name

CompileMode = Literal["exec", "eval"]


class TooLargeError(Exception):
    """What Python would make of some code is too large."""


class PythonCode:
    """Python, as far as `check` has seen; `mode` is that of `compile`."""

    def __init__(self, source: str, mode: CompileMode) -> None:
        self.source, self.mode = source, mode

    @cached_property
    def tree(self) -> ast.AST:
        """Its syntax tree. Most code is only compiled, for which Python makes none of its own
        objects.
        """
        return ast.parse(self.source, "<spec>", self.mode)

    @cached_property
    def words(self) -> set[str]:
        """All names in it."""
        return words(self.tree)

    def check(self) -> None:
        """Have Python compile it, unless the work for that could be endless.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, TooLargeError: it
                cannot, or must not.
        """
        if (
            len(_TOKEN.findall(self.source)) > MAX_NESTING
        ):  # a level of the tree has a token of its own
            _check_nesting(self.tree)
        if "finally" in self.source:
            _compiled_size(self.tree)
        compile(self.source, "<spec>", self.mode, dont_inherit=True)


def levels(tree: ast.AST) -> Iterator[list[ast.AST]]:
    """The nodes of a syntax tree: itself, those in its fields, and so on. It takes half the time of
    `ast.walk`.
    """
    level = [tree]
    while level:
        yield level
        below = []
        for node in level:
            for name in node._fields:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    below += value
                elif isinstance(value, ast.AST):
                    below.append(value)
        level = [one for one in below if isinstance(one, ast.AST)]


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a syntax tree."""
    return chain.from_iterable(levels(tree))


def _check_nesting(tree: ast.AST) -> None:
    """Raise RecursionError if a node of `tree` is more than `MAX_NESTING` levels deep."""
    if next(islice(levels(tree), MAX_NESTING, None), None):
        raise RecursionError


def _compiled_size(node: ast.AST) -> tuple[int, int]:
    """How many nodes of code are compiled for `node`, and how many of them leave a block.

    Python compiles the body of a ``finally`` for the usual end of its ``try``, for an exception,
    and once more for each ``return``, ``break`` and ``continue`` in it: nested, 20 lines of code
    fill the memory.

    Raises:
        TooLargeError: there are more than `MAX_COMPILED`.
    """
    size, leaving = 1, int(isinstance(node, (ast.Return, ast.Break, ast.Continue)))
    last = set(map(id, node.finalbody)) if isinstance(node, (ast.Try, ast.TryStar)) else ()
    sizes = [(id(child) in last, *_compiled_size(child)) for child in ast.iter_child_nodes(node)]
    size += sum(its for finally_, its, _ in sizes if not finally_)
    leaving += sum(its for finally_, _, its in sizes if not finally_)
    times = 2 + leaving
    size += times * sum(its for finally_, its, _ in sizes if finally_)
    leaving += times * sum(its for finally_, _, its in sizes if finally_)
    if size > MAX_COMPILED:
        raise TooLargeError
    return size, leaving


def words(tree: ast.AST) -> set[str]:
    """All names in code, whether it reads, sets or only mentions them."""
    found: set[str] = set()
    for node in nodes(tree):
        fields = vars(node)
        found.update(value for field in _NAMING if isinstance(value := fields.get(field), str))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
    return found


def read_and_bound(expression: ast.AST) -> tuple[list[str], set[str]]:
    """The names that an expression reads; and those it binds: arguments of lambdas, targets of
    comprehensions.
    """
    read, bound = list[str](), set[str]()
    for node in nodes(expression):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name):
            read.append(node.id) if isinstance(node.ctx, ast.Load) else bound.add(node.id)
    return read, bound


def layer_classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    """The PyLayers that a layer's source defines, by name: what derives from PyLayer, or from
    another of them.
    """
    found: dict[str, ast.ClassDef] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(
            last_name(base) in ("PyLayer", *found) for base in node.bases
        ):
            found[node.name] = node
    return found


def static_forward(tree: ast.Module) -> ast.FunctionDef | None:
    """The ``forward_fn`` that a layer's source defines, if it does."""
    return next(
        (one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "forward_fn"),
        None,
    )
