"""Nested lists and tuples of Variables, as functions of static programs return them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.tensor.nested import mapped


def leaves(value: Any) -> list[Any]:
    """Flatten nested lists and tuples, in order; a single value gives a list of one.

    Raises:
        TypeError: there is a dict, whose order may vary.
    """
    if isinstance(value, dict):
        raise TypeError(
            "a nest structure of Variables is made of lists and tuples, but got a dict. Return its "
            "values."
        )
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def rebuild(value: Any, new_leaves: Sequence[Any]) -> Any:
    """The structure of `value` with other leaves."""
    new = iter(new_leaves)
    return mapped(value, lambda _: next(new))
