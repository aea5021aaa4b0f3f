"""Alternative names for arguments of layers' methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def also(**words: str) -> Callable[[F], F]:
    """Let a method accept other names for its arguments, as in Paddle:
    ``recurse="include_sublayers"``.

    If both names of an argument are given, both are passed on, which is an error.
    """

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            for word in words.keys() & kwargs.keys():
                if words[word] not in kwargs:
                    kwargs[words[word]] = kwargs.pop(word)
            return method(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
