"""The table of calls: a path to every public name of the facade, with the arguments that are drawn for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import calls_elementwise
import calls_linalg
import calls_more
import calls_nn
import calls_numbers
import calls_shape
import targets
from described import Arguments, Library
from hypothesis.strategies import SearchStrategy
from rows import SAME
from scripts import SCRIPTS, Script

import pylayer.paddle as facade


class Entry(NamedTuple):
    """What is called, on what, and whether its values are to agree (those drawn at random cannot)."""

    function: Callable[[Library, str], Callable[..., Any]]
    arguments: SearchStrategy[Arguments]
    values: bool = True
    few: bool = False
    """Whether fewer calls are drawn: of what few layers use."""


CALLS: dict[str, Any] = {
    **calls_elementwise.CALLS, **calls_shape.CALLS, **calls_numbers.CALLS, **calls_more.CALLS, **calls_linalg.CALLS,
}  # fmt: skip
FUNCTIONAL: dict[str, Any] = {**calls_elementwise.ACTIVATIONS, **calls_numbers.FUNCTIONAL, **calls_nn.FUNCTIONAL}
METHODS: dict[str, Any] = {**calls_elementwise.OPERATORS, **calls_shape.METHODS, **calls_more.METHODS}
FEW = {*calls_more.CALLS, *calls_more.METHODS, *calls_linalg.CALLS, *calls_linalg.SCRIPTS, *calls_nn.FUNCTIONAL}
"""The names of which fewer calls are drawn."""

RANDOM = calls_numbers.RANDOM | calls_more.RANDOM | calls_nn.RANDOM
"""The names whose values are drawn at random, and so cannot agree."""


def arguments_of(name: str, *tables: dict[str, Any]) -> Any:
    """The arguments for a name; an in-place form has those of the form without the underscore, unless its own."""
    bare = name.removesuffix("_")
    for candidate in (name, SAME.get(name), bare, SAME.get(bare)):
        for found in tables:
            if candidate in found:
                return found[candidate]
    return None


def is_rare(name: str) -> bool:
    """Whether few layers use a function."""
    return bool({name, name.removesuffix("_")} & FEW)


def entries() -> dict[str, Entry]:
    """The entries by path."""
    found = {}
    for module in targets.MODULES:
        if module == "distributed":  # of ranks: `gather` and `scatter` are others than those of Tensors
            continue
        own = (FUNCTIONAL, CALLS) if module in ("nn.functional", "special") else (CALLS,)
        for name in targets.public_names(facade, module):
            arguments = arguments_of(name, *own)
            if arguments is not None:
                found[f"{module}.{name}".lstrip(".")] = Entry(
                    targets.function, arguments, name not in RANDOM, is_rare(name)
                )
    for name in targets.tensor_names(facade):
        arguments = arguments_of(name, METHODS, CALLS)
        if arguments is not None:
            found[f"Tensor.{name}"] = Entry(targets.function, arguments, name not in RANDOM, is_rare(name))
    for path in [*names(), *(name for name in SCRIPTS if " " in name)]:
        script = script_of(path)
        if script and path not in found:
            found[path] = Entry(lambda paddle, path, run=script.run: functools.partial(run, paddle), script.arguments)
    return found


def names() -> list[str]:
    """The paths of all public names of the facade."""
    functions = [f"{m}.{n}".lstrip(".") for m in targets.MODULES for n in targets.public_names(facade, m)]
    return [*functions, *(f"Tensor.{name}" for name in targets.tensor_names(facade))]


def script_of(path: str) -> Script | None:
    """The script for a name: by its whole path, or by its last part unless that is a method."""
    last = path if path.startswith("Tensor.") else path.rpartition(".")[2]
    return SCRIPTS.get(path) or SCRIPTS.get(last)


ENTRIES = entries()
