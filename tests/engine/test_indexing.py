"""Reading and writing at an index, and the functions that come down to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

import pylayer.paddle as paddle
from pylayer.paddle.nn import functional

X = np.arange(6.0).reshape(2, 3)
A = np.arange(24.0).reshape(2, 3, 4)


def tensor(values, needs_gradient=False):
    return paddle.to_tensor(np.asarray(values), stop_gradient=not needs_gradient)


TWICE = tensor([[1, 1]])


def as_numpy(index):
    """The index as NumPy takes it: a list for a range, integers for an empty list."""
    if isinstance(index, (list, range)):
        return np.array(index, "int64")
    return index


INDICES = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    slice(None, None, -1),
    (..., 1),
    (1, ..., slice(1, 3)),
    (None, slice(None), None),
    [0, 1],
    [[0, 1], [1, 0]],
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [0, 1]),
    (slice(None), [2, 0]),
    (slice(1, 2), [0, 2]),
    np.array([1, 0]),
    np.array([True, False]),
    (np.array([True, False]), slice(1, None)),
    (slice(None), np.array([True, False, True])),
    A[..., 0] > 3,
    A > 7,
    [],
    range(2),
    True,
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reads_as_numpy_does(index):
    np.testing.assert_array_equal(tensor(A)[index].numpy(), A[as_numpy(index)])


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_writes_where_it_reads(index):
    x, expected = tensor(A), A.copy()
    x[index] = -1.0
    expected[as_numpy(index)] = -1
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_gradient_of_reading_counts_how_often_an_element_was_read(index):
    x = tensor(A, needs_gradient=True)
    x[index].sum().backward()
    counts = np.zeros(A.shape)
    np.add.at(counts, as_numpy(index), 1)
    np.testing.assert_array_equal(x.grad.numpy(), counts)


def test_tensors_as_indices():
    x = tensor(A)
    np.testing.assert_array_equal(x[paddle.to_tensor([1, 0])].numpy(), A[[1, 0]])
    np.testing.assert_array_equal(x[paddle.to_tensor(1)].numpy(), A[1])
    np.testing.assert_array_equal(x[paddle.to_tensor(0) : paddle.to_tensor(1)].numpy(), A[:1])
    np.testing.assert_array_equal(x[x > 7].numpy(), A[A > 7])
    np.testing.assert_array_equal(x[0, paddle.to_tensor([2, 0])].numpy(), A[0, [2, 0]])


def test_ints_are_applied_before_arrays():
    assert tensor(A)[0, :, [0, 1]].shape == [3, 2]  # where NumPy has (2, 3)
    x = tensor(A)
    x[0, :, [0, 1]] = tensor(np.zeros((3, 2)))
    np.testing.assert_array_equal(x.numpy()[0, :, :2], 0)


@pytest.mark.parametrize(
    ("index", "error", "phrase"),
    [
        (5, IndexError, r"index 5 is out of bounds for axis 0, it should be in \[-2, 2\)"),
        (-3, IndexError, "index -3 is out of bounds"),
        ((0, 0, 0, 0), IndexError, "too many indices: 4 for 3 axes"),
        ([0, 7], IndexError, "index 7 is out of bounds for axis 0"),
        ((0, [-4]), IndexError, "index -4 is out of bounds for axis 1"),
        (0.5, ValueError, "only allows ints.*but got float"),
        ("a", ValueError, "only allows ints.*but got str"),
        ([0.5], ValueError, "only allows ints.*but got float64"),
        (np.array([True, False, True]), IndexError, "boolean index"),
    ],
)
def test_wrong_indices(index, error, phrase):
    with pytest.raises(error, match=phrase):
        tensor(A)[index]
    with pytest.raises(error, match=phrase):
        tensor(A)[index] = 1.0


def test_assignment_casts_to_the_tensors_dtype():
    x = paddle.arange(3)
    x[0] = 2.7
    assert x.tolist() == [2, 1, 2]
    y = paddle.ones([3])
    y[1] = paddle.to_tensor(2.5, dtype="float64")
    assert y.dtype is paddle.float32
    assert y.tolist() == [1, 2.5, 1]


def test_assignment_takes_tensors_arrays_and_numbers_only():
    with pytest.raises(ValueError, match=r"Value type error.*received list"):
        tensor(X)[0] = [1.0, 2.0, 3.0]


def test_assignment_passes_gradients_to_what_remains_and_to_the_value():
    x, value = tensor(X, needs_gradient=True), tensor([5.0, 6.0, 7.0], needs_gradient=True)
    y = x * 2
    y[0] = value
    (y * tensor(X + 1)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 0, 0], [8, 10, 12]])
    np.testing.assert_array_equal(value.grad.numpy(), [1, 2, 3])


def test_assignment_to_a_leaf_that_needs_a_gradient_is_an_error():
    with pytest.raises(ValueError, match=r"Leaf.*can't use inplace strategy"):
        tensor(X, needs_gradient=True)[0] = 1.0


def test_of_values_for_one_place_the_last_counts_and_has_the_gradient():
    value = tensor([5.0, 6.0], needs_gradient=True)
    x = paddle.zeros([3], "float64")
    x[[1, 1]] = value
    assert x.tolist() == [0, 6, 0]
    (x * 3).sum().backward()
    assert value.grad.tolist() == [0, 3]


def test_value_is_broadcast_and_its_gradient_summed():
    value = tensor([[2.0]], needs_gradient=True)
    x = paddle.zeros([2, 3], "float64")
    x[0] = value
    x.sum().backward()
    assert value.grad.tolist() == [[3]]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda x: paddle.gather(x, tensor([1, 0])), X[[1, 0]]),
        (lambda x: paddle.gather(x, tensor([1]), axis=1), X[:, [1]]),
        (lambda x: paddle.gather(x, tensor(1)), X[1]),
        (lambda x: paddle.gather(x, tensor([[1], [0]])), X[[1, 0]]),
        (lambda x: paddle.index_select(x, tensor([-1]), 1), X[:, [-1]]),
        (lambda x: paddle.gather_nd(x, tensor([[0, 1], [1, 2]])), X[[0, 1], [1, 2]]),
        (lambda x: paddle.gather_nd(x, tensor([[1]])), X[[1]]),
        (lambda x: paddle.index_sample(x, tensor([[0, 1], [2, 2]])), [[0, 1], [5, 5]]),
        (lambda x: paddle.take_along_axis(x, tensor([[1]]), 1), X[:, [1]]),
        (lambda x: paddle.take_along_axis(x, tensor([[2]]), 1, False), X[:1, [2]]),
        (lambda x: paddle.take(x, tensor([0, -1])), [0, 5]),
        (lambda x: paddle.take(x, tensor([7]), "wrap"), [1]),
        (lambda x: paddle.take(x, tensor([7]), "clip"), [5]),
        (lambda x: paddle.masked_select(x, x > 2), [3, 4, 5]),
        (lambda x: paddle.masked_fill(x, x > 2, 0), np.where(X > 2, 0, X)),
        (lambda x: paddle.masked_fill(x, tensor([True, False, True]), 9.0), [[9, 1, 9], [9, 4, 9]]),
        (lambda x: paddle.where(x > 2, x, -x), np.where(X > 2, X, -X)),
        (lambda x: paddle.where(x > 2, x, 0.0), np.where(X > 2, X, 0)),
        (lambda x: paddle.nonzero(x), np.argwhere(X)),
        (lambda x: paddle.where(x)[1], np.nonzero(X)[1]),
        (lambda x: paddle.scatter(x, tensor([1]), x[:1]), X[[0, 0]]),
        (lambda x: paddle.scatter(x, tensor([0, 0]), x, overwrite=False), [[3, 5, 7], [3, 4, 5]]),
        (lambda x: paddle.scatter_nd_add(x, tensor([[0, 1], [0, 1]]), x[0, :2]), [[0, 2, 2], [3, 4, 5]]),
        (lambda x: paddle.scatter_nd(tensor([[1], [1]]), x, [2, 3]), [[0, 0, 0], [3, 5, 7]]),
        (lambda x: paddle.index_add(x, tensor([0, 0]), 0, x), [[3, 6, 9], [3, 4, 5]]),
        (lambda x: paddle.index_fill(x, tensor([0, 2]), 1, -1), [[-1, 1, -1], [-1, 4, -1]]),
        (lambda x: paddle.index_put(x, (tensor([0]), tensor([1])), x[1, :1]), [[0, 3, 2], [3, 4, 5]]),
        (lambda x: paddle.put_along_axis(x, tensor([[0]]), 9.0, 1), [[9, 1, 2], [9, 4, 5]]),
        (
            lambda x: paddle.put_along_axis(x, TWICE, x[:1, 1:], 1, "add", True, False),
            [[0, 4, 2], [3, 4, 5]],
        ),
        (
            lambda x: paddle.put_along_axis(x, TWICE, x[:1, 1:], 1, "add", False, False),
            [[0, 3, 2], [3, 4, 5]],
        ),
        (
            lambda x: paddle.put_along_axis(x, TWICE, x[1:, 1:], 1, "mean", False, False),
            [[0, 4.5, 2], [3, 4, 5]],
        ),
        (lambda x: paddle.sort(x, 0, descending=True), X[::-1]),
        (lambda x: paddle.argsort(x, descending=True), [[2, 1, 0], [2, 1, 0]]),
        (lambda x: paddle.topk(x, 2).values, [[2, 1], [5, 4]]),
        (lambda x: paddle.topk(x, 1, axis=0)[1], [[1, 1, 1]]),
        (lambda x: paddle.topk(x, 2, largest=False)[0], [[0, 1], [3, 4]]),
        (lambda x: paddle.kthvalue(x, 2)[0], [1, 4]),
        (lambda x: paddle.searchsorted(x[0], x[0], right=True), [1, 2, 3]),
        (lambda x: paddle.unique(tensor([3, 1, 3])), [1, 3]),
        (lambda x: functional.one_hot(tensor([0, 2]), 3), [[1, 0, 0], [0, 0, 1]]),
        (lambda x: functional.one_hot(tensor([0, 2])), [[1, 0, 0], [0, 0, 1]]),
    ],
)
def test_gathering_and_scattering(result, expected):
    np.testing.assert_array_equal(result(tensor(X)).numpy(), expected)


@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(descending):
    order = paddle.argsort(tensor([1.0, 1.0, 0.0, 1.0]), descending=descending)
    assert order.tolist() == ([0, 1, 3, 2] if descending else [2, 0, 1, 3])


def test_sorting_passes_gradients_to_where_the_elements_came_from():
    x = tensor([3.0, 1.0, 2.0], needs_gradient=True)
    values, _ = paddle.topk(x, 2)
    (values * tensor([10.0, 20.0])).sum().backward()
    assert x.grad.tolist() == [10, 0, 20]


@pytest.mark.parametrize(
    "find",
    [
        paddle.argsort,
        paddle.count_nonzero,
        lambda x: paddle.topk(x, 2)[1],
        lambda x: paddle.kthvalue(x, 1)[1],
    ],
)
def test_positions_need_a_gradient_as_in_paddle_and_it_is_zero(find):
    x = tensor([3.0, 1.0, 2.0], needs_gradient=True)
    found = find(x)
    assert found.dtype == paddle.int64
    assert not found.stop_gradient
    assert not found.is_leaf
    (found.astype("float64").sum() + x.sum()).backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert find(x.detach()).stop_gradient


@pytest.mark.parametrize(
    ("wrong", "error", "phrase"),
    [
        (lambda x: paddle.gather(x, tensor([7])), IndexError, "index 7 is out of bounds for axis 0"),
        (lambda x: paddle.index_select(x, tensor([1.0])), ValueError, "but got float64"),
        (lambda x: paddle.take_along_axis(x, tensor([0]), 1), ValueError, "same number of dimensions"),
        (
            lambda x: paddle.take_along_axis(x, tensor([[7]]), 1),
            IndexError,
            "index 7 is out of bounds for axis 1",
        ),
        (
            lambda x: paddle.put_along_axis(x, tensor([[0]]), 1.0, 1, "largest"),
            ValueError,
            "`reduce` is one of assign, add, mean",
        ),
        (
            lambda x: paddle.scatter(x, tensor([1]), paddle.ones([1, 3])),
            ValueError,
            "float32, the Tensor is float64",
        ),
        (lambda x: paddle.where(x > 1, x), ValueError, "both be given, or neither"),
        (lambda x: paddle.where(x, x, x), ValueError, "condition must be bool, but is float64"),
        (lambda x: paddle.topk(x, 9), ValueError, "k must be from 1 to 3"),
        (
            lambda x: functional.one_hot(tensor([5]), 3),
            ValueError,
            "the input runs from 5 to 5 and the depth is 3",
        ),
        (lambda x: paddle.take(x, tensor([0]), "far"), ValueError, "is one of raise, wrap, clip"),
    ],
)
def test_errors_say_what_was_wrong(wrong, error, phrase):
    with pytest.raises(error, match=phrase):
        wrong(tensor(X))


@given(hnp.basic_indices(A.shape, allow_newaxis=True, allow_ellipsis=True))
def test_any_basic_index_reads_a_view_as_numpy_does(index):
    x = tensor(A)
    selected = x[index]
    np.testing.assert_array_equal(selected.numpy(), A[index])
    assert selected.size == 0 or np.shares_memory(selected.array, x.array)


@given(hnp.integer_array_indices(A.shape))
def test_the_gradient_of_any_integer_index_counts_repetitions(index):
    counts = np.zeros(A.shape)
    np.add.at(counts, index, 1)
    x = tensor(A, needs_gradient=True)
    x[index].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), counts)
