"""Strategies for Hypothesis: inputs of layers, for property tests of one's own.

from hypothesis import given
from gradcheck import assert_gradients, strategies

@given(strategies.inputs({"x": "B T C", "w": "C"}))
def test_norm(inputs):
    assert_gradients(Norm, *inputs.values())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcheck.exploring.examples import Example, drawn
from gradcheck.spec.input_words import InputWord, input_word
from gradcheck.support.suggest import hint


def inputs_from(
    call: str, mapping: Any, keywords: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs of a call that takes them as a mapping, or, as `dict` does, as keywords.

    No option is ever a text, and every input is one, so an input that has the name of an option is noticed here.

    Args:
        call: the beginning of such a call, for messages: ``explore(layer, ``.
        options: values of the call's own keywords.

    Raises:
        TypeError: an input stands where an option belongs, or the other way round, or there are no inputs.
    """
    for name, value in options.items():
        if isinstance(value, str):
            said = f"{call}{{{name!r}: {value!r}, …}})"
            raise TypeError(
                f"{name} is an option here, and not a text; an input of that name stands in a dict: {said}"
            )
    if mapping is None:
        if not keywords:
            raise TypeError(f"there are no inputs: give them as a dict, {call}{{'x': 'B T C'}})")
        return dict(keywords)
    if not isinstance(mapping, Mapping):
        raise TypeError(f"the inputs must be a dict, {call}{{'x': 'B T C'}}), not {mapping!r}")
    for name in keywords:
        known = hint(name, options, f"the options are {', '.join(options)}")
        raise TypeError(
            f"{name} is not an option: {known} (an input stands in the dict, with the others)"
        )
    if not mapping:
        raise TypeError(f"there are no inputs: {call}{{'x': 'B T C'}})")
    return dict(mapping)


def words_by_input(inputs: Mapping[str, str]) -> dict[str, InputWord]:
    """Inputs as Python has them: ``"B T C"``, ``"B:int64:below=5"``, ``"C~0.1..3"``, ``""`` for a scalar, by name.

    Raises:
        ValueError: one describes no input.
        TypeError: one is no text.
    """
    for name, text in inputs.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"{name} must be a text such as 'B T C', not {text!r}")
    return {
        name: input_word(f"{name}={'x'.join(text.split()) or 'scalar'}", True)
        for name, text in inputs.items()
    }


def arrays_of(example: Example) -> dict[str, np.ndarray[Any, Any]]:
    """The values of an example, in its dtypes; bfloat16 ones in float32."""
    kinds = {"bfloat16": "float32"}
    return {
        name: one.values.astype(kinds.get(one.dtype, one.dtype))
        for name, one in example.inputs.items()
    }


def inputs(
    shapes: Mapping[str, str] | None = None,
    *,
    dtypes: Sequence[str] = ("float64", "float32"),
    **keywords: str,
) -> Any:
    """A strategy of inputs: a dict of arrays by name.

    Args:
        shapes: by input, its sizes with spaces between them; capital letters are free sizes, the same for all. Behind
            them what `gradcheck explore` takes: ``{"x": "B T C", "k": "B:int64:below=5", "p": "C~0.1..3"}``.
        dtypes: those of floating inputs that name none.
        keywords: the inputs once more, for those who have no dict: ``inputs(x="B T C", w="C")``.

    Raises:
        ImportError: Hypothesis is not installed: ``pip install "gradcheck[explore]"``.
        ValueError: a text describes no input.
        TypeError: there are no inputs, or one stands where an option belongs.
    """
    wanted = inputs_from("inputs(", shapes, keywords, {"dtypes": dtypes})
    return drawn(words_by_input(wanted), dtypes, ("contiguous",)).map(arrays_of)
