"""Scopes and other names that programs of static mode use around their code. Values live in their programs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from pylayer.tensor.array import CPUPlace, Place
from pylayer.tensor.invalid import UnsupportedError


class Scope:
    """Where Paddle keeps the values of variables. The engine keeps them with the program: a scope is a mere token."""

    def var(self, name: str) -> Any:
        """Not there: raises UnsupportedError."""
        raise UnsupportedError("paddle.static.global_scope().var")

    def find_var(self, name: str) -> Any:
        """Not there: raises UnsupportedError."""
        raise UnsupportedError("paddle.static.global_scope().find_var")


_GLOBAL = Scope()
_current: ContextVar[Scope] = ContextVar("scope", default=_GLOBAL)


def global_scope() -> Scope:
    """The scope in force: that of the innermost `scope_guard`."""
    return _current.get()


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """A block in which `scope` is in force: only its name changes, as values are kept with their programs."""
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """A block whose operations Paddle names with a prefix; the engine's names stay."""
    yield


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """A block that Paddle runs on a device; the engine runs all of a program on the current one."""
    yield


def cpu_places(device_count: int | None = None) -> list[Place]:
    """As many places in host memory, one unless given."""
    return [CPUPlace() for _ in range(device_count or 1)]
