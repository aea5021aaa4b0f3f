"""The cause of a wrong gradient, named by its code; what is not understood is not named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import numpy_layer
from few import seeds
from layers import problem

import gradcheck
from gradcheck.case.gradient_check import check_gradient
from gradcheck.causes.hypotheses import nice
from gradcheck.causes.words import factor_text
from gradcheck.codes import CODES
from gradcheck.result import GradientSummary, Status

RANDOM = np.random.default_rng(5)
X, A, B = RANDOM.standard_normal((3, 4, 4))
Z = X + 1j * A


def check(forward: Any, backward: Any, *inputs: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs))


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def biased(x: Any, b: Any) -> Any:
    return x + b


def mean_square(x: Any) -> Any:
    return np.asarray((x * x).mean())


def dead(x: Any, y: Any, g: Any) -> Any:
    gradient = 2 * x * g
    gradient[1, 2] = 0
    return gradient


@pytest.mark.parametrize(
    ("code", "text", "forward", "backward", "inputs"),
    [
        ("GC101", "numeric = 2 · analytic", np.square, lambda x, y, g: x * g, [X]),
        ("GC101", "numeric = 1/3 · analytic", np.square, lambda x, y, g: 6 * x * g, [X]),
        ("GC102", "the sign is wrong", np.square, lambda x, y, g: -2 * x * g, [X]),
        ("GC103", "analytic transposed", np.square, lambda x, y, g: (2 * x * g).T, [X]),
        (
            "GC104",
            "rolled by -1 along axis 0",
            np.square,
            lambda x, y, g: np.roll(2 * x * g, 1, 0),
            [X],
        ),
        ("GC104", "flipped along axis 1", np.square, lambda x, y, g: (2 * x * g)[:, ::-1], [X]),
        ("GC105", "backward gives for x1", matmul, lambda a, b, y, g: (a.T @ g, g @ b.T), [A, B]),
        ("GC106", "summed over axis 0", biased, lambda x, b, y, g: (g, g[0]), [X, B[0]]),
        ("GC107", "1 of 16 elements get 0, but their gradient is not 0 (x0[1,2]", np.square, dead, [X]),
        ("GC108", "backward gives 0 everywhere", np.square, lambda x, y, g: 0 * g, [X]),
        ("GC108", "backward gives 0 everywhere", np.square, lambda x, y, g: None, [X]),
        ("GC109", "the same result whatever", np.square, lambda x, y, g: 2 * x, [X]),
        (
            "GC111",
            "a factor 1 − out that should be 1 − out²",
            np.tanh,
            lambda x, y, g: g * (1 - y),
            [X],
        ),
        ("GC111", "numeric = analytic · x0", lambda x: x**3, lambda x, y, g: 3 * x * g, [X]),
        ("GC111", "numeric = analytic / x0", lambda x: x**3, lambda x, y, g: 3 * x**3 * g, [X]),
        ("GC112", "analytic / 16", mean_square, lambda x, y, g: 2 * x * g, [X]),
        (
            "GC112",
            "16 · analytic",
            lambda x: np.asarray((x * x).sum()),
            lambda x, y, g: 2 * x * g / 16,
            [X],
        ),
        ("GC114", "analytic + dy · exp(x0)", lambda x: x * np.exp(x), lambda x, y, g: g * y, [X]),
        (
            "GC122",
            "passes the cotangent on as it is",
            lambda x: np.cumsum(x * x, 0),
            lambda x, y, g: g,
            [X],
        ),
        ("GC115", "conj(analytic)", lambda z: z * z, lambda z, y, g: 2 * z * g.conj(), [Z]),
        ("GC116", "numeric = dy @ x1.T", matmul, lambda a, b, y, g: (g @ b, a.T @ g), [A, B]),
        ("GC116", "numeric = x0.T @ dy", matmul, lambda a, b, y, g: (g @ b.T, a @ g), [A, B]),
    ],
)
def test_the_cause_is_named(code: str, text: str, forward: Any, backward: Any, inputs: Any) -> None:
    summary = check(forward, backward, *inputs)
    assert summary.verdict is Status.FAIL
    found = [d for d in summary.diagnosis if d.code == code]
    assert found, summary.diagnosis
    assert text in found[0].text


def test_a_cause_names_its_input_alone() -> None:
    summary = check(matmul, lambda a, b, y, g: (g @ b.T, 2 * a.T @ g), A, B)
    assert [(d.code, d.inputs) for d in summary.diagnosis] == [("GC101", ("x1",))]
    assert summary.wrong_counts == {"x0": (0, 16), "x1": (16, 16)}


def test_gradients_in_the_wrong_order_are_one_mistake_though_one_of_them_has_another_cause() -> None:
    def backward(x: Any, w: Any, b: Any, g: Any) -> Any:
        return g * w, g.sum(0), (g * x).sum(0)

    result = gradcheck.check(lambda x, w, b: x * w + b, A, B[0], B[1], backward=backward)
    assert {(d.code, d.inputs) for d in result.diagnosis} == {("GC105", ("w",)), ("GC105", ("b",))}


def test_what_no_hypothesis_explains_gets_no_cause() -> None:
    noise = RANDOM.standard_normal((4, 4))
    summary = check(np.square, lambda x, y, g: 2 * x * g * (1 + noise), X)
    assert (summary.verdict, summary.diagnosis) == (Status.FAIL, ())


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (1 / 3, "1/3"), (-0.5, "-1/2"), (np.pi, "3.14159"), (16.0, "16")],
)
def test_factors_are_written_as_people_do(value: float, text: str) -> None:
    assert factor_text(nice(value, 1e-12)) == text


def test_every_code_has_a_complete_text() -> None:
    for code, row in CODES.items():
        assert code.startswith("GC1")
        assert all(field.strip() for field in row), code


def test_a_square_too_many_is_said_as_such() -> None:
    summary = check(np.exp, lambda x, y, g: g * y * (1 + y), X)
    assert [d.text for d in summary.diagnosis] == [
        "x0: numeric = analytic / (1 + out): a factor 1 − out² that should be 1 − out"
    ]


# ----------------------------------------------------------------- what can be told from few digits
def cast_norm(x: np.ndarray) -> np.ndarray:
    h = x.astype("float32")
    h = h - h.mean(-1, keepdims=True)
    h = h / np.sqrt((h * h).mean(-1, keepdims=True))
    return h.astype(x.dtype)  # type: ignore[no-any-return]


def cast_norm_vjp(x: np.ndarray, w: np.ndarray, y: Any, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h, r, d = cast_norm(x), 1 / x.std(-1, keepdims=True), g * w
    return -r * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True)), -(g * h).sum(0)


def taken_out(forward: Any) -> Any:
    """The same function by way of Python's numbers, which nothing records."""
    return lambda *arrays: forward(*(np.array(v.tolist(), v.dtype) for v in arrays))


@seeds(3)
def test_the_cause_is_told_in_the_precision_of_the_layer(seed: int) -> None:
    r = np.random.default_rng(seed)
    layer = numpy_layer(taken_out(lambda x, w: cast_norm(x) * w), cast_norm_vjp)
    found = gradcheck.check(layer, r.normal(size=(4, 8)), r.normal(size=8), seed=seed)
    assert len(found.diagnosis) == 2
    assert all("the sign is wrong" in d.text for d in found.diagnosis)


@seeds(3)
@pytest.mark.parametrize(
    ("forward", "backward", "inputs", "text"),
    [
        (np.exp, lambda x, y, g: 1.01 * g * y, lambda r: r.uniform(-70, -50, 5), "101/100 times"),
        (np.square, lambda x, y, g: -2 * g * x, lambda r: r.uniform(1e-13, 1e-11, 5),
         "with the wrong sign"),
    ],
    ids=["outputs of 1e-26", "outputs of 1e-24"],
)  # fmt: skip
def test_the_cause_is_told_at_the_scale_of_the_layer(
    forward: Any, backward: Any, inputs: Any, text: str, seed: int
) -> None:
    x = inputs(np.random.default_rng(seed))
    (cause,) = gradcheck.check(numpy_layer(forward, backward), x, seed=seed).diagnosis
    assert text in cause.text
    # without a record a naive GELU at -8, whose digits are gone, looks the same
    unseen = gradcheck.check(numpy_layer(taken_out(forward), backward), x, seed=seed)
    assert unseen.verdict is Status.INCONCLUSIVE


@seeds(6)
@pytest.mark.parametrize(
    ("forward", "slope", "inputs"),
    [
        (np.expm1, np.exp, lambda r: r.uniform(1e-13, 1e-11, 5)),
        (
            lambda x: 1 / (1 + np.exp(-x)),
            lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2,
            lambda r: r.uniform(15, 30, 6),
        ),
        (np.tanh, lambda x: 1 / np.cosh(x) ** 2, lambda r: r.normal(size=3)),
    ],
    ids=["expm1 at 1e-12", "the tail of a sigmoid", "three elements"],
)
def test_one_entry_of_few_has_no_formula(forward: Any, slope: Any, inputs: Any, seed: int) -> None:
    x = inputs(np.random.default_rng(seed))
    for factor in (2, -1):
        layer = numpy_layer(forward, lambda x, y, g, c=factor: g * slope(x) * np.where(np.arange(x.size) == 2, c, 1))
        assert [d.code for d in gradcheck.check(layer, x, seed=seed).diagnosis] == []
