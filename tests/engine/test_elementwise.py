"""Elementwise operations, operators, comparisons: values, dtypes, and gradients where they are a matter of choice.

That gradients are right where they are a matter of calculus is checked for the whole table in test_ops.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

t = paddle.to_tensor


def gradient(function: Callable[..., Any], *values: Any) -> list[Any]:
    xs = [t(v, stop_gradient=False) for v in values]
    return [g.tolist() for g in paddle.grad(function(*xs).sum(), xs)]


# --------------------------------------------------------------------------- values
NUMPY_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "neg": "negative",
}  # fmt: skip
UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor log log10 log1p log2 neg reciprocal round sign "
    "sin sinh sqrt square tan tanh trunc isnan isinf isfinite"
)
VALUES = np.array([-1.5, -0.5, 0.0, 0.25, 1.0, 2.5, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("name", UNARY.split())
def test_unary_values_are_numpys(name: str) -> None:
    wanted = getattr(np, NUMPY_NAMES.get(name, name))(VALUES)
    np.testing.assert_array_equal(getattr(paddle, name)(t(VALUES)).numpy(), wanted)
    np.testing.assert_array_equal(getattr(t(VALUES), name)().numpy(), wanted)


BINARY = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "maximum": "maximum",
    "minimum": "minimum", "fmax": "fmax", "fmin": "fmin", "pow": "power", "remainder": "mod", "mod": "mod",
    "floor_divide": "floor_divide", "atan2": "arctan2", "equal": "equal", "not_equal": "not_equal",
    "less_than": "less", "less_equal": "less_equal", "greater_than": "greater", "greater_equal": "greater_equal",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
}  # fmt: skip


@pytest.mark.parametrize(("name", "numpy_name"), BINARY.items())
def test_binary_values_are_numpys_and_broadcast(name: str, numpy_name: str) -> None:
    x, y = np.array([[3.0], [-3.0], [0.0], [math.nan]]), np.array([2.0, -0.7, 1.0, 3.0])
    np.testing.assert_array_equal(getattr(paddle, name)(t(x), t(y)).numpy(), getattr(np, numpy_name)(x, y))


@given(arrays(np.float64, 5, elements=st.floats(-700, 700)))
def test_sigmoid_and_erf_at_any_size(x: Any) -> None:
    np.testing.assert_allclose(paddle.sigmoid(t(x)).numpy(), 1 / (1 + np.exp(-x)), rtol=1e-15)
    np.testing.assert_array_equal(paddle.erf(t(x)).numpy(), [math.erf(v) for v in x])


def test_scale_and_lerp() -> None:
    x = t([1.0, 2.0])
    assert paddle.scale(x, 2.0, 1.0).tolist() == [3.0, 5.0]
    assert paddle.scale(x, 2.0, 1.0, bias_after_scale=False).tolist() == [4.0, 6.0]
    assert paddle.lerp(x, t([3.0, 4.0]), 0.25).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [((0.0, 1.5), [0.0, 1.5]), ((None, 1.0), [-1.0, 1.0]), ((0.0,), [0.0, 2.0]), ((), [-1.0, 2.0]),
     ((t(0.0), t([1.5])), [0.0, 1.5])],
)  # fmt: skip
def test_clip(bounds: tuple[Any, ...], wanted: list[float]) -> None:
    assert paddle.clip(t([-1.0, 2.0]), *bounds).tolist() == wanted


def test_clip_of_integers_does_not_cut_the_bounds() -> None:
    clipped = paddle.clip(t([1, 5, -5]), -1.5, 2.5)
    assert (clipped.dtype.name, clipped.tolist()) == ("float32", [1.0, 2.5, -1.5])
    assert paddle.clip(t([1, 5]), 2, 3).dtype.name == "int64"


def test_clip_says_what_is_wrong_with_its_bounds() -> None:
    with pytest.raises(ValueError, match=r"clip\(\): max should be greater than or equal to min. .*min = 3, max = 2"):
        paddle.clip(t([1.0]), 3, 2)
    with pytest.raises(ValueError, match=r"1 element, but has the shape \[2\]. Use maximum and minimum"):
        paddle.clip(t([1.0]), t([1.0, 2.0]))


# --------------------------------------------------------------------------- dtypes
@pytest.mark.parametrize("name", ["tanh", "exp", "sqrt", "sigmoid", "log", "divide"])
def test_integers_become_the_default_floating_dtype(name: str) -> None:
    x = t([1, 4])
    out = getattr(paddle, name)(x, x) if name == "divide" else getattr(paddle, name)(x)
    assert out.dtype.name == "float32"


@pytest.mark.parametrize("name", ["square", "abs", "neg", "sign", "floor", "ceil", "trunc", "round"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_stay_integers(name: str, dtype: str) -> None:
    assert getattr(paddle, name)(t([-2, 0, 3], dtype=dtype)).dtype.name == dtype


PROMOTING = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.eq, paddle.divide]


@pytest.mark.parametrize("function", PROMOTING)
@pytest.mark.parametrize(("left", "right"), [("int64", "float32"), ("bool", "float32"), ("int32", "int64")])
def test_tensors_of_different_kinds_do_not_mix(function: Any, left: str, right: str) -> None:
    with pytest.raises(TypeError, match="Type promotion only support calculations between floating-point numbers"):
        function(t([1], dtype=left), t([1], dtype=right))


def test_floating_tensors_promote_to_the_wider() -> None:
    assert (t([1.0]) + t([1.0], dtype="float64")).dtype.name == "float64"
    assert (t([1.0], dtype="float16") * t([1.0])).dtype.name == "float32"
    assert (t([1.0]) @ t([1.0], dtype="float64")).dtype.name == "float64"
    assert (t([0.1]) == t([0.1], dtype="float64")).tolist() == [False]


NUMBERS = [2, 2.0, True, np.float64(2), np.float32(2), np.int64(2), np.array(2.0)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.pow, operator.truediv])
def test_numbers_follow_the_tensor_also_numpys(function: Any, number: Any) -> None:
    assert function(t([1.0, 2.0]), number).dtype.name == "float32"
    assert function(number, t([1.0, 2.0])).dtype.name == "float32"
    assert function(t([1.0], dtype="float16"), number).dtype.name == "float16"


OPERATORS_ON_NUMBERS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv,
    operator.lt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "complex128", "int64", "bool"])
@pytest.mark.parametrize("number", [2, 0.5, True], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("function", OPERATORS_ON_NUMBERS, ids=lambda f: f.__name__)
def test_a_number_beside_a_tensor_gives_what_a_tensor_of_one_gives(function: Any, number: Any, dtype: str) -> None:
    for values in ([1.5, 3.0], 3.0):
        for swapped in (False, True):

            def result(other: Any, values: Any = values, swapped: bool = swapped) -> Any:
                x = t(values).astype(dtype)
                x.stop_gradient = dtype in ("int64", "bool")
                try:
                    out = function(other, x) if swapped else function(x, other)
                except (TypeError, ValueError) as error:
                    return type(error)
                if out.stop_gradient:
                    return out.dtype, out.tolist(), None
                return out.dtype, out.tolist(), paddle.grad([out.sum()], [x])[0].tolist()

            whole = t(number, dtype=dtype)  # as the number would be taken, if it fits
            if dtype in ("int64", "bool") and not isinstance(number, type(whole.item())):
                continue
            assert result(number) == result(whole)


def test_a_scalar_of_numpy_that_is_not_a_python_float_is_cut_next_to_integers() -> None:
    for scalar in (np.float32(2.5), np.float16(2.5)):  # as Paddle 3.3.1 does
        assert ((t([2]) * scalar).dtype.name, (t([2]) * scalar).tolist()) == ("int64", [4])


@pytest.mark.parametrize("number", [2.5, np.float64(2.5)], ids=lambda n: type(n).__name__)
def test_a_float_takes_an_integer_tensor_to_the_default_dtype(number: Any) -> None:
    assert ((t([2]) * number).dtype.name, (t([2]) * number).tolist()) == ("float32", [5.0])


def test_numpy_scalars_follow_the_tensor_in_functions() -> None:
    x = t([1.0, 2.0])
    for out in (
        paddle.scale(x, np.float64(2)),
        paddle.pow(x, np.float64(2)),
        paddle.lerp(x, x, np.float64(0.5)),
        paddle.clip(x, np.float64(1.5)),
    ):
        assert out.dtype.name == "float32"


# --------------------------------------------------------------------------- operators
def test_arrays_are_operands_on_both_sides() -> None:
    array = np.array([1.0, 2.0], "float32")
    assert isinstance(array + t([1.0, 1.0]), paddle.Tensor)
    assert (array - t([1.0, 1.0])).tolist() == [0.0, 1.0]
    assert (t([1.0, 1.0]) - array).tolist() == [0.0, -1.0]
    assert (np.ones((1, 2), "float32") @ t([1.0, 2.0])).tolist() == [3.0]


@pytest.mark.parametrize("other", [[1.0, 2.0], (1, 2), "a"], ids=["list", "tuple", "str"])
@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.pow, operator.lt, operator.matmul])
def test_lists_and_strings_are_no_operands(function: Any, other: Any) -> None:
    wanted = rf"must be int, float, bool or Tensor, but got {type(other).__name__}\."
    with pytest.raises(TypeError, match=wanted):
        function(t([1.0, 2.0]), other)


@pytest.mark.parametrize(("value", "converts"), [([1.0], True), (1.0, True), ((1.0,), False), ("a", False)])
def test_only_numbers_and_lists_are_to_be_converted(value: Any, converts: bool) -> None:
    for function in (paddle.tanh, lambda value: paddle.matmul(t([1.0]), value)):
        with pytest.raises(ValueError, match="must be Tensor, but got") as raised:
            function(value)
        assert ("Convert it with paddle.to_tensor" in str(raised.value)) is converts


@pytest.mark.parametrize("other", [None, [1.0], "a", object()])
def test_a_tensor_equals_nothing_but_tensors_arrays_and_numbers(other: Any) -> None:
    assert (t([1.0]) == other) is False
    assert (t([1.0]) != other) is True


def test_bitwise_and_unary_operators() -> None:
    assert (~t([True, False])).tolist() == [False, True]
    assert (t([6, 3]) & t([3, 5])).tolist() == [2, 1]
    assert (t([6, 3]) | t([1, 1])).tolist() == [7, 3]
    assert (t([1, 1]) ^ t([6, 3])).tolist() == [7, 2]
    with pytest.raises(ValueError, match=r"bitwise_or\(\): argument 'y' \(position 1\) must be Tensor, but got int"):
        t([6, 3]) | 1
    assert (-t([1, -2])).tolist() == [-1, 2]
    assert abs(t([1, -2])).tolist() == [1, 2]


@pytest.mark.parametrize("value", [[1.0], np.ones(1), 1.0])
def test_what_is_no_tensor_is_refused_by_name(value: Any) -> None:
    wanted = rf"tanh\(\): argument 'x' \(position 0\) must be Tensor, but got {type(value).__name__}"
    with pytest.raises(ValueError, match=wanted):
        paddle.tanh(value)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(ValueError, match=r"add\(\): Broadcast dimension mismatch.*\[2\], \[3\]"):
        t([1.0, 2.0]) + t([1.0, 2.0, 3.0])


# --------------------------------------------------------------------------- predicates of two Tensors
def test_allclose_isclose_and_equal_all() -> None:
    x, y = t([1.0, math.nan]), t([1.0 + 1e-7, math.nan])
    assert paddle.isclose(x, y).tolist() == [True, False]
    assert (paddle.allclose(x, y).item(), paddle.allclose(x, y, equal_nan=True).item()) == (False, True)
    assert paddle.allclose(x, y).shape == []
    assert (paddle.equal_all(t([1, 2]), t([1, 2])).item(), paddle.equal_all(t([1, 2]), t([1])).item()) == (True, False)


@pytest.mark.parametrize("function", [paddle.isclose, paddle.allclose, paddle.equal_all])
def test_predicates_do_not_mix_dtypes(function: Any) -> None:
    with pytest.raises(ValueError, match=r"retrieve \(float32\) does not match the type of data \(float64\)"):
        function(t([1.0]), t([1.0], dtype="float64"))


# --------------------------------------------------------------------------- subgradients: a choice, Paddle's
@pytest.mark.parametrize(
    ("function", "x", "wanted"),
    [
        (paddle.abs, [0.0, -2.0], [0.0, -1.0]),
        (paddle.sign, [0.0, 2.0], [0.0, 0.0]),
        (paddle.sqrt, [0.0, 4.0], [math.inf, 0.25]),
        (lambda x: x**0.5, [0.0, 4.0], [math.inf, 0.25]),
        (lambda x: x**2, [0.0, 3.0], [0.0, 6.0]),
        (lambda x: x**0, [0.0, 3.0], [0.0, 0.0]),
        (lambda x: 0.0**x, [1.0, 2.0], [0.0, 0.0]),
        (lambda x: paddle.maximum(x, t(0.0)), [0.0, 1.0, -1.0], [0.5, 1.0, 0.0]),
        (lambda x: paddle.clip(x, 1.0, 2.0), [0.0, 1.0, 1.5, 2.0, 3.0], [0.0, 1.0, 1.0, 1.0, 0.0]),
        (paddle.floor, [0.5, 1.0], [0.0, 0.0]),
    ],
)
def test_subgradients(function: Any, x: list[float], wanted: list[float]) -> None:
    assert gradient(function, x) == [wanted]


def test_fmax_gives_the_gradient_to_the_one_it_took() -> None:
    assert gradient(paddle.fmax, [1.0, math.nan, 2.0], [1.0, 1.0, math.nan]) == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


def test_powers_of_zero_have_finite_gradients_where_they_should() -> None:
    assert gradient(paddle.pow, [0.0, 2.0, 0.0], [2.0, 0.0, 0.0])[0] == [0.0, 0.0, 0.0]


def test_a_holomorphic_function_conjugates_its_derivative() -> None:
    assert gradient(lambda z: paddle.real(z * z), [1 + 2j]) == [[2 - 4j]]
