"""Inputs that are lists or dicts of Tensors: each Tensor is a separate input, named by its Python
expression, such as ``s[0]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_INDEX = re.compile(r"\[(\d+)\]|\['([^']+)'\]")


def inside(name: str, place: int | str) -> str:
    """The name of the item at a position of an input: ``s[0]``, ``d['a']``."""
    return f"{name}[{place!r}]"


def variable(name: str) -> str:
    """The variable that contains an input: ``s`` of ``s[0]``."""
    return name.partition("[")[0]


def variables(names: Iterable[str]) -> list[str]:
    """The variables that contain some inputs, each once, in order."""
    return list(dict.fromkeys(map(variable, names)))


class Container(dict[int | str, Any]):
    """Entries of a list, by number, or of a dict, by key."""


def in_variables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values per input as values per variable: in lists and dicts if the inputs are in lists
    and dicts.
    """
    root = Container()
    for name, value in values.items():
        places = [int(number) if number else key for number, key in _INDEX.findall(name)]
        *outer, last = [variable(name), *places]
        into = root
        for place in outer:
            into = into.setdefault(place, Container())
        into[last] = value
    return {str(name): build_container(value) for name, value in root.items()}


def build_container(value: Any) -> Any:
    """Return a value, or a container as a list or dict."""
    if not isinstance(value, Container):
        return value
    parts = {place: build_container(item) for place, item in value.items()}
    return [*parts.values()] if all(isinstance(place, int) for place in parts) else parts


def map_leaves(name: str, value: Any, leaf: Callable[[str, Any], Any]) -> Any:
    """Return nested lists, tuples and dicts with each leaf replaced by `leaf(name, value)`."""
    if isinstance(value, dict):
        return {key: map_leaves(inside(name, key), item, leaf) for key, item in value.items()}
    if not isinstance(value, (list, tuple)):
        return leaf(name, value)
    parts = [map_leaves(inside(name, place), item, leaf) for place, item in enumerate(value)]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


MapLeaves = Callable[[str, Any, Callable[[str, Any], Any]], Any]
"""The type of `map_leaves`, or of a function that handles more containers."""


def flat_names(name: str, value: Any, mapping: MapLeaves = map_leaves) -> dict[str, Any]:
    """Return the leaves of nested lists, tuples and dicts, keyed by their names below the given
    one.
    """
    leaves: dict[str, Any] = {}
    mapping(name, value, leaves.__setitem__)
    return leaves


def fill_leaves(
    name: str, value: Any, leaves: Mapping[str, Any], mapping: MapLeaves = map_leaves
) -> Any:
    """Return nested lists, tuples and dicts with their leaves replaced from `leaves`, by the names
    of `flat_names`.
    """
    return mapping(name, value, leaves.get)
