"""Runs of a backward with an edit, which compute only what depends on the edit.

A backward that consists of assignments and a return is taken apart: each assignment, and each
returned gradient, is a step. An edit runs its own step and the steps that read changed values;
other values are known from the first run. Any other backward is a single step.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType
from typing import Any

import numpy as np

from gradcheck.deriving.agreement import KnownPoint, wrong_entries
from gradcheck.deriving.call import grad_mode_as
from gradcheck.deriving.printing import parse_expression
from gradcheck.deriving.source import FunctionNode, body_of, returns_of

EDIT, GRADIENTS, RUN = "__edit__", "__gradients__", "__run__"
"""Names in the steps' namespace: for the code of the edit, for gradients by position, and for the
function that runs a whole backward.
"""
HOLE = f"eval({EDIT})"
"""The expression that replaces the edited one."""
READ_LATER = {ast.Lambda, ast.GeneratorExp}
"""Expressions that read variables after their statement has run."""
EDITS_AS_A_RUN = 3
"""The number of edits of a single-step backward that count as one run: torch's Functions in
tests/backends/torch/fresh_functions.py need about 200 edits, and up to 600.
"""

TURNS = "__turns__"
"""The variable of a backward that counts the turns of its `while` loops."""
MOST_TURNS = 1000
"""Turns of `while` loops that one run may take, as an edit may be such that they never end."""

Variables = dict[str, Any]


@dataclass(eq=False)
class BackwardStep:
    """A part of a backward that runs as a whole."""

    tree: ast.Module
    size: float = 1
    """The number of statements that the step counts as, in addition to the edit itself."""
    values: Variables | None = None
    """The variables that the step sets, from the first run; None if that run did not reach it."""

    def __post_init__(self) -> None:
        self.nodes = [*ast.walk(self.tree)]
        names = [node for node in self.nodes if isinstance(node, ast.Name)]
        self.reads = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        self.writes = {node.id for node in names if isinstance(node.ctx, ast.Store)}

    def is_plain(self) -> bool:
        """Whether the step does nothing but set variables, so that its values can be kept."""
        parts = [node for node in self.nodes if isinstance(node, (ast.Attribute, ast.Subscript))]
        return (
            isinstance(self.tree.body[0], (ast.Assign, ast.AnnAssign))
            and not any(isinstance(access.ctx, ast.Store) for access in parts)
            and READ_LATER.isdisjoint(map(type, self.nodes))
        )

    @cached_property
    def code(self) -> CodeType:
        """The step's compiled code, without an edit."""
        return self.compile()

    def compile(self) -> CodeType:
        """Compile the step's syntax tree."""
        return compiled_backward(self.tree)


class Steps:
    """The steps of a backward at a point, with the values that they compute.

    Args:
        function: the syntax tree of the backward.
        scope: the names that it reads from outside.
        point: the point at which it runs.
        backward: the unedited backward.
    """

    def __init__(
        self,
        function: FunctionNode,
        scope: Mapping[str, Any],
        point: KnownPoint,
        backward: Callable[..., Any],
    ) -> None:
        self.point = point
        self.gradients = point.gradients_by(backward)
        """The gradients of the unedited backward; None if it raises."""
        wrong = enumerate(point.wrong(self.gradients))
        self.wrong = {k: entries for k, entries in wrong if entries.any()}
        """The wrong entries of each gradient that is wrong, by its position."""
        self.scope = {**scope, RUN: point.gradients_by}
        self.statements_run = 0.0
        """The number of statements that edits have run, plus one for each edit."""
        returned = gradients_in(function)
        self.steps = steps_in(function, returned)
        if self.steps and len(returned) == len(point.gradients) and point.call.runs_in_steps:
            self.record(backward)
        else:
            self.steps = [whole_step(function)]
        self.steps_of = {node: step for step in self.steps for node in step.nodes}
        self.code_with_hole = cache(self.compiled_with_hole)

    def record(self, backward: Callable[..., Any]) -> None:
        """Run the steps, and keep the values that they compute, until one raises.

        Gradients that are right before a later step raises are not wrong.
        """
        with suppress(Exception), calculating():
            self.scope |= self.point.arguments_by_name(backward)
            variables = dict(self.scope)
            for step in self.steps:
                exec(step.code, variables)
                step.values = {name: variables[name] for name in step.writes & variables.keys()}
                for k, value in variables.get(GRADIENTS, {}).items():
                    if not wrong_entries(value, self.point.gradients[k]).any():
                        self.wrong.pop(k, None)

    def changed_gradients(self, place: ast.expr, text: str) -> Iterator[tuple[int, Any]]:
        """The gradients that may change if a text replaces an expression, each with its position.

        Raises:
            Exception: whatever the text or the backward raises.
        """
        self.statements_run += 1
        edited_step = self.steps_of[place]
        variables = {**self.scope, EDIT: compile(text, "<edit>", "eval")}
        changed = set[str]()
        for step in self.steps:
            if step.values is None or step is edited_step or step.reads & changed:
                self.statements_run += step.size
                exec(self.code_with_hole(place) if step is edited_step else step.code, variables)
                changed |= step.writes
                yield from variables.pop(GRADIENTS, {}).items()
            else:
                variables |= step.values
                changed -= step.writes

    def compiled_with_hole(self, place: ast.expr) -> CodeType:
        """The code of a step in which the edit replaces an expression."""
        with replace_expression(place, parse_expression(HOLE)):
            return self.steps_of[place].compile()

    def gradients_with(self, place: ast.expr, text: str) -> dict[int, Any] | None:
        """The gradients that may change if a text replaces an expression, by position; None if that
        raises.
        """
        with suppress(Exception), calculating():
            return dict(self.changed_gradients(place, text))
        return None

    def is_right_with(self, place: ast.expr, text: str) -> bool:
        """Whether all gradients are right if a text replaces an expression."""
        wrong = {*self.wrong}
        with suppress(Exception), calculating():
            for k, value in self.changed_gradients(place, text):
                if wrong_entries(value, self.point.gradients[k]).any():
                    return False
                wrong.discard(k)
            return not wrong
        return False


def compiled_backward(tree: ast.Module) -> CodeType:
    """The code of a backward that may be edited: `while` loops raise StopIteration after
    `MOST_TURNS` turns.
    """
    if any(isinstance(node, ast.While) for node in ast.walk(tree)):
        tree = copy.deepcopy(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.While):
                node.test = ast.BoolOp(ast.And(), [parse_expression(f"next({TURNS})"), node.test])
        function: Any = tree.body[0]
        function.body[:0] = ast.parse(f"{TURNS} = iter([True] * {MOST_TURNS})").body
        ast.fix_missing_locations(tree)
    return compile(tree, "<edited backward>", "exec")


@contextmanager
def calculating() -> Iterator[None]:
    """A block in which backward runs."""
    with grad_mode_as(False), np.errstate(all="ignore"):
        yield


def whole_step(function: FunctionNode) -> BackwardStep:
    """The only step of a backward that is not taken apart."""
    run = ast.parse(f"{GRADIENTS} = dict(enumerate({RUN}({function.name})))").body
    return BackwardStep(ast.Module([function, *run], []), len(function.body) / EDITS_AS_A_RUN - 1)


def gradient_step(position: int, value: ast.expr) -> BackwardStep:
    """The step that computes a gradient."""
    tree: Any = ast.parse(f"{GRADIENTS} = {{{position}: {GRADIENTS}}}")
    tree.body[0].value.values = [value]
    return BackwardStep(tree)


def steps_in(function: FunctionNode, returned: Sequence[ast.expr]) -> list[BackwardStep]:
    """The assignments of a backward, and the gradients that it returns at its end; empty for a
    backward of any other form.
    """
    *statements, last = body_of(function)
    steps = [BackwardStep(ast.Module([statement], [])) for statement in statements]
    steps += [gradient_step(k, value) for k, value in enumerate(returned)]
    # A step that changes a value in place by a call, such as `x.add_(y)`, is not noticed: edits of
    # later steps may then be refused wrongly, but none is accepted, as whole backwards are checked.
    is_plain = (
        isinstance(last, ast.Return)
        and ast.Starred not in map(type, returned)
        and all(step.is_plain() for step in steps)
    )
    return steps if is_plain else []


def gradients_in(function: FunctionNode) -> list[ast.expr]:
    """The expressions that a backward returns, if it has a single return."""
    returns = returns_of(function)
    if len(returns) != 1 or returns[0].value is None:
        return []
    return list(getattr(returns[0].value, "elts", [returns[0].value]))


@contextmanager
def replace_expression(place: ast.expr, expression: ast.expr) -> Iterator[None]:
    """A block in which an expression in a syntax tree is replaced."""
    for node in ast.walk(expression):
        if isinstance(node, (ast.expr, ast.keyword)):
            ast.copy_location(node, place)
    before = place.__class__, place.__dict__
    place.__class__, place.__dict__ = expression.__class__, expression.__dict__
    try:
        yield
    finally:
        place.__class__, place.__dict__ = before
