"""Objects that a function's code can reach, and the leaves among them."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Collection, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from gradcheck.backends.base import Backend, Tensor, package_of
from gradcheck.case.names_in_code import CLOSED, is_installed, references_of_function


def unnamed(leaf: Tensor) -> str:
    """The name of a leaf that no variable has."""
    return f"a leaf of shape {list(leaf.shape)}"


def unused_name(name: str, used: Collection[str]) -> str:
    """A name, with a number where it is taken."""
    numbered = itertools.chain([name], (f"{name} ({k})" for k in itertools.count(2)))
    return next(candidate for candidate in numbered if candidate not in used)


def leaves_of(backend: Backend, function: Any) -> dict[str, Tensor]:
    """The leaves with a gradient that the code of a function refers to, such as a layer's
    parameters.

    Their names are those of variables, attributes or parameters; the shape where there is none.
    """
    names: dict[int, str] = {}
    leaves: dict[int, Tensor] = {}
    for value in reachable(function):
        for name, item in references(value):
            if isinstance(item, backend.tensor_type) and backend.is_parameter(item):
                leaves[id(item)] = item
                names[id(item)] = names.get(id(item)) or name
    found: dict[str, Tensor] = {}
    for key, leaf in leaves.items():
        found[unused_name(names[key] or unnamed(leaf), found)] = leaf
    return found


def reachable(function: Any) -> Iterator[Any]:
    """A function and all that its code refers to, each once.

    Installed packages other than the function's own are not followed.
    """
    seen, waiting, home = dict[int, Any](), [function], package_of(function)
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        package = package_of(value)
        is_followed = package not in CLOSED and (package == home or not is_installed(package))
        if is_followed or isinstance(value, (functools.partial, list, tuple, dict)):
            waiting += (item for _, item in references(value))


def references(value: Any) -> Iterator[tuple[str, Any]]:
    """The objects that a value refers to, with their names there; empty for those without one."""
    if isinstance(value, functools.partial):
        yield from (("", item) for item in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, MethodType):
        yield from (("", value.__func__), ("", value.__self__))
    elif isinstance(value, BuiltinFunctionType):
        yield "", value.__self__
    elif isinstance(value, FunctionType):
        yield from references_of_function(value)
    elif isinstance(value, (list, tuple)):
        yield from (("", item) for item in value)
    elif isinstance(value, dict):
        yield from ((key if isinstance(key, str) else "", item) for key, item in value.items())
    elif inspect.isclass(value):
        yield from ((name, getattr(item, "__func__", item)) for name, item in vars(value).items())
        yield from (("", base) for base in value.__bases__)
    elif not isinstance(value, ModuleType):
        if hasattr(type(value), "named_parameters"):  # a module
            yield from value.named_parameters()
        yield "", type(value)
        yield from getattr(value, "__dict__", {}).items()
