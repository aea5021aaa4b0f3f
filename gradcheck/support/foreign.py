"""Text of errors and values from the user's code, which may fail to print themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gradcheck.support.called_function import advise_on_arguments
from gradcheck.support.suggest import nearest


def text_of(value: Any, how: Callable[[Any], str] = str) -> str:
    """Return the ``str`` of `value`; its type if that fails, as for a very large integer."""
    try:
        return str.__str__(how(value))
    except Exception:
        return f"({type_name(value)} that cannot be printed)"


def repr_of(value: Any) -> str:
    """Return the ``repr`` of `value`; its type if that fails."""
    return text_of(value, repr)


def type_name(value: Any) -> str:
    """Return the name of the type of `value`, whatever its ``__class__`` or metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


def describe_error(error: BaseException) -> str:
    """Return an error in one line: its type and message, and its notes."""
    notes = getattr(error, "__notes__", ())
    notes = [text_of(note) for note in notes] if isinstance(notes, list) else []  # may be anything
    message = f"{type_name(error)}: {text_of(error)}{advise(error)}"
    return " · ".join([message.strip(), *notes])


def advise(error: BaseException) -> str:
    """Return what was likely meant: another attribute in place of a missing one, the call of a
    method in place of the method, or the arguments that a function takes.
    """
    message, near = text_of(error), ""
    if type(error) is TypeError:
        if re.search(r"(\b|_)method(' | object)", message):
            return "; is the () of a call missing?"
        with suppress(Exception):  # the user's objects may fail to show themselves
            return advise_on_arguments(error, message)
    if type(error) is not AttributeError or "did you mean" in message.lower():
        return ""
    if inspect.isroutine(error.obj):
        return "; is the () of a call missing?"
    with suppress(Exception):  # the user's object may fail to list its names
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        near = nearest(str(error.name), names)
        near += "()" if inspect.isroutine(getattr(error.obj, near)) else ""
    return f"; did you mean {near}?" if near else ""
