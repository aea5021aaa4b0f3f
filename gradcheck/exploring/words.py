"""Inputs as words of the command line and of `gradcheck.explore` describe them."""

from __future__ import annotations

from collections.abc import Iterable
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
        return Input(**fields, **{"from": word.file}, key=word.key or None)
    if word.value is not None and not word.letters:
        values: Any = word.value if word.is_floating else int(word.value)
        for size in reversed(word.shape):
            values = (values,) * size
        return Input(**fields, values=values)
    if word.value is not None:
        return Input(**fields, shape=word.sizes, range=(word.value, word.value))
    if word.low is not None and word.high is not None:
        fields["range"] = word.low, word.high
    elif not word.is_floating:
        fields["below"] = word.below or (2 if word.dtype == "bool" else 10)
    return Input(**fields, shape=word.sizes)
