"""Which of Paddle's names a file uses, read from its syntax tree: nothing of it is imported, nothing runs."""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Use:
    """A name of Paddle's in a file: ``nn.functional.relu`` at a line and column, both from 1."""

    name: str
    line: int
    column: int


class Reader(ast.NodeVisitor):
    """Collects the uses of Paddle's names in a module.

    It follows ``import`` in all its forms and plain assignments (``F = paddle.nn.functional``). A name that stands for
    part of Paddle anywhere in the file stands for it everywhere: the file's own names hide none.
    """

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self.bound: dict[str, str] = {}
        """What the file's names stand for: dotted paths within Paddle, empty for Paddle itself."""

    # ----------------------------------------------------------------- imports
    def visit_Import(self, node: ast.Import) -> None:
        """``import paddle.nn as nn``."""
        for alias in node.names:
            root, _, path = alias.name.partition(".")
            if root != "paddle":
                continue
            self.bound[alias.asname or root] = path if alias.asname else ""
            if path:
                self.uses.append(Use(path, node.lineno, node.col_offset + 1))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """``from paddle.nn import functional as F``; of a star, the module."""
        root, _, path = (node.module or "").partition(".")
        if root != "paddle" or node.level:
            return
        for alias in node.names:
            full = path if alias.name == "*" else ".".join(filter(None, (path, alias.name)))
            if full:
                self.uses.append(Use(full, node.lineno, node.col_offset + 1))
            if alias.name != "*":
                self.bound[alias.asname or alias.name] = full

    # ----------------------------------------------------------------- uses
    def visit_Assign(self, node: ast.Assign) -> None:
        """``F = paddle.nn.functional``."""
        path = self.path(node.value)
        if path is not None:
            self.bound |= {target.id: path for target in node.targets if isinstance(target, ast.Name)}
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``paddle.nn.functional.relu``: the whole chain, once."""
        path = self.path(node)
        if path:
            self.uses.append(Use(path, node.lineno, node.col_offset + 1))
        else:
            self.generic_visit(node)

    def path(self, node: ast.AST) -> str | None:
        """What an expression stands for within Paddle; None if for nothing there."""
        if isinstance(node, ast.Name):
            return self.bound.get(node.id)
        if isinstance(node, ast.Attribute):
            before = self.path(node.value)
            return None if before is None else ".".join(filter(None, (before, node.attr)))
        return None


def uses_in(source: str, path: str) -> list[Use]:
    """The uses in a file's text, each name at each place once, in order.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(source, filename=path)
    binding = Reader()  # first what names stand for, wherever they are bound
    binding.visit(tree)
    reader = Reader()
    reader.bound = dict(binding.bound)
    reader.visit(tree)
    return sorted(dict.fromkeys(reader.uses), key=lambda use: (use.line, use.column, use.name))


def missing_in(paddle: ModuleType, name: str) -> tuple[str, list[str]] | None:
    """The first part of a dotted name that a facade lacks, and the nearest that it has there; None if it has all.

    Only modules are looked into: what an object has beyond its name, the file's run shows.
    """
    found: Any = paddle
    parts = name.split(".")
    for k, part in enumerate(parts):
        if not isinstance(found, ModuleType):
            return None
        if not hasattr(found, part):
            public = [n for n in vars(found) if not n.startswith("_")]
            before = ".".join(["paddle", *parts[:k]])
            near = difflib.get_close_matches(part, public, n=3)
            return ".".join([before, part]), [f"{before}.{n}" for n in near]
        found = getattr(found, part)
    return None


def files_of(argument: str, roots: Iterable[str] | None = None) -> list[Path]:
    """The files that an argument means: a file, all of a folder, or a module or package by its dotted name.

    Modules are looked for along `roots`, the current folder and `sys.path` unless given, without importing anything.

    Raises:
        FileNotFoundError: it is none of these.
    """
    path = Path(argument)
    if path.is_file():
        return [path]
    if path.is_dir():
        return list(_below(path))
    if all(part.isidentifier() for part in argument.split(".")):
        for root in ["", *sys.path] if roots is None else roots:
            base = Path(root or ".").joinpath(*argument.split("."))
            if base.with_suffix(".py").is_file():
                return [base.with_suffix(".py")]
            if (base / "__init__.py").is_file():
                return list(_below(base))
    raise FileNotFoundError(f"{argument}: there is no such file, folder or module")


def _below(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.rglob("*.py")))
