"""Rules for Python code in a spec: its syntax and its names. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import re
from collections import Counter
from collections.abc import Container, Iterator
from itertools import chain
from typing import TypeGuard

from gradcheck.spec.containers import variables
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import listing, quote, suggest
from gradcheck.spec.input_rules import length_parameters
from gradcheck.spec.literals import NAMES_OF_FRAMEWORKS
from gradcheck.spec.model import OPERATIONS, LayerOp, LayerRef, Scenario, is_static
from gradcheck.spec.python import (
    CompileMode,
    PythonCode,
    bound_names,
    layer_classes,
    static_forward,
)
from gradcheck.spec.violation import Violation, below, find_conflicts
from gradcheck.support.syntax_tree import reads_saved_tensors

MAX_CHARACTERS = 20_000
"""The most names in one piece of code: part of the work of Python's compiler grows with names times
scopes (35 ms at this limit).
"""
MISSPELT = 0.85
"""The similarity, by difflib's measure, from which one name may be a misspelling of another: one or
two letters in ten differ.
"""

CODE_OF_VALUE = re.compile(r"(np|math|paddle|torch)\.\w")
"""The start of a keyword argument's value that looks like code."""
MOST_SHOWN = 12
"""The maximum number of known names in a message: as many as fit on a line."""
NAMES_IN_ALL_CODE = ("np", "out")
"""Names that code can use without importing them, in addition to the framework's; ``out`` is the
layer's result.
"""
MAKES_NAMES = frozenset({"exec", "globals", "vars", "NameError"})
"""Names whose use suggests that names are bound dynamically, or missing on purpose."""
EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
KNOWN = {
    "raises": ("exception", EXCEPTIONS),
    "warns": ("warning", frozenset(name for name in EXCEPTIONS if name.endswith("Warning"))),
}
"""Sections of an expectation that name a class: the kind of class, and Python's built-in classes of
that kind.
"""
# `re` makes a table of 64 kB for a range that ends beyond ASCII, and with (?i) inspects each
# character in it: a pattern of 1,000 characters takes 0.4 s, and with (?i) a minute.
_WIDE_RANGE = re.compile(r"\[.*-(?:[^\x00-\x7f]|\\[uUN])", re.DOTALL)
PATTERN = "the pattern"
CONSTANTS_OF_YAML = {"null": "None", "none": "None", "true": "True", "false": "False"}
"""Constants as YAML writes them, and ``none`` → Python's."""
INTERACTIVE = {"copyright", "credits", "exit", "help", "input", "license", "quit"}
"""Built-in names for a person at a prompt, which a layer does not mean."""
EMPTY_CODE = PythonCode("", "exec")
"""Placeholder for code that is missing or not Python."""
_MODES: dict[str, CompileMode] = {
    "the layer": "exec",
    "the script": "exec",
    "call": "eval",
    "the expression": "eval",
}


class EveryName:
    """The set of names of code that is not Python: it contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


# --------------------------------------------------------------------------- syntax
@functools.lru_cache(maxsize=256)  # code that many scenarios inherit is parsed once
def _parse_source(source: str, role: str) -> PythonCode | Violation:
    """Return the code of `source`, or its mistake; `role` describes it in messages."""
    return _pattern_mistake(source) if role == PATTERN else _parse_python(source, role)


def find_syntax_mistakes(source: str | None, role: str) -> Iterator[Violation]:
    """Yield why `source` cannot be parsed; `role` describes it in messages."""
    if source is not None and isinstance(mistake := _parse_source(source, role), Violation):
        yield mistake


def find_code(source: str | None, role: str) -> PythonCode:
    """Return the code of `source`; `EMPTY_CODE` if there is none, or if it is not Python."""
    code = EMPTY_CODE if source is None else _parse_source(source, role)
    return code if isinstance(code, PythonCode) else EMPTY_CODE


# --------------------------------------------------------------------------- programs
def find_program_mistakes(scenario: Scenario, framework: str) -> Iterator[Violation]:
    """Yield the mistakes in a scenario's code; if there are none, the first undefined name."""
    mistakes = list(_find_program_mistakes(scenario, framework))
    yield from mistakes or _find_unknown_name(scenario, framework)


def _find_program_mistakes(scenario: Scenario, framework: str) -> Iterator[Violation]:
    """Yield the mistakes of a layer, a script, or a script after the source of a layer."""
    source, script, call = scenario.layer_source, scenario.script, scenario.call
    if scenario.layer is None and script is None:
        help = "add 'layer: |' with the layer's code, or 'script: |' with a whole program"
        yield Violation((), "a scenario needs 'layer' or 'script'", help)
    if script is not None and scenario.layer != source:
        help = "import the layer in the script, or remove the script to check its gradient"
        message = "a script next to a layer that has no source here"
        yield Violation(("script",), message, help, at_key=True)
        return
    yield from find_conflicts(scenario.written, scenario.excluded, scenario.needed)
    yield from below(("layer",), find_syntax_mistakes(source, "the layer"))
    yield from below(("script",), find_syntax_mistakes(script, "the script"))
    yield from below(("call",), find_syntax_mistakes(call, "call"))
    if script is not None:
        return
    layer_code = find_code(source, "the layer")
    for name, value in scenario.kwargs.items():
        if isinstance(value, str) and CODE_OF_VALUE.match(value):
            help = f"write its value, or 'call: …' with {name}={value} in it"
            yield Violation(("kwargs", name), f"{quote(value)} is text here, not code", help)
    if scenario.kwargs and is_static(scenario.layer):
        help = "write them into forward_fn"
        yield Violation(("kwargs",), "forward_fn takes no keywords", help, at_key=True)
    if call is None and layer_code is not EMPTY_CODE:
        yield from _find_ambiguous_layer(layer_code, framework)


# --------------------------------------------------------------------------- names
def find_words(scenario: Scenario) -> Container[str]:
    """Return all names in the code of a scenario; every name if some code is not Python.

    A module that the layer refers to is not read.
    """
    names = set[str]()
    for _, _, code in _find_pieces(scenario):
        if code is EMPTY_CODE:
            return EveryName()
        names |= code.words
    return names


def _find_pieces(scenario: Scenario) -> Iterator[tuple[DataPath, str, PythonCode]]:
    """Yield each piece of a scenario's code, with its path and its description for messages."""
    pieces: list[tuple[DataPath, str, str | None]] = [
        (("layer",), "the layer", scenario.layer_source),
        (("script",), "the script", scenario.script),
        (("call",), "call", scenario.call),
    ]
    for path, expect in scenario.expectations():
        for expression in expect.values:
            pieces.append(((*path, "values", expression), "the expression", expression))
    for path, role, source in pieces:
        if source is not None:
            yield path, role, find_code(source, role)


def find_misspelt_class(section: str, name: str, scenario: Scenario) -> Iterator[Violation]:
    """Yield a violation if the name of an exception or warning includes a module, or looks like a
    misspelt built-in name.

    Other names may come from libraries.
    """
    kind, known = KNOWN[section]
    if "." in name:
        last = name.rpartition(".")[2]
        message = f"{quote(name)} has a module in it: only the name of the {kind}'s class counts"
        yield Violation((), message, f"write {last}")
        return
    is_in_module = isinstance(scenario.layer, LayerRef)  # which is not read
    if name in known or is_in_module or name in find_words(scenario):
        return
    for near in difflib.get_close_matches(name, sorted(known), 1, MISSPELT):
        yield Violation((), f"there is no {kind} {quote(name)}", f"did you mean '{near}'?")


def find_unused_parameters(scenario: Scenario) -> Iterator[Violation]:
    """Yield the parameters that no code uses: all their values would run the same case."""
    used = {"dtype", "layout", "world", *variables(scenario.inputs)}
    for input in scenario.inputs.values():
        used.update(map(str, input.shape or ()))
    unused = length_parameters(scenario).keys() - used
    for name in unused:
        if name not in find_words(scenario):
            section = "sizes" if name in scenario.sizes else "matrix"
            otherwise = "use it in a shape, the layer, the call or an expression; 'dtype', "
            otherwise += "'layout' and 'world' have an effect without that; -b chooses backends"
            help = suggest(name, ("dtype", "layout", "world"), otherwise)
            if section == "sizes":
                help = "use it in a shape, or remove it"
            if name in Scenario.keys():  # noqa: SIM118 - of a class
                help = f"it is a key of a scenario: write '{name}: …' next to 'id'"
            elif name == "shape":
                help = "name the sizes: [N, 4] under inputs, and 'matrix: {N: [2, 3]}'"
            message = f"{section}: nothing uses {quote(name)}"
            yield Violation((section, name), message, help, at_key=True)


def _parse_python(source: str, role: str) -> PythonCode | Violation:
    """Return parsed code, or a violation if it cannot be parsed."""
    if not source.strip():
        return Violation((), f"{role} is empty", "write the code, or remove the key")
    if len(source) > MAX_CHARACTERS:
        help = "move it into a module, and refer to that with 'layer: {ref: …}'"
        message = f"{role} is longer than {MAX_CHARACTERS:,} characters"
        return Violation((), message, help)
    # eval() ignores spaces before an expression, the parser does not.
    code = source.lstrip(" \t") if _MODES[role] == "eval" else source
    try:
        parsed = PythonCode(code, _MODES[role])
        finders = (_find_stray_returns, _find_annotations, _find_packed)
        return next(chain.from_iterable(find(parsed.tree, role) for find in finders), parsed)
    except SyntaxError as error:
        place = (error.lineno or 1, (error.offset or 1) + len(source) - len(code), 1)
        help = ""
        key = re.match(r"\s*(\w+):(?:\s|$)", error.text or "")
        if key and key[1] in Scenario.keys():  # noqa: SIM118 - of a class
            return _key_in_code(key[1], role, place[0], key.start(1))
        line_above = source.splitlines()[max(0, place[0] - 2)].strip()
        if line_above.startswith("@") and error.msg == "unexpected indent":
            help = "write the line with 'def' below the decorator"
        elif prompt := re.match(r"\s*(>>>|\$|%|!|```)", error.text or ""):
            help = f"remove the {prompt[1]}: the code is Python only"
        elif _MODES[role] == "eval" and find_code(code, "the script") is not EMPTY_CODE:
            help = "write one expression, such as f(x, 2), without a statement such as y = …"
        problem = re.sub(r"\bline \d+", r"\g<0> of the code", error.msg)
        return Violation((), f"{role} is not valid Python: {problem}", help, inside=place)
    except (ValueError, RecursionError, MemoryError):
        return Violation((), f"{role} is too deeply nested for Python", "make it simpler")


def _find_stray_returns(tree: ast.AST, role: str) -> Iterator[Violation]:
    """Yield each ``return`` outside of a function, which only a compiler refuses."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    inside = {node for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node not in inside:
            place = (node.lineno, node.col_offset + 1, len("return"))
            message = f"{role}: 'return' outside of a function"
            yield Violation((), message, "indent it like the lines of the function", inside=place)


def _find_packed(tree: ast.AST, role: str) -> Iterator[Violation]:
    """Yield each name that a function sets to the tuple of all saved Tensors, and computes with as
    if it were a Tensor.
    """
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = [*ast.walk(function)]
        names = Counter(each.id for each in nodes if is_set(each))
        computed = {
            operand.id
            for node in nodes
            for operand in arithmetic_operands(node)
            if isinstance(operand, ast.Name)
        }
        for node in nodes:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            if reads_saved_tensors(node.value) and name in computed and names[name] == 1:
                message = f"{role}: {quote(ast.unparse(node.value))} is a tuple, not a Tensor"
                place = (node.lineno, node.col_offset + 1, len(name))
                yield Violation((), message, f"write {name},", inside=place)


def is_set(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether a node sets a name."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def arithmetic_operands(node: ast.AST) -> list[ast.expr]:
    """Return the operands of an arithmetic operation or comparison; empty for any other node."""
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp(op=ast.USub()):
            return [node.operand]
        case ast.Compare():
            return [node.left, *node.comparators]
    return []


def _find_annotations(tree: ast.AST, role: str) -> Iterator[Violation]:
    """Yield each ``key: value`` that Python reads as an annotation, which has no effect: a
    scenario's key that is indented like the code, and an assignment of a number with a ``:``.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.AnnAssign) or node.value is not None:
            continue
        target = ast.unparse(node.target)
        if node.col_offset == 0 and target in Scenario.keys():  # noqa: SIM118 - of a class
            yield _key_in_code(target, role, node.lineno, 0)
        elif isinstance(getattr(node.annotation, "value", None), (bool, int, float)):
            message = f"{role}: {quote(target)} is annotated here, not set"
            place = (node.lineno, node.col_offset + 1, len(target))
            yield Violation((), message, "write ' = ' in place of the ':'", inside=place)


def _key_in_code(key: str, role: str, line: int, offset: int) -> Violation:
    """Return the mistake of a scenario's key that is a line of its code."""
    message = f"{quote(key)} is a key of a scenario, and does not belong to {role}"
    place = (line, offset + 1, len(key))
    return Violation((), message, "indent it less, like the scenario's 'id'", inside=place)


def _pattern_mistake(pattern: str) -> PythonCode | Violation:
    """Return why a pattern cannot be compiled, or would take long to compile; None if it can.

    The search itself runs within the case's time limit.
    """
    if _WIDE_RANGE.search(pattern):
        message = "a range in a regular expression must end with an ASCII character"
        return Violation((), message, "write the characters one by one, such as [αβγ], or '.'")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        help = "put a backslash before (, ), [, ], ., *, +, ? where they are literal"
        return Violation((), f"not a regular expression: {error}", help)
    return EMPTY_CODE


def _find_ambiguous_layer(code: PythonCode, framework: str) -> Iterator[Violation]:
    """Yield a violation if the source of a layer does not determine which class to apply without
    ``call``.
    """
    layers = layer_classes(code.module)
    if static_forward(code.module) is not None or len(layers) == 1:
        return
    if layers:
        shown = [*layers.values()][-1:]
        message = f"the layer defines {len(layers)} classes to apply: {listing(layers, 'and')}"
        help = f"say what to run, such as 'call: {shown[0].name}.apply(x)'"
    else:
        shown = [statement for statement in code.module.body if isinstance(statement, ast.ClassDef)]
        message = "the layer defines no subclass of PyLayer or Function to apply"
        if framework == "jax":
            message = "the layer defines functions, but the scenario does not say which one to run"
        ways = {
            "paddle": "derive it from PyLayer, define forward_fn and backward_fn, or ",
            "torch": "derive it from Function, or ",
        }
        help = ways.get(framework, "") + "say what to run with 'call: …'"
    inside = (shown[0].lineno, 1, 1) if len(shown) == 1 else None
    yield Violation(("layer",), message, help, inside=inside)


def _find_unknown_name(scenario: Scenario, framework: str) -> Iterator[Violation]:
    """Yield a name that a scenario's code reads although nothing defines it."""
    if isinstance(scenario.layer, LayerRef):
        return  # the code may use names of its module, which is not imported here
    variable_names = [*variables(scenario.inputs), *length_parameters(scenario)]
    known = {*variable_names, *NAMES_IN_ALL_CODE, *names_of_framework(framework)}
    if isinstance(scenario.layer, LayerOp) and scenario.layer.op not in OPERATIONS:
        known.add(scenario.layer.name)  # an operation of an installed package
    pieces = [*_find_pieces(scenario)]
    for _, _, code in pieces:
        known |= code.global_names[1]
    expected = {expect.raises.type for _, expect in scenario.expectations() if expect.raises}
    for path, role, code in pieces:
        read = code.global_names[0]
        if "import *" in code.source or not MAKES_NAMES.isdisjoint({*read, *known, *expected}):
            return
        missing = read.keys() - known - ({*dir(builtins)} - INTERACTIVE)
        places = [(code.place_of(name, read[name]), name) for name in missing if name[:2] != "__"]
        for place, name in sorted((place, name) for place, name in places if place)[:1]:
            for _, other_role, other in pieces:
                if _MODES[other_role] == "exec":
                    variable_names += sorted(bound_names(other.module.body))
            here = arguments_at(code.tree, place[0])
            help = _advise_name(name, role, variable_names, known, framework, here)
            message = f"{role}: there is no {quote(name)}"
            yield Violation(path, message, help, role == "the expression", place)
            return


def _advise_name(
    name: str,
    role: str,
    variable_names: list[str],
    known: set[str],
    framework: str,
    arguments: list[str],
) -> str:
    """Return advice on an undefined name in a function with some arguments, or in none."""
    ready = listing(["np", *names_of_framework(framework)], "and")
    for other, names in NAMES_OF_FRAMEWORKS.items():
        if name in names:
            help = f"use {ready}; if the file's layers are {other}'s, write 'framework: {other}' at"
            return f"{help} its top"
    if name == "ctx":
        return (
            "forward and backward take it before their arguments, as in 'def forward(ctx, x):'; "
            "forward_fn and backward_fn have none, and use the inputs by name"
        )
    near = difflib.get_close_matches(name, {*dir(builtins)} - INTERACTIVE, 1, MISSPELT)
    if name in CONSTANTS_OF_YAML:
        near = [CONSTANTS_OF_YAML[name]]
    if near:
        return f"did you mean '{near[0]}'?"
    if role in ("the layer", "the script"):
        otherwise = f"import or define it in the code; {ready} need no import"
        if arguments:
            otherwise += f"; the arguments here are {listing(arguments, 'and')}"
    else:
        shown = variable_names[:MOST_SHOWN] or ["np"]
        if role == "the expression":
            shown = [*shown, "out"]
        otherwise = f"known are {listing(shown, 'and')}"
    return suggest(name, [*arguments, *sorted(known)], otherwise)


def arguments_at(tree: ast.AST, line: int) -> list[str]:
    """Return the names of the arguments of the innermost function around a line."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    return [argument.arg for argument in innermost.args.args] if innermost else []


def names_of_framework(framework: str) -> tuple[str, ...]:
    """Return the names of a framework's modules that code can use without an import; those of all
    frameworks if `framework` is unknown.
    """
    every = list[str]()
    for known, names in NAMES_OF_FRAMEWORKS.items():
        if known == framework:
            return names
        every += names
    return tuple(every)
