"""The order of the elements of results and gradients in memory; expectations are from runs of Paddle 3.3.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.paddle.nn import functional

COMPUTED: list[Callable[[Any], Any]] = [
    lambda x: x * 1.0,
    lambda x: x + x,
    lambda x: 1.0 - x,
    lambda x: x.exp(),
    lambda x: functional.relu(x),
    lambda x: functional.softmax(x, 0),
    lambda x: paddle.where(x > 3.0, x, x),
    lambda x: x.astype("float64"),
    lambda x: x.cumsum(0),
    lambda x: x.clone(),
    lambda x: paddle.tril(x),
    lambda x: paddle.concat([x, x]),
    lambda x: paddle.einsum("ij->ji", x),
]


def turned() -> Any:
    return paddle.to_tensor(np.arange(6, dtype="float32").reshape(2, 3)).transpose([1, 0])


@pytest.mark.parametrize("operation", COMPUTED)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_write_to_a_reshape_of_a_result_shows_in_the_result(operation: Any, recorded: bool) -> None:
    x = turned()
    x.stop_gradient = not recorded
    y = operation(x)
    assert y.is_contiguous()
    assert y.strides == [y.shape[1], 1]
    with paddle.no_grad():
        w = y.reshape([-1])
        w[0] = 9.0
    assert y[0, 0].item() == 9.0
    assert x[0, 0].item() == 0.0


@pytest.mark.parametrize(
    ("operation", "strides"),
    [
        (lambda x: x.transpose([1, 0]), [1, 2]),
        (lambda x: x.transpose([1, 0]) * 2.0, [1, 2]),
        (lambda x: x.transpose([1, 0]).square(), [1, 2]),
        (lambda x: (x * 2.0).transpose([1, 0]), [3, 1]),
        (lambda x: x.transpose([1, 0]) + x.transpose([1, 0]), [3, 1]),
        (lambda x: x[:, ::-1], [3, 1]),
        (lambda x: x.reshape([3, 2]).t(), [3, 1]),
    ],
)
def test_the_gradient_through_a_transpose_is_a_view_and_any_other_contiguous(operation: Any, strides: Any) -> None:
    x = paddle.ones([2, 3])
    x.stop_gradient = False
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g.strides))
    operation(x).sum().backward()
    assert seen == [strides]
    assert x.grad.strides == strides
    (gradient,) = paddle.grad(operation(x).sum(), [x])
    assert gradient.strides == strides
    operation(x).sum().backward()
    assert x.grad.strides == [3, 1]


def test_a_cotangent_is_put_in_order() -> None:
    x = paddle.ones([2, 3])
    x.stop_gradient = False
    (x * 1.0).backward(paddle.ones([3, 2]).t())
    assert x.grad.strides == [3, 1]


@pytest.mark.parametrize(
    ("operation", "strides"),
    [
        (lambda z: z.real(), [6, 2]),
        (lambda z: z.imag(), [6, 2]),
        (lambda z: paddle.as_real(z), [6, 2, 1]),
        (lambda z: paddle.diagonal(z), [4]),
        (lambda z: z.unfold(1, 2, 1), [3, 1, 1]),
    ],
)
def test_views_share_memory(operation: Any, strides: list[int]) -> None:
    z = paddle.to_tensor(np.arange(6).reshape(2, 3) + 1j)
    view = operation(z)
    assert view.strides == strides
    view.fill_(7.0)
    assert 7.0 in np.stack([z.numpy().real, z.numpy().imag])
    assert z.inplace_version == view.inplace_version == 1


@pytest.mark.parametrize(
    "operation",
    [lambda x: paddle.unstack(x)[0], lambda x: paddle.einsum("ij->ij", x)],
)
def test_copies_share_none(operation: Any) -> None:
    x = paddle.ones([2, 3])
    operation(x).fill_(7.0)
    assert x.numpy().max() == 1.0


def test_contiguous_moves_the_tensor_itself() -> None:
    x = paddle.ones([2, 3])
    t = x.t()
    assert t.contiguous() is t
    assert t.strides == [2, 1]
    t.fill_(5.0)
    assert x.numpy().max() == 1.0


def test_an_axis_of_one_counts_for_contiguity() -> None:
    x = paddle.ones([1, 3])
    assert (x.t().strides, x.t().is_contiguous()) == ([1, 3], False)
    assert ((x.t() * 1.0).strides, (x.t() * 1.0).is_contiguous()) == ([1, 1], True)


def test_view_refuses_what_needs_a_copy() -> None:
    with pytest.raises(ValueError, match="can not be viewed, please call reshape"):
        turned().view([-1])


@pytest.mark.parametrize(
    "change", [lambda x: x.addmm_(paddle.ones([3, 3]), paddle.ones([3, 2])), lambda x: x.cumsum_(0)]
)
def test_forms_in_place_write_into_the_memory(change: Any) -> None:
    owner = paddle.ones([2, 3])
    x = owner.t()
    change(x)
    assert x.strides == [1, 3]
    assert np.array_equal(owner.numpy().T, x.numpy())
    assert owner.numpy().max() > 1


def test_as_strided_counts_its_offset_in_bytes() -> None:
    x = paddle.to_tensor(np.arange(6, dtype="float32"))
    assert paddle.as_strided(x, [2], [2], 4).tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match="not at an element"):
        paddle.as_strided(x, [2], [2], 1)
