"""Hypothesis strategies that draw inputs of layers, for your own property tests.

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

from gradcheck.exploring.examples import Example, example_strategy
from gradcheck.spec.input_words import inputs_of_words
from gradcheck.spec.model import Input
from gradcheck.support.suggest import hint


def inputs_from(
    call: str, mapping: Any, keywords: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Input]:
    """Return the inputs of a call that takes them as a mapping or, like `dict`, as keywords.

    Options are never texts and inputs always are, so an input with the name of an option is
    detected here.

    Args:
        call: the beginning of the call, for messages: ``explore(layer, ``.
        mapping: by name, arguments of `parse_inputs`.
        options: values of the call's own keywords.

    Raises:
        TypeError: an input and an option are mixed up, inputs are missing, or an input is not a
            text.
        ValueError: a text does not describe an input.
    """
    for name, value in options.items():
        if isinstance(value, str):
            meant = f"{call}{{{name!r}: {value!r}, …}})"
            raise TypeError(
                f"{name} is an option and cannot be a string; put an input of that name into a "
                f"dict: {meant}"
            )
    inputs = keywords if mapping is None else mapping
    if not isinstance(inputs, Mapping):
        raise TypeError(f"the inputs must be a dict, {call}{{'x': 'B T C'}}), not {inputs!r}")
    if not inputs:
        raise TypeError(f"there are no inputs: give them as a dict, {call}{{'x': 'B T C'}})")
    if inputs is not keywords and keywords:
        name = next(iter(keywords))
        known = hint(name, options, f"the options are {', '.join(options)}")
        raise TypeError(
            f"{name} is not an option: {known} (put the input into the dict, with the others)"
        )
    return parse_inputs(inputs)


def parse_inputs(texts: Mapping[str, str]) -> dict[str, Input]:
    """Return the inputs that ``"B T C"``, ``"B:int64:below=5"``, ``"C~0.1..3"``, ``""`` describe.

    Raises:
        TypeError: an input is not a text.
        ValueError: a text does not describe an input.
    """
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"{name} must be a text such as 'B T C', not {text!r}")
    words = (f"{name}={'x'.join(text.split()) or 'scalar'}" for name, text in texts.items())
    return inputs_of_words(words, letters=True)


def arrays_of(example: Example) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values of an example, in its dtypes; bfloat16 ones in float32."""
    dtypes = {name: str(spec.dtype) for name, spec in example.inputs.items()}
    return {
        name: values.astype(dtypes[name].replace("bfloat16", "float32"))
        for name, values in example.values.items()
    }


def inputs(
    shapes: Mapping[str, str] | None = None,
    *,
    dtypes: Sequence[str] = ("float64", "float32"),
    **keywords: str,
) -> Any:
    """Return a strategy of inputs: a dict of arrays by name.

    Args:
        shapes: for each input, its sizes separated by spaces; capital letters are free sizes, the
            same in all inputs. They may be followed by the options of `gradcheck explore`: ``{"x":
            "B T C", "k": "B:int64:below=5", "p": "C~0.1..3"}``.
        dtypes: for floating inputs without a dtype.
        keywords: the inputs by keyword, in place of a dict: ``inputs(x="B T C", w="C")``.

    Raises:
        ImportError: Hypothesis is not installed: ``pip install hypothesis``.
        ValueError: a text does not describe an input.
        TypeError: inputs are missing, or one is given as an option.
    """
    wanted = inputs_from("inputs(", shapes, keywords, {"dtypes": dtypes})
    return example_strategy(wanted, dtypes, ("contiguous",)).map(arrays_of)
