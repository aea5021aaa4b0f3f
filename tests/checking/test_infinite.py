"""Where the slope of a function grows without bound its gradient is infinite, and right so; elsewhere it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import GREEN, NOT_FAIL, in_both, in_numpy, in_paddle, judging

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.clause(id="V22")]

WITH_0 = [np.array([0.0, 1.0, 2.0, 0.3])]
KINK = frozenset({Status.KINK})


def instead(right: Any, at: float, value: float) -> Any:
    """A right backward, but for what it gives where the input is `at`."""
    return lambda m, x, y, g: m.where(x == at, 0 * x + value, right(m, x, y, g))


def of_root(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g / (2 * y)


ROOT = in_both(
    "√x", lambda m, x: m.sqrt(x), of_root,
    [instead(of_root, 0.0, np.nan), instead(of_root, 2.0, np.nan), instead(of_root, 2.0, np.inf),
     instead(of_root, 2.0, 0.1), lambda m, x, y, g: -of_root(m, x, y, g), lambda m, x, y, g: 2 * of_root(m, x, y, g)],
    WITH_0, of_right=KINK, seeds=3,
)  # fmt: skip
OTHERS = [
    *in_numpy("∛x", np.cbrt, lambda x, y, g: g / (3 * y * y), lambda x, y, g: -g / (3 * y * y), WITH_0, of_right=KINK),
    *in_numpy("x^1.5", lambda x: x**1.5, lambda x, y, g: g * 1.5 * np.sqrt(x),
              lambda x, y, g: g * np.where(x == 0, np.inf, 1.5 * np.sqrt(x)), WITH_0,
              of_right=NOT_FAIL),
    *in_numpy("√|x|", lambda x: np.sqrt(abs(x)), lambda x, y, g: g / (2 * y), lambda x, y, g: g / y, WITH_0,
              of_right=KINK),
    *in_numpy("an entropy", lambda p: -np.where(p > 0, p * np.log(p), 0.0).sum(),
              lambda p, y, g: -g * (np.log(p) + 1), lambda p, y, g: -g * np.log(p), WITH_0, of_right=KINK),
    *in_numpy("arcsin", np.arcsin, lambda x, y, g: g / np.sqrt(1 - x * x), lambda x, y, g: g / np.sqrt(1 + x * x),
              [np.array([1.0, 0.5, -1.0])], of_right=KINK),
    *in_numpy("a root of one number", np.sqrt, lambda x, y, g: g / (2 * y), lambda x, y, g: -g / (2 * y),
              [np.array(0.0)], of_right=KINK),
    *in_numpy("√a b", lambda a, b: np.sqrt(a) * b, lambda a, b, y, g: (g * b / (2 * np.sqrt(a)), g * np.sqrt(a)),
              lambda a, b, y, g: (g * b / (2 * np.sqrt(a)), g * a), [WITH_0[0], np.array([1.0, -2.0, 3.0, 4.0])],
              of_right=KINK),
    *in_paddle("√(a · a) of rows", lambda a: paddle.sqrt((a * a).sum(-1)),
               lambda a, y, g: (g / (y + (y == 0).astype(y.dtype))).unsqueeze(-1) * a,
               lambda a, y, g: (g / y).unsqueeze(-1) * a, [np.array([[0.0, 0.0], [1.0, 2.0]])]),
]  # fmt: skip


(
    test_an_infinite_gradient_is_right_where_the_slope_grows_without_bound,
    test_beside_an_infinite_gradient_a_wrong_one_fails,
) = judging(ROOT, OTHERS)


def test_what_is_not_finite_without_a_reason_is_named() -> None:
    found = gradcheck.check(lambda x: paddle.sqrt(((x - x.mean()) ** 2).mean()), np.ones(4))
    assert found.verdict is Status.FAIL
    assert [d.code for d in found.diagnosis] == ["GC124"]
    assert found.wrong_counts == {"x": (4, 4)}
    assert all(np.isnan(entry.analytic) for entry in found.wrong)


def test_of_many_elements_that_are_not_finite_not_all_are_counted() -> None:
    found = gradcheck.check(lambda x: paddle.sqrt(((x - x.mean()) ** 2).mean()), np.ones(1000))
    assert found.verdict is Status.FAIL
    assert not found.exhaustive


def test_the_sides_on_which_the_slope_grows_are_told() -> None:
    found = gradcheck.check(paddle.sqrt, WITH_0[0])
    assert found.why == "the slope grows without bound at x[0] (right inf), as backward says"


def test_mode_full_holds_them_too() -> None:
    assert gradcheck.check(paddle.sqrt, WITH_0[0], mode="full").verdict in GREEN


def test_a_gradient_that_overflows_for_a_large_cotangent_alone_is_no_finding() -> None:
    assert gradcheck.check(paddle.exp, np.array([709.5, 1.0])).verdict in GREEN


# --------------------------------------------------------------------------- a root behind a selection
SELECTIONS: dict[str, Any] = {
    "clip": lambda x: paddle.clip(x, min=0),
    "relu": lambda x: paddle.nn.functional.relu(x),
    "maximum": lambda x: paddle.maximum(x, paddle.zeros_like(x)),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_what_a_selection_leaves_out_has_no_slope_though_that_of_the_root_is_infinite(name: str) -> None:
    selection = SELECTIONS[name]

    class Root(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return paddle.sqrt(selection(x))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensor()
            root = paddle.sqrt(paddle.where(x > 0, x, paddle.ones_like(x)))
            return paddle.where(x > 0, g / (2 * root), paddle.zeros_like(g))

    class Everywhere(Root):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return g / (2 * paddle.sqrt(paddle.where(x > 0, x, paddle.ones_like(x))))

    x = np.array([-1.3, -0.2, 0.4, 1.7])
    assert gradcheck.check(Root, x).verdict is Status.PASS
    assert gradcheck.check(Everywhere, x).verdict is Status.FAIL
