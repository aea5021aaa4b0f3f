"""The options of a check from Python: what each may be, said in the error where it is something else."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from math import prod
from numbers import Real
from typing import Any, get_args

from gradcheck.case.arguments import WorldOf
from gradcheck.case.evaluation_points import DTYPES
from gradcheck.case.expectation import Expectation
from gradcheck.case.world_call import Declared, WorldArgument
from gradcheck.causes.summary import Effort, Mode
from gradcheck.checking.verdict import Precision
from gradcheck.spec.model import MOST_RANKS, Axis

MOST_SEED = 2**32 - 1


def validate_options(
    order: Any, mode: Any, seed: Any, rtol: Any, points: Any, dtypes: Any, expect: Any, effort: Any, precision: Any
) -> None:
    """Accept the options of `gradcheck.check`.

    Raises:
        TypeError: one is of the wrong type, or `order` is neither 1 nor 2.
        ValueError: one has a value that it cannot have.
    """
    if whole_number("order", order, "1 or 2") not in (1, 2):
        raise TypeError(f"order must be 1 or 2, not {order!r}")
    one_of("mode", mode, get_args(Mode))
    one_of("expect", expect, get_args(Expectation))
    one_of("effort", effort, get_args(Effort))
    one_of("precision", precision, get_args(Precision))
    if not 0 <= whole_number("seed", seed, "a whole number from 0 to 2**32 − 1") <= MOST_SEED:
        raise ValueError(f"seed must be a whole number from 0 to 2**32 − 1, not {seed!r}")
    if whole_number("points", points, "a whole number of at least 1") < 1:
        raise ValueError(f"points must be a whole number of at least 1, not {points!r}")
    if rtol is not None:
        tolerance(rtol)
    if isinstance(dtypes, str) or not isinstance(dtypes, Sequence):
        raise TypeError(f"dtypes must be a list of names such as ['float64', 'float32'], not {dtypes!r}")
    for dtype in dtypes:
        one_of("each of dtypes", dtype, tuple(DTYPES))


def declared_world(world: Any, outputs: Any, random: Any, order: int, inputs: Sequence[Any]) -> WorldOf | None:
    """What is declared of a world, once it is known what its inputs stand for; None without a world.

    Raises:
        TypeError: an option is of the wrong type, or one that belongs to a world is given without it.
        ValueError: an option has a value that it cannot have.
    """
    words: Any = [outputs] if isinstance(outputs, str) else outputs
    if not isinstance(words, Sequence):
        raise TypeError(f"outputs must be 'split' or 'replicated', or a list of these words, not {outputs!r}")
    for word in words:
        one_of("outputs", word, ("split", "replicated"))
    one_of("random", random, ("by-rank", "same"))
    if world is None:
        marked = any(isinstance(value, WorldArgument) for value in inputs)
        if marked or outputs != "split" or random != "by-rank":
            raise TypeError(
                "replicated, partial, outputs and random are for a world of ranks: give world=4, for example"
            )
        return None
    degrees = world if isinstance(world, Mapping) else {}
    for axis in degrees:
        one_of("each axis of world", axis, get_args(Axis))
    sizes = list(degrees.values()) if degrees else [world]
    for size in sizes:
        if not 1 <= whole_number("world", size, "a number of ranks, or of ranks by axis") <= MOST_RANKS:
            raise ValueError(f"world must be 1 to {MOST_RANKS} ranks, not {size!r}")
    if prod(sizes) > MOST_RANKS:
        raise ValueError(f"world must be 1 to {MOST_RANKS} ranks, not {prod(sizes)}")
    if order == 2:
        raise ValueError("order must be 1 in a world of ranks: second derivatives are not checked there")
    return lambda stands: Declared(prod(sizes), stands, tuple(words), degrees, random == "same")


def whole_number(name: str, value: Any, allowed: str) -> int:
    """A whole number that is no boolean. Raises TypeError."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be {allowed}, not {value!r}")


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """One of these words. Raises TypeError and ValueError."""
    text = f"{name} must be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}, not {value!r}"
    if not isinstance(value, str):
        raise TypeError(text)
    if value not in allowed:
        raise ValueError(text)


def tolerance(rtol: Any) -> None:
    """A number from 0 up to, but not including, 1. Raises TypeError and ValueError."""
    text = f"rtol must be a number of at least 0 and below 1, or None, not {rtol!r}"
    if isinstance(rtol, bool) or not isinstance(rtol, Real):
        raise TypeError(text)
    if not 0 <= float(rtol) < 1:
        raise ValueError(text)
