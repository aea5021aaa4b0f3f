"""What a file uses of Tensors and contexts, and its keyword arguments, that the facade lacks: from its syntax tree."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

from gradcheck.support.missing_names import Dotted, Reader, Use, chain
from gradcheck.support.syntax_tree import last_name
from pylayer.ops.spellings import SPELLINGS
from pylayer.release import release_names

TENSOR, CONTEXT = "Tensor", "autograd.PyLayerContext"
LAYERS = {"PyLayer", "Function", "EagerPyLayer"}
"""What a layer's class derives from, by the last part of the name."""
MOST_STEPS = 20
"""Of calls and attributes in a row: of what has more, nothing is said."""
TENSORS = ("Tensor", "Array", "tuple[Any, ...] | None")
"""What functions of the facade say that they return, of which all parts are Tensors."""


class ExpressionValue(NamedTuple):
    """What an expression gives: a Tensor, or a context; `sure` unless it is an argument that may be something else."""

    kind: str
    sure: bool = True


def members_lacking(facade: ModuleType, reader: Reader, tree: ast.Module) -> list[Use]:
    """The members and keyword arguments that a file uses and the facade lacks; `reader` has read its names."""
    lacking = {name for name in release_names()["paddle.Tensor"] if not hasattr(facade.Tensor, name)}
    return Members(reader, facade, frozenset(lacking)).read(tree)


Scope = dict[str, ExpressionValue | None]


@dataclass
class Members:
    """Collects what the facade lacks. A name is taken for a Tensor if all that its function binds it to are Tensors."""

    reader: Reader
    facade: ModuleType
    lacking: frozenset[str]
    """The names of the release's Tensors that those of the facade lack."""
    own: set[str] = field(default_factory=set)
    """The attributes that the file sets or defines, on whatever object."""
    uses: list[Use] = field(default_factory=list)

    def read(self, tree: ast.AST) -> list[Use]:
        """Look at all of a file."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self.own.add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.own.add(node.name)
        todo: list[tuple[ast.AST, ast.ClassDef | None]] = [(tree, None)]
        while todo:
            function, owner = todo.pop()
            nodes = list(body(function))
            scope = self.scope(function, owner, nodes)
            for node in nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    todo.append((node, function if isinstance(function, ast.ClassDef) else None))
                elif isinstance(node, ast.ClassDef):
                    todo.append((node, None))
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    self.attribute(node, scope)
                elif isinstance(node, ast.Call):
                    self.keywords(node, scope)
        return self.uses

    # ----------------------------------------------------------------- what names stand for
    def scope(self, function: ast.AST, owner: ast.ClassDef | None, nodes: list[ast.AST]) -> Scope:
        """The Tensors and contexts among the names of a function."""
        found: Scope = {}
        if isinstance(function, ast.FunctionDef) and owner is not None and LAYERS & {last_name(b) for b in owner.bases}:
            given = [*function.args.posonlyargs, *function.args.args]
            if function.name in ("forward", "backward") and given:
                found = {argument.arg: ExpressionValue(TENSOR, function.name == "backward") for argument in given[1:]}
                found[given[0].arg] = ExpressionValue(CONTEXT)
        values: dict[ast.AST, ast.AST] = {}
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                        values[part] = node.value
        bound = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        for name in sorted(bound, key=lambda node: (node.lineno, node.col_offset)):
            kind = self.value(values[name], found) if name in values else None
            found[name.id] = kind if found.get(name.id, kind) == kind else None
        return found

    def value(self, expression: ast.AST, scope: Scope) -> ExpressionValue | None:
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
            function = None if step is None else self.function(step.func, found)
            found = ExpressionValue(TENSOR) if returned(function) in TENSORS else None
        return found

    def path(self, node: ast.AST) -> Dotted | None:
        """What a chain of names stands for within Paddle, if it is no longer than any there."""
        begin = node
        for _ in range(MOST_STEPS):
            if not isinstance(begin, ast.Attribute):
                return self.reader.path(*chain(node))
            begin = begin.value
        return None

    def function(self, node: ast.AST, of: ExpressionValue | None) -> Any:
        """What a call calls: a function of Paddle's, or a method of a Tensor; None if it is neither."""
        if path := self.path(node):
            return facade_member(self.facade, ".".join(path))
        if of is not None and isinstance(node, ast.Attribute):
            return getattr(facade_member(self.facade, of.kind), node.attr, None)
        return None

    # ----------------------------------------------------------------- what is lacking
    def attribute(self, node: ast.Attribute, scope: Scope) -> None:
        """Note ``x.name`` if the facade's Tensors have it not, or contexts, or the release's alone."""
        if node.attr in self.own or node.attr.startswith("__"):
            return
        of = self.value(node.value, scope)
        if of is None or not of.sure:
            named = isinstance(node.value, ast.Name) and self.path(node) is None
            if named and node.attr in self.lacking and (of is not None or node.attr.startswith("_")):
                self.use(f"{TENSOR}.{node.attr}", node)
        elif not hasattr(facade_member(self.facade, of.kind), node.attr):
            self.use(f"{of.kind}.{node.attr}", node)

    def keywords(self, node: ast.Call, scope: Scope) -> None:
        """Note the keyword arguments that a function of Paddle's takes not."""
        of = self.value(node.func.value, scope) if isinstance(node.func, ast.Attribute) else None
        function = self.function(node.func, of)
        taken = keyword_arguments(function)
        if taken is None:
            return
        name = ".".join(self.path(node.func) or (TENSOR, last_name(node.func)))
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in taken:
                self.use(f"{name}({keyword.arg}=)", keyword)

    def use(self, name: str, node: Any) -> None:
        """Note a use at the place of a node."""
        self.uses.append(Use(name, node.lineno, node.col_offset + 1))


def body(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, class or module; of a function or class in it the definition alone."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo += ast.iter_child_nodes(node)


def facade_member(found: Any, path: str) -> Any:
    """What stands at a path below the facade; None if there is none."""
    for part in path.split("."):
        found = vars(found).get(part) if isinstance(found, ModuleType) else getattr(found, part, None)
    return found


def returned(function: Any) -> Any:
    """What a function of the facade says that it returns."""
    return getattr(function, "__annotations__", {}).get("return")


@functools.cache
def keyword_arguments(function: Any) -> set[str] | None:
    """The keyword arguments that a function of the facade takes; None if it does not say."""
    if not callable(function):
        return None
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters} | {"name", *SPELLINGS.get(function.__name__, ())}
