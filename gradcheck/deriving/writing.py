"""Writing the class of a derived backward: the user's forward, changed only in what it saves."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType, NoneType
from typing import Any

from gradcheck.deriving.dialects import NUMPY, Dialect, dialect_of
from gradcheck.deriving.graph import Node, NotDerived, nodes_in
from gradcheck.deriving.printing import Printer, names_in_forward
from gradcheck.deriving.source import (
    FunctionNode,
    SourceText,
    TextChange,
    body_of,
    class_around,
    function_in,
    is_call_of,
    part_of_file,
    returns_of,
    source_of_file,
    source_of_function,
    variable_names,
)
from gradcheck.deriving.trace import Trace

INDENT = "    "


@dataclass
class WrittenBackward:
    """A printed backward."""

    lines: list[str]
    """The statements, the return last, without indent."""
    cotangents: list[str]
    saved: list[str]
    """The variables of forward that are saved, in order."""
    attributes: dict[str, str]
    """The attributes that forward must set on ctx, and their values."""
    result: str
    """The name that forward gives to its result; empty if it needs none."""
    guards: dict[str, Any] = field(default_factory=dict)
    """Arguments of forward, with the only values for which the backward is right."""


def print_backward(trace: Trace, inputs_only: bool = False) -> WrittenBackward:
    """Print the gradients of a trace as the body of a backward: with NumPy's names if forward uses
    them and they cover all operations.

    Args:
        inputs_only: whether backward may read only the inputs.

    Raises:
        NotDerived: something cannot be written.
    """
    if trace.in_numpy:
        with suppress(NotDerived):
            return write_with(trace, NUMPY, inputs_only)
    return write_with(trace, dialect_of(trace.call), inputs_only)


def write_with(trace: Trace, dialect: Dialect, inputs_only: bool) -> WrittenBackward:
    """Write the backward with the names of a library."""
    cotangents = [f"_d{k}" if n is None else n.name for k, n in enumerate(trace.cotangents)]
    flowing = {node: node.name for node in trace.cotangents if node is not None}
    if (readable := trace.call.readable_arguments) is not None:
        arguments = trace.inputs.items()
        names = {node: name for name, node in arguments if name in readable} | flowing
        printer = written_twice(trace, dialect, names, is_fixed=True)
        lines = [*printer.lines, f"return {', '.join(printer.results)}"]
        return WrittenBackward(lines, cotangents, [], {}, "")

    names = names_in_forward(trace, dialect, inputs_only)
    result = ""
    if len(trace.returned) == 1 and trace.returned[0].traced not in names and not inputs_only:
        result = next(name for name in ("y", "out", "result_") if name not in trace.locals)
        names[trace.returned[0].traced] = result
    printer = written_twice(trace, dialect, names)
    order = dict.fromkeys([*nodes_in(trace.saved), *trace.nodes])  # keeps the user's order
    read = [printer.saved[node] for node in order if node in printer.saved]
    arrays = [name for name in read if name in trace.arrays]
    saved = [name for name in read if name not in arrays]
    lines, results = [], printer.results
    if saved:
        lines.append(f"{', '.join(saved)}{',' * (len(saved) == 1)} = {dialect.saved}")
    if dialect is NUMPY:
        lines += [
            unpacking_statement(arrays, "ctx.{}"),
            unpacking_statement([*flowing.values(), *saved], "{}.numpy()"),
        ]
        results = [
            gradient if gradient == "None" else f"paddle.to_tensor({gradient})"
            for gradient in results
        ]
    lines = [*filter(None, lines), *printer.lines, f"return {', '.join(results)}"]
    text = "\n".join(lines)
    attributes = printer.attributes | dict(zip(arrays, arrays, strict=True))
    is_read = {name: v for name, v in attributes.items() if re.search(rf"\bctx\.{name}\b", text)}
    return WrittenBackward(lines, cotangents, saved, is_read, result if result in saved else "")


def written_twice(
    trace: Trace, dialect: Dialect, names: Mapping[Node, str], is_fixed: bool = False
) -> Printer:
    """A printer that has written the backward, with the uses of each value counted in a first
    pass.
    """
    first = Printer(trace, dialect, names, is_fixed)
    first.write()
    second = Printer(trace, dialect, names, is_fixed, first)
    second.write()
    return second


def unpacking_statement(names: Sequence[str], how: str) -> str:
    """The statement that sets some variables; empty if there are none."""
    return f"{', '.join(names)} = {', '.join(map(how.format, names))}" if names else ""


@dataclass
class Written:
    """A class with its derived backward, in the text of the user's file."""

    source: SourceText
    changed: str
    """The whole text with the derived backward."""
    code: str
    """The text of only the class."""


def write_layer(trace: Trace, layer: Any, backward: WrittenBackward) -> Written:
    """Write a derived backward into the class of a layer.

    Raises:
        NotDerived: its source is not known, or is of a form that cannot be changed.
    """
    written = trace.call.written_forward
    source, tree = source_of_function(written)
    forward = function_in(tree, written)
    if not isinstance(forward, ast.FunctionDef):
        raise NotDerived("forward is not a plain function")
    if len(forward.args.args) != len(inspect.signature(trace.call.function).parameters):
        raise NotDerived("forward takes no context: code that saves elsewhere is not rewritten")
    owner = class_around(tree, forward)
    old = [node for node in owner.body if getattr(node, "name", "") == "backward"]
    changes = forward_changes(source, forward, trace, backward)
    if old and isinstance(old[0], ast.FunctionDef):
        changes.append(body_change(source, old[0], backward))
    else:
        changes.append(new_method(source, owner, forward, backward))
    start, end = source.span(owner)
    start -= len(source.indent(owner))
    changed = source.apply_changes(changes)
    end += len(changed) - len(source.text)
    code = textwrap.dedent(changed[start:end].replace("\r\n", "\n"))
    return Written(source, changed, code.rstrip() + "\n")


def forward_changes(
    source: SourceText, forward: ast.FunctionDef, trace: Trace, backward: WrittenBackward
) -> list[TextChange]:
    """The changes of a forward: the values that it saves, and a name for its result."""
    returns = returns_of(forward)
    if len(returns) != 1 or returns[0].value is None:
        raise NotDerived("forward has several returns")
    final, result = returns[0], returns[0].value
    saves = [node for node in ast.walk(forward) if is_call_of(node, "save_for_backward")]
    context = forward.args.args[0].arg
    value = source.segment(result)
    statements = [f"{backward.result} = {value}"] if backward.result else []
    changes = []
    if saved_names(saves, source) != backward.saved:
        changes += [without_statement(source, node) for node in saves]
        if backward.saved:
            statements.append(f"{context}.save_for_backward({', '.join(backward.saved)})")
    known = {ast.unparse(node) for node in ast.walk(forward) if isinstance(node, ast.Attribute)}
    for name, text in backward.attributes.items():
        if f"{context}.{name}" not in known:
            statements.append(f"{context}.{name} = {text}")
    if statements:
        statements.append(f"return {backward.result or value}")
        changes.append(TextChange(*source.span(final), statements_text(source, final, statements)))
    inputs = [name for name in backward.saved if is_original(name, trace)]
    first = [f"{name} = {name.removesuffix('_in')}" for name in inputs]
    first[:0] = [guard(name, value) for name, value in backward.guards.items()]
    if first:
        begin = body_of(forward)[0]
        position = source.span(begin)[0]
        changes.append(TextChange(position, position, statements_text(source, begin, [*first, ""])))
    return changes


def guard(name: str, value: Any) -> str:
    """The statement that rejects a call for which the backward is not right."""
    test = f"{name} is {value!r}" if isinstance(value, (bool, NoneType)) else f"{name} == {value!r}"
    return f'assert {test}, "backward is only for {name}={value!r}"'


def is_original(name: str, trace: Trace) -> bool:
    """Whether a name refers to the value that an argument had before forward changed it."""
    is_argument = name.removesuffix("_in") in trace.arguments
    return name.endswith("_in") and name not in trace.locals and is_argument


def saved_names(saves: Sequence[Any], source: SourceText) -> list[str]:
    """The names that forward saves already, if it has a single save."""
    if len(saves) != 1:
        return []
    return [source.segment(argument) for argument in saves[0].value.args]


def statements_text(source: SourceText, statement: ast.stmt, statements: Sequence[str]) -> str:
    """The change that replaces a statement by several, on separate lines unless it shares its
    line.
    """
    line = source.lines[statement.lineno - source.first_line]
    before = line.encode()[: statement.col_offset].decode()
    return (f"\n{before}" if not before.strip() else "; ").join(statements)


def without_statement(source: SourceText, statement: Any) -> TextChange:
    """The change that deletes a statement, with its line if nothing else is on it."""
    start, end = source.span(statement)
    line_start = source.offset(statement.lineno, 0)
    rest = re.match(r"[ \t]*(;[ \t]*|\r?\n|$)", source.text[end:])
    if rest is None:
        raise NotDerived("a comment follows the call of save_for_backward")
    is_alone = not source.text[line_start:start].strip() and "\n" in rest[0]
    return TextChange(line_start if is_alone else start, end + len(rest[0]), "")


def body_change(
    source: SourceText,
    old: ast.FunctionDef,
    backward: WrittenBackward,
    context: Sequence[str] = ("ctx",),
) -> TextChange:
    """The change that replaces the body of an existing backward.

    Args:
        context: the parameters before the cotangents.
    """
    names = [argument.arg for argument in old.args.args]
    body = body_of(old)
    if names[len(context) :] != backward.cotangents or old.args.vararg or not body:
        start, end = source.span(old)
        indent = source.indent(old)
        lines = in_function(backward, indent, old.name, context)
        return TextChange(start, end, "\n".join(lines).lstrip())
    start, end = source.span(body[0])[0], source.span(body[-1])[1]
    is_own_line = body[0].lineno > old.lineno
    indent = source.indent(body[0]) if is_own_line else source.indent(old) + INDENT
    if not is_own_line:
        start = len(source.text[:start].rstrip())
    lines = [line.replace("ctx.", f"{names[0]}.") for line in backward.lines]
    text = f"\n{indent}".join(lines)
    return TextChange(start, end, text if is_own_line else f"\n{indent}{text}")


def new_method(
    source: SourceText, owner: ast.ClassDef, forward: ast.FunctionDef, backward: WrittenBackward
) -> TextChange:
    """The change that adds a backward to a class."""
    position = source.span(owner)[1]
    indent = source.indent(forward)
    lines = [f"{indent}@staticmethod", *in_function(backward, indent)]
    return TextChange(position, position, "\n\n" + "\n".join(lines))


def in_function(
    backward: WrittenBackward,
    indent: str,
    name: str = "backward",
    context: Sequence[str] = ("ctx",),
) -> list[str]:
    """The lines of a whole backward; see `body_change`."""
    step = "\t" if indent.startswith("\t") else INDENT
    head = f"{indent}def {name}({', '.join([*context, *backward.cotangents])}):"
    return [head, *(f"{indent}{step}{line}" for line in backward.lines)]


# --------------------------------------------------------------------------- functions
def write_function(trace: Trace, name: str, backward: WrittenBackward) -> Written:
    """Write the class of a function with its derived backward.

    Raises:
        NotDerived: its source is not known, or is of a form that cannot be changed.
    """
    source, tree = source_of_function(trace.call.function)
    skeleton = class_of_function(source, function_in(tree, trace.call.function), name)
    inner = ast.parse(skeleton.text).body[0]
    assert isinstance(inner, ast.ClassDef)
    forward = inner.body[0]
    assert isinstance(forward, ast.FunctionDef)
    changes = forward_changes(skeleton, forward, trace, backward)
    changes.append(new_method(skeleton, inner, forward, backward))
    code = skeleton.apply_changes(changes).rstrip() + "\n"
    return Written(source, f"{source.text.rstrip()}\n\n\n{code}", code)


def write_pair(trace: Trace, written_name: str, backward: WrittenBackward) -> Written:
    """Write the derived backward of a function of arrays below the function.

    Raises:
        NotDerived: its source is not known.
    """
    source, tree = source_of_function(trace.call.function)
    function = function_in(tree, trace.call.function)
    if isinstance(function, ast.Lambda):
        raise NotDerived("a lambda of arrays has no place for a backward")
    argument_names = list(trace.arguments)
    count = len(trace.call.args)
    options = [f"{name}={trace.call.named[name]!r}" for name in argument_names[count:]]
    parameters = [*argument_names[:count], *backward.cotangents, *options]
    head = f"def {written_name}({', '.join(parameters)}):"
    lines = [*(guard(name, value) for name, value in backward.guards.items()), *backward.lines]
    body = [head, *(f"{INDENT}{line}" for line in lines)]
    start = source.offset(function.lineno, 0)
    text = textwrap.dedent(source.text[start : source.span(function)[1]].replace("\r\n", "\n"))
    code = "\n".join([text.rstrip(), "", "", *body]) + "\n"
    return Written(source, f"{source.text.rstrip()}\n\n\n{code}", code)


def write_static(trace: Trace, backward: WrittenBackward) -> Written:
    """Write a derived backward in place of the body of a `backward_fn`.

    Raises:
        NotDerived: its source is not known, or is of a form that cannot be changed.
    """
    written = trace.call.written_backward
    file = source_of_file(written.__code__.co_filename)
    source, tree = part_of_file(file, written.__code__.co_firstlineno)
    old = function_in(tree, written)
    if not isinstance(old, ast.FunctionDef):
        raise NotDerived("backward_fn is a lambda")
    changed = source.apply_changes([body_change(source, old, backward, context=[])])
    before = file.offset(source.first_line, 0)
    after = file.text[before + len(source.text) :]
    code = textwrap.dedent(changed.replace("\r\n", "\n")).rstrip() + "\n"
    return Written(file, file.text[:before] + changed + after, code)


def class_of_function(
    source: SourceText, function: FunctionNode | ast.Lambda, name: str
) -> SourceText:
    """A class whose forward has the text of a function."""
    signature = ast.unparse(function.args)
    head = [
        f"class {name}(PyLayer):",
        f"{INDENT}@staticmethod",
        f"{INDENT}def forward(ctx{', ' if signature else ''}{signature}):",
    ]
    if isinstance(function, ast.Lambda):
        lines = [f"return {source.segment(function.body)}"]
    else:
        start = source.offset(function.body[0].lineno, 0)
        is_own_line = function.body[0].lineno > function.lineno
        begin = start if is_own_line else source.span(function.body[0])[0]
        text = source.text[begin : source.span(function.body[-1])[1]]
        lines = textwrap.dedent(text.replace("\r\n", "\n")).splitlines()
    body = textwrap.indent("\n".join(lines), INDENT * 2)
    return SourceText(source.path, "\n".join([*head, body]) + "\n")


# --------------------------------------------------------------------------- a separate module
def imports_for(code: str, function: Any) -> str:
    """The imports that a class needs in a separate module.

    Names that the code uses from the function's module are imported from there.
    """
    scope, module = function.__globals__, function.__globals__.get("__name__", "")
    names = variable_names(ast.parse(code))
    taken = (names & scope.keys()) - {"paddle", "PyLayer"}
    lines = {import_of(name, scope[name], module) for name in taken}
    if "PyLayer" in names:
        lines |= {"import paddle", "from paddle.autograd import PyLayer"}
    return (
        "\n".join(sorted(filter(None, lines), key=lambda line: (line[:6] != "import", line))) + "\n"
    )


def import_of(name: str, value: Any, module: str) -> str:
    """The import of one name; empty if the program that defines it is not a module."""
    if isinstance(value, ModuleType):
        home = value.__name__.removeprefix("pylayer.")
        return f"import {home}" if home == name else f"import {home} as {name}"
    home = str(getattr(value, "__module__", "")).removeprefix("pylayer.")
    is_library = inspect.isclass(value) and home.partition(".")[0] in ("paddle", "numpy", "torch")
    home = home if is_library else module.replace("__main__", "")
    return f"from {home} import {name}" if home else ""
