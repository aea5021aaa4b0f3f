"""Reductions: values against NumPy over every form of `axis`, dtypes, and gradients at ties and zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

t = paddle.to_tensor
X = np.array([[[1.0, 5.0], [5.0, -2.0]], [[4.0, 0.5], [-3.0, 2.0]], [[0.25, 7.0], [6.0, -1.0]]])
AXES: list[Any] = [None, [], 0, -1, [0, 2], (1,), [-1, 0], t(1), [t(0), 1]]


def as_numpy_axis(axis: Any) -> Any:
    if axis is None or (isinstance(axis, (list, tuple)) and not axis):
        return None
    return tuple(int(k) for k in axis) if isinstance(axis, (list, tuple)) else int(axis)


def gradient(function: Any, value: Any) -> Any:
    x = t(value, dtype="float64", stop_gradient=False)
    return paddle.grad(function(x).sum(), [x])[0].tolist()


# --------------------------------------------------------------------------- values
REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "amax": np.max, "amin": np.min, "prod": np.prod,
    "all": np.all, "any": np.any, "count_nonzero": np.count_nonzero,
    "var": lambda x, **k: np.var(x, ddof=1, **k), "std": lambda x, **k: np.std(x, ddof=1, **k),
    "logsumexp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "norm": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
}  # fmt: skip


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_are_numpys(name: str, axis: Any, keepdim: bool) -> None:
    wanted = np.asarray(REDUCTIONS[name](X, axis=as_numpy_axis(axis), keepdims=keepdim))
    out = getattr(paddle, name)(t(X), axis=axis, keepdim=keepdim)
    assert out.shape == list(wanted.shape)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-14)
    np.testing.assert_array_equal(getattr(t(X), name)(axis=axis, keepdim=keepdim).numpy(), out.numpy())


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_running_sums_and_products(axis: int | None) -> None:
    np.testing.assert_allclose(paddle.cumsum(t(X), axis).numpy(), np.cumsum(X, axis))
    np.testing.assert_allclose(paddle.cumprod(t(X), axis).numpy(), np.cumprod(X, axis))


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod", "all", "logsumexp", "cumsum", "cumprod", "norm"])
def test_a_0d_tensor_has_an_axis_to_reduce(name: str, axis: int) -> None:
    options = {"dim" if name == "cumprod" else "axis": axis}
    assert getattr(paddle, name)(t(2.0), **options).shape == []


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda x: paddle.sum(x, 0), [0.0, 0.0, 0.0]),
        (lambda x: paddle.sum(x, 1), []),
        (lambda x: paddle.prod(x), 1.0),
        (lambda x: paddle.prod(x, 0), [1.0, 1.0, 1.0]),
        (lambda x: paddle.prod(x, 1), []),
        (lambda x: paddle.prod(x, 1, keepdim=True), []),
        (lambda x: paddle.logsumexp(x), -math.inf),
        (lambda x: paddle.logsumexp(x, 0), [-math.inf] * 3),
        (lambda x: paddle.logsumexp(x, 1), []),
        (lambda x: paddle.all(x), True),
        (lambda x: paddle.cumsum(x, 0), []),
    ],
)
def test_reductions_of_nothing(call: Any, wanted: Any) -> None:
    assert call(paddle.zeros([0, 3])).tolist() == wanted


def test_the_largest_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"max\(\): zero-size array .*\(shapes \[0, 3\]\)"):
        paddle.max(paddle.zeros([0, 3]))


def test_logsumexp_does_not_overflow() -> None:
    assert paddle.logsumexp(t([1000.0, 1000.0], dtype="float64")).item() == pytest.approx(1000 + math.log(2), rel=1e-15)
    assert paddle.logsumexp(t([-math.inf, -math.inf])).item() == -math.inf
    assert gradient(paddle.logsumexp, [1000.0, 1000.0]) == pytest.approx([0.5, 0.5])


def test_var_of_one_element_is_nan_unless_biased() -> None:
    assert math.isnan(paddle.var(t([1.0])).item())
    assert paddle.var(t([1.0]), unbiased=False).item() == 0


# --------------------------------------------------------------------------- axes and dtypes
@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod", "all", "logsumexp", "var", "norm"])
@pytest.mark.parametrize("axis", [2, -3, [0, 5]])
def test_an_axis_out_of_range_is_an_error(name: str, axis: Any) -> None:
    with pytest.raises(ValueError, match=r"axis should be in the range of \[-2, 2\), but received"):
        getattr(paddle, name)(paddle.ones([2, 3]), axis=axis)


@pytest.mark.parametrize("axis", ["a", 1.0])
def test_an_axis_is_an_int(axis: Any) -> None:
    with pytest.raises(TypeError, match=f"must be list of int, but got {type(axis).__name__}"):
        paddle.sum(paddle.ones([2, 3]), axis=axis)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [("sum", "bool", "int64"), ("sum", "int32", "int64"), ("sum", "float16", "float16"), ("sum", "int64", "int64"),
     ("mean", "int64", "int64"), ("mean", "float16", "float16"), ("logsumexp", "int64", "float32"),
     ("max", "int32", "int32"), ("count_nonzero", "float32", "int64"), ("all", "float32", "bool")],
)  # fmt: skip
def test_dtypes(name: str, given: str, wanted: str) -> None:
    assert getattr(paddle, name)(t([1, 2]).astype(given)).dtype.name == wanted


@pytest.mark.parametrize("name", ["sum", "cumsum", "prod", "cumprod"])
def test_a_dtype_asked_for_does_not_reach_the_gradient(name: str) -> None:
    x = t([1.0, 2.0], stop_gradient=False)
    out = getattr(paddle, name)(x, dtype="float64")
    assert (out.dtype.name, paddle.grad(out.sum(), [x])[0].dtype.name) == ("float64", "float32")


# --------------------------------------------------------------------------- gradients at ties and zeros
@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_equal_extremes_share_the_gradient(name: str) -> None:
    function = getattr(paddle, name)
    assert gradient(function, [5.0, 5.0, 5.0, 5.0]) == [0.25] * 4
    assert gradient(lambda x: function(x, axis=0), [[5.0, 5.0], [5.0, 5.0]]) == [[0.5, 0.5], [0.5, 0.5]]


def test_products_with_zeros_have_exact_gradients() -> None:
    assert gradient(paddle.prod, [2.0, 0.0, 3.0]) == [0.0, 6.0, 0.0]
    assert gradient(paddle.prod, [0.0, 0.0, 3.0]) == [0.0, 0.0, 0.0]
    assert gradient(lambda x: paddle.cumprod(x, dim=0), [2.0, 0.0, 3.0]) == [1.0, 8.0, 0.0]


def test_products_with_zeros_have_exact_second_derivatives() -> None:
    x = t([0.0, 0.0, 3.0], stop_gradient=False)
    (first,) = paddle.grad(paddle.prod(x), [x], create_graph=True)
    assert paddle.grad(first[0], [x])[0].tolist() == [0.0, 3.0, 0.0]


@pytest.mark.parametrize("p", [None, "fro", 1, 1.5, 2, 3, math.inf])
def test_the_gradient_of_a_norm_at_zero_is_zero(p: Any) -> None:
    assert gradient(lambda x: paddle.norm(x, p), [0.0, 0.0]) == [0.0, 0.0]
    assert gradient(lambda x: paddle.norm(x, p, axis=1), [[0.0, 0.0], [0.0, 2.0]])[1] == pytest.approx([0.0, 1.0])


# --------------------------------------------------------------------------- norms
@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, -1, math.inf, -math.inf])
@pytest.mark.parametrize("axis", [0, -1, [2]])
def test_vector_norms(p: float, axis: Any) -> None:
    wanted = np.linalg.norm(X, p, as_numpy_axis(axis) if isinstance(axis, int) else axis[0])
    np.testing.assert_allclose(paddle.norm(t(X), p, axis).numpy(), wanted, rtol=1e-14)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", [[0, 1], [1, 0], [-1, -2], [2, 0]], ids=str)
@pytest.mark.parametrize("p", ["fro", 1, -1, math.inf, -math.inf])
def test_matrix_norms(p: Any, axis: list[int], keepdim: bool) -> None:
    wanted = np.linalg.norm(X, p, tuple(axis), keepdims=keepdim)
    out = paddle.linalg.norm(t(X), p, axis, keepdim)
    assert out.shape == list(wanted.shape)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("p", "axis", "message"),
    [(3, [0, 1], "is one of fro, nuc, 1"), ("nuc", None, "p must be a number or 'fro', but got 'nuc'")],
)  # fmt: skip
def test_norms_that_there_are_not(p: Any, axis: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paddle.norm(paddle.ones([2, 2]), p, axis)
