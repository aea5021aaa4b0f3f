"""Inputs that are lists or dicts of Tensors: each Tensor is an input of its own, named as Python has it, ``s[0]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_INDEX = re.compile(r"\[(\d+)\]|\['([^']+)'\]")


def inside(name: str, place: int | str) -> str:
    """The name of what is at a place of an input: ``s[0]``, ``d['a']``."""
    return f"{name}[{place!r}]"


def variable(name: str) -> str:
    """The variable that an input is in: ``s`` of ``s[0]``."""
    return name.partition("[")[0]


def variables(names: Iterable[str]) -> list[str]:
    """The variables that some inputs are in, each once, in order."""
    return list(dict.fromkeys(map(variable, names)))


class Container(dict[int | str, Any]):
    """What is in a list, by number, or in a dict, by key."""


def in_variables(values: Mapping[str, Any]) -> dict[str, Any]:
    """What belongs to inputs, in the variables that these are in: lists and dicts where they are in such."""
    if not any("[" in name for name in values):
        return dict(values)
    whole = Container()
    for name, value in values.items():
        places = [int(number) if number else key for number, key in _INDEX.findall(name)]
        *outer, last = [variable(name), *places]
        into = whole
        for place in outer:
            into = into.setdefault(place, Container())
        into[last] = value
    return {str(name): built(value) for name, value in whole.items()}


def built(value: Any) -> Any:
    """A value, or the list or dict that is in a container."""
    if not isinstance(value, Container):
        return value
    parts = {place: built(one) for place, one in value.items()}
    return [*parts.values()] if all(isinstance(place, int) for place in parts) else parts


def flat_names(name: str, value: Any) -> dict[str, Any]:
    """What is in nested lists, tuples and dicts under a name, by names of its own."""
    places = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, (list, tuple))
        else None
    )
    if places is None:
        return {name: value}
    return {
        key: one
        for place, part in places
        for key, one in flat_names(inside(name, place), part).items()
    }


def filled(name: str, value: Any, found: Mapping[str, Any]) -> Any:
    """Nested lists, tuples and dicts, with what is `found` under the names that `flat_names` gives in its place."""
    if isinstance(value, dict):
        return {key: filled(inside(name, key), one, found) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [filled(inside(name, place), one, found) for place, one in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return found.get(name, value)
