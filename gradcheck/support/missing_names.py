"""Which of Paddle's names a file uses, and what it uses of Tensors and contexts that the facade lacks.

That is read from its syntax tree: nothing of it is imported, nothing runs.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from gradcheck.support.syntax_tree import last_name
from pylayer.ops.spellings import SPELLINGS
from pylayer.release import StandIn, hands_on, release_modules, release_names

MOST_CODE = 2_000_000
"""Of a file: Python's parser takes about 1 s for it, and some 500 MB."""
LONGEST_NAME = 100
MOST_PARTS = 10
"""Of a dotted name: no name of Paddle's has more than five."""
MOST_STEPS = 20
"""Of calls and attributes in a row: of what has more, nothing is said."""
TENSOR, CONTEXT = "Tensor", "autograd.PyLayerContext"
LAYERS = {"PyLayer", "Function", "EagerPyLayer"}
"""What a layer's class derives from, by the last part of the name."""
TENSORS = ("Tensor", "Array", "tuple[Any, ...] | None")
"""What functions of the facade say that they return, of which all parts are Tensors."""

Dotted = tuple[str, ...]


class Use(NamedTuple):
    """A name of Paddle's in a file, ``nn.functional.relu``, at a line and column, both from 1."""

    line: int
    column: int
    name: str
    of_object: bool = False
    """Whether it is a member or a keyword argument, which the facade is known to lack."""


class ExpressionValue(NamedTuple):
    """What an expression gives: a Tensor, or a context; `sure` unless it is an argument that may be something else."""

    kind: str
    sure: bool = True


def uses_in(source: str, path: str, facade: ModuleType) -> list[Use]:
    """What a file's text uses, in order: all names of Paddle's, and the members that the facade lacks.

    Raises:
        SyntaxError: it is no Python.
        ValueError, RecursionError, MemoryError, OverflowError: it is none that Python's parser takes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape is not ours to judge
        tree = ast.parse(source, filename=path)
    return sorted({*_Reader(tree, facade).uses})


class _Reader:
    """Collects what a module uses.

    It follows ``import`` in all its forms and plain assignments (``F = paddle.nn.functional``). A name that stands for
    part of Paddle anywhere in the file stands for it everywhere: the file's own names hide none. A name is taken for a
    Tensor if all that its function binds it to are Tensors.
    """

    def __init__(self, tree: ast.Module, facade: ModuleType) -> None:
        self.facade = facade
        self.lacking = {name for name in release_names()["paddle.Tensor"] if not hasattr(facade.Tensor, name)}
        self.bound: dict[str, Dotted] = {}
        """What the file's names stand for: paths within Paddle, empty for Paddle itself."""
        nodes = _telling(tree)
        for _ in range(2):  # first what names stand for, wherever they are bound
            self.uses: list[Use] = []
            for node in nodes:
                self.names(node)
        self.own = {
            node.attr if isinstance(node, ast.Attribute) else node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            or (isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load))
        }
        """The attributes that the file sets or defines, on whatever object."""
        self.members(tree)

    def use(self, path: Dotted, node: Any, of_object: bool = False) -> None:
        """Note a use at the place of a node."""
        if path:
            self.uses.append(Use(node.lineno, node.col_offset + 1, ".".join(path), of_object))

    # ----------------------------------------------------------------- names of modules, functions and classes
    def names(self, node: ast.AST) -> None:
        """Note what a node that tells of names binds or uses."""
        match node:
            case ast.Import():  # import paddle.nn as nn
                for alias in node.names:
                    root, *path = alias.name.split(".")
                    if root == "paddle":
                        self.bound[alias.asname or root] = _bounded(path) if alias.asname else ()
                        self.use(_bounded(path), node)
            case ast.ImportFrom(level=0, module=str(module)) if module.split(".")[0] == "paddle":
                for alias in node.names:  # from paddle.nn import functional as F; of a star, the module
                    full = _bounded([*module.split(".")[1:], *([alias.name] if alias.name != "*" else [])])
                    self.use(full, node)
                    if alias.name != "*":
                        self.bound[alias.asname or alias.name] = full
            case ast.Assign():  # F = paddle.nn.functional
                if (found := self.path(node.value)) is not None:
                    self.bound |= {target.id: found for target in node.targets if isinstance(target, ast.Name)}
            case ast.Attribute():
                self.use(self.path(node) or (), node)

    def path(self, node: ast.AST) -> Dotted | None:
        """What a chain of names, ``x.a.b``, stands for within Paddle; None if for nothing there."""
        names: list[str] = []
        while isinstance(node, ast.Attribute) and len(names) < MOST_STEPS:
            names.append(node.attr)
            node = node.value
        before = self.bound.get(node.id) if isinstance(node, ast.Name) else None
        return None if before is None else _bounded([*before, *reversed(names)])

    # ----------------------------------------------------------------- members and keyword arguments
    def members(self, tree: ast.AST) -> None:
        """Note what each function in a tree asks of objects, and they have not."""
        todo: list[tuple[ast.AST, ast.ClassDef | None]] = [(tree, None)]
        while todo:
            function, owner = todo.pop()
            nodes = list(_body(function))
            scope = self.scope(function, owner, nodes)
            for node in nodes:
                match node:
                    case ast.FunctionDef() | ast.AsyncFunctionDef():
                        todo.append((node, function if isinstance(function, ast.ClassDef) else None))
                    case ast.ClassDef():
                        todo.append((node, None))
                    case ast.Attribute(ctx=ast.Load()) if node.attr not in self.own and node.attr[:2] != "__":
                        self.attribute(node, scope)
                    case ast.Call():
                        self.keywords(node, scope)

    def scope(
        self, function: ast.AST, owner: ast.ClassDef | None, nodes: list[ast.AST]
    ) -> dict[str, ExpressionValue | None]:
        """The Tensors and contexts among the names of a function."""
        found: dict[str, ExpressionValue | None] = {}
        if isinstance(function, ast.FunctionDef) and owner is not None and LAYERS & {last_name(b) for b in owner.bases}:
            given = [*function.args.posonlyargs, *function.args.args]
            if function.name in ("forward", "backward") and given:
                found = {argument.arg: ExpressionValue(TENSOR, function.name == "backward") for argument in given[1:]}
                found[given[0].arg] = ExpressionValue(CONTEXT)
        values = {
            part: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            for part in (target.elts if isinstance(target, ast.Tuple) else [target])
        }
        bound = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        for name in sorted(bound, key=lambda node: (node.lineno, node.col_offset)):
            kind = self.value(values[name], found) if name in values else None
            found[name.id] = kind if found.get(name.id, kind) == kind else None
        return found

    def value(self, expression: ast.AST, scope: dict[str, ExpressionValue | None]) -> ExpressionValue | None:
        """What an expression gives, if that is told by the functions that it calls."""
        steps: list[Any] = []
        while isinstance(expression, ast.Call | ast.Attribute):
            if len(steps) == MOST_STEPS:
                return None
            steps.append(expression)
            expression = expression.func if isinstance(expression, ast.Call) else expression.value
        found = scope.get(expression.id) if isinstance(expression, ast.Name) else None
        while steps:
            step = steps.pop()
            if isinstance(step, ast.Attribute):  # a method, if it is called
                step = steps.pop() if steps and isinstance(steps[-1], ast.Call) else None
            returned = getattr(self.function(step.func, found) if step else None, "__annotations__", {}).get("return")
            found = ExpressionValue(TENSOR) if returned in TENSORS else None
        return found

    def function(self, node: ast.AST, of: ExpressionValue | None) -> Any:
        """What a call calls: a function of Paddle's, or a method of a Tensor; None if it is neither."""
        if path := self.path(node):
            return _facade_member(self.facade, path)
        if of is not None and isinstance(node, ast.Attribute):
            return getattr(_facade_member(self.facade, of.kind.split(".")), node.attr, None)
        return None

    def attribute(self, node: ast.Attribute, scope: dict[str, ExpressionValue | None]) -> None:
        """Note ``x.name`` if the facade's Tensors have it not, or contexts, or the release's alone."""
        of = self.value(node.value, scope)
        if of is None or not of.sure:
            named = isinstance(node.value, ast.Name) and self.path(node) is None
            if named and node.attr in self.lacking and (of is not None or node.attr.startswith("_")):
                self.use((TENSOR, node.attr), node, True)
        elif not hasattr(_facade_member(self.facade, of.kind.split(".")), node.attr):
            self.use((of.kind, node.attr), node, True)

    def keywords(self, node: ast.Call, scope: dict[str, ExpressionValue | None]) -> None:
        """Note the keyword arguments that a function of Paddle's takes not."""
        of = self.value(node.func.value, scope) if isinstance(node.func, ast.Attribute) else None
        taken = _keyword_arguments(self.function(node.func, of))
        name = ".".join(self.path(node.func) or (TENSOR, last_name(node.func)))
        for keyword in node.keywords if taken is not None else ():
            if keyword.arg is not None and keyword.arg not in (taken or ()):
                self.use((f"{name}({keyword.arg}=)",), keyword, True)


def _telling(tree: ast.AST) -> list[Any]:
    """The nodes of a tree that tell of names, in the order of the file: of ``x.a.b`` the whole, and not ``x.a``."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom | ast.Assign | ast.Attribute)]
    parts = {node.value for node in found if isinstance(node, ast.Attribute)}
    return sorted((node for node in found if node not in parts), key=lambda node: (node.lineno, node.col_offset))


def _bounded(names: Iterable[str]) -> Dotted:
    """The first parts of a dotted name, none of them long: what has more is no name of Paddle's in any case."""
    return tuple(name[:LONGEST_NAME] for name in names)[:MOST_PARTS]


def _body(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, class or module; of a function or class in it the definition alone."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo += ast.iter_child_nodes(node)


def _facade_member(found: Any, path: Iterable[str]) -> Any:
    """What stands at a path below the facade; None if there is none."""
    for part in path:
        found = vars(found).get(part) if isinstance(found, ModuleType) else getattr(found, part, None)
    return found


@functools.cache
def _keyword_arguments(function: Any) -> set[str] | None:
    """The keyword arguments that a function of the facade takes; None if it does not say."""
    if not callable(function):
        return None
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters} | {"name", *SPELLINGS.get(function.__name__, ())}


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


def files_of(argument: str) -> list[Path]:
    """The files that an argument means: a file, all of a folder, or a module or package by its dotted name.

    Modules are looked for along the current folder and `sys.path`, without importing anything.

    Raises:
        FileNotFoundError: it is none of these.
    """
    path = Path(argument)
    if os.path.isdir(path):
        return _python_files(path)
    if os.path.exists(path):
        return [path]
    for root in ["", *sys.path] if all(part.isidentifier() for part in argument.split(".")) else ():
        base = Path(root or ".").joinpath(*argument.split("."))
        if base.with_suffix(".py").is_file():
            return [base.with_suffix(".py")]
        if (base / "__init__.py").is_file():
            return _python_files(base)
    raise FileNotFoundError(f"{argument}: there is no such file, folder or module")


def _python_files(folder: Path) -> list[Path]:
    return sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".py"))
