"""The same small programs on the engine and on Paddle 3.3.1: values, dtypes, shapes, flags and errors."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np
import programs.cotangents
import programs.gradients
import programs.inplace
import programs.layers
import programs.layers_composed
import programs.layers_images
import programs.layers_later
import programs.layers_objectives
import programs.layers_sequences
import programs.rules
import programs.tensors  # noqa: F401 - they fill the table
import pytest
from described import args
from outcome import Outcome, differences, outcome
from programs.collected import LAYERS, PROGRAMS

import pylayer.paddle as engine
from pylayer.release import missing_name

EXACT = 1e-12
"""How far the values of a layer may lie apart, relative to the largest."""


class Known(NamedTuple):
    """A difference that is meant: in which facts (a pattern), and why."""

    facts: str
    reason: str


KNOWN: dict[str, Known] = {
    "backward_twice": Known("error", "Both refuse; a SystemError is what Paddle makes of its own check."),
    "a_chain_of_changes": Known("error", "exp_ keeps the result that it had in the engine, and its gradient is right; Paddle refuses."),
    "a_cotangent_is_not_cast_for_a_layer_that_says_so": Known(
        r"out\[1\] array", "A leaf's gradient has the dtype of the leaf; Paddle keeps what a layer returned (observed rule 34)."
    ),
}  # fmt: skip


def is_printed_so(fact: str, pair: Any) -> bool:
    """A gradient that a layer gave has stop_gradient False where the guide prints one; Paddle 3.3.1 gives True."""
    plain = [str(side).replace("stop_gradient=True", "stop_gradient=False") for side in pair]
    return pair == (False, True) if fact.endswith(" stop_gradient") else fact.endswith(" repr") and len({*plain}) == 1


def both(real: Any, name: str) -> tuple[Outcome, Outcome]:
    """What a program does on the engine and on Paddle; skipped, visibly, if the engine lacks a name that it uses."""
    try:
        PROGRAMS[name](engine)
    except Exception as error:
        if lacked := missing_name(error) or ("argument dim=" if "argument 'dim'" in str(error) else ""):
            pytest.skip(f"the engine has no {lacked}")
    ours, theirs = (outcome(library, functools.partial(PROGRAMS[name], library), args()) for library in (engine, real))
    return ours, theirs


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same(real: Any, name: str) -> None:
    ours, theirs = both(real, name)
    found = {fact: pair for fact, pair in differences(ours, theirs).items() if not is_printed_so(fact, pair)}
    known = KNOWN.get(name)
    unknown = {fact: pair for fact, pair in found.items() if known is None or not re.fullmatch(known.facts, fact)}
    assert not unknown, f"engine, Paddle: {unknown}"
    assert bool(found) == (known is not None), "no longer differs"


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_agrees_to_the_last_digits(real: Any, name: str) -> None:
    ours, theirs = both(real, name)
    assert theirs.error is None, theirs.message
    compared = 0
    for fact, value in theirs.facts.items():
        if fact.endswith(" value") and value.dtype.name == "float64":
            scale = max(1.0, float(np.abs(value).max(initial=0.0)))
            np.testing.assert_allclose(ours.facts[fact], value, rtol=EXACT, atol=EXACT * scale, err_msg=fact)
            compared += 1
    assert compared


def test_the_table_is_as_large_as_it_claims() -> None:
    assert len(PROGRAMS) - len(LAYERS) >= 60
    assert len(LAYERS) >= 20
    assert set(KNOWN) <= set(PROGRAMS)
