"""Scopes and other names that programs of static mode use around their code. Values live in their programs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from pylayer.static.recorder import in_dynamic_mode
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


def _eager(name: str) -> None:
    if not in_dynamic_mode():
        raise UnsupportedError(f"paddle.static.nn.{name} in static mode")


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: Any = None,
) -> list[Any]:
    """``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)``; in dynamic mode, where gradients flow through it.

    Raises:
        TypeError: `cond` or `body` cannot be called, or `loop_vars` is no list or tuple.
        ValueError: there are no `loop_vars`, or `body` returns another number of them.
        UnsupportedError: in static mode.
    """
    if not callable(cond) or not callable(body):
        raise TypeError("cond and body in while_loop should be callable.")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(
            f"loop_vars in while_loop should be a list or tuple, but got {type(loop_vars).__name__}."
        )
    if not loop_vars:
        raise ValueError("loop_vars in while_loop should not be empty.")
    _eager("while_loop")
    values = list(loop_vars)
    while bool(cond(*values)):
        found = body(*values)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(found) != len(values):
            raise ValueError(
                "body in while_loop should return the same arity (length and structure) and types as loop_vars"
            )
        values = found
    return values


def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]], default: Any = None, name: Any = None
) -> Any:
    """What the function of the first condition that holds returns; else that of `default`, or of the last pair.

    Raises:
        UnsupportedError: in static mode.
    """
    _eager("case")
    chosen = next((function for holds, function in pred_fn_pairs if bool(holds)), default)
    return (chosen or pred_fn_pairs[-1][1])()


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None) -> Any:
    """What the function of that number returns; else that of `default`, or of the largest number.

    Raises:
        UnsupportedError: in static mode.
    """
    _eager("switch_case")
    numbered = branch_fns and not isinstance(branch_fns, Mapping) and not callable(branch_fns[0])
    functions = dict(
        branch_fns if numbered or isinstance(branch_fns, Mapping) else enumerate(branch_fns)
    )
    last = functions[max(functions)]
    return functions.get(int(branch_index), default or last)()
