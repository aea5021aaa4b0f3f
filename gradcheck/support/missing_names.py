"""Which of Paddle's names a file uses, read from its syntax tree: nothing of it is imported, nothing runs."""

from __future__ import annotations

import ast
import difflib
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pylayer.install import StandIn, hands_on
from pylayer.release import release_modules

MOST_CODE = 2_000_000
"""Of a file: Python's parser takes about 1 s for it, and some 500 MB."""
LONGEST_NAME = 100
MOST_PARTS = 10
"""Of a dotted name: no name of Paddle's has more than five."""

Dotted = tuple[str, ...]
Telling = ast.Import | ast.ImportFrom | ast.Assign | ast.Attribute


@dataclass(frozen=True)
class Use:
    """A name of Paddle's in a file: ``nn.functional.relu`` at a line and column, both from 1."""

    name: str
    line: int
    column: int


@dataclass
class Reader:
    """Collects the uses of Paddle's names in a module.

    It follows ``import`` in all its forms and plain assignments (``F = paddle.nn.functional``). A name that stands for
    part of Paddle anywhere in the file stands for it everywhere: the file's own names hide none.
    """

    bound: dict[str, Dotted] = field(default_factory=dict)
    """What the file's names stand for: paths within Paddle, empty for Paddle itself."""
    uses: list[Use] = field(default_factory=list)

    def read(self, nodes: Iterable[Telling]) -> None:
        """Look at the nodes that tell something, in the order of the file."""
        for node in nodes:
            if isinstance(node, ast.Import):
                self.imports(node)
            elif isinstance(node, ast.ImportFrom):
                self.imports_from(node)
            elif isinstance(node, ast.Assign):
                self.assigns(node)
            elif path := self.path(*chain(node)):
                self.use(path, node)

    def use(self, path: Dotted, node: ast.stmt | ast.expr) -> None:
        """Note a use at the place of a node."""
        self.uses.append(Use(".".join(path), node.lineno, node.col_offset + 1))

    # ----------------------------------------------------------------- imports
    def imports(self, node: ast.Import) -> None:
        """``import paddle.nn as nn``."""
        for alias in node.names:
            root, *path = alias.name.split(".")
            if root != "paddle":
                continue
            self.bound[alias.asname or root] = bounded_name(path) if alias.asname else ()
            if path:
                self.use(bounded_name(path), node)

    def imports_from(self, node: ast.ImportFrom) -> None:
        """``from paddle.nn import functional as F``; of a star, the module."""
        root, *path = (node.module or "").split(".")
        if root != "paddle" or node.level:
            return
        for alias in node.names:
            full = bounded_name(path if alias.name == "*" else [*path, alias.name])
            if full:
                self.use(full, node)
            if alias.name != "*":
                self.bound[alias.asname or alias.name] = full

    # ----------------------------------------------------------------- uses
    def assigns(self, node: ast.Assign) -> None:
        """``F = paddle.nn.functional``."""
        path = self.path(*chain(node.value))
        if path is not None:
            self.bound |= {target.id: path for target in node.targets if isinstance(target, ast.Name)}

    def path(self, begin: ast.AST, names: list[str]) -> Dotted | None:
        """What a chain of names stands for within Paddle; None if for nothing there."""
        before = self.bound.get(begin.id) if isinstance(begin, ast.Name) else None
        return None if before is None else bounded_name([*before, *names])


def telling(tree: ast.AST) -> list[Telling]:
    """The nodes of a tree that tell of names, in the order of the file: of ``x.a.b`` the whole, and not ``x.a``."""
    found = [node for node in ast.walk(tree) if isinstance(node, Telling)]
    parts = {node.value for node in found if isinstance(node, ast.Attribute)}
    return sorted((node for node in found if node not in parts), key=lambda node: (node.lineno, node.col_offset))


def chain(node: ast.AST) -> tuple[ast.AST, list[str]]:
    """What ``x.a.b`` begins with, ``x``, and the names behind it."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return node, names[::-1]


def bounded_name(names: Iterable[str]) -> Dotted:
    """The first parts of a dotted name, none of them long: what has more is no name of Paddle's in any case."""
    return tuple(name[:LONGEST_NAME] for name in names)[:MOST_PARTS]


def parsed(source: str, path: str) -> ast.Module:
    """A file's text as a tree.

    Raises:
        SyntaxError: it is no Python.
        ValueError, RecursionError, MemoryError, OverflowError: it is none that Python's parser takes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape is not ours to judge
        return ast.parse(source, filename=path)


def reader_of(tree: ast.Module) -> Reader:
    """What the names of a file stand for, and what it uses."""
    nodes = telling(tree)
    binding = Reader()  # first what names stand for, wherever they are bound
    binding.read(nodes)
    reader = Reader(dict(binding.bound))
    reader.read(nodes)
    return reader


def in_order(uses: Iterable[Use]) -> list[Use]:
    """Each name at each place once."""
    return sorted(dict.fromkeys(uses), key=lambda use: (use.line, use.column, use.name))


def missing_in(paddle: ModuleType, name: str) -> tuple[str, ModuleType] | None:
    """The first part of a dotted name that a facade lacks, and the module that lacks it; None if it has all.

    Only modules are looked into; what is defined in a module inside of a package may be in the package.
    """
    found: Any = paddle
    lacking = None
    path = "paddle"
    for part in name.split("."):
        if not isinstance(found, ModuleType):
            return None
        owner, path = found, f"{path}.{part}"
        there = isinstance(found, StandIn) or part in vars(found) or path in release_modules()  # hasattr looks for near
        found = getattr(found, part) if there else None
        if lacking is None and (not there or isinstance(found, StandIn)) and not hands_on(path):
            lacking = path, owner
    return lacking if found is None or isinstance(found, StandIn) else None


def near_to(name: str, module: ModuleType) -> list[str]:
    """The names that a module of the facade has and that are nearest to `name`, which it lacks."""
    before, _, last = name.rpartition(".")
    public = [one for one in vars(module) if not one.startswith("_")]
    return [f"{before}.{one}" for one in difflib.get_close_matches(last, public, n=3)]


def files_of(argument: str, roots: Iterable[str] | None = None) -> list[Path]:
    """The files that an argument means: a file, all of a folder, or a module or package by its dotted name.

    Modules are looked for along `roots`, the current folder and `sys.path` unless given, without importing anything.

    Raises:
        FileNotFoundError: it is none of these.
    """
    path = Path(argument)
    if os.path.isdir(path):
        return _python_files(path)
    if os.path.exists(path):
        return [path]
    if all(part.isidentifier() for part in argument.split(".")):
        for root in ["", *sys.path] if roots is None else roots:
            base = Path(root or ".").joinpath(*argument.split("."))
            if base.with_suffix(".py").is_file():
                return [base.with_suffix(".py")]
            if (base / "__init__.py").is_file():
                return _python_files(base)
    raise FileNotFoundError(f"{argument}: there is no such file, folder or module")


def _python_files(folder: Path) -> list[Path]:
    return sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".py"))
