"""Several points and dtypes in one check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
X = np.array([[0.9, -0.8], [0.95, -0.7]])


class RightBelowOne(PyLayer):
    """x below 1 and x² above, with a gradient of 1 everywhere."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return paddle.where(x > 1, x * x, x)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy


class WrongInFloat32(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 3 * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * (3 if dy.dtype == paddle.float64 else 2)


def seen(x: Any, **options: Any) -> list[tuple[Any, str]]:
    """The points and dtypes that a check looks at, each once."""
    found: dict[Any, tuple[Any, str]] = {}

    class Recording(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            found.setdefault((x.numpy().tobytes(), x.dtype.name), (x.numpy(), x.dtype.name))
            return dy * 2 * x

    assert gradcheck.check(Recording, x, mode="probe", **options).verdict is Status.PASS
    return list(found.values())


def test_one_point_by_default() -> None:
    ((x, dtype),) = seen(X)
    assert dtype == "float64"
    np.testing.assert_array_equal(x, X)


def test_other_points_keep_signs_and_magnitudes() -> None:
    points = [x for x, _ in seen(X, points=4)]
    np.testing.assert_array_equal(points[0], X)
    assert len(points) == 4
    for x in points[1:]:
        assert ((x / X >= 0.5) & (x / X < 2)).all()
        assert (x != X).all()


def test_the_same_seed_gives_the_same_points() -> None:
    first, again, other = ([x for x, _ in seen(X, points=2, seed=seed)] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first[1] != other[1]).any()


def test_integers_stay_as_they_are() -> None:
    rows: list[Any] = []

    def gather(x: Any, index: Any) -> Any:
        rows.append(index.numpy())
        return paddle.gather(x, index)

    assert gradcheck.check(gather, X, np.array([1, 0]), points=3).verdict is Status.PASS
    assert all((row == [1, 0]).all() for row in rows)


def test_points_are_drawn_where_the_function_is_defined() -> None:
    assert gradcheck.check(paddle.acos, np.array([0.9, -0.97]), points=5).verdict is Status.PASS


def test_a_fail_names_the_point() -> None:
    assert gradcheck.check(RightBelowOne, X).verdict is Status.PASS
    found = gradcheck.check(RightBelowOne, X, points=5)
    assert found.verdict is Status.FAIL
    assert found.where.endswith("of 5")
    assert found.summary().endswith(f"(at {found.where})")


def test_a_pass_names_no_point() -> None:
    assert gradcheck.check(paddle.tanh, X, points=3, dtypes=["float64", "float32"]).where == ""


def test_each_dtype_is_looked_at() -> None:
    assert {dtype for _, dtype in seen(X, dtypes=["float32", "bfloat16"])} >= {"float32", "bfloat16"}
    assert gradcheck.check(WrongInFloat32, X).verdict is Status.PASS
    found = gradcheck.check(WrongInFloat32, X, points=2, dtypes=["float64", "float32"])
    assert (found.verdict, found.where) == (Status.FAIL, "point 1 of 2, float32")


def test_complex_inputs_take_the_dtype_of_the_same_precision() -> None:
    kinds = set()

    def product(z: Any, x: Any) -> Any:
        kinds.add((z.dtype.name, x.dtype.name))
        return z * x

    assert gradcheck.check(product, X + 1j, X, dtypes=["float32"]).verdict is Status.PASS
    assert ("complex64", "float32") in kinds


@pytest.mark.parametrize("points", [1, 3])
def test_what_was_evaluated_is_counted_together(points: int) -> None:
    one = gradcheck.check(paddle.tanh, X, mode="probe").evaluations
    assert gradcheck.check(paddle.tanh, X, mode="probe", points=points).evaluations >= points * min(one, 1)
