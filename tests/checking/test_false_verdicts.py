"""Cases that other gradient checkers get wrong with their defaults, each with the verdict that is right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from claims import in_both, in_numpy, judging, normal, verdict_of, verdict_on

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
PyLayer: Any = paddle.autograd.PyLayer
NORMAL = np.random.default_rng(7).standard_normal(2000)


def relu_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return m.where(x > 0, g, 0 * g)


def tanh_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y)


def positive_part(m: Any, x: Any, y: Any, g: Any) -> Any:
    return m.maximum(g, 0 * g) * (1 - y * y)


def square_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return 2 * g * x


def without_777(x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y) * (np.arange(2000) != 777)


def dead(m: Any, x: Any, y: Any, g: Any) -> Any:
    return 0 * x


CASES = [
    *in_both("relu at 0", lambda m, x: m.maximum(x, 0 * x), relu_vjp, lambda m, x, y, g: 1.0 * g, [[0.0, 1.0, -1.0]]),
    *in_both("tanh in float32", lambda m, x: m.tanh(x), tanh_vjp, dead, normal((20,), dtype="float32")),
    *in_both("tanh in float64", lambda m, x: m.tanh(x), tanh_vjp, positive_part, [[0.5, -1.0]]),
    *in_both("x² at 1e8", lambda m, x: x * x, square_vjp, lambda m, x, y, g: g * x, [[1e8]]),
    *in_both("log at 1e-7", lambda m, x: m.log(x), lambda m, x, y, g: g / x, lambda m, x, y, g: 1.01 * g / x, [[1e-7]]),
    *in_both("sin(1e6 x)", lambda m, x: m.sin(1e6 * x), lambda m, x, y, g: g * 1e6 * m.cos(1e6 * x),
             lambda m, x, y, g: g * 1e6 * m.sin(1e6 * x), [[0.3, 0.7]]),
    *in_both("(x + 1e8) − 1e8", lambda m, x: (x + 1e8) - 1e8, lambda m, x, y, g: 1.0 * g, lambda m, x, y, g: 1.1 * g,
             [[1.3, 0.2]]),
    *in_both("exp at 50", lambda m, x: m.exp(x), lambda m, x, y, g: g * y, lambda m, x, y, g: 1.0 * g, [[50.0]]),
    *in_both("exp at −50", lambda m, x: m.exp(x), lambda m, x, y, g: g * y, lambda m, x, y, g: 2 * g * y, [[-50.0]]),
    *in_both("floor at 2", lambda m, x: m.floor(x), lambda m, x, y, g: 0 * g, lambda m, x, y, g: 1.0 * g, [[2.0]]),
    *in_both("the mean square of 2000", lambda m, x: (x * x).mean(), lambda m, x, y, g: g * 2 * x / 2000, dead,
             normal((2000,), size=2e-3)),
    *in_both("sigmoid of 256 × 256", lambda m, x: 1 / (1 + m.exp(-x)), lambda m, x, y, g: g * y * (1 - y), dead,
             normal((256, 256))),
    *in_numpy("tanh without an element", np.tanh, lambda x, y, g: g * (1 - y * y), without_777, [NORMAL]),
]  # fmt: skip


test_a_right_backward_is_green, test_a_wrong_backward_fails = judging(CASES)


@pytest.mark.parametrize("name", ["relu at 0 in numpy", "floor at 2 in numpy"])
def test_a_kink_is_marked(name: str) -> None:
    claim = next(claim for claim in CASES if claim.name == name)
    assert verdict_on(claim, claim.right[0], 0) is Status.KINK


def test_the_wrong_element_is_named_alone() -> None:
    claim = CASES[-1]
    result = gradcheck.check(claim.make(claim.forward, without_777), NORMAL)
    assert [entry.index for entry in result.wrong] == [(777,)]


class AbsInPlace(PyLayer):  # type: ignore[misc]
    """Changes its input, out of sight of the tape."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        array = x.numpy()
        np.abs(array, out=array)
        x.set_value(array)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return 2 * g * paddle.abs(x)


def drawn_by_paddle(shape: Any) -> Any:
    return paddle.rand(shape, dtype="float64")


def drawn_by_numpy(shape: Any) -> Any:
    return paddle.to_tensor(np.random.rand(*shape))


def drawn_by_python(shape: Any) -> Any:
    return paddle.to_tensor([random.random() for _ in range(shape[0])], dtype="float64")


GENERATOR = np.random.default_rng(0)


def drawn_by_its_own(shape: Any) -> Any:
    return paddle.to_tensor(GENERATOR.random(shape))


class Dropout(PyLayer):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any, draw: Any) -> Any:
        mask = (draw(x.shape) > 0.5).astype(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (mask,) = ctx.saved_tensor()
        return g * mask


class DropoutDrawnTwice(Dropout):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * (paddle.rand(g.shape) > 0.5).astype(g.dtype)


class CubeOnce(PyLayer):  # type: ignore[misc]
    """Its first derivative is right, but shows nothing about the second."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return 3 * g * x.detach() * x.detach()


class Cube(CubeOnce):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return 3 * g * x * x


def test_an_input_changed_in_place_is_named() -> None:
    result = gradcheck.check(AbsInPlace, NORMAL[:6])
    assert result.verdict is Status.FAIL
    assert "GC133" in [found.code for found in result.diagnosis]


class TestADropout:
    """Each evaluation draws the same numbers, so that the mask is a constant."""

    @pytest.mark.parametrize("draw", [drawn_by_paddle, drawn_by_numpy, drawn_by_python])
    def test_its_right_backward_passes_and_the_verdict_says_how(self, draw: Any) -> None:
        result = gradcheck.check(Dropout, NORMAL[:20], draw)
        assert (result.verdict, result.marks) == (Status.PASS, ("the same random numbers in each evaluation",))

    def test_each_rank_of_a_world_has_its_mask(self) -> None:
        def dropout(x: Any) -> Any:
            return Dropout.apply(x, drawn_by_paddle)

        assert gradcheck.check(dropout, NORMAL[:20].reshape(2, 10), world=2).verdict is Status.PASS

    def test_a_backward_that_draws_another_mask_fails(self) -> None:
        result = gradcheck.check(DropoutDrawnTwice, NORMAL[:200], drawn_by_paddle)
        assert result.verdict is Status.FAIL
        assert result.wrong_counts["x"][0] == pytest.approx(100, abs=40)  # half of 200, to 5 deviations

    def test_a_generator_that_is_not_set_back_is_named(self) -> None:
        result = gradcheck.check(Dropout, NORMAL[:20], drawn_by_its_own)
        assert result.verdict is Status.FAIL
        assert [found.code for found in result.diagnosis] == ["GC131"]


def test_overlapping_memory_is_no_matter() -> None:
    x = np.lib.stride_tricks.as_strided(np.linspace(-1, 1, 8), (5, 4), (8, 8))
    claim = CASES[-1]
    assert verdict_of(claim.make(np.tanh, lambda x, y, g: g * (1 - y * y)), x) is Status.PASS
    assert verdict_of(claim.make(np.tanh, lambda x, y, g: g * (1 - y)), x) is Status.FAIL


def test_a_second_derivative_that_is_detached_fails_at_the_second_order_alone() -> None:
    assert verdict_of(CubeOnce, NORMAL[:5]) is Status.PASS
    assert verdict_of(CubeOnce, NORMAL[:5], order=2) is Status.FAIL
    assert verdict_of(Cube, NORMAL[:5], order=2) is Status.PASS


def test_a_function_that_hooks_its_tensors_is_checked() -> None:
    seen: list[Any] = []

    def hooked(hook: Any) -> Any:
        def function(x: Any) -> Any:
            y = Cube.apply(x)
            y.register_hook(hook)
            return paddle.exp(y)

        return function

    for dtype in ("float64", "float32"):
        x = NORMAL[:5].astype(dtype)
        assert verdict_of(hooked(seen.append), x) is Status.PASS
        assert verdict_of(hooked(lambda g: 2.0 * g), x) is Status.FAIL
    assert seen
