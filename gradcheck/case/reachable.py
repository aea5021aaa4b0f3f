"""What a function's code can reach: the objects that it refers to, and the leaves with a gradient among them."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from gradcheck.backends.base import Backend, Tensor, package_of
from gradcheck.case.function import unnamed, unused_name
from gradcheck.case.names_in_code import CLOSED, cell_is_set, codes_in, is_installed, names_in


def leaves_of(backend: Backend, function: Any) -> dict[str, Tensor]:
    """The leaves that need a gradient and that the code of a function refers to, such as the parameters of a layer, by
    the names of their variables, attributes or parameters; of those in lists the shape is the name."""
    names: dict[int, tuple[str, Tensor]] = {}
    for value in reachable(function):
        for name, item in named_references(backend, value):
            is_leaf = (
                isinstance(item, backend.paddle.Tensor) and item.is_leaf and not item.stop_gradient
            )
            if is_leaf and not names.get(id(item), ("", None))[0]:
                names[id(item)] = name, item
    found: dict[str, Tensor] = {}
    for name, leaf in names.values():
        found[unused_name(name or unnamed(leaf), found)] = leaf
    return found


def named_references(backend: Backend, value: Any) -> Iterator[tuple[str, Any]]:
    """What a value refers to, with the names that it has there; an empty one for what has none."""
    if isinstance(value, FunctionType):
        yield from (
            (name, value.__globals__[name])
            for name in names_in(value.__code__)
            if name in value.__globals__
        )
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells if cell_is_set(cell))
        defaults = value.__defaults__ or ()
        positional = value.__code__.co_varnames[: value.__code__.co_argcount]
        yield from zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
        yield from (value.__kwdefaults__ or {}).items()
    elif isinstance(value, backend.paddle.nn.Layer):
        yield from value.named_parameters()
    elif isinstance(value, dict):
        yield from ((key, item) for key, item in value.items() if isinstance(key, str))
    elif not isinstance(value, (ModuleType, list, tuple)):
        yield from getattr(value, "__dict__", {}).items()
    yield from (("", item) for item in references(value))


def reachable(function: Any) -> Iterator[Any]:
    """A function and all that its code refers to, each once; of installed packages other than its own, no further."""
    seen, waiting, home = dict[int, Any](), [function], package_of(function)
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        package = package_of(value)
        looked_into = package not in CLOSED and (package == home or not is_installed(package))
        if looked_into or isinstance(value, (functools.partial, list, tuple, dict)):
            waiting += references(value)


def references(value: Any) -> Iterator[Any]:
    """What a function's code names among its globals, closure and defaults; of a class its functions; of others both
    their class's and what they hold."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, BuiltinFunctionType):
        yield value.__self__
    elif isinstance(value, FunctionType):
        yield from (
            value.__globals__[name]
            for name in names_in(value.__code__)
            if name in value.__globals__
        )
        steps = (step for one in codes_in(value.__code__) for step in dis.get_instructions(one))
        imported = (step.argval for step in steps if step.opname == "IMPORT_NAME")
        yield from (sys.modules[name] for name in imported if name in sys.modules)
        yield from (cell.cell_contents for cell in value.__closure__ or () if cell_is_set(cell))
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif inspect.isclass(value):
        yield from (getattr(item, "__func__", item) for item in vars(value).values())
        yield from value.__bases__
    elif not isinstance(value, ModuleType):
        yield type(value)
        yield from getattr(value, "__dict__", {}).values()
