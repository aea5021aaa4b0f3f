"""Examples as a strategy of Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from gradcheck.exploring.examples import KINDS_OF_VALUES, Recipe, build
from gradcheck.spec.input_words import InputWord
from gradcheck.spec.model import Layout

SIZES = (1, 2, 3, 4, 5, 1, 2, 3, 4, 0, 7, 8, 9, 16, 17, 33)
"""What a free size is drawn from: small ones mostly, none at all, and those around powers of two, where blocks end."""


def aliases(words: Mapping[str, InputWord]) -> dict[str, str]:
    """By input, the first of the same word: what could lie in the same memory."""
    first: dict[InputWord, str] = {}
    found = {name: first.setdefault(word._replace(name=""), name) for name, word in words.items() if word.is_floating}
    return {name: other for name, other in found.items() if name != other}


def drawn(words: Mapping[str, InputWord], dtypes: Sequence[str], layouts: Sequence[str] = get_args(Layout)) -> Any:
    """The strategy of `gradcheck.exploring.examples.Example` for some inputs.

    Args:
        dtypes: those of floating inputs whose word names none.
        layouts: those of inputs with several axes.

    Raises:
        ImportError: Hypothesis is not installed.
    """
    from hypothesis import strategies as st

    letters = list(dict.fromkeys(letter for word in words.values() for letter in word.letters))

    @st.composite
    def example(draw: Any) -> Any:
        sizes = {letter: draw(st.sampled_from(SIZES)) for letter in letters}
        dtype = draw(st.sampled_from(list(dtypes)))
        kinds = {
            name: draw(st.sampled_from(list(KINDS_OF_VALUES)))
            for name, word in words.items()
            if word.is_floating and word.low is None and word.value is None
        }
        laid = {name: draw(st.sampled_from(list(layouts))) for name, word in words.items() if len(word.sizes or ()) > 1}
        alike = aliases(words) if len(layouts) > 1 else {}
        shared = {name: other for name, other in alike.items() if draw(st.integers(0, 7)) == 0}
        return build(words, Recipe(sizes, dtype, kinds, laid, draw(st.integers(0, 2**16)), shared))

    return example()
