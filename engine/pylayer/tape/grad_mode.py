"""Grad mode: whether operations are recorded, and the switches for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

from pylayer.watch import recording_all

F = TypeVar("F", bound=Callable[..., Any])

grad_mode: ContextVar[bool] = ContextVar("grad_mode", default=True)
"""Whether operations are recorded. A context variable, so that threads and tasks have separate
modes.
"""


class grad_mode_set:  # noqa: N801 - a function in use
    """Set grad mode for a ``with`` block, or for each call of a decorated function or generator."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(grad_mode.set(self.enabled or recording_all()))

    def __exit__(self, *raised: object) -> None:
        grad_mode.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._of_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with grad_mode_set(self.enabled):
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    def _of_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A generator function whose steps run in the mode; between steps, callers have their own
        mode.
        """

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    with grad_mode_set(self.enabled):
                        value = step()
                except StopIteration as end:
                    return end.value
                try:
                    step = functools.partial(generator.send, (yield value))
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)

        return wrapper


class no_grad(grad_mode_set):  # noqa: N801
    """Stop recording; a context manager and, when called, a decorator."""

    def __init__(self) -> None:
        super().__init__(False)


def no_grad_around(func: Callable[..., Any] | None = None) -> Any:
    """``paddle.base.dygraph.no_grad``: the context `no_grad`, or a function wrapped in it."""
    return no_grad() if func is None else no_grad()(func)


class enable_grad(grad_mode_set):  # noqa: N801
    """Record again inside `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(grad_mode_set):  # noqa: N801
    """Set grad mode immediately; in a ``with`` block, until its end."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        super().__enter__()

    def __enter__(self) -> None:
        pass


def is_grad_enabled() -> bool:
    """Whether operations are recorded."""
    return grad_mode.get()
