"""Families of functions over one, two and three spatial axes, generated from one computation and a
table of arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pylayer.ops.formats import FORMATS


def over_axes(
    compute: Callable[..., Any], name: str, arguments: Mapping[int, str]
) -> list[Callable[..., Any]]:
    """Build the functions of one computation, in the order of `arguments`.

    Args:
        compute: called with the function's name and number of axes, then with the arguments by
            name; it defines their defaults. Its docstring becomes theirs.
        name: with ``{}`` for the number of axes.
        arguments: the function's arguments in order, by number of axes. `data_format` defaults to
            Paddle's for that number of axes; a last argument `name` is accepted and ignored.
    """
    return [
        _function(compute, name.format(ndim), ndim, words.split())
        for ndim, words in arguments.items()
    ]


def _function(
    compute: Callable[..., Any], name: str, ndim: int, words: list[str]
) -> Callable[..., Any]:
    known = inspect.signature(compute).parameters
    usual = {"data_format": FORMATS[ndim][0]} if "data_format" in known else {}
    parameters = [
        known[word].replace(default=usual.get(word, known[word].default)) for word in words
    ]
    last = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    signature = inspect.Signature([*parameters, last])

    def function(*args: Any, **kwargs: Any) -> Any:
        values = signature.bind(*args, **kwargs).arguments
        values.pop("name", None)
        return compute(name, ndim, **{**usual, **values})

    function.__name__ = function.__qualname__ = name
    function.__module__ = compute.__module__
    function.__doc__ = f"Over {ndim} {'axis' if ndim == 1 else 'axes'}. {compute.__doc__}"
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
