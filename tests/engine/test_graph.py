"""The tape: order of the walk, accumulation, release, memory, and grad mode."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import pylayer.paddle as paddle


def leaf(values: object) -> paddle.Tensor:
    return paddle.to_tensor(values, dtype="float64", stop_gradient=False)


def test_gradients_of_all_uses_are_summed() -> None:
    x = leaf([1.0, 2.0])
    (x * x + 3 * x + x).backward(paddle.to_tensor([1.0, 1.0], dtype="float64"))
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 8.0])


def test_backward_accumulates_over_calls_and_an_old_handle_sees_it() -> None:
    x = leaf([1.0])
    (2 * x).backward()
    handle = x.grad
    (3 * x).backward()
    assert handle.item() == x.grad.item() == 5.0


def test_leaves_that_share_a_cotangent_do_not_share_the_memory_of_their_gradients() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    with paddle.no_grad():
        x.grad.zero_()
    np.testing.assert_array_equal(y.grad.numpy(), [1.0, 1.0])


class Keeps(paddle.autograd.PyLayer):
    """The identity; it keeps every cotangent that comes in and every gradient that goes out."""

    kept: ClassVar[list[tuple[paddle.Tensor, np.ndarray]]] = []

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, dy):
        dx = dy * 2
        for tensor in (dy, dx):
            Keeps.kept.append((tensor, tensor.numpy().copy()))
        return dx


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0], [2, 0, 1]])
def test_summing_gradients_changes_no_array_that_somebody_else_holds(order: list[int]) -> None:
    Keeps.kept.clear()
    seen = []
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    h = x * 3
    h.register_hook(lambda g: seen.append((g, g.numpy().copy())))
    uses = [lambda: Keeps.apply(h), lambda: h + h, lambda: h.reshape([2, 1]).reshape([2])]
    y = sum((uses[k]() for k in order), paddle.zeros([2]))
    weight = paddle.to_tensor([1.0, 10.0])
    paddle.autograd.backward([y, Keeps.apply(h)], [weight, weight])
    assert x.grad.tolist() == [21.0, 210.0]
    assert weight.tolist() == [1.0, 10.0]
    assert len(Keeps.kept) == 4
    for now, then in [*Keeps.kept, *seen]:
        np.testing.assert_array_equal(now.numpy(), then)


def test_summing_gradients_of_different_dtypes_loses_nothing() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    wide = (x.astype("float64") * 3).astype("float32")
    (wide * x + wide).sum().backward()
    assert x.grad.tolist() == [9.0, 15.0]


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64"])
def test_a_start_of_another_dtype_is_cast_to_that_of_the_operation(dtype: str) -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (x * 3).backward(paddle.to_tensor([1, 2], dtype=dtype))
    assert (x.grad.dtype, x.grad.tolist()) == (paddle.float32, [3.0, 6.0])


def test_a_second_backward_needs_retain_graph() -> None:
    x = leaf([2.0])
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="without setting retain_graph=True"):
        y.backward()


def test_grad_gives_what_is_in_the_graph_though_its_stop_gradient_was_set_since() -> None:
    x = leaf([3.0])
    y = x * x
    z = y * x
    x.stop_gradient = y.stop_gradient = True
    assert [g.item() for g in paddle.grad(z, [x, y])] == [27.0, 3.0]
    (first,) = paddle.grad(z, x, create_graph=True)
    assert paddle.grad(first, x)[0].item() == 18.0
    z.backward()
    assert x.grad.item() == 27.0


def test_backward_of_a_tensor_that_needs_no_gradient_does_nothing() -> None:
    x = paddle.to_tensor([1.0])
    (x * 2).backward()
    assert x.grad is None


def test_backward_on_a_leaf_gives_it_ones() -> None:
    x = leaf([5.0, 6.0])
    x.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])


@pytest.mark.parametrize("shape", [[], [1], [3]])
def test_a_gradient_of_fewer_axes_from_a_hook_stands_for_all_elements(shape: list[int]) -> None:
    x = paddle.to_tensor([[1.0, 2.0, 3.0]] * 2, stop_gradient=False)
    y = x * 2
    y.register_hook(lambda g: paddle.full(shape, 5.0))
    y.backward(paddle.ones([2, 3]))
    np.testing.assert_array_equal(x.grad, np.full((2, 3), 10.0))


@pytest.mark.parametrize(
    ("cotangent", "message"), [([1.0, 1.0, 1.0], "Tensor shape not match"), (None, "must be paddle.Tensor")]
)
def test_a_cotangent_must_be_a_tensor_of_the_outputs_shape(cotangent: list[float] | None, message: str) -> None:
    y = leaf([1.0, 2.0]) * 2
    with pytest.raises(AssertionError, match=message):
        y.backward(paddle.to_tensor(cotangent) if cotangent else 1.0)


def test_a_long_graph_needs_no_recursion_neither_for_backward_nor_to_be_dropped() -> None:
    x = leaf([1.0])
    for keep in (True, False):
        y = x
        for _ in range(100_000):
            y = y + x
        if keep:
            y.backward()
            assert x.grad.item() == 100_001.0
        del y


def test_a_graph_has_no_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf([1.0, 2.0])
        y = paddle.tanh(paddle.exp(x) * x)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


class TestState:
    """What a Tensor holds beside its values."""

    def test_a_gradient_is_set_cleared_and_removed(self) -> None:
        x = leaf([1.0, 2.0])
        x.clear_grad()
        assert x.grad is None
        x.grad = paddle.to_tensor([3.0, 4.0])
        assert x.grad.tolist() == [3.0, 4.0]
        x.clear_grad()
        assert x.grad.tolist() == [0.0, 0.0]
        x.grad = None
        assert x.grad is None
        with pytest.raises(ValueError, match="grad must be Tensor or None, but got float"):
            x.grad = 1.0

    def test_a_deep_copy_is_a_leaf_of_its_own_without_the_gradient(self) -> None:
        x = leaf([1.0, 2.0])
        x.sum().backward()
        twin = copy.deepcopy(x)
        assert twin.grad is None
        twin.sum().backward()
        assert (x.grad.tolist(), twin.grad.tolist()) == ([1.0, 1.0], [1.0, 1.0])

    def test_a_parameter_is_frozen_by_trainable(self) -> None:
        weight = paddle.nn.Linear(2, 1).weight
        assert weight.trainable
        weight.trainable = False
        assert weight.stop_gradient
        weight.trainable = True
        assert not weight.stop_gradient

    def test_one_number_is_not_a_sequence_and_several_are_not_a_condition(self) -> None:
        with pytest.raises(TypeError, match="0-D"):
            len(leaf(1.0))
        with pytest.raises(TypeError, match="0-D"):
            iter(leaf(1.0))
        assert bool(leaf([1.0]))
        with pytest.raises(AssertionError, match="one element, not 2"):
            bool(leaf([1.0, 2.0]))


class TestGrad:
    def test_leaves_grad_untouched_and_returns_one_gradient_per_input(self) -> None:
        x, y = leaf([2.0]), leaf([3.0])
        dx, dy = paddle.grad(x * y, [x, y])
        assert (dx.item(), dy.item()) == (3.0, 2.0)
        assert x.grad is None

    def test_with_respect_to_an_intermediate_result(self) -> None:
        x = leaf([2.0])
        y = x * x
        (dy,) = paddle.grad(y * 5, y)
        assert dy.item() == 5.0

    def test_an_input_and_a_result_computed_from_it(self) -> None:
        x = leaf([2.0])
        y = x * x
        dx, dy = paddle.grad(y * x, [x, y])
        assert (dx.item(), dy.item()) == (12.0, 2.0)

    def test_an_unused_input_is_an_error_unless_allowed(self) -> None:
        x, y = leaf([2.0]), leaf([3.0])
        with pytest.raises(ValueError, match="The 1-th input does not appear in the backward graph"):
            paddle.grad(x * x, [x, y])
        assert paddle.grad(x * x, [x, y], allow_unused=True)[1] is None

    @pytest.mark.parametrize("switch", ["retain_graph", "create_graph", "allow_unused"])
    def test_a_switch_is_true_or_false(self, switch: str) -> None:
        x = leaf([2.0])
        with pytest.raises(AssertionError, match=switch):
            paddle.grad(x * x, x, **{switch: "no"})

    def test_a_gradient_that_is_the_cotangent_is_a_tensor_of_its_own(self) -> None:
        x, cotangent = leaf([2.0]), leaf([3.0])
        (dx,) = paddle.grad(x + 0.0, x, cotangent, create_graph=True)
        assert dx is not cotangent
        assert paddle.grad(dx * dx, cotangent)[0].tolist() == [6.0]

    @pytest.mark.parametrize("held", [False, 0, ""])
    def test_no_grad_vars_are_tensors(self, held: Any) -> None:
        x = leaf([1.0, 2.0])
        with pytest.raises(AssertionError, match="no_grad_vars must be None, Tensor or list"):
            paddle.grad(x * 2, x, no_grad_vars=held)

    def test_no_gradient_flows_through_no_grad_vars(self) -> None:
        x = leaf([2.0])
        y = x * x
        (dx,) = paddle.grad(y * x, x, no_grad_vars=[y])
        assert dx.item() == 4.0

    def test_gradients_of_all_uses_of_one_of_several_outputs_are_summed_to_second_order(self) -> None:
        """A = diag(x) + 1 has the eigenvalues e, with Σe² = Σ(xᵢ + 1)² + 2, and is V·diag(e)·Vᵀ; A₀₀ is x₀ + 1."""
        x = leaf([1.0, 2.0])
        e, v = paddle.linalg.eigh(paddle.diag(x) + paddle.ones([2, 2], dtype="float64"))
        (dx,) = paddle.grad((e**2).sum(), x, create_graph=True)
        np.testing.assert_allclose(dx.numpy(), [4.0, 6.0], rtol=1e-13)
        (both,) = paddle.grad(dx[0] + ((v * e) @ v.T)[0, 0] ** 2, x)
        np.testing.assert_allclose(both.numpy(), [2.0 + 4.0, 0.0], atol=1e-13)

    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_to_any_order(self, order: int) -> None:
        x = leaf(0.7)
        y = paddle.sin(x)
        for _ in range(order):
            (y,) = paddle.grad(y, x, create_graph=True)
        expected = [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin][order - 1](0.7)
        assert y.item() == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (paddle.multiply, [0.0, 0.0]),
            (lambda x, y: y * x, [0.0, 0.0]),
            (lambda x, y: x * 2.0 * y, [0.0, 0.0]),
            (paddle.divide, [0.0, 0.0]),
            (lambda x, y: paddle.bmm(x.reshape([1, 1, 2]), y.reshape([1, 2, 1])), [0.0, 0.0]),
            (lambda x, y: x * 2.0, None),
            (lambda x, y: x / 2.0, None),
            (paddle.matmul, None),
            (paddle.add, None),
            (paddle.maximum, None),
        ],
    )
    def test_what_a_gradient_does_not_depend_on_has_zeros_of_a_product_or_quotient(
        self, function: Callable[..., paddle.Tensor], expected: list[float] | None
    ) -> None:
        """As the release has it; `tests/differential` holds more against it."""
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        (dx,) = paddle.grad(function(x, y), x, create_graph=True)
        (dx * float("inf")).sum().backward()
        assert (x.grad if x.grad is None else x.grad.tolist()) == expected


class TestHooks:
    def test_run_in_order_on_the_accumulated_gradient_and_may_replace_it(self) -> None:
        x = leaf([1.0])
        seen: list[float] = []
        x.register_hook(lambda g: seen.append(g.item()))
        x.register_hook(lambda g: g * 10)
        (x * 2 + x * 3).backward()
        assert (seen, x.grad.item()) == ([5.0], 50.0)

    def test_on_a_result(self) -> None:
        x = leaf([1.0])
        y = x * 2
        y.register_hook(lambda g: g * 100)
        (y * 3).backward()
        assert x.grad.item() == 600.0

    def test_of_no_axes_on_a_result_with_one(self) -> None:
        """Neither this engine nor the release refuses it; one number stands for all, as in NumPy."""
        x = leaf([1.0, 2.0])
        z = paddle.neg(paddle.neg(x * x))
        z.register_hook(lambda g: g.sum())
        (z * 1.5).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [6.0, 12.0])

    def test_removed(self) -> None:
        x = leaf([1.0])
        handle = x.register_hook(lambda g: g * 10)
        assert handle.remove()
        assert not handle.remove()
        (x * 2).backward()
        assert x.grad.item() == 2.0

    def test_not_on_a_tensor_that_stops_gradients(self) -> None:
        with pytest.raises(RuntimeError, match="Cannot register hook"):
            paddle.to_tensor([1.0]).register_hook(lambda g: g)

    def test_retain_grads_keeps_the_gradient_of_a_result(self) -> None:
        x = leaf([1.0])
        y = x * 2
        y.retain_grads()
        (y * 3).backward()
        assert y.grad.item() == 3.0


class TestGradMode:
    def test_no_grad_records_nothing_and_restores_the_mode_after_an_error(self) -> None:
        x = leaf([1.0])
        with paddle.no_grad():
            assert (x * 2).stop_gradient
        with pytest.raises(KeyError), paddle.no_grad():
            raise KeyError
        assert paddle.is_grad_enabled()

    def test_no_grad_decorates(self) -> None:
        @paddle.no_grad()
        def double(x: paddle.Tensor) -> paddle.Tensor:
            return x * 2

        assert double(leaf([1.0])).stop_gradient

    def test_set_grad_enabled_acts_at_once_and_in_a_block(self) -> None:
        with paddle.set_grad_enabled(False):
            assert not paddle.is_grad_enabled()
            with paddle.enable_grad():
                assert paddle.is_grad_enabled()
        assert paddle.is_grad_enabled()

    def test_a_thread_does_not_see_the_mode_of_another(self) -> None:
        seen: list[bool] = []
        with paddle.no_grad():
            thread = threading.Thread(target=lambda: seen.append(paddle.is_grad_enabled()))
            thread.start()
            thread.join()
        assert seen == [True]


class TestInPlaceChanges:
    def test_of_what_a_vjp_reads_are_noticed(self) -> None:
        x = leaf([1.0, 2.0])
        y = x * 1
        z = y * y
        y.scale_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_are_noticed_through_a_detached_tensor(self) -> None:
        x = leaf([1.0, 2.0])
        z = paddle.exp(x)
        z.detach().zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_of_what_no_vjp_reads_do_no_harm(self) -> None:
        x = leaf([1.0, 2.0])
        y = x * 1
        z = y + 1
        y.zero_()
        z.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])

    def test_count_in_inplace_version(self) -> None:
        x = paddle.to_tensor([1.0])
        x.zero_()
        x.fill_(3.0)
        assert x.inplace_version == 2
