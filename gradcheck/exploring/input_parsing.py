"""Inputs as words of the command line and of `gradcheck.explore` describe them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gradcheck.spec.input_words import InputWord, input_words
from gradcheck.spec.model import Input


def inputs_of_words(texts: Iterable[str], letters: bool = False) -> dict[str, Input]:
    """Return the inputs that words such as ``x=2x3`` describe, by name.

    `letters` says whether sizes may be letters. Raises InputWordError: one describes no input.
    """
    return {name: input_of(word) for name, word in input_words(texts, letters).items()}


def input_of(word: InputWord) -> Input:
    """Return the input that a word describes."""
    fields: dict[str, Any] = {"stop_gradient": word.stopped, "ranks": word.ranks}
    if word.dtype != "float64":
        fields |= {"dtype": word.dtype, "dtype_written": True}
    if word.file:
        fields |= {"from": word.file, "key": word.key or None}
    elif word.value is not None and word.letters:
        fields |= {"shape": word.sizes, "range": (word.value, word.value)}
    elif word.value is not None:
        fields["values"] = nested_tuple(
            word.value if word.is_floating else int(word.value), word.shape
        )
    elif word.low is not None and word.high is not None:
        fields |= {"shape": word.sizes, "range": (word.low, word.high)}
    else:
        usual = None if word.is_floating else 10
        below = 2 if word.dtype == "bool" else usual
        fields |= {"shape": word.sizes, "below": word.below or below}
    return Input(**fields)


def nested_tuple(value: float, shape: Sequence[int]) -> Any:
    """Return nested tuples of one number."""
    nested: Any = value
    for size in reversed(shape):
        nested = (nested,) * size
    return nested
