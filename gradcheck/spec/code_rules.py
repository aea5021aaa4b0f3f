"""Rules for Python code in a spec: its syntax and its names. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import re
from collections.abc import Container, Iterator
from contextlib import suppress

from gradcheck.spec.containers import variables
from gradcheck.spec.diagnostic import listing, quote, suggest
from gradcheck.spec.input_rules import length_parameters
from gradcheck.spec.literals import NAMES_OF_FRAMEWORKS
from gradcheck.spec.model import LayerRef, Scenario, is_static
from gradcheck.spec.python import (
    CompileMode,
    PythonCode,
    bound_names,
    layer_classes,
    read_and_bound,
    static_forward,
)
from gradcheck.spec.violation import Violation, below, find_conflicts

MAX_CHARACTERS = 20_000
"""The most names in one piece of code: part of the work of Python's compiler grows with names times
scopes (35 ms at this limit).
"""
MISSPELT = 0.85
"""The similarity, by difflib's measure, from which one name may be a misspelling of another: one or
two letters in ten differ.
"""

GIVEN = frozenset({"np", "out"}.union(*NAMES_OF_FRAMEWORKS.values()))
"""Names of any framework that code can use without importing them; ``out`` is the layer's
result.
"""
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
# `re` makes a table of 64 kB for a range that ends beyond ASCII, and with (?i) looks at each
# character in it: a pattern of 1,000 characters takes 0.4 s, or a minute.
_WIDE_RANGE = re.compile(r"\[.*-(?:[^\x00-\x7f]|\\[uUN])", re.DOTALL)
PATTERN = "the pattern"
EMPTY_CODE = PythonCode("", "exec")
"""Placeholder for code that is missing or not Python."""
_MODES: dict[str, CompileMode] = {
    "the layer": "exec",
    "the script": "exec",
    "call": "eval",
    "the expression": "eval",
}


class EveryName:
    """The set of names of code that cannot be read: it contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


# --------------------------------------------------------------------------- syntax
@functools.lru_cache(maxsize=256)  # what many scenarios inherit is compiled once
def _compile(source: str, role: str) -> PythonCode | Violation:
    """Return the code of `source`, or its mistake; `role` describes it in messages."""
    return _pattern_mistake(source) if role == PATTERN else _compile_anew(source, role)


def find_syntax_mistakes(source: str | None, role: str) -> Iterator[Violation]:
    """Yield why `source` cannot be compiled; `role` describes it in messages."""
    if source is not None and isinstance(mistake := _compile(source, role), Violation):
        yield mistake


def find_code(source: str | None, role: str) -> PythonCode:
    """Return the code of `source`; `EMPTY_CODE` if there is none, or if it is not Python."""
    code = EMPTY_CODE if source is None else _compile(source, role)
    return code if isinstance(code, PythonCode) else EMPTY_CODE


# --------------------------------------------------------------------------- programs
def find_program_mistakes(scenario: Scenario) -> Iterator[Violation]:
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
    if scenario.kwargs and is_static(scenario.layer):
        help = "write them into forward_fn"
        yield Violation(("kwargs",), "forward_fn takes no keywords", help, at_key=True)
    if call is not None:
        yield from _find_unknown_name(scenario, find_code(call, "call"), layer_code)
    elif layer_code is not EMPTY_CODE:
        yield from _find_ambiguous_layer(layer_code)


# --------------------------------------------------------------------------- names
def find_words(scenario: Scenario) -> Container[str]:
    """Return all names in the code of a scenario; `ANY_NAME` if some code cannot be read, or is not
    Python.
    """
    if isinstance(scenario.layer, LayerRef):
        return EveryName()
    pieces = [
        ("the layer", scenario.layer_source),
        ("the script", scenario.script),
        ("call", scenario.call),
    ]
    for _, expect in scenario.expectations():
        pieces += [("the expression", expression) for expression in expect.values]
    names = set[str]()
    for role, source in pieces:
        code = find_code(source, role)
        if source is not None and code is EMPTY_CODE:
            return EveryName()
        names |= code.words
    return names


def find_misspelt_class(section: str, name: str, scenario: Scenario) -> Iterator[Violation]:
    """Yield a violation if the name of an exception or warning looks like a misspelt built-in one.

    Others may come from libraries.
    """
    kind, known = KNOWN[section]
    if name in known or name in find_words(scenario):
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
            help = "use it in a shape, the layer, the call or an expression; 'dtype' and "
            help += "'layout' have an effect without that"
            message = f"{section}: nothing uses {quote(name)}"
            yield Violation((section, name), message, help, at_key=True)


def _compile_anew(source: str, role: str) -> PythonCode | Violation:
    """Return compiled code, or its mistake."""
    if not source.strip():
        return Violation((), f"{role} is empty", "write the code, or remove the key")
    if len(source) > MAX_CHARACTERS:
        help = "move it into a module, and refer to that with 'layer: {ref: …}'"
        message = f"{role} is longer than {MAX_CHARACTERS:,} characters"
        return Violation((), message, help)
    # eval() ignores spaces before an expression, the parser does not.
    code = source.lstrip(" \t") if _MODES[role] == "eval" else source
    try:
        return PythonCode(code, _MODES[role])
    except SyntaxError as error:
        place = (error.lineno or 1, (error.offset or 1) + len(source) - len(code), 1)
        message, help = f"{role} is not valid Python: {error.msg}", ""
        with suppress(SyntaxError):
            ast.parse(code)
            help = "write one expression, without a statement such as y = …"
        return Violation((), message, help, inside=place)
    except (ValueError, RecursionError, MemoryError):
        return Violation((), f"{role} is too deeply nested for Python", "make it simpler")


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


def _find_ambiguous_layer(code: PythonCode) -> Iterator[Violation]:
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
        help = "derive it from PyLayer, define forward_fn and backward_fn, or say what to run with "
        help += "'call: …'"
    inside = (shown[0].lineno, 1, 1) if len(shown) == 1 else None
    yield Violation(("layer",), message, help, inside=inside)


def _find_unknown_name(
    scenario: Scenario, call: PythonCode, layer: PythonCode
) -> Iterator[Violation]:
    """Yield the first name in ``call`` that neither the inputs, the matrix nor the layer's source
    define.
    """
    if isinstance(scenario.layer, LayerRef):
        return  # the names of its module may be used, and it is not imported here
    variable_names = [*variables(scenario.inputs), *length_parameters(scenario)]
    read, bound = read_and_bound(call.tree)
    known = {*variable_names, *GIVEN, *bound, *layer.words}
    missing = [name for name in read if name not in known and not hasattr(builtins, name)]
    if missing and "*" not in known:
        otherwise = f"known are {', '.join(variable_names)} and what the layer defines"
        candidates = sorted({*variable_names, *GIVEN, *bound_names(layer.module.body)})
        help = suggest(missing[0], candidates, otherwise)
        yield Violation(("call",), f"call: there is no {quote(missing[0])}", help)
