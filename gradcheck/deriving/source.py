"""Source text of functions: finding it in its file, and changing it without touching the rest."""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from gradcheck.deriving.graph import NotDerived
from gradcheck.result import Fix

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class TextChange:
    """New text in place of some characters of a file."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class SourceText:
    """The text of a file, or of a part that begins at a line, with the line endings of the file."""

    path: str
    text: str
    first_line: int = 1
    encoding: str = ""
    """The encoding of the file; empty for code that is not in a file."""

    @property
    def lines(self) -> list[str]:
        """The lines, with their line endings."""
        lines: list[str] = re.findall(r"[^\n]*\n|[^\n]+$", self.text)
        return lines

    @property
    def newline(self) -> str:
        """The position of the end of a line."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def offset(self, line: int, column: int) -> int:
        """The position in the text for one from `ast`: a line of the file, and a byte offset in
        that line.
        """
        lines = self.lines
        number = line - self.first_line
        before = sum(map(len, lines[:number]))
        return before + len(lines[number].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The begin and end of a node."""
        end = self.offset(node.end_lineno or 0, node.end_col_offset or 0)
        return self.offset(node.lineno, node.col_offset), end

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, node: ast.stmt) -> str:
        """The white space before the line of a node."""
        line = self.lines[node.lineno - self.first_line]
        return line[: len(line) - len(line.lstrip())]

    def apply_changes(self, changes: Iterable[TextChange]) -> str:
        """The text with some changes, which do not overlap."""
        text = self.text
        for change in sorted(changes, key=lambda change: -change.start):
            new = change.text.replace("\n", self.newline)
            text = text[: change.start] + new + text[change.end :]
        return text

    def with_fix(self, fix: Fix) -> str:
        """The text with the edit of a backward."""
        before = [0, *accumulate(map(len, self.lines))]
        start = before[fix.line - self.first_line] + fix.column
        end = before[fix.end_line - self.first_line] + fix.end_column
        return self.apply_changes([TextChange(start, end, fix.replacement)])

    def write(self, changed: str) -> None:
        """Write a changed text into the file; the unchanged parts stay the same byte for byte."""
        with open(self.path, "w", encoding=self.encoding, newline="") as file:
            file.write(changed)

    def diff(self, changed: str) -> str:
        """The changes as a unified diff."""
        before, after = (text.splitlines() for text in (self.text, changed))
        lines = difflib.unified_diff(before, after, self.path, self.path, lineterm="", n=2)
        return "\n".join(lines)


def source_of_file(path: str) -> SourceText:
    """The text of a file, or of code that was entered.

    Raises:
        NotDerived: the file cannot be read.
    """
    if Path(path).is_file():
        with tokenize.open(path) as file:
            encoding = file.encoding
        with open(path, encoding=encoding, newline="") as file:
            return SourceText(path, file.read(), encoding=encoding)
    text = "".join(linecache.getlines(path))
    if not text:
        raise NotDerived("the source of forward is not known")
    return SourceText(path, text)


def source_of_function(function: Any) -> tuple[SourceText, ast.Module]:
    """The source around a function, and its syntax tree: of the whole file or, if the file is not
    Python, only of the function.

    Raises:
        NotDerived: the source is not known.
    """
    code = function.__code__
    source = source_of_file(code.co_filename)
    try:
        return source, ast.parse(source.text)
    except SyntaxError:
        return part_of_file(source, code.co_firstlineno)


def part_of_file(source: SourceText, line: int) -> tuple[SourceText, ast.Module]:
    """The block of a file that begins at a line, with its indentation, and its syntax tree."""
    block = SourceText(source.path, "".join(inspect.getblock(source.lines[line - 1 :])), line)
    try:
        return block, parsed_block(block.text, line)
    except SyntaxError:
        raise NotDerived("the source of the function is not known") from None


def parsed_block(text: str, line: int) -> ast.Module:
    """The syntax tree of a block with the indentation and line numbers of its file.

    Raises:
        SyntaxError: the block is not Python.
    """
    if not text[:1].isspace():
        return ast.parse("\n" * (line - 1) + text)
    tree: Any = ast.parse("\n" * (line - 2) + "if 1:\n" + text)
    return ast.Module(tree.body[0].body, [])


def function_in(tree: ast.Module, function: Any) -> FunctionNode | ast.Lambda:
    """The definition of a function in the syntax tree of its file.

    Raises:
        NotDerived: it is not found.
    """
    code = function.__code__
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
        is_same_line = getattr(node, "lineno", 0) == code.co_firstlineno
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and is_same_line:
            return node
    raise NotDerived("the source of forward is not known")


def class_around(tree: ast.Module, function: FunctionNode) -> ast.ClassDef:
    """The class that a method belongs to.

    Raises:
        NotDerived: there is none.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and function in node.body:
            return node
    raise NotDerived("forward is not written in a class")


def body_of(function: FunctionNode) -> Sequence[ast.stmt]:
    """The statements of a function without its docstring."""
    return function.body[1:] if ast.get_docstring(function, clean=False) else function.body


def nested_statements(function: FunctionNode) -> Iterator[ast.AST]:
    """The statements of a function and their parts, without expressions and functions in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (*SCOPES, ast.expr)):
            waiting += ast.iter_child_nodes(node)


def returns_of(function: FunctionNode) -> list[ast.Return]:
    """The returns of a function, without those of functions in it."""
    return [node for node in nested_statements(function) if isinstance(node, ast.Return)]


def variable_names(tree: ast.AST) -> set[str]:
    """The names of variables in a tree."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def is_call_of(statement: ast.AST, method: str) -> bool:
    """Whether a statement is only a call of a method."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    return isinstance(function, ast.Attribute) and function.attr == method
