"""The arrays that scenarios start from."""

from __future__ import annotations

import numpy as np
import pytest

from gradcheck.case.input_arrays import make_input
from gradcheck.spec.model import Input


def made(dtype: str = "float64", seed: int = 0, **fields: object) -> np.ndarray:
    return make_input(Input.model_validate(fields, strict=False), dtype, np.random.default_rng(seed))


def test_the_same_seed_gives_the_same_numbers() -> None:
    np.testing.assert_array_equal(made(shape=[3, 4]), made(shape=[3, 4]))
    assert (made(shape=[3, 4]) != made(shape=[3, 4], seed=1)).all()


@pytest.mark.parametrize(
    ("fields", "low", "high"),
    [
        ({"init": "uniform"}, -1, 1),
        ({"init": "uniform", "low": 2.0, "high": 3.0}, 2, 3),
        ({"init": "integers"}, 0, 9),
        ({"init": "integers", "low": -3, "high": 0}, -3, -1),
        ({"near": [5.0]}, 4.99, 5.01),
    ],
)
def test_stay_in_their_limits(fields: dict[str, object], low: float, high: float) -> None:
    values = made(shape=[1000], **fields)
    assert low <= values.min()
    assert values.max() <= high


def test_near_several_points_takes_them_in_turn() -> None:
    np.testing.assert_allclose(made(shape=[2, 2], near=[0.0, 7.0]), [[0, 7], [0, 7]], atol=0.01)


def test_linspace_runs_through_the_shape_in_row_major_order() -> None:
    np.testing.assert_allclose(made(shape=[2, 2], init="linspace", low=0.0, high=3.0), [[0, 1], [2, 3]])


def test_values_are_taken_as_they_are() -> None:
    assert made("int64", values=[[1, 2]]).dtype == np.int64
    assert made("bool", values=[True, False]).dtype == np.bool_


def test_complex_inputs_draw_both_parts() -> None:
    values = made("complex64", shape=[50])
    assert (values.real != 0).all()
    assert (values.imag != 0).all()
