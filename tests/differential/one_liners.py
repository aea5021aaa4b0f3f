"""Programs that run on both libraries, a line each: what no table of drawn arguments is needed for.

A program is an expression, or statements that end in setting `out`. It finds `paddle`, `F` (`paddle.nn.functional`),
`np`, and the Tensors of `tensors`, made anew for each run.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import one_liners_autograd
import one_liners_layers
import one_liners_members
import one_liners_modules
import one_liners_names
import one_liners_nn
import one_liners_observed
import one_liners_tensor
import one_liners_written
from described import Library
from outcome import TOLERANCE, Outcome, _names, describe_all

_FILES = (
    one_liners_tensor,
    one_liners_nn,
    one_liners_observed,
    one_liners_layers,
    one_liners_members,
    one_liners_modules,
    one_liners_names,
    one_liners_written,
    one_liners_autograd,
)

PROGRAMS: dict[str, str] = {name: source for file in _FILES for name, source in file.PROGRAMS.items()}
"""By path of the name that is shown; a word after it tells several programs of one name apart."""

DIFFERS: dict[str, tuple[str, str]] = {name: row for file in _FILES for name, row in file.DIFFERS.items()}
"""The facts (a pattern) in which a program is known to differ, and why."""

EXACT = TOLERANCE | {"float64": 1e-12, "complex128": 1e-12}
"""What is computed in double precision agrees to 1e-12 of the largest value."""


def _numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers in (-1, 1) that look random, none alike: multiples of the golden ratio, modulo 1."""
    count = int(np.prod(shape))
    return ((np.arange(1, count + 1) * 0.6180339887498949 % 1) * 1.94 - 0.97).reshape(shape)


def tensors(paddle: Library) -> tuple[dict[str, Any], list[Any]]:
    """The Tensors that programs find, and those among them that need a gradient."""
    matrix = _numbers(3, 3)
    leaves = {
        "x": _numbers(2, 3), "y": np.cos(_numbers(2, 3) * 5), "v": _numbers(3), "w": _numbers(3)[::-1].copy() * 2,
        "p": 1.3 + _numbers(2, 3), "s": np.array(0.7),
        "m": matrix + 2 * np.eye(3), "d": matrix @ matrix.T + np.eye(3), "z": _numbers(2, 3) + 1j * _numbers(3, 2).T,
        "seq": _numbers(2, 4, 7), "img": _numbers(2, 4, 6, 5), "vol": _numbers(1, 2, 4, 5, 4),
    }  # fmt: skip
    others = {
        "i": np.array([[3, 0, 2], [1, 5, 4]]), "k": np.array([2, 0, 1]), "b": np.array([[True, False, True], [False, True, True]]),
        "f": _numbers(2, 3).astype("float32"),
    }  # fmt: skip
    made = {
        name: paddle.to_tensor(values, stop_gradient=name in others) for name, values in {**leaves, **others}.items()
    }
    return made, [made[name] for name in leaves]


def run(paddle: Library, path: str) -> Outcome:
    """What a program does on a library."""
    source, found = PROGRAMS[path], Outcome()
    paddle.seed(7)
    inputs, leaves = tensors(paddle)
    space: dict[str, Any] = {"paddle": paddle, "F": paddle.nn.functional, "np": np, **inputs}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(source if "\n" in source or "out =" in source else f"out = {source}", space)
        except Exception as error:
            found.facts["error"] = type(error).__name__
            found.message, found.caught_as = str(error), _names(error)
            return found
        describe_all(paddle, space["out"], [], leaves, found)
    return found
