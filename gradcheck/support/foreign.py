"""Objects of other people's, in words: an error or a value of a layer's may fail when it is asked to print itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gradcheck.support.suggest import nearest


def text_of(value: Any, how: Callable[[Any], str] = str) -> str:
    """What `value` prints as; its type where it cannot print itself, as an integer of 5,000 digits cannot."""
    try:
        return str.__str__(how(value))
    except Exception:
        return f"({type_name(value)} that cannot be printed)"


def repr_of(value: Any) -> str:
    """The ``repr`` of `value`, likewise."""
    return text_of(value, repr)


def type_name(value: Any) -> str:
    """The name of the type that `value` really has, whatever its ``__class__`` or metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


def described(error: BaseException) -> str:
    """An error in one line: its type and message, and its notes, as far as it has such."""
    notes = getattr(error, "__notes__", ())
    notes = [text_of(note) for note in notes] if isinstance(notes, (list, tuple)) else []
    return " · ".join(
        [f"{type_name(error)}: {text_of(error)}{attribute_meant(error)}".strip(), *notes]
    )


def attribute_meant(error: BaseException) -> str:
    """The attribute that its object has and that was likely meant, behind an error that says it has none."""
    if type(error) is not AttributeError or "did you mean" in text_of(error).lower():
        return ""
    with suppress(Exception):  # what an object of the user's says of itself
        near = nearest(
            str(error.name), [name for name in dir(error.obj) if not name.startswith("_")]
        )
        return f"; did you mean {near}?" if near else ""
    return ""
