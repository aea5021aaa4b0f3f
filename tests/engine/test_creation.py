"""Tensors from values: which dtype they get, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import pylayer.paddle as paddle


@pytest.fixture
def float64_by_default():
    paddle.set_default_dtype("float64")
    yield
    paddle.set_default_dtype("float32")


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.0, "float32"),
        (3, "int64"),
        (True, "bool"),
        (1 + 2j, "complex64"),
        ([1, 2.5], "float32"),
        ([1, True], "int64"),
        ([], "float32"),
        ([np.float64(1)], "float32"),
        ([np.ones(2), np.zeros(2)], "float32"),
        (np.float64(1), "float64"),
        (np.bool_(True), "bool"),
        (np.ones(2, "float16"), "float16"),
        (np.arange(3, dtype="int32"), "int32"),
    ],
)
def test_dtype_of_a_tensor_from_data(data, dtype):
    tensor = paddle.to_tensor(data)
    assert tensor.dtype.name == dtype
    assert tensor.stop_gradient
    assert tensor.is_leaf


def test_tensors_keep_their_dtype_also_inside_lists():
    x = paddle.to_tensor(np.ones(2))
    assert paddle.to_tensor(x).dtype is paddle.float64
    assert paddle.to_tensor([x, x]).dtype is paddle.float64
    assert paddle.to_tensor([x, x]).shape == [2, 2]


def test_to_tensor_copies():
    data = np.zeros(2)
    tensor = paddle.to_tensor(data)
    data[0] = 1
    assert tensor.tolist() == [0, 0]


def test_to_tensor_with_dtype_and_stop_gradient():
    tensor = paddle.to_tensor([1, 2], dtype="float64", stop_gradient=False)
    assert tensor.dtype is paddle.float64
    assert not tensor.stop_gradient


def test_default_dtype(float64_by_default):
    assert paddle.to_tensor(1.0).dtype is paddle.float64
    assert paddle.to_tensor(1j).dtype is paddle.complex128
    assert paddle.zeros([1]).dtype is paddle.float64
    assert paddle.arange(0.0, 1.0, 0.5).dtype is paddle.float64
    assert paddle.randn([1]).dtype is paddle.float64


@pytest.mark.parametrize(
    ("tensor", "dtype", "values"),
    [
        (lambda: paddle.zeros([2]), "float32", [0, 0]),
        (lambda: paddle.ones((2,), "int32"), "int32", [1, 1]),
        (lambda: paddle.zeros(2), "float32", [0, 0]),
        (lambda: paddle.zeros(paddle.to_tensor([1, 2])), "float32", [[0, 0]]),
        (lambda: paddle.zeros([paddle.to_tensor(1), 2]), "float32", [[0, 0]]),
        (lambda: paddle.empty([2]), "float32", [0, 0]),
        (lambda: paddle.full([2], 1), "float32", [1, 1]),
        (lambda: paddle.full([2], True), "bool", [True, True]),
        (lambda: paddle.full([1], 1j), "complex128", [1j]),
        (lambda: paddle.full([1], paddle.to_tensor(2.5)), "float32", [2.5]),
        (lambda: paddle.arange(3), "int64", [0, 1, 2]),
        (lambda: paddle.arange(3.0), "float32", [0, 1, 2]),
        (lambda: paddle.arange(5, 1, -2), "int64", [5, 3]),
        (lambda: paddle.arange(1, 2, 0.5), "float32", [1, 1.5]),
        (lambda: paddle.arange(paddle.to_tensor(2)), "int64", [0, 1]),
        (lambda: paddle.linspace(0, 1, 5), "float32", [0, 0.25, 0.5, 0.75, 1]),
        (lambda: paddle.linspace(0, 10, 5, "int32"), "int32", [0, 2, 5, 7, 10]),
        (lambda: paddle.logspace(0, 2, 3), "float32", [1, 10, 100]),
        (lambda: paddle.eye(2, 3, "int64"), "int64", [[1, 0, 0], [0, 1, 0]]),
        (lambda: paddle.tril_indices(2, 2), "int64", [[0, 1, 1], [0, 0, 1]]),
        (lambda: paddle.triu_indices(2, 2, 1), "int64", [[0], [1]]),
        (lambda: paddle.assign([1.5]), "float64", [1.5]),
        (lambda: paddle.numel(paddle.zeros([2, 3])), "int64", 6),
        (lambda: paddle.shape(paddle.zeros([2, 3])), "int64", [2, 3]),
        (lambda: paddle.rank(paddle.zeros([2, 3])), "int32", 2),
    ],
)
def test_filled_and_counted(tensor, dtype, values):
    made = tensor()
    assert made.dtype.name == dtype
    assert made.tolist() == values


@pytest.mark.parametrize(
    "like", [paddle.zeros_like, paddle.ones_like, paddle.empty_like, lambda x, *a: paddle.full_like(x, 2, *a)]
)
def test_like_another_tensor(like):
    x = paddle.to_tensor(np.ones((2, 3)), stop_gradient=False)
    made = like(x)
    assert made.shape == [2, 3]
    assert made.dtype is paddle.float64
    assert made.stop_gradient
    assert like(x, "int32").dtype is paddle.int32


def test_meshgrid():
    rows, columns = paddle.meshgrid(paddle.arange(2), paddle.arange(3))
    np.testing.assert_array_equal(
        [rows.numpy(), columns.numpy()], np.meshgrid(np.arange(2), np.arange(3), indexing="ij")
    )


def test_assign_copies_and_is_differentiable():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (paddle.assign(x) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_assign_to_an_output():
    out = paddle.zeros([2])
    assert paddle.assign(paddle.to_tensor([1.0, 2.0]), out) is out
    assert out.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "error", "phrase"),
    [
        (lambda: paddle.to_tensor("a"), TypeError, "data type must be scalar"),
        (lambda: paddle.to_tensor(None), TypeError, "NoneType"),
        (lambda: paddle.to_tensor(range(3)), TypeError, "range"),
        (lambda: paddle.to_tensor(["a"]), TypeError, "must be numbers"),
        (lambda: paddle.to_tensor([[1, 2], [3]]), ValueError, "inhomogeneous"),
        (lambda: paddle.to_tensor(np.zeros(1, "datetime64[s]")), TypeError, "datetime64"),
        (lambda: paddle.zeros([-1]), ValueError, "no less than 0, but received"),
        (lambda: paddle.ones([2], "nope"), TypeError, "'nope' is not a dtype; the dtypes are"),
        (lambda: paddle.full([2], None), TypeError, "fill_value"),
        (lambda: paddle.to_tensor(1.0, place="gpu"), ValueError, r"current device, cpu, but the place is gpu"),
        (lambda: paddle.arange(0, 5, 0), ValueError, "step must not be 0"),
    ],
)
def test_errors_say_what_was_wrong(wrong, error, phrase):
    with pytest.raises(error, match=phrase):
        wrong()
