"""Convolution, pooling and resampling against sums written out, and what they say of arguments that do not fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pylayer.paddle as paddle

F = paddle.nn.functional


def direct(x, w, strides, pads, dilations, groups):
    """The definition, one output at a time."""
    wide = np.pad(x, [(0, 0), (0, 0), *pads])
    kernel = w.shape[2:]
    counts = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(wide.shape[2:], kernel, strides, dilations, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *counts))
    each = x.shape[1] // groups
    for o in range(w.shape[0]):
        first = o // (w.shape[0] // groups) * each
        for at in itertools.product(*map(range, counts)):
            parts = zip(at, strides, dilations, kernel, strict=True)
            places = [slice(a * t, a * t + d * (k - 1) + 1, d) for a, t, d, k in parts]
            window = wide[(slice(None), slice(first, first + each), *places)]
            out[(slice(None), o, *at)] = (window * w[o]).reshape(len(x), -1).sum(1)
    return out


@settings(max_examples=40, deadline=None)
@given(data=st.data(), ndim=st.integers(1, 3), groups=st.sampled_from([1, 2]), channels=st.sampled_from([2, 40]))
def test_a_convolution_is_its_definition_and_its_gradients_are_the_adjoints(data, ndim, groups, channels):
    kernel, strides, dilations = (
        data.draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim)) for _ in range(3)
    )
    pads = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(ndim)]
    space = [d * (k - 1) + 1 + data.draw(st.integers(0, 3)) for k, d in zip(kernel, dilations, strict=True)]
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, other_x = random.standard_normal((2, 2, channels * groups, *space))
    w, other_w = random.standard_normal((2, 2 * groups, channels, *kernel))
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in (x, w)]
    flat = [n for pair in pads for n in pair]
    out = getattr(F, f"conv{ndim}d")(*tensors, None, strides, flat, dilations, groups)
    np.testing.assert_allclose(out.numpy(), direct(x, w, strides, pads, dilations, groups), atol=1e-11)
    g = random.standard_normal(out.shape)
    by_x, by_w = (t.numpy() for t in paddle.grad(out, tensors, paddle.to_tensor(g)))
    in_x, in_w = (direct(*pair, strides, pads, dilations, groups) for pair in ((other_x, w), (x, other_w)))
    np.testing.assert_allclose(
        [(other_x * by_x).sum(), (other_w * by_w).sum()], [(in_x * g).sum(), (in_w * g).sum()], atol=1e-9
    )


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_a_transposed_convolution_is_the_adjoint(stride, padding):
    random = np.random.default_rng(3)
    x, w = random.standard_normal((2, 3, 7, 8)), random.standard_normal((4, 3, 3, 2))
    out = F.conv2d(paddle.to_tensor(x), paddle.to_tensor(w), None, stride, padding)
    g = random.standard_normal(out.shape)
    back = F.conv2d_transpose(paddle.to_tensor(g), paddle.to_tensor(w), None, stride, padding, output_size=[7, 8])
    assert (out.numpy() * g).sum() == pytest.approx((x * back.numpy()).sum(), rel=1e-12)


def test_batches_larger_than_a_block_of_columns():
    random = np.random.default_rng(5)
    x, w = random.standard_normal((9, 8, 40, 40)), random.standard_normal((2, 8, 3, 3))
    together = F.conv2d(paddle.to_tensor(x), paddle.to_tensor(w), padding=1).numpy()
    for k, image in enumerate(x):
        alone = F.conv2d(paddle.to_tensor(image[None]), paddle.to_tensor(w), padding=1).numpy()
        np.testing.assert_allclose(together[k], alone[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.conv2d(x, paddle.ones([2, 3, 2, 2], "float64")), "channels should be equal to filter's channels"),
        (lambda x: F.conv2d(x, paddle.ones([2, 2, 9, 2], "float64")), "does not fit into"),
        (lambda x: F.conv1d(x, paddle.ones([2, 2, 2], "float64")), "should be 3-D Tensor"),
        (lambda x: F.conv2d(x, paddle.ones([2, 2, 2, 2], "float64"), padding="HALF"), "'SAME' or 'VALID'"),
        (lambda x: F.max_pool2d(x, 9), "does not fit into"),
    ],
)
def test_what_does_not_fit_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call(paddle.ones([1, 2, 4, 4], "float64"))


def test_the_first_of_equal_elements_has_the_gradient_of_a_maximum():
    x = paddle.to_tensor(np.ones((1, 1, 4)), stop_gradient=False)
    F.max_pool1d(x, 2).sum().backward()
    assert x.grad.numpy().ravel().tolist() == [1.0, 0.0, 1.0, 0.0]
