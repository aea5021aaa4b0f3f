"""Which name that Paddle has and the engine lacks an error was about."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from pylayer.nn.layer import Layer
from pylayer.release import paddles, release_names
from pylayer.tensor import Tensor
from pylayer.unsupported import UnsupportedError

CLASSES = {Tensor: "paddle.Tensor", Layer: "paddle.nn.Layer"}
"""The classes whose members are in the list."""

NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def missing_name(error: BaseException) -> str:
    """What Paddle has and the engine lacks, for which `error` was raised; empty if it was for another.

    The error is that of an attribute, of a module or a name to import, one that says so, or one raised from such.
    """
    found = ""
    if isinstance(error, UnsupportedError):
        found = error.what
    elif isinstance(error, ModuleNotFoundError) and error.name:
        owner, _, name = error.name.rpartition(".")
        found = in_release(paddles(owner), name)
    elif isinstance(error, ImportError) and (match := NOT_IMPORTED.match(str(error))):
        found = in_release(paddles(match[2]), match[1])
    elif isinstance(error, AttributeError) and error.name:
        found = next((path for owner in owners(error.obj) if (path := in_release(owner, error.name))), "")
    return found or (missing_name(error.__cause__) if error.__cause__ is not None else "")


def in_release(owner: str, name: str) -> str:
    """The dotted name if the release has it, else empty; also of a module that is not in the list as a whole."""
    return f"{owner}.{name}" if name in release_names().get(owner, ()) else ""


def owners(value: Any) -> list[str]:
    """What the release calls a module of the facade, a class, or the classes of an object."""
    if isinstance(value, ModuleType):
        return [paddles(value.__name__)]
    kind = value if isinstance(value, type) else type(value)
    return [name for known, name in CLASSES.items() if issubclass(kind, known)]
