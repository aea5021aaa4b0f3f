"""Python inside a spec: its syntax is checked where it stands in the file. Nothing is executed."""

from __future__ import annotations

from gradcheck.spec.diagnostic import listing
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node

MAX_CHARACTERS = 200_000


def first_line(node: Node) -> tuple[int, int]:
    """The file line and column (1-based) at which the text of a scalar begins; for a block, below its ``|``."""
    if node.style in ("|", ">"):
        return node.line + 1, 1
    return node.line, node.column + len(node.style)


def check_python(node: Node, text: SpecText, what: str, mode: str) -> bool:
    """Whether the scalar `node` compiles as Python; if it does not, it is reported at the exact place.

    `mode` is that of `compile`: ``exec`` for a program, ``eval`` for an expression.
    """
    if id(node) not in text.compiled:
        text.compiled[id(node)] = _compiles(node, text, what, mode)
    return text.compiled[id(node)]


def _compiles(node: Node, text: SpecText, what: str, mode: str) -> bool:
    if node.kind != "scalar" or not isinstance(node.value, str):
        return False  # reported as something that must be text
    source = node.value
    if not source.strip():
        text.report(node.line, node.column, node.width, f"{what} is empty", "write the code, or remove the key")
        return False
    if len(source) > MAX_CHARACTERS:
        help = "move it into a module, and name that with 'layer: {ref: …}'"
        text.report(node.line, node.column, 1, f"{what} is longer than {MAX_CHARACTERS:,} characters", help)
        return False
    # eval() ignores spaces before an expression, compile() does not.
    leading = len(source) - len(source.lstrip(" \t")) if mode == "eval" else 0
    try:
        compile(source[leading:], "<spec>", mode, dont_inherit=True)
    except SyntaxError as error:
        line, column = _position(node, text, error.lineno or 1, (error.offset or 1) + leading)
        help = "write the code as a block: '|' and the code on the lines below" if node.style == ">" else ""
        if not text.edited(node.line, node.end_line):
            text.report(line, column, _width(error), f"{what} is not valid Python: {error.msg}", help)
        return False
    except (ValueError, RecursionError, MemoryError, OverflowError):
        text.report(node.line, node.column, 1, f"{what} is too deeply nested for Python", "make it simpler")
        return False
    return True


def _width(error: SyntaxError) -> int:
    if error.end_lineno == error.lineno and error.end_offset and error.offset:
        return max(1, error.end_offset - error.offset)
    return 1


def _position(node: Node, text: SpecText, line: int, column: int) -> tuple[int, int]:
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


def check_default_call(layer: Node, text: SpecText) -> None:
    """Report a layer's source that leaves open which class to apply, there being no ``call``."""
    import ast

    assert isinstance(layer.value, str)
    if is_static(layer.value):
        return
    classes: list[str] = []
    line, column = layer.line, layer.column
    for statement in ast.parse(layer.value).body:
        if isinstance(statement, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in statement.bases}
            if bases & {"PyLayer", *classes}:
                classes.append(statement.name)
                line, column = _position(layer, text, statement.lineno, 1)
    if len(classes) == 1:
        return
    if classes:
        message = f"the layer defines {len(classes)} classes to apply: {listing(classes, 'and')}"
        help = f"say what to run, such as 'call: {classes[-1]}.apply(x)'"
    else:
        message = "the layer defines no subclass of PyLayer to apply"
        help = "derive it from PyLayer, define forward_fn and backward_fn, or say what to run with 'call: …'"
    text.report(line, column, 1, message, help)


def is_static(layer: object) -> bool:
    """Whether a layer is source that defines ``forward_fn``: what ``static_pylayer`` takes."""
    import ast

    if not isinstance(layer, str):
        return False
    return any(isinstance(one, ast.FunctionDef) and one.name == "forward_fn" for one in ast.parse(layer).body)
