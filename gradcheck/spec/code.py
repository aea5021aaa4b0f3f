"""Python inside a spec: its syntax is checked where it stands in the file. Nothing is executed."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

from gradcheck.spec.diagnostic import listing
from gradcheck.spec.python import CompileMode, PythonCode, TooLargeError
from gradcheck.support.syntax_tree import last_name

if TYPE_CHECKING:  # a worker has no need of what reads YAML
    from gradcheck.spec.text import SpecText
    from gradcheck.spec.tree import Node

MAX_CHARACTERS = 20_000
"""Of one piece of code: some work of Python's compiler grows with the square (names times scopes: 35 ms here)."""
MAX_CODE = 1_000_000
"""Of all code in a file: some 5 s of the compiler's time if it is all f-strings or functions, 1 s if it is usual."""


def first_line(node: Node) -> tuple[int, int]:
    """The file line and column (1-based) at which the text of a scalar begins; for a block, below its ``|``."""
    if node.style in ("|", ">"):
        return node.line + 1, 1
    return node.line, node.column + len(node.style)


def check_python(node: Node, text: SpecText, what: str, mode: CompileMode) -> PythonCode | None:
    """The Python in the scalar `node`; None if it is none, which is reported at the exact place.

    `mode` is that of `compile`: ``exec`` for a program, ``eval`` for an expression.
    """
    if id(node) not in text.compiled:
        text.compiled[id(node)] = _code(node, text, what, mode)
    return text.compiled[id(node)]


def _code(node: Node, text: SpecText, what: str, mode: CompileMode) -> PythonCode | None:
    if node.kind != "scalar" or not isinstance(node.value, str):
        return None  # reported as something that must be text
    source = node.value
    if not source.strip():
        text.report(*node.place, f"{what} is empty", "write the code, or remove the key")
        return None
    if len(source) > MAX_CHARACTERS:
        help = "move it into a module, and name that with 'layer: {ref: …}'"
        text.report(node.line, node.column, 1, f"{what} is longer than {MAX_CHARACTERS:,} characters", help)
        return None
    before, text.code = text.code, text.code + len(source)
    if text.code > MAX_CODE:
        if before <= MAX_CODE:
            message = f"the code in this file is longer than {MAX_CODE:,} characters"
            text.report(node.line, node.column, 1, message, "split the file by topic")
        return None
    # eval() ignores spaces before an expression, compile() does not.
    leading = len(source) - len(source.lstrip(" \t")) if mode == "eval" else 0
    code = PythonCode(source[leading:], mode)
    try:
        code.check()
    except SyntaxError as error:
        line, column = position(node, text, error.lineno or 1, (error.offset or 1) + leading)
        help = "write the code as a block: '|' and the code on the lines below" if node.style == ">" else ""
        if not text.edited(node.line, node.end_line):
            text.report(line, column, _width(error), f"{what} is not valid Python: {error.msg}", help)
        return None
    except TooLargeError:
        help = "call a function in 'finally', and return from fewer places"
        text.report(node.line, node.column, 1, f"{what} is too large: Python repeats 'finally' for every return", help)
        return None
    except (ValueError, RecursionError, MemoryError, OverflowError):
        text.report(node.line, node.column, 1, f"{what} is too deeply nested for Python", "make it simpler")
        return None
    return code


def _width(error: SyntaxError) -> int:
    if error.end_lineno == error.lineno and error.end_offset and error.offset:
        return max(1, error.end_offset - error.offset)
    return 1


def position(node: Node, text: SpecText, line: int, column: int) -> tuple[int, int]:
    """Where in the file the 1-based `line` and `column` of a scalar's text stand."""
    first, start = first_line(node)
    if node.style == "|":
        in_code = node.text.split("\n")
        in_file = text.lines[first + line - 2] if first + line - 2 < len(text.lines) else ""
        code = in_code[line - 1] if line <= len(in_code) else ""
        return first + line - 1, max(1, column) + max(0, len(in_file) - len(code))
    written = text.lines[node.line - 1][start - 1 : start - 1 + len(node.text)]
    if node.end_line == node.line and written == node.text:
        return node.line, start + max(1, column) - 1
    return node.line, node.column  # escapes, or a text folded from several lines: columns no longer agree


def check_default_call(layer: Node, code: PythonCode, text: SpecText) -> None:
    """Report a layer's source, which is `code`, that leaves open which class to apply without ``call``."""
    tree = code.tree
    assert isinstance(tree, ast.Module)
    shown: ast.ClassDef | None
    layers = layer_classes(tree)
    if static_forward(tree) is not None or len(layers) == 1:
        return
    if layers:
        *_, shown = layers.values()
        message = f"the layer defines {len(layers)} classes to apply: {listing(layers, 'and')}"
        help = f"say what to run, such as 'call: {shown.name}.apply(x)'"
    else:
        classes = [one for one in tree.body if isinstance(one, ast.ClassDef)]
        shown = classes[0] if len(classes) == 1 else None
        message = "the layer defines no subclass of PyLayer to apply"
        help = "derive it from PyLayer, define forward_fn and backward_fn, or say what to run with 'call: …'"
    place = (layer.line, layer.column) if shown is None else position(layer, text, shown.lineno, 1)
    text.report(*place, 1, message, help)


def layer_classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    """The PyLayers that a layer's source defines, by name: what derives from PyLayer, or from another of them."""
    found: dict[str, ast.ClassDef] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(last_name(base) in ("PyLayer", *found) for base in node.bases):
            found[node.name] = node
    return found


def is_static(layer: object) -> bool:
    """Whether a layer is Python source that defines ``forward_fn``: what ``static_pylayer`` takes."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return isinstance(layer, str) and "forward_fn" in layer and static_forward(ast.parse(layer)) is not None
    return False


def static_forward(tree: ast.Module) -> ast.FunctionDef | None:
    """The ``forward_fn`` that a layer's source defines, if it does."""
    return next((one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "forward_fn"), None)
