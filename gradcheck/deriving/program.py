"""A backward as statements: run with one of them changed, and which of them reach which result."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Any

RETURNED = "returned value"
"""The name of what a backward returns, which no variable of its own can have."""


class Statements:
    """A backward that is run again and again with one statement changed: what comes before that
    statement is run once."""

    def __init__(self, function: ast.FunctionDef, scope: dict[str, Any]) -> None:
        self.function, self.scope = function, scope
        self.parameters = [argument.arg for argument in function.args.args]
        self.codes: dict[int, CodeType] = {}
        self.states: dict[int, dict[str, Any]] = {}
        """The variables before a statement, by its number."""

    @property
    def is_straight(self) -> bool:
        """Whether the return is the last statement, and nothing is changed in place."""
        *before, last = self.function.body
        inside = [node for statement in before for node in ast.walk(statement)]
        in_place = (ast.AugAssign, ast.Return, ast.Yield, ast.Nonlocal, ast.Global)
        writes = (ast.Subscript, ast.Attribute)
        return isinstance(last, ast.Return) and not any(
            isinstance(node, in_place)
            or (isinstance(node, writes) and isinstance(node.ctx, ast.Store))
            or (isinstance(node, ast.Attribute) and node.attr.endswith("_"))
            for node in inside
        )

    def start(self, arguments: Sequence[Any]) -> None:
        """Begin at new arguments."""
        self.states = {0: dict(zip(self.parameters, arguments, strict=True))}

    def code(self, number: int, is_changed: bool = False) -> CodeType:
        """The code of a statement."""
        if is_changed or number not in self.codes:
            statement = self.function.body[number]
            if isinstance(statement, ast.Return):
                value = statement.value or ast.Constant(None)
                target = ast.Name(RETURNED, ast.Store())
                assignment = ast.Assign([target], value)
                statement = ast.fix_missing_locations(ast.copy_location(assignment, statement))
            code = compile(ast.Module([statement], []), "<edited backward>", "exec")
            if is_changed:
                return code
            self.codes[number] = code
        return self.codes[number]

    def state(self, number: int) -> dict[str, Any]:
        """The variables before a statement."""
        if number not in self.states:
            variables = dict(self.state(number - 1))
            exec(self.code(number - 1), self.scope, variables)
            self.states[number] = variables
        return self.states[number]

    def value(self, expression: ast.expr) -> Any:
        """The value of an expression of the return."""
        code = compile(ast.Expression(expression), "<edited backward>", "eval")
        return eval(code, self.scope, dict(self.state(len(self.function.body) - 1)))

    def returned(self, number: int) -> Any:
        """The result of the function, of which a statement was changed."""
        variables = dict(self.state(number))
        exec(self.code(number, is_changed=True), self.scope, variables)
        for later in range(number + 1, len(self.function.body)):
            exec(self.code(later), self.scope, variables)
        return variables[RETURNED]

    def reaching(self, expression: ast.expr) -> set[int]:
        """The numbers of the statements whose variables an expression of the return is made of."""
        found: set[int] = set()
        waiting: list[ast.AST] = [expression]
        while waiting:
            names = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)}
            for number, statement in enumerate(self.function.body[:-1]):
                if number not in found and names & stored_in(statement):
                    found.add(number)
                    waiting.append(statement)
        return found

    def useless_parts(self, results: Sequence[ast.expr], is_right: Sequence[bool]) -> list[ast.AST]:
        """The parts of the function in which no one change makes all results right.

        These are results that are right, every result if several are wrong, statements that a
        wrong result is not made of, and those that a right one is made of.
        """
        pairs = list(zip(results, is_right, strict=True))
        wrong = [self.reaching(result) for result, right in pairs if not right]
        right = [self.reaching(result) for result, right in pairs if right]
        useless: list[ast.AST] = [r for r, right in pairs if right or len(wrong) > 1]
        for number, statement in enumerate(self.function.body[:-1]):
            is_used = all(number in reaching for reaching in wrong)
            is_shared = any(number in reaching for reaching in right)
            if not is_used or (is_shared and len(stored_in(statement)) == 1):
                useless.append(statement)
        return useless


def stored_in(statement: ast.stmt) -> set[str]:
    """The variables that a statement sets."""
    nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
