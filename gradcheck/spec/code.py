"""Python inside a spec: its syntax is checked where it stands in the file, and that the names in it are there.

Nothing is executed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from gradcheck.spec.containers import variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.parts import all_expectations, parameters_of, sizes_named
from gradcheck.spec.python import (
    CompileMode,
    PythonCode,
    TooLargeError,
    layer_classes,
    read_and_bound,
    static_forward,
    words,
)
from gradcheck.spec.text import Place, SpecText
from gradcheck.spec.tree import Node

MAX_CHARACTERS = 20_000
"""Of one piece of code: some work of Python's compiler grows with the square (names times scopes: 35 ms here)."""
MAX_CODE = 1_000_000
"""Of all code in a file: some 5 s of the compiler's time if it is all f-strings or functions, 1 s if it is usual."""
GIVEN = frozenset({"np", "paddle", "PyLayer", "out"})
"""What code finds without importing it; ``out`` is what the layer returned."""
EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
Words = Callable[[], set[str] | None]
"""Gives all names in the code of a scenario; None where there is code that cannot be seen, or is no Python."""
MISSPELT = 0.85
"""How alike two names are, as difflib tells, of which one is the other misspelt: a letter or two in ten differ."""
KNOWN = {
    "raises": ("exception", EXCEPTIONS),
    "warns": ("warning", frozenset(name for name in EXCEPTIONS if name.endswith("Warning"))),
}
"""Sections of an expectation that name a class, what that is, and Python's own of the kind."""
_MODES: dict[str, CompileMode] = {"the layer": "exec", "the script": "exec", "call": "eval", "the expression": "eval"}


# --------------------------------------------------------------------------- its syntax
def first_line(node: Node) -> tuple[int, int]:
    """The file line and column (1-based) at which the text of a scalar begins; for a block, below its ``|``."""
    return (node.line + 1, 1) if node.style in ("|", ">") else (node.line, node.column + len(node.style))


def check_python(node: Node | None, text: SpecText, what: str) -> PythonCode | None:
    """The Python in the scalar `node`, which is `what`; None if it is none, which is reported at the exact place."""
    if node is None or node.kind != "scalar" or not isinstance(node.value, str):
        return None  # reported as something that must be text
    if id(node) not in text.compiled:
        text.compiled[id(node)] = _code(node, node.value, text, what)
    return text.compiled[id(node)]


def _code(node: Node, source: str, text: SpecText, what: str) -> PythonCode | None:
    if not source.strip():
        text.report(node, f"{what} is empty", "write the code, or remove the key")
        return None
    if len(source) > MAX_CHARACTERS:
        help = "move it into a module, and name that with 'layer: {ref: …}'"
        text.report(node.start, f"{what} is longer than {MAX_CHARACTERS:,} characters", help)
        return None
    before, text.code = text.code, text.code + len(source)
    if text.code > MAX_CODE:
        if before <= MAX_CODE:
            message = f"the code in this file is longer than {MAX_CODE:,} characters"
            text.report(node.start, message, "split the file by topic")
        return None
    # eval() ignores spaces before an expression, compile() does not.
    leading = len(source) - len(source.lstrip(" \t")) if _MODES[what] == "eval" else 0
    code = PythonCode(source[leading:], _MODES[what])
    try:
        code.check()
    except SyntaxError as error:
        place = position(node, text, error.lineno or 1, (error.offset or 1) + leading, _width(error))
        help = "write the code as a block: '|' and the code on the lines below" if node.style == ">" else ""
        if not text.edited(node.line, node.end_line):
            text.report(place, f"{what} is not valid Python: {error.msg}", help)
    except TooLargeError:
        help = "call a function in 'finally', and return from fewer places"
        text.report(node.start, f"{what} is too large: Python repeats 'finally' for every return", help)
    except (ValueError, RecursionError, MemoryError, OverflowError):
        text.report(node.start, f"{what} is too deeply nested for Python", "make it simpler")
    else:
        return code
    return None


def _width(error: SyntaxError) -> int:
    if error.end_lineno == error.lineno and error.end_offset and error.offset:
        return max(1, error.end_offset - error.offset)
    return 1


def position(node: Node, text: SpecText, line: int, column: int, width: int = 1) -> Place:
    """Where in the file the 1-based `line` and `column` of a scalar's text stand."""
    first, start = first_line(node)
    if node.style == "|":
        in_code = node.text.split("\n")
        in_file = text.lines[first + line - 2] if first + line - 2 < len(text.lines) else ""
        code = in_code[line - 1] if line <= len(in_code) else ""
        return first + line - 1, max(1, column) + max(0, len(in_file) - len(code)), width
    written = text.lines[node.line - 1][start - 1 : start - 1 + len(node.text)]
    if node.end_line == node.line and written == node.text:
        return node.line, start + max(1, column) - 1, width
    return node.line, node.column, width  # escapes, or a text folded from several lines: columns no longer agree


# --------------------------------------------------------------------------- what it defines, and its names
def check_default_call(layer: Node, code: PythonCode, text: SpecText) -> None:
    """Report a layer's source, which is `code`, that leaves open which class to apply without ``call``."""
    tree = code.tree
    assert isinstance(tree, ast.Module)
    layers = layer_classes(tree)
    if static_forward(tree) is not None or len(layers) == 1:
        return
    if layers:
        shown = [*layers.values()][-1:]
        message = f"the layer defines {len(layers)} classes to apply: {listing(layers, 'and')}"
        help = f"say what to run, such as 'call: {shown[0].name}.apply(x)'"
    else:
        shown = [one for one in tree.body if isinstance(one, ast.ClassDef)]
        message = "the layer defines no subclass of PyLayer to apply"
        help = "derive it from PyLayer, define forward_fn and backward_fn, or say what to run with 'call: …'"
    text.report(position(layer, text, shown[0].lineno, 1) if len(shown) == 1 else layer.start, message, help)


def check_call(scenario: Node, call: Node, code: PythonCode | None, layer: PythonCode | None, text: SpecText) -> None:
    """Report the first name in ``call`` that neither the inputs, the matrix nor the layer's source give.

    `code` is what is compiled of ``call``, `layer` of the layer.
    """
    if code is None or scenario.incomplete:
        return
    reference = scenario.mapping("layer").string("ref") or ""
    own = [*variables(scenario.under("inputs")), *parameters_of(scenario).entries]
    read, bound = read_and_bound(code.tree)
    statements = layer.tree.body if layer and isinstance(layer.tree, ast.Module) else []
    defined = {one.name for one in statements if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
    known = {*own, *GIVEN, reference.rpartition(":")[2].rpartition(".")[2], *defined, *bound}
    missing = [name for name in read if name not in known and not hasattr(builtins, name)]
    given = words(layer.tree) if missing and layer else set()
    if (name := next((one for one in missing if one not in given), None)) and "*" not in given:
        help = text.suggest(name, sorted(known | given)) or (f"the inputs are {listing(own, 'and')}" if own else "")
        text.report(call, f"call: there is no {quote(name)}", help)


def words_of(scenario: Node, text: SpecText) -> set[str] | None:
    """All names in the code of a scenario; None where there is code that cannot be seen, or is no Python."""
    layer, script, call = scenario.get("layer"), scenario.get("script"), scenario.get("call")
    if layer is not None and layer.get("ref"):
        return None
    sources = [("the layer", layer)] if layer is not None and isinstance(layer.value, str) else []
    sources += [("the script", script)] if script is not None and isinstance(script.value, str) else []
    sources += [("call", call)] if call is not None else []
    for expect in all_expectations(scenario):
        sources += [("the expression", key) for key, _ in expect.under("values").values()]
    found = set[str]()
    for what, node in sources:
        code = check_python(node, text, what)
        if code is None:
            return None
        found |= words(code.tree)
    return found


def check_exceptions(expect: Node, code: Words, text: SpecText) -> None:
    """Report the name of an exception or warning that looks like a misspelt one of Python's.

    Others may come from libraries. `code` gives the names in the scenario's code; None where that cannot be seen.
    """
    for section, (kind, known) in KNOWN.items():
        type = expect.mapping(section).get("type")
        if type is None or not isinstance(type.value, str) or type.value in known:
            continue
        names = code()
        if names is None or type.value in names:
            continue
        import difflib  # here: only a name that is not known pays for it

        if near := difflib.get_close_matches(type.value, sorted(known), 1, MISSPELT):
            text.report(type, f"there is no {kind} {quote(type.value)}", f"did you mean '{near[0]}'?")


def check_parameters(scenario: Node, code: Words, text: SpecText) -> None:
    """Report the parameters of the matrix that no code uses: all their values would run the same case."""
    used = {size.text for _, input in scenario.under("inputs").values() for size in sizes_named(input)}
    used |= {"dtype", "layout", "world", *variables(scenario.under("inputs"))}
    for name, (key, values) in parameters_of(scenario).entries.items():
        if name in used or not name.isidentifier() or scenario.incomplete:
            continue
        if not values.items or any(value.kind == "unreadable" for value in values.items):
            continue  # it has been reported
        names, kind = code(), "size" if name in scenario.under("sizes") else "matrix parameter"
        if names is not None and name not in names:
            help = "use it in a shape, the layer, the call or an expression; 'dtype' and 'layout' work by themselves"
            text.report(key, f"nothing uses the {kind} {quote(name)}", help)
