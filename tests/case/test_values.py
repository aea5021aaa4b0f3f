"""Whether the values of two backends are the same, and how they travel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from gradcheck.case.defaults import BACKENDS_RTOL
from gradcheck.case.values import MOST_ELEMENTS, differences, elements, value_of
from gradcheck.result import Value

NAMES = ("numpy", "paddle@3.0.0")


def compared(one, other):
    return differences([value_of("y", one)], [value_of("y", other)], NAMES)


@given(arrays(np.float64, array_shapes(min_dims=0, min_side=0), elements=st.floats(width=64)))
def test_what_travels_is_what_was_there(array):
    value = Value.model_validate_json(value_of("y", array).model_dump_json())
    assert (value.shape, elements(value).tobytes()) == (array.shape, array.tobytes())
    assert compared(array, array) == []


@pytest.mark.parametrize("dtype", [*map(np.dtype, BACKENDS_RTOL)], ids=str)
def test_a_difference_counts_if_rounding_does_not_explain_it(dtype):
    one = np.array([1.0, -4.0, 0.0]).astype(dtype)
    step = np.zeros(3)
    for factor, differs in ((0.5, False), (4.0, True)):
        step[2] = factor * BACKENDS_RTOL[dtype.name] * 4  # relative to the largest element
        other = (one.astype(np.complex128 if dtype.kind == "c" else np.float64) + step).astype(dtype)
        assert bool(compared(one, other)) == differs


def test_infinities_and_nan_are_themselves_and_nothing_else():
    one = np.array([np.inf, -np.inf, np.nan, 1.0])
    assert compared(one, one.copy()) == []
    for k, other in ((0, -np.inf), (0, 1.0), (2, 1.0), (3, np.nan)):
        changed = one.copy()
        changed[k] = other
        assert len(compared(one, changed)) == 1


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (np.ones(2), None, "y: float64 of shape [2] on numpy, none on paddle@3.0.0"),
        (np.ones(2), np.ones(2, "f4"), "y: float64 of shape [2] on numpy, float32 of shape [2] on paddle@3.0.0"),
        (np.ones([2, 1]), np.ones([1, 2]), "y: float64 of shape [2, 1] on numpy, float64 of shape [1, 2] on"),
        (np.array([1, 2]), np.array([1, 3]), "y: 2 on numpy, 3 on paddle@3.0.0 (1 of 2 elements differ"),
        (np.array([True]), np.array([False]), "y: 1 on numpy, 0 on paddle@3.0.0 (1 of 1 elements differ"),
        (np.zeros(1), np.full(1, 1e-300), "y: 0 on numpy, 1e-300 on paddle@3.0.0 (1 of 1 elements differ"),
    ],
)
def test_a_difference_is_told_with_both_sides(one, other, said):
    [line] = compared(one, other)
    assert line.startswith(said)


def test_what_only_one_has_is_a_difference():
    assert differences([value_of("y", None)], [], NAMES) == ["y: missing on paddle@3.0.0"]
    assert differences([], [value_of("y", None)], NAMES) == ["y: missing on numpy"]


def test_of_a_large_tensor_a_sample_travels_that_has_both_ends():
    large = np.arange(10 * MOST_ELEMENTS, dtype=np.float64)
    sample = elements(value_of("y", large))
    assert (sample.size, sample[0], sample[-1]) == (MOST_ELEMENTS, 0.0, large[-1])


def test_bfloat16_travels():
    one = np.array([1.5], ml_dtypes.bfloat16)
    assert elements(value_of("y", one)) == one
