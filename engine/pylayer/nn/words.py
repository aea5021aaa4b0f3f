"""Other words that methods of layers take for their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def also(**words: str) -> Callable[[F], F]:
    """Have a method take other words for its arguments, as in Paddle: ``recurse="include_sublayers"``."""

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **in_own_words(words, kwargs))

        return call  # type: ignore[return-value]

    return decorate


def in_own_words(words: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their own names; one given in both words keeps the other, which then is one too many."""
    return {
        words[name] if words.get(name, name) not in given else name: value
        for name, value in given.items()
    }
