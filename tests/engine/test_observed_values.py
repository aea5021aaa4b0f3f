"""Values, gradients and versions that Paddle 3.3.1 was seen to give, where the engine gave others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.release import missing_name

F = paddle.nn.functional
NAN, INFINITY = float("nan"), float("inf")


def leaf(values: Any) -> Any:
    return paddle.to_tensor(np.array(values, "float64"), stop_gradient=False)


def gradient_of(function: Any, values: Any, cotangent: Any = None) -> tuple[Any, Any]:
    """The values of a function, and the gradient of its argument."""
    x = leaf(values)
    out = function(x)
    out.backward(None if cotangent is None else paddle.to_tensor(np.array(cotangent, "float64")))
    return out.numpy(), x.grad.numpy()


# --------------------------------------------------------------------------- one number per channel
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (1, 3)])
def test_instance_norm_of_one_number_per_channel_is_0(shape: tuple[int, ...]) -> None:
    out, gradient = gradient_of(F.instance_norm, np.arange(np.prod(shape)).reshape(shape) + 1.0)
    assert not out.any()
    assert not gradient.any()


@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1)])
def test_batch_norm_of_one_number_per_channel_leaves_it_and_the_statistics(shape: tuple[int, ...]) -> None:
    mean, variance, weight = paddle.zeros([3], "float64"), paddle.ones([3], "float64"), leaf([2.0, 3.0, 4.0])
    x = np.array([1.0, 2.0, 3.0]).reshape(shape)
    out, gradient = gradient_of(lambda t: F.batch_norm(t, mean, variance, weight, training=True), x)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(gradient, np.ones(shape))
    np.testing.assert_array_equal(weight.grad.numpy(), np.zeros(3))
    assert (mean.numpy().tolist(), variance.numpy().tolist()) == ([0.0] * 3, [1.0] * 3)


# --------------------------------------------------------------------------- at special points
@pytest.mark.parametrize("other", [[[0.0, 0.0]], [[1.0, 2.0]]])
def test_the_cosine_of_nothing_has_a_finite_slope(other: list[list[float]]) -> None:
    y = paddle.to_tensor(np.array(other))
    out, gradient = gradient_of(lambda x: F.cosine_similarity(x, y), [[0.0, 0.0]])
    assert out == [0.0]
    np.testing.assert_allclose(gradient, np.array(other) * 1e8)  # y / epsilon, as 0 is below it


def test_hardshrink_keeps_the_threshold_and_nan() -> None:
    out, gradient = gradient_of(F.hardshrink, [NAN, INFINITY, 0.5, -0.5, 0.4, 0.6])
    np.testing.assert_array_equal(out, [NAN, INFINITY, 0.5, -0.5, 0.0, 0.6])
    np.testing.assert_array_equal(gradient, [0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(gradient_of(lambda x: F.hardshrink(x, -1.0), [0.3, -2.0])[0], [0.3, -2.0])


def test_the_slope_of_i0e_at_0_is_that_of_its_side() -> None:
    np.testing.assert_array_equal(gradient_of(paddle.i0e, [0.0, -0.0])[1], [-1.0, 1.0])


@pytest.mark.parametrize(
    ("values", "largest", "least"),
    [([1.0, NAN, 3.0], 2, 0), ([NAN, 1.0, 3.0], 2, 1), ([NAN, NAN], 0, 0), ([-INFINITY, NAN], 0, 0)],
)
def test_nan_is_neither_the_largest_nor_the_least_element(values: list[float], largest: int, least: int) -> None:
    x = paddle.to_tensor(np.array(values))
    assert (int(paddle.argmax(x)), int(paddle.argmin(x))) == (largest, least)


@pytest.mark.parametrize(
    "pool", [lambda x: F.max_pool2d(x, 1, 1, padding=1), lambda x: F.max_pool2d(x, 1, 2, padding=2)]
)
def test_a_window_of_padding_alone_is_the_least_float32_and_has_no_gradient(pool: Any) -> None:
    x = np.array([[[[1.0]]]])
    out, gradient = gradient_of(pool, x)
    lowest = -float(np.finfo("float32").max)
    assert sorted(set(out.ravel())) == [lowest, 1.0]
    np.testing.assert_array_equal(gradient, np.ones_like(x))


@pytest.mark.parametrize("length", [-1, -2, None])
def test_a_negative_maxlen_is_the_largest_length(length: int | None) -> None:
    mask = F.sequence_mask(paddle.to_tensor([1, 3, 2]), maxlen=length)
    assert mask.numpy().tolist() == [[1, 0, 0], [1, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("perm", "whole"), [([1, 0], [1, 0, 2, 3]), ([2, 0, 1], [2, 0, 1, 3]), ([0], [0, 1, 2, 3]), ([], [0, 1, 2, 3])]
)
def test_an_order_of_the_first_axes_leaves_the_others(perm: list[int], whole: list[int]) -> None:
    values = np.arange(120.0).reshape(2, 3, 4, 5)
    cotangent = np.cos(values.transpose(whole))
    out, gradient = gradient_of(lambda x: x.transpose(perm), values, cotangent)
    np.testing.assert_array_equal(out, values.transpose(whole))
    np.testing.assert_array_equal(gradient, np.cos(values))


def test_a_column_of_positions_selects_as_a_vector_does() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    assert paddle.index_select(x, paddle.to_tensor([[1], [0]])).numpy().tolist() == [[3.0, 4.0], [1.0, 2.0]]


# --------------------------------------------------------------------------- taken there
def test_attention_without_a_batch_is_that_of_a_batch_of_one() -> None:
    x = leaf(np.cos(np.arange(24.0)).reshape(4, 2, 3))
    out = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    batch = x.unsqueeze(0)
    expected = F.scaled_dot_product_attention(batch, batch, batch, is_causal=True)
    np.testing.assert_array_equal(out.numpy(), expected.numpy()[0])


def test_solve_takes_a_vector_per_matrix() -> None:
    matrices = np.array([[[2.0, 1.0], [0.0, 3.0]], [[1.0, 4.0], [2.0, 1.0]]])
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = paddle.linalg.solve(leaf(matrices), leaf(rows)).numpy()
    np.testing.assert_allclose(np.einsum("bij,bj->bi", matrices, found), rows)


def test_a_generator_may_be_decorated_with_a_grad_mode() -> None:
    x = leaf([1.0])

    @paddle.no_grad()
    def steps() -> Any:
        sent = yield x * 2
        yield (x * 3, sent)

    generator = steps()
    first = next(generator)
    between = x * 2
    second, sent = generator.send("sent")
    assert [first.stop_gradient, between.stop_gradient, second.stop_gradient, sent] == [True, False, True, "sent"]


def test_the_no_grad_of_base_dygraph_takes_a_function() -> None:
    x = leaf([1.0])
    assert paddle.base.dygraph.no_grad(lambda t: t * 2)(x).stop_gradient
    with paddle.base.dygraph.no_grad():
        assert (x * 2).stop_gradient


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda i: i << 1, [8, 10]), (lambda i: i >> 1, [2, 2]), (lambda i: 1 << i, [16, 32]),
        (lambda i: 64 >> i, [4, 2]), (lambda i: i << i, [64, 160]), (lambda i: +i, [4, 5]),
        (lambda i: i.__div__(2), [2.0, 2.5]), (lambda i: i.__rdiv__(20), [5.0, 4.0]),
    ],
)  # fmt: skip
def test_operators_of_the_release(call: Any, expected: list[float]) -> None:
    assert call(paddle.to_tensor([4, 5])).numpy().tolist() == expected


# --------------------------------------------------------------------------- hooks
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("inner", [False, True])
def test_a_hook_that_returns_another_dtype_is_refused(dtype: str, inner: bool) -> None:
    x = leaf([1.0])
    y = x * 2
    (y if inner else x).register_hook(lambda g: g.astype(dtype))
    with pytest.raises(RuntimeError, match="not consistent"):
        (y * 3).backward()


def zero(g: Any) -> None:
    g.zero_()


def add(g: Any) -> None:
    g.add_(g)


def write(g: Any) -> None:
    g[0] = 0.0


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("hook", [zero, add, write])
def test_a_hook_may_not_change_its_gradient_in_place(hook: Any, inner: bool) -> None:  # an OSError around it there
    x = leaf([1.0])
    y = x * 2
    (y if inner else x).register_hook(hook)
    with pytest.raises(ValueError, match="can't use inplace strategy"):
        (y * 3).backward()


def test_a_hook_may_change_its_gradient_under_no_grad() -> None:
    x = leaf([1.0])
    x.register_hook(paddle.no_grad()(zero))
    (x * 3).backward()
    assert x.grad.numpy().tolist() == [0.0]


# --------------------------------------------------------------------------- versions
@pytest.mark.parametrize("write", [lambda t: t.set_value(t * 2), lambda t: t.copy_(t * 2, True)])
def test_a_change_that_the_release_does_not_count_gives_its_gradient(write: Any) -> None:
    x = leaf([3.0])
    y = x * 1.0
    z = y * y
    write(y)
    z.backward()
    assert (y.inplace_version, x.grad.numpy().tolist()) == (0, [12.0])  # of 2 · 6, and not of 2 · 3


@pytest.mark.parametrize(
    ("change", "versions"),
    [
        (lambda t: t.nan_to_num_(), 3), (lambda t: t.index_fill_(paddle.to_tensor([0]), 0, 1.0), 3),
        (lambda t: t.gammainc_(t + 1), 3), (lambda t: t.sinc_(), 4), (lambda t: t.hypot_(t), 3),
        (lambda t: t.exponential_(), 0), (lambda t: t.bernoulli_(), 3), (lambda t: t.exp_(), 1),
        (lambda t: t.apply_(lambda u: u * 2), 0),
    ],
)  # fmt: skip
def test_how_many_versions_a_change_counts(change: Any, versions: int) -> None:
    x = paddle.to_tensor([0.5, 0.25])
    change(x)
    assert x.inplace_version == versions


# --------------------------------------------------------------------------- iterations
@pytest.mark.parametrize("function", [paddle.gammainc, paddle.gammaincc])
@pytest.mark.parametrize("count", [1, 32, 64, 1000])
def test_the_gamma_functions_end_for_any_number_of_elements(function: Any, count: int) -> None:
    a = 1.0 + 19.0 * np.linspace(0, 1, count)
    y = a + 1.0 + 5.0 * np.abs(np.sin(np.arange(count)))
    found = function(paddle.to_tensor(a), paddle.to_tensor(y)).numpy()
    alone = [float(function(paddle.to_tensor(p), paddle.to_tensor(q))) for p, q in zip(a[:3], y[:3], strict=True)]
    np.testing.assert_allclose(found[:3], alone, rtol=1e-14)
    assert ((found > 0) & (found < 1)).all()


def test_what_would_take_too_many_steps_is_nan() -> None:
    found = paddle.gammaincc(paddle.to_tensor([2.0, 1e9]), paddle.to_tensor([3.0, 1e9])).numpy()
    np.testing.assert_allclose(found[0], 4 * np.exp(-3.0))  # (1 + y) exp(-y)
    assert np.isnan(found[1])


# --------------------------------------------------------------------------- static mode


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda p: p.clone(), "paddle.static.Program.clone"),
        (lambda p: p.random_seed, "paddle.static.Program.random_seed"),
        (lambda p: p.state_dict(), "paddle.static.Program.state_dict"),
        (lambda p: p.global_block().remove_op(0), "paddle.pir.Block.remove_op"),
        (lambda p: paddle.static.Executor().train_from_dataset(p), "paddle.static.Executor.train_from_dataset"),
    ],
)
def test_a_member_of_a_program_that_the_engine_lacks_is_named(use: Any, name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        use(paddle.static.Program())
    assert missing_name(caught.value) == name
