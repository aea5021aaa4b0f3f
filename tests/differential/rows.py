"""A row of a known difference or crash, and what rows and their examples are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from described import Arguments, T
from outcome import Outcome

from pylayer.ops.spellings import ALIASES


def last_word(path: str) -> str:
    """The last part of a path, which rows name."""
    return re.split(r"[. ]", path)[-1]


SAME = {
    **ALIASES,
    **dict.fromkeys(("as_tensor", "asarray", "from_numpy"), "to_tensor"),
    **dict.fromkeys(("cat", "concatenate"), "concat"),
    "permute": "transpose", "swapdims": "swapaxes", "take_along_dim": "take_along_axis", "less": "less_than",
    "less_": "less_than_", "floor_mod": "mod", "floor_mod_": "mod_", "bitwise_invert": "bitwise_not",
    "bitwise_invert_": "bitwise_not_",
}  # fmt: skip
"""Other names of functions."""


def spellings(path: str) -> set[str]:
    """The names by which rows may mean a path: its last part, and what that is another name of."""
    name = last_word(path)
    return {name, SAME.get(name, name)}


class Known(NamedTuple):
    """A difference: of which names (last parts of paths; ``*`` for all), in which facts (a pattern), and why.

    `when` narrows it to some calls.
    """

    names: str
    facts: str
    reason: str
    example: Arguments
    when: Callable[[Arguments, Outcome, Outcome], bool] = lambda arguments, ours, real: True
    path: str = ""
    """Where the example is called, if not at the first name."""

    def covers(self, path: str, fact: str, arguments: Arguments, ours: Outcome, real: Outcome) -> bool:
        """Whether this row is about a difference."""
        named = self.names == "*" or bool(spellings(path) & set(self.names.split()))
        return named and re.fullmatch(self.facts, fact) is not None and self.when(arguments, ours, real)


class Crash(NamedTuple):
    """Calls that end or hang the process of the release: not made there; the example is, in a process of its own."""

    names: str
    reason: str
    example: Arguments
    when: Callable[[Arguments], bool]

    def covers(self, path: str, arguments: Arguments) -> bool:
        """Whether a call must not be made on Paddle."""
        return bool(spellings(path) & set(self.names.split())) and self.when(arguments)


def f64(*values: float, kind: str = "constant", shape: tuple[int, ...] | None = None, dtype: str = "float64") -> T:
    array = np.array(values, "float32" if dtype == "bfloat16" else dtype)
    return T(array if shape is None else array.reshape(shape), dtype, kind)


def i64(*values: int, shape: tuple[int, ...] | None = None, dtype: str = "int64") -> T:
    array = np.array(values, dtype)
    return T(array if shape is None else array.reshape(shape), dtype)


def mask(*values: bool, shape: tuple[int, ...] | None = None) -> T:
    return i64(*values, shape=shape, dtype="bool")


def leaf(*values: float, shape: tuple[int, ...] | None = None, dtype: str = "float64") -> T:
    return f64(*values, kind="leaf", shape=shape, dtype=dtype)


def result(*values: float, shape: tuple[int, ...] | None = None) -> T:
    return f64(*values, kind="result", shape=shape)


def no_kernel(arguments: Arguments, ours: Outcome, real: Outcome) -> bool:
    return "kernel_key.backend()" in real.message or "is not registered" in real.message


def first(arguments: Arguments) -> Any:
    return arguments.args[0]


def ndim(value: Any) -> int:
    return value.values.ndim if isinstance(value, T) else -1


GRADIENT = r"gradient \d .*"
FLAGS = r"(out|input 0)(\[\d\])? (stop_gradient|is_leaf|repr)"
RESERVED = "Paddle lets this pass; the engine says what is wrong."
UNINITIALISED = "Paddle reads memory that it did not write."
LABELS = "Paddle gives labels, targets and weights of a loss no gradient; the engine differentiates in all inputs."
