"""Advice on an error of a backward that reads the saved Tensors in a wrong way."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import CodeType, TracebackType
from typing import Any, NamedTuple

from gradcheck.case.user_code import is_users
from gradcheck.causes.words import source_place
from gradcheck.support.called_function import tracebacks
from gradcheck.support.display_paths import count
from gradcheck.support.foreign import text_of
from gradcheck.support.syntax_tree import last_name, reads_saved_tensors

GOT = re.compile(r"unpack.*\bgot (\d+)|unpack.*(NoneType)")
"""Python's message on too few values to unpack."""


class Assignment(NamedTuple):
    """A statement on one line that assigns the saved Tensors."""

    line: int
    target: ast.expr
    value: str
    """The expression that reads them, such as ``ctx.saved_tensor()``."""


def hint_of_saved_tensors(error: BaseException) -> str:
    """A hint if backward unpacks more Tensors than were saved, or uses the tuple of them as a
    Tensor; empty for any other error.
    """
    users = [step for step in tracebacks(error) if is_users(step.tb_frame.f_code.co_filename)]
    if not users:
        return ""
    message, step = text_of(error), users[-1]
    assignments = [*assignments_of_saved(step.tb_frame.f_code)]
    if match := GOT.search(message):
        for each in assignments:
            if each.line == step.tb_lineno and isinstance(each.target, (ast.Tuple, ast.List)):
                saved = "no Tensors" if match[1] in (None, "0") else count(int(match[1]), "Tensor")
                return (
                    f"forward saved {saved}: pass those that backward reads to "
                    "ctx.save_for_backward"
                )
    if re.search(r"\btuple\b", message):
        operands = {node.id for node in operands_of(step)}
        for each in assignments:
            name = last_name(each.target)
            value: Any = step.tb_frame.f_locals.get(name)
            if name in operands and issubclass(type(value), tuple):
                return f"line {each.line}: {each.value} is a tuple: {unpacking(name, each, value)}"
    return ""


def unpacking(name: str, assignment: Assignment, value: Sequence[object]) -> str:
    """Advice on the statement that unpacks a tuple of saved Tensors."""
    if len(value) == 1:
        return f"write `{name}, = {assignment.value}`"
    return f"unpack its {count(len(value), 'Tensor')}"


def assignments_of_saved(code: CodeType) -> Iterator[Assignment]:
    """The statements of a function's code that assign the saved Tensors."""
    for line in sorted({line for *_, line in code.co_lines() if line}):
        for statement in statements(linecache.getline(code.co_filename, line)):
            if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
                continue
            if reads_saved_tensors(statement.value):
                yield Assignment(line, statement.targets[0], ast.unparse(statement.value))


def operands_of(step: TracebackType) -> Iterator[ast.Name]:
    """The variables that are operands of the expression that raised an error."""
    place = source_place((step.tb_frame.f_code, step.tb_lasti))
    for statement in statements(place.text):
        expression = statement.value if isinstance(statement, ast.Expr) else statement
        for node in ast.iter_child_nodes(expression):
            operand = node.value if isinstance(node, ast.keyword) else node
            if isinstance(operand, ast.Name):
                yield operand


def statements(text: str) -> list[ast.stmt]:
    """The statements of a text; none if it is a part of one."""
    with suppress(SyntaxError, ValueError):
        return ast.parse(text.strip()).body
    return []
