"""What reshape, expand, concat and their like make of a Tensor, and which results share its memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pylayer.paddle as paddle
from pylayer.paddle.nn import functional

X = np.arange(6.0).reshape(2, 3)
A = np.arange(24.0).reshape(2, 3, 4)


def tensor(values, needs_gradient=False):
    return paddle.to_tensor(np.asarray(values), stop_gradient=not needs_gradient)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda x: x.reshape([3, 2]), X.reshape(3, 2)),
        (lambda x: x.reshape([0, -1, 1]), X.reshape(2, 3, 1)),
        (lambda x: x.reshape(3, 2), X.reshape(3, 2)),
        (lambda x: x.reshape(paddle.to_tensor([3, 2])), X.reshape(3, 2)),
        (lambda x: x.reshape([paddle.to_tensor(3), 2]), X.reshape(3, 2)),
        (lambda x: x.transpose([1, 0]), X.T),
        (lambda x: x.transpose([-1, 0]), X.T),
        (lambda x: x.unsqueeze(-1), X[..., None]),
        (lambda x: x.unsqueeze([0, 2]), X[None, :, None]),
        (lambda x: x.unsqueeze(0).squeeze(0), X),
        (lambda x: x.squeeze(0), X),
        (lambda x: x.unsqueeze([0, 2]).squeeze(), X),
        (lambda x: x.expand([4, -1, 3]), np.broadcast_to(X, (4, 2, 3))),
        (lambda x: paddle.ones([3], "float64").expand_as(x), np.ones((2, 3))),
        (lambda x: x.flatten(), X.reshape(6)),
        (lambda x: x.tile([2]), np.tile(X, 2)),
        (lambda x: x.tile([2, 1, 2]), np.tile(X, (2, 1, 2))),
        (lambda x: x.flip(0), X[::-1]),
        (lambda x: x.flip([0, 1]), X[::-1, ::-1]),
        (lambda x: x.roll(1), np.roll(X, 1)),
        (lambda x: x.roll([1, 2], [0, 1]), np.roll(X, (1, 2), (0, 1))),
        (lambda x: x.tril(), np.tril(X)),
        (lambda x: x.triu(1), np.triu(X, 1)),
        (lambda x: paddle.moveaxis(x, 0, 1), X.T),
        (lambda x: x.unflatten(1, [3, 1]), X.reshape(2, 3, 1)),
        (lambda x: paddle.concat([x, x], axis=-1), np.concatenate([X, X], 1)),
        (lambda x: paddle.stack([x, x], axis=-1), np.stack([X, X], -1)),
        (lambda x: paddle.vstack([x, x]), np.vstack([X, X])),
        (lambda x: paddle.hstack([x, x]), np.hstack([X, X])),
        (lambda x: paddle.repeat_interleave(x, 2, 0), np.repeat(X, 2, 0)),
        (lambda x: paddle.repeat_interleave(x, paddle.to_tensor([1, 2, 0]), 1), X[:, [0, 1, 1]]),
        (lambda x: paddle.diagonal(x, 1), np.diagonal(X, 1)),
        (lambda x: paddle.diag(x), np.diag(X)),
        (lambda x: paddle.diag_embed(x)[1], np.diag(X[1])),
        (lambda x: paddle.as_strided(x, [2, 2], [3, 1], 8), X[:, 1:]),
        (lambda x: functional.pad(x, [1, 1, 0, 2]), np.pad(X, ((1, 1), (0, 2)))),
        (lambda x: functional.pad(x, [1, 2]), np.pad(X, ((0, 0), (1, 2)))),
        (lambda x: functional.pad(x, [-1, 0]), X[:, 1:]),
        (lambda x: functional.pad(x.reshape([1, 2, 3]), [2, 1], "reflect")[0], np.pad(X, ((0, 0), (2, 1)), "reflect")),
        (lambda x: functional.pad(x.reshape([1, 2, 3]), [2, 1], "replicate")[0], np.pad(X, ((0, 0), (2, 1)), "edge")),
        (lambda x: functional.pad(x.reshape([1, 2, 3]), [2, 1], "circular")[0], np.pad(X, ((0, 0), (2, 1)), "wrap")),
    ],
)
def test_agrees_with_numpy(result, expected):
    np.testing.assert_array_equal(result(tensor(X)).numpy(), expected)


def test_flatten_of_some_axes_and_of_a_number():
    assert tensor(A).flatten(1).shape == [2, 12]
    assert tensor(A).flatten(0, 1).shape == [6, 4]
    assert paddle.to_tensor(1.0).flatten().shape == [1]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (lambda a: paddle.split(a, 2), np.split(A, 2)),
        (lambda a: paddle.split(a, [1, -1], axis=1), np.split(A, [1], 1)),
        (lambda a: paddle.chunk(a, 2, axis=-1), np.split(A, 2, -1)),
        (lambda a: paddle.tensor_split(a, 2, 1), np.array_split(A, 2, 1)),
        (lambda a: paddle.tensor_split(a, [1, 3], 2), np.array_split(A, [1, 3], 2)),
        (lambda a: paddle.unbind(a, 1), [A[:, k] for k in range(3)]),
        (lambda a: paddle.unstack(a, 2), [A[..., k] for k in range(4)]),
    ],
)
def test_taken_apart(parts, expected):
    got = parts(tensor(A))
    assert len(got) == len(expected)
    for part, values in zip(got, expected, strict=True):
        np.testing.assert_array_equal(part.numpy(), values)


@pytest.mark.parametrize(
    "shared",
    [
        lambda x: x[0],
        lambda x: x[:, 1:],
        lambda x: x[::-1],
        lambda x: x[None],
        lambda x: x[paddle.to_tensor(0)],
        lambda x: x.reshape([3, 2]),
        lambda x: x.transpose([1, 0]),
        lambda x: x.flatten(),
        lambda x: x.unsqueeze(0),
        lambda x: x.unbind()[0],
        lambda x: x.astype("float64"),
        lambda x: x.contiguous(),
        lambda x: x.detach(),
        lambda x: paddle.as_strided(x, [2, 2], [3, 1]),
    ],
)
def test_results_that_share_memory(shared):
    x = tensor(X)
    assert np.shares_memory(x.array, shared(x).array)


@pytest.mark.parametrize(
    "copied",
    [
        lambda x: x[[0]],
        lambda x: x[x > 1],
        lambda x: x.cast("float64"),
        lambda x: x.clone(),
        lambda x: x.expand([1, 2, 3]),
        lambda x: x.tile([1]),
        lambda x: x.flip(0),
        lambda x: x.tril(),
        lambda x: x.split(2)[0],
        lambda x: paddle.to_tensor(x),
        lambda x: paddle.assign(x),
        lambda x: paddle.concat([x]),
    ],
)
def test_results_that_are_copies(copied):
    x = tensor(X)
    result = copied(x)
    assert not np.shares_memory(x.array, result.array)
    assert result.array.flags.writeable


def test_contiguous():
    x = tensor(X)
    assert x.is_contiguous()
    assert x.contiguous() is x
    assert not x.transpose([1, 0]).is_contiguous()
    assert x.transpose([1, 0]).contiguous().is_contiguous()


def test_gradient_of_an_expanded_tensor_is_summed_over_what_was_repeated():
    x = tensor([[1.0], [2.0]], needs_gradient=True)
    (x.expand([3, 2, 4]) * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[24.0], [24.0]])


def test_concat_keeps_nothing_of_its_inputs_for_backward():
    x = tensor([1.0, 2.0], needs_gradient=True)
    part = x * 2
    joined = paddle.concat([part, part])
    part.array[...] = 0
    part.zero_()  # would be an error for an operation that had saved it
    (joined * joined).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [16.0, 32.0])


def test_cast_is_differentiable_and_its_gradient_is_cast_back():
    x = tensor(X, needs_gradient=True)
    y = x.cast("float32")
    assert y.dtype is paddle.float32
    (y * 3).sum().backward()
    assert x.grad.dtype is paddle.float64
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 3.0))


def test_cast_of_complex_numbers():
    z = paddle.complex(tensor(X), tensor(X))
    np.testing.assert_array_equal(z.cast("float64").numpy(), X)
    np.testing.assert_array_equal(tensor(X).cast("complex128").numpy(), X + 0j)


def test_complex_parts_and_their_gradients():
    a, b = tensor(X, needs_gradient=True), tensor(X + 1, needs_gradient=True)
    z = paddle.complex(a, b)
    (paddle.real(z) * 2 + paddle.imag(paddle.conj(z)) * 3).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(b.grad.numpy(), np.full((2, 3), -3.0))
    assert paddle.as_real(z).shape == [2, 3, 2]
    np.testing.assert_array_equal(paddle.as_complex(paddle.as_real(z)).numpy(), z.numpy())


@pytest.mark.parametrize(
    ("wrong", "error", "phrase"),
    [
        (lambda x: x.reshape([4]), ValueError, r"reshape\(\).*shapes \[2, 3\]"),
        (lambda x: x.transpose([1]), ValueError, r"transpose\(\)"),
        (lambda x: x.expand([4, 3]), ValueError, r"Broadcast dimension mismatch.*\[2, 3\]"),
        (lambda x: x.squeeze(4), ValueError, r"axis should be in the range of \[-2, 2\), but received 4"),
        (lambda x: paddle.concat([]), ValueError, "must be list of Tensors, but got an empty list"),
        (lambda x: paddle.concat(x), ValueError, "must be list of Tensors, but got Tensor"),
        (lambda x: paddle.concat([x, 1.0]), ValueError, "must be list of Tensors, but got Tensor, float"),
        (
            lambda x: paddle.concat([x, x.astype("float32")]),
            ValueError,
            "data_type of input tensor in list isn't consistent",
        ),
        (lambda x: paddle.concat([x, x.flatten()]), ValueError, r"concat\(\).*\[2, 3\], \[6\]"),
        (lambda x: paddle.stack([x, x.flatten()]), ValueError, r"stack\(\)"),
        (lambda x: paddle.stack([x], 5), ValueError, "axis should be in the range"),
        (lambda x: paddle.split(x, 2, 1), ValueError, "must be evenly divisible"),
        (lambda x: paddle.split(x, [2, 2], 1), ValueError, "must be equal to the input's size"),
        (lambda x: x.flatten(1, 0), ValueError, "start_axis 1 comes after stop_axis 0"),
        (lambda x: paddle.as_strided(x, [4], [2]), ValueError, "reach beyond the 6 elements"),
        (lambda x: paddle.real(x), ValueError, "must be complex, but is float64"),
        (lambda x: paddle.complex(x, x.astype("float32")), ValueError, "both be float32 or both be float64"),
        (lambda x: functional.pad(x, [1]), ValueError, "pairs of numbers"),
        (lambda x: functional.pad(x, [1, 1], "mirror"), ValueError, "constant, reflect, replicate, circular"),
        (
            lambda x: functional.pad(x.reshape([1, 1, 6]), [7, 0], "reflect"),
            ValueError,
            "reflect takes less than the 6",
        ),
        (lambda x: paddle.broadcast_shape([2], [3]), ValueError, "Broadcast dimension mismatch"),
    ],
)
def test_errors_say_what_was_wrong(wrong, error, phrase):
    with pytest.raises(error, match=phrase):
        wrong(tensor(X))


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
def test_broadcast_shape_is_numpys(shapes):
    x, y = shapes.input_shapes
    assert paddle.broadcast_shape(x, y) == list(shapes.result_shape)


@given(shape=hnp.array_shapes(min_dims=1, max_dims=4, max_side=3), data=st.data())
def test_transposing_there_and_back_is_the_identity(shape, data):
    perm = data.draw(st.permutations(range(len(shape))))
    x = tensor(np.arange(np.prod(shape), dtype="float64").reshape(shape))
    back = [perm.index(k) for k in range(len(shape))]
    np.testing.assert_array_equal(x.transpose(perm).transpose(back).numpy(), x.numpy())


@given(
    sections=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    axis=st.integers(-2, 1),
)
def test_concat_undoes_split(sections, axis):
    shape = [2, 2]
    shape[axis] = sum(sections)
    x = tensor(np.arange(np.prod(shape), dtype="float64").reshape(shape))
    np.testing.assert_array_equal(paddle.concat(paddle.split(x, sections, axis), axis).numpy(), x.numpy())
