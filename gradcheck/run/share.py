"""Which cases may run one after another in the same process.

A fork for each case isolates whatever the case does, and costs milliseconds. Most layers only compute: their code
names nothing through which it could reach past the engine. Such cases share a process, as long as each leaves the
modules that all of them use as they were. What fails in a process that had run others before is run again in a new
one, so that no failure is ever reported that a neighbour could have caused.
"""

from __future__ import annotations

import ast
import functools
import itertools
import sys
from collections.abc import Iterator, Mapping
from operator import is_
from types import ModuleType
from typing import Any, NamedTuple

from gradcheck.case.case import Case

MOST_CASES = 100
"""Cases that a process runs at most, so that what they leave in its memory does not add up."""

HARMLESS = frozenset({
    "__future__", "abc", "cmath", "collections", "copy", "dataclasses", "enum", "functools", "itertools",
    "math", "numbers", "numpy", "paddle", "random", "statistics", "time", "typing", "warnings",
})  # fmt: skip
"""Modules that code may import and still share: what they keep is reset for every case, or is in the snapshot."""
POWERFUL = frozenset({
    "__builtins__", "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "exit", "getattr",
    "globals", "input", "locals", "open", "quit", "setattr", "vars", "as_strided", "ctypes", "ctypeslib",
    "f2py", "fromfile", "gc", "lib", "load", "load_library", "memmap", "os", "save", "savez",
    "savez_compressed", "setflags", "strides", "sys", "testing", "tofile", "_os", "_sys",
})  # fmt: skip
"""Names and attributes that lead to files, to raw memory, or to namespaces by name."""
PLAIN_DUNDERS = frozenset(["__all__", "__call__", "__doc__", "__future__", "__init__", "__name__"])
_PREDEFINED = frozenset({"np", "paddle", "PyLayer"})

JUDGES = (
    "gradcheck.backends", "gradcheck.case", "gradcheck.checker", "gradcheck.numeric", "gradcheck.result",
    "gradcheck.run",
    "numpy", "numpy._core.fromnumeric", "numpy._core.numeric", "numpy.linalg", "numpy.random",
)  # fmt: skip
"""Modules that gradcheck itself computes with: a case that leaves them changed cannot be judged."""
ENGINE = ("math", "paddle", "pylayer", "random", "time", "warnings")
"""Further ones that must be as they were for the next case in the same process."""


def is_contained(case: Case) -> bool:
    """Whether nothing in the code of `case` could reach past the engine."""
    return all(is_plain(code) for code in code_of(case))


def code_of(case: Case) -> Iterator[str]:
    """The Python code of a case, piece by piece; for a layer that is imported, an import of anything."""
    scenario = case.scenario
    yield from (code for code in (scenario.layer, scenario.script, scenario.call) if isinstance(code, str))
    yield from (expression.strip() for expression in scenario.expect_for(case.backend).values)
    if hasattr(scenario.layer, "ref"):
        yield "from anywhere import *"


@functools.lru_cache(maxsize=256)
def is_plain(code: str) -> bool:
    """Whether `code` imports and names nothing but what computes; False as well if it cannot be parsed."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {(one.asname or one.name).partition(".")[0] for node in imports for one in node.names}
    imported |= _PREDEFINED
    return all(_is_plain(node, imported) for node in nodes)


def _is_plain(node: ast.AST, imported: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return _is_plain_name(node.id)
    if isinstance(node, ast.Attribute):
        on = node.value
        on_module = isinstance(on, ast.Attribute) or (isinstance(on, ast.Name) and on.id in imported)
        return _is_plain_name(node.attr) and (isinstance(node.ctx, ast.Load) or not on_module)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return _is_plain_name(node.name)
    if isinstance(node, ast.Import):
        return all(_is_harmless(one.name) for one in node.names)
    if isinstance(node, ast.ImportFrom):
        return _is_harmless(node.module or "") and all(_is_plain_name(one.name) for one in node.names)
    return True


def _is_harmless(module: str) -> bool:
    top, *below = module.split(".")
    return top in HARMLESS and all(map(_is_plain_name, below))


def _is_plain_name(name: str) -> bool:
    return name not in POWERFUL and name != "*" and (not name.startswith("__") or name in PLAIN_DUNDERS)


class Namespace(NamedTuple):
    """A module or a class, and what it held."""

    name: str
    owner: Any
    saved: dict[str, Any]
    """Without the names that may change."""
    values: tuple[Any, ...]
    """All values, in their order: whatever is set, added or removed, they differ."""


class Snapshot:
    """What some modules, all that are below them (but for NumPy: it is large), and the classes in them consist of."""

    def __init__(self, names: tuple[str, ...]) -> None:
        below = tuple(f"{name}." for name in names if name != "numpy")
        modules = [
            module
            for name, module in list(sys.modules.items())
            if (name in names or name.startswith(below)) and type(module) is ModuleType
        ]
        owners: dict[int, tuple[str, Any]] = {id(module): (module.__name__, module) for module in modules}
        for module in modules:
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == module.__name__:
                    owners[id(value)] = (f"{module.__name__}.{value.__qualname__}", value)
        self.namespaces = [
            Namespace(
                name,
                owner,
                {key: value for key, value in vars(owner).items() if not _varies(key, value)},
                tuple(vars(owner).values()),
            )
            for name, owner in owners.values()
        ]
        self.counters = [
            (module, name)
            for module in modules
            for name, value in vars(module).items()
            if type(value) is itertools.count and name.startswith("_")  # others hold one that is public
        ]

    def restart_counters(self) -> None:
        """Have the engine number its Tensors and hooks from 0 again, as in a new process."""
        for module, name in self.counters:
            setattr(module, name, itertools.count())

    def changed(self) -> str:
        """The first name that is not what it was, such as ``numpy.abs``; empty if all are."""
        return next((f"{one.name}.{name}" for one in self.namespaces if (name := _difference(one))), "")


def _varies(name: str, value: Any) -> bool:
    """Whether a name may change: counters, where the calls of a case are counted, what is made on first use."""
    made = ("__init_subclass__", "__warningregistry__", "__pydantic", "__signature__")
    return isinstance(value, itertools.count) or name.startswith(made)


def _difference(one: Namespace) -> str:
    now: Mapping[str, Any] = vars(one.owner)
    if len(now) == len(one.values) and all(map(is_, now.values(), one.values)):  # at the speed of C
        return ""
    changed = (name for name, value in one.saved.items() if now.get(name) is not value)
    added = (  # a module that is imported on its first use is no change
        name
        for name, value in list(now.items())
        if name not in one.saved and not _varies(name, value) and not isinstance(value, ModuleType)
    )
    return next(itertools.chain(changed, added), "")
