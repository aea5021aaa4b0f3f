"""Names that code in a spec uses: each must be one that is there. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from gradcheck.spec.backend_rules import all_expectations
from gradcheck.spec.code import check_python
from gradcheck.spec.containers import variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.input_rules import sizes_named
from gradcheck.spec.python import CompileMode, PythonCode, nodes
from gradcheck.spec.size_rules import parameters_of
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node

GIVEN = frozenset({"np", "paddle", "PyLayer", "out"})
"""What code finds without importing it; ``out`` is what the layer returned."""
EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
Words = Callable[[], set[str] | None]
"""Gives all names in the code of a scenario; None where there is code that cannot be seen, or is no Python."""
MISSPELT = 0.85
"""How alike two names are, as difflib tells, of which one is the other misspelt: a letter or two in ten differ."""
NAMING = ("id", "attr", "name", "asname", "arg")
"""Fields of Python's syntax trees that hold a name."""
KNOWN = {
    "raises": ("exception", EXCEPTIONS),
    "warns": ("warning", frozenset(name for name in EXCEPTIONS if name.endswith("Warning"))),
}
"""Sections of an expectation that name a class, what that is, and Python's own of the kind."""


def words(tree: ast.AST) -> set[str]:
    """All names in code, whether it reads, sets or only mentions them."""
    found: set[str] = set()
    for node in nodes(tree):
        fields = vars(node)
        for field in NAMING:
            if isinstance(value := fields.get(field), str):
                found.add(value)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
    return found


def read_and_bound(expression: ast.AST) -> tuple[list[str], set[str]]:
    """The names that an expression reads; and those it binds: arguments of lambdas, targets of comprehensions."""
    read, bound = list[str](), set[str]()
    for node in nodes(expression):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name):
            read.append(node.id) if isinstance(node.ctx, ast.Load) else bound.add(node.id)
    return read, bound


def check_call(scenario: Node, call: Node, code: PythonCode | None, layer: PythonCode | None, text: SpecText) -> None:
    """Report the first name in ``call`` that neither the inputs, the matrix nor the layer's source give.

    `code` is what is compiled of ``call``, `layer` of the layer.
    """
    if code is None or scenario.incomplete or "script" in scenario.entries:
        return
    reference = scenario.mapping("layer").string("ref") or ""
    own = [*variables(scenario.mapping("inputs").entries), *parameters_of(scenario).entries]
    read, bound = read_and_bound(code.tree)
    statements = layer.tree.body if layer and isinstance(layer.tree, ast.Module) else []
    defined = {one.name for one in statements if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
    known = {*own, *GIVEN, reference.rpartition(":")[2].rpartition(".")[2], *defined, *bound}
    missing = [name for name in read if name not in known and not hasattr(builtins, name)]
    given = words(layer.tree) if missing and layer else set()
    for name in missing if "*" not in given else ():
        if name not in given:
            help = text.suggest(name, sorted(known | given)) or (f"the inputs are {listing(own, 'and')}" if own else "")
            text.report(*call.place, f"call: there is no {quote(name)}", help)
            return


def words_of(scenario: Node, text: SpecText) -> set[str] | None:
    """All names in the code of a scenario; None where there is code that cannot be seen, or is no Python."""
    layer, script, call = scenario.get("layer"), scenario.get("script"), scenario.get("call")
    if layer is not None and layer.get("ref"):
        return None
    found = set[str]()
    sources: list[tuple[Node, str, CompileMode]] = [
        *((one, "the layer", "exec") for one in (layer, script) if one is not None and isinstance(one.value, str)),
        *((one, "call", "eval") for one in (call,) if one is not None),
    ]
    for expect in all_expectations(scenario):
        sources += [(key, "the expression", "eval") for key, _ in expect.mapping("values").entries.values()]
    for node, what, mode in sources:
        code = check_python(node, text, what, mode)
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
            text.report(*type.place, f"there is no {kind} {quote(type.value)}", f"did you mean '{near[0]}'?")


def check_parameters(scenario: Node, code: Words, text: SpecText) -> None:
    """Report the parameters of the matrix that no code uses: all their values would run the same case."""
    inputs = variables(scenario.mapping("inputs").entries)
    sized = {size.text for _, input in scenario.mapping("inputs").entries.values() for size in sizes_named(input)}
    for name, (key, values) in parameters_of(scenario).entries.items():
        reported = (
            name in inputs
            or not name.isidentifier()
            or any(value.kind == "unreadable" for value in values.items)
            or not values.items
        )
        if reported or scenario.incomplete or name in ("dtype", "layout", "world") or name in sized:
            continue
        names, kind = code(), "size" if name in scenario.mapping("sizes").entries else "matrix parameter"
        if names is not None and name not in names:
            help = "use it in a shape, the layer, the call or an expression; 'dtype' and 'layout' work by themselves"
            text.report(*key.place, f"nothing uses the {kind} {quote(name)}", help)
