"""Strategies for Hypothesis: inputs of layers, for property tests of one's own.

from hypothesis import given
from gradcheck import assert_gradients, strategies

@given(strategies.inputs(x="B T C", w="C"))
def test_norm(inputs):
    assert_gradients(Norm, *inputs.values())
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcheck.exploring.examples import Example, drawn
from gradcheck.spec.input_words import InputWord, input_word


def words_by_input(inputs: dict[str, str]) -> dict[str, InputWord]:
    """Inputs as Python has them: ``x="B T C"``, ``k="B:int64:below=5"``, ``p="C~0.1..3"``, ``s=""`` for a scalar.

    Raises:
        ValueError: one describes no input.
        TypeError: one is no text.
    """
    for name, text in inputs.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a text such as 'B T C', not {text!r}")
    return {name: input_word(f"{name}={'x'.join(text.split()) or 'scalar'}", True) for name, text in inputs.items()}


def arrays_of(example: Example) -> dict[str, np.ndarray[Any, Any]]:
    """The values of an example, in its dtypes; bfloat16 ones in float32."""
    kinds = {"bfloat16": "float32"}
    return {name: one.values.astype(kinds.get(one.dtype, one.dtype)) for name, one in example.inputs.items()}


def inputs(*, dtypes: Sequence[str] = ("float64", "float32"), **shapes: str) -> Any:
    """A strategy of inputs: a dict of arrays by name.

    Args:
        dtypes: those of floating inputs that name none.
        shapes: by input, its sizes with spaces between them; capital letters are free sizes, the same for all. Behind
            them what `gradcheck explore` takes: ``k="B:int64:below=5"``, ``p="C~0.1..3"``.

    Raises:
        ImportError: Hypothesis is not installed: ``pip install "gradcheck[explore]"``.
        ValueError: a text describes no input.
    """
    return drawn(words_by_input(shapes), dtypes, ("contiguous",)).map(arrays_of)
