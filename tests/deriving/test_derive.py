"""A backward is derived from a forward, in forward's own names; what gradcheck does not pass is refused."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
F: Any = paddle.nn.functional
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 4))
W = RANDOM.standard_normal(4)
TABLE = paddle.to_tensor(W)


class Tanh(PyLayer):
    """With a backward that is wrong."""

    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y)


class RMSNorm(PyLayer):
    """Without a backward."""

    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        r = paddle.rsqrt((x * x).mean(axis=-1, keepdim=True) + eps)
        return x * r * weight


def backward_of(function: Any, *inputs: Any, **options: Any) -> str:
    derived = gradcheck.derive(function, *inputs, **options)
    assert derived, derived.refused
    return derived.backward


def test_the_names_of_the_user_are_kept() -> None:
    derived = gradcheck.derive(Tanh, X)
    assert derived.backward == "y, = ctx.saved_tensor()\nreturn dy * (1 - y * y)"


def test_forward_is_the_users_text_but_for_what_it_saves() -> None:
    code = gradcheck.derive(RMSNorm, X, W).code
    assert code.startswith("import paddle\nfrom paddle.autograd import PyLayer\n")
    assert "        ctx.save_for_backward(x, weight, r)\n        return x * r * weight\n" in code
    assert "    @staticmethod\n    def backward(ctx, dy):\n        x, weight, r = ctx.saved_tensor()\n" in code


def test_the_code_defines_a_layer_that_passes() -> None:
    scope = {"paddle": paddle, "PyLayer": PyLayer}
    tree = ast.parse(gradcheck.derive(RMSNorm, X, W).code)
    tree.body = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    exec(compile(tree, "derived", "exec"), scope)
    assert gradcheck.check(scope["RMSNorm"], X[:2], W, dtypes=["float64", "float32"]).verdict is Status.PASS


def test_it_was_checked_at_three_sizes_and_in_two_dtypes() -> None:
    places = gradcheck.derive(RMSNorm, X, W).checked_at
    assert places[:2] == ("x=3x4, weight=4 in float64", "x=3x4, weight=4 in float32")
    assert len(set(places)) == 6


def test_a_function_becomes_a_class() -> None:
    derived = gradcheck.derive(lambda x, w: paddle.tanh(x @ w), X, RANDOM.standard_normal((4, 2)), name="Dense")
    assert "class Dense(PyLayer):" in derived.code
    assert "        y = paddle.tanh(x @ w)\n        ctx.save_for_backward(x, w, y)\n        return y\n" in derived.code
    assert derived.diff == ""


def test_sizes_and_options_are_read_not_written_out() -> None:
    def scaled(x, k=3.0):
        n = x.shape[0]
        return (x * x).sum(axis=0) * k / n

    assert backward_of(scaled, X).splitlines()[-1] == "return (2 * ctx.k * dy / x.shape[0]).unsqueeze(0) * x" or (
        "ctx.k" in backward_of(scaled, X) and "x.shape[0]" in backward_of(scaled, X)
    )


def test_an_option_that_leads_elsewhere_is_guarded() -> None:
    def powered(x, steps=2):
        for _ in range(steps):
            x = x * paddle.sin(x)
        return x

    code = gradcheck.derive(powered, X).code
    assert 'assert steps == 2, "backward is only for steps=2"' in code


def test_zeros_are_returned_for_an_input_that_needs_a_gradient_and_has_none() -> None:
    def masked(x, m):
        return x * (m > 0).astype(x.dtype)

    assert backward_of(masked, X, X + 0.5).endswith("paddle.zeros_like(m)")


def test_an_input_that_is_rebound_is_kept() -> None:
    def twice(x):
        x = x * x
        x = paddle.tanh(x)
        return 2 * x

    code = gradcheck.derive(twice, X).code
    assert "        x_in = x\n        x = x * x\n" in code


def test_numpy_code_inside_is_followed() -> None:
    def numeric(x):
        y = np.tanh(x.numpy())
        return paddle.to_tensor(y)

    lines = ["y = ctx.y", "dy = dy.numpy()", "return paddle.to_tensor(dy * (1 - y * y))"]
    assert backward_of(numeric, X).splitlines() == lines


def test_order_2_saves_inputs_alone() -> None:
    derived = gradcheck.derive(Tanh, X, order=2)
    assert "ctx.save_for_backward(x)" in derived.code
    assert "paddle.tanh(x)" in derived.backward


def test_a_right_backward_needs_no_change() -> None:
    class Right(Tanh):
        @staticmethod
        def forward(ctx, x):
            y = paddle.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensor()
            return dy * (1 - y * y)

    derived = gradcheck.derive(Right, X)
    assert derived
    assert derived.diff == ""


# --------------------------------------------------------------------------- what is refused
def branches(x):
    return x * 2 if x.sum() > 0 else x * x


def reads_a_number(x):
    return x * float(x.max())


def draws(x):
    return F.dropout(x, 0.5)


def stops(x):
    return x * x.detach()


def stops_in_a_block(x):
    with paddle.no_grad():
        scale = x.abs().max()
    return x / scale


def loops_over_a_size(x):
    total = x[0]
    for k in range(1, x.shape[0]):
        total = total * x[k]
    return total


def has_no_gradient(x):
    return paddle.zeros([3]) + 1


def sums_over_ranks(x):
    y = x.clone()
    paddle.distributed.all_reduce(y)
    return y


def counts_ranks(x):
    return x / paddle.distributed.get_world_size()


def takes_a_list(xs):
    return xs[0] * xs[1]


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (branches, [X], "reads values by a branch"),
        (reads_a_number, [X], "reads values by float()"),
        (draws, [X], "draws random numbers"),
        (stops, [X], "stops a gradient"),
        (stops_in_a_block, [X], "stops a gradient"),
        (loops_over_a_size, [X], "did not pass at x=4x5 in float64"),
        (has_no_gradient, [X], "no input takes a gradient"),
        (takes_a_list, [[X, X]], "holds Tensors in a list"),
        (sums_over_ranks, [X], "one of several ranks"),
        (counts_ranks, [X], "one of several ranks"),
        (lambda x: x * TABLE, [X[0]], "does not run at other sizes"),
    ],
)
def test_what_holds_for_these_values_alone_is_refused(function: Any, inputs: list[Any], reason: str) -> None:
    derived = gradcheck.derive(function, *inputs)
    assert not derived
    assert derived.code == ""
    assert reason in derived.refused
    assert reason in str(derived)


def test_masks_that_are_all_zero_at_the_inputs_are_not_left_out() -> None:
    """Where relu is 0 everywhere, its gradient is 0 there and not everywhere."""

    def relu(x):
        return F.relu(x) + x

    backward = backward_of(relu, -np.abs(X) - 0.1)
    assert ">" in backward or "relu" in backward


def test_sizes_that_are_equal_by_chance_are_told_apart() -> None:
    """With x of 3x3 a wrong transposition would pass at 3x3, 4x4 and 6x6."""

    def product(x, w):
        return paddle.matmul(x, w)

    derived = gradcheck.derive(product, X[:, :3], RANDOM.standard_normal((3, 3)))
    assert derived.backward.splitlines()[-1] == "return dx, dw"
    assert "transpose_y=True" in derived.backward


def test_a_wrong_call_says_so() -> None:
    assert "missing a required argument: 'weight'" in gradcheck.derive(RMSNorm, X).refused
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        gradcheck.derive(Tanh, X, order=3)


# --------------------------------------------------------------------------- NumPy code
class NumpyRms(PyLayer):
    """Computes with arrays, one of which is kept as an attribute."""

    @staticmethod
    def forward(ctx, x, w):
        a, g = x.numpy(), w.numpy()
        rms = np.sqrt((a * a).mean(axis=-1, keepdims=True) + 1e-6)
        ctx.rms = rms
        ctx.save_for_backward(x, w)
        return paddle.to_tensor(a / rms * g)


def numpy_norm(x, w, eps=1e-6):
    rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    return x / rms * w


def two_results(x, w):
    y = np.tanh(x * w)
    return y, y.sum(axis=0)


def test_a_layer_in_numpy_gets_a_backward_in_numpy() -> None:
    lines = backward_of(NumpyRms, X, W).splitlines()
    assert lines[:2] == ["x, w = ctx.saved_tensor()", "dy, x, w = dy.numpy(), x.numpy(), w.numpy()"]
    assert lines[-1] == "return paddle.to_tensor(dx), paddle.to_tensor(dw)"
    assert "ctx.rms" in lines[2]
    assert not any("paddle" in line for line in lines[:-1])


def test_an_operation_that_numpy_lacks_is_written_with_paddle() -> None:
    def mixed(x):
        t = paddle.to_tensor(np.exp(x.numpy()))
        return t * paddle.erf(t)

    lines = backward_of(mixed, X).splitlines()
    assert not any("np." in line or ".numpy()" in line for line in lines)


def test_a_function_of_arrays_gets_the_backward_beside_it() -> None:
    derived = gradcheck.derive(numpy_norm, X, W)
    assert derived.name == "numpy_norm_grad"
    assert derived.code.startswith("import numpy as np\n\n\ndef numpy_norm(x, w, eps=1e-6):\n")
    assert "\n\n\ndef numpy_norm_grad(x, w, dy, eps=1e-06):\n" in derived.code
    assert "paddle" not in derived.code


def test_the_derived_pair_passes_at_other_sizes_and_options() -> None:
    scope: dict[str, Any] = {}
    exec(gradcheck.derive(numpy_norm, X, W).code, scope)
    for eps in (1e-6, 0.5):
        forward = lambda x, w, eps=eps: scope["numpy_norm"](x, w, eps=eps)  # noqa: E731
        backward = lambda x, w, dy, eps=eps: scope["numpy_norm_grad"](x, w, dy, eps=eps)  # noqa: E731
        assert gradcheck.check(forward, X[:2], W, backward=backward)


def test_one_cotangent_for_each_result_of_a_function_of_arrays() -> None:
    derived = gradcheck.derive(two_results, X, W)
    assert "def two_results_grad(x, w, dy, dy1):" in derived.code
    assert "(dy + dy1) * (1 - y * y)" in derived.code


def test_values_that_a_backward_computes_anew_have_the_names_of_forward() -> None:
    first, *_ = backward_of(numpy_norm, X, W).splitlines()
    assert first == "rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)"


# --------------------------------------------------------------------------- sizes
def test_a_size_is_read_from_any_value_that_has_it() -> None:
    def heads(x, w, count=2):
        b, t, d = x.shape
        return (x @ w).reshape([b, t, count, d // count])

    backward = backward_of(heads, RANDOM.standard_normal((2, 3, 8)), RANDOM.standard_normal((8, 8)))
    assert "dy.reshape([dy.shape[0], dy.shape[1], w.shape[1]])" in backward


def test_a_sum_over_an_axis_that_is_divided_by_its_size_is_a_mean() -> None:
    def centred(x):
        return x - x.mean(axis=-1, keepdim=True)

    assert backward_of(centred, X) == "return dy - dy.mean(axis=-1, keepdim=True)"
