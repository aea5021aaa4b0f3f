"""Strategies of inputs for property tests of one's own."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from gradcheck import assert_gradients, strategies
from pylayer.ops.elementwise import tanh


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.inputs({"x": "B T C", "w": "C", "k": "B:int64:below=4"}))
def test_inputs_are_arrays_whose_letters_agree(inputs):
    assert list(inputs) == ["x", "w", "k"]
    assert inputs["x"].shape[2] == inputs["w"].shape[0]
    assert inputs["x"].shape[0] == inputs["k"].shape[0]
    assert inputs["k"].dtype == np.int64
    assert inputs["x"].dtype in (np.float64, np.float32)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.inputs(x="2 C", dtypes=["float64"]))
def test_they_can_be_checked(inputs):
    if inputs["x"].size:
        assert_gradients(lambda x: tanh(x), *inputs.values())
