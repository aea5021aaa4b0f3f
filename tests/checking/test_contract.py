"""The contracts: each broken one is a FAIL with its code, whatever the gradient's numbers say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layers import problem

from gradcheck.case.gradient_check import check_gradient
from gradcheck.checking.contracts import close
from gradcheck.checking.problem import Observation
from gradcheck.result import GradientSummary, Status

X = np.random.default_rng(3).standard_normal((4, 3))


def check(forward: Any, backward: Any, *inputs: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs))


def codes(summary: GradientSummary) -> list[str]:
    return [found.code for found in summary.diagnosis]


def square_vjp(x: Any, y: Any, g: Any) -> Any:
    return 2 * x * g


@pytest.mark.clause(id="V25")
@pytest.mark.parametrize(
    "backward",
    [
        lambda x, y, g: 2 * x * np.maximum(g, 0),
        lambda x, y, g: 2 * x * np.clip(g, -1, 1),
        lambda x, y, g: 2 * x * np.clip(g, -20, 20),
        lambda x, y, g: 2 * x * g * np.abs(g),
        lambda x, y, g: 2 * x * np.sign(g),
        lambda x, y, g: 2 * x * np.round(g),
        lambda x, y, g: 2 * x * g + 1e-3,
        lambda x, y, g: 2 * x * np.where(np.abs(g) > 1e-3, g, 0) + 0 * x + (g == 0),
    ],
)
def test_a_backward_is_linear_in_its_cotangent(backward: Any) -> None:
    summary = check(np.square, backward, X)
    assert summary.verdict is Status.FAIL
    assert "GC110" in codes(summary)


@pytest.mark.clause(id="V26")
class TestACotangentWhoseAxesLieInAnotherOrder:
    """As after a transpose; its values are the same."""

    def codes_of(self, vjp: Any) -> list[str]:
        """The codes of a backward that gets the observed cotangent in the order that it has."""
        squared = problem(np.square, vjp, X)

        def observe(cotangents: Any) -> Observation:
            return Observation(outputs=squared.forward([X]), gradients=squared.vjp([X], cotangents))

        return codes(check_gradient(replace(squared, observe=observe)))

    def test_a_backward_that_reads_memory_as_it_lies_is_named(self) -> None:
        assert self.codes_of(lambda x, y, g: 2 * x * g.ravel(order="K").reshape(g.shape)) == ["GC166"]

    def test_a_backward_that_refuses_it_is_named(self) -> None:
        def contiguous_only(x: Any, y: Any, g: Any) -> Any:
            if not g.flags.c_contiguous:
                raise ValueError("view size is not compatible")
            return 2 * x * g

        assert self.codes_of(contiguous_only) == ["GC166"]

    def test_a_backward_in_any_order_passes(self) -> None:
        assert self.codes_of(lambda x, y, g: (2 * x * g).T.copy().T) == []

    def test_it_is_not_the_cause_of_another_mistake(self) -> None:
        assert "GC166" not in self.codes_of(lambda x, y, g: x * g)


@pytest.mark.clause(id="V24")
def test_a_forward_that_draws_random_numbers_is_named() -> None:
    random = np.random.default_rng(0)
    summary = check(lambda x: x * (random.random(x.shape) > 0.5), lambda x, y, g: g * (y != 0), X)
    assert (summary.verdict, codes(summary)) == (Status.FAIL, ["GC131"])


@pytest.mark.clause(id="V24")
def test_a_backward_that_draws_random_numbers_is_named() -> None:
    random = np.random.default_rng(0)
    summary = check(np.square, lambda x, y, g: 2 * x * g * (random.random(x.shape) > 0.01), np.tile(X, 50))
    assert summary.verdict is Status.FAIL
    assert codes(summary)[0] == "GC132"


@pytest.mark.clause(id="V26")
def test_an_output_without_cotangent_counts_as_one_of_zeros() -> None:
    def two(x: Any) -> Any:
        return x * x, 3 * x

    def fails(x: Any, y: Any, g: Any) -> Any:
        return 2 * x * g[0] + 3 * g[1]

    def forgets(x: Any, y: Any, g: Any) -> Any:
        return 2 * x * g[0] + 3 * g[1] if g[0] is not None and g[1] is not None else None

    def right(x: Any, y: Any, g: Any) -> Any:
        return 2 * x * (0 if g[0] is None else g[0]) + 3 * (0 if g[1] is None else g[1])

    assert codes(check(two, fails, X)) == ["GC136"]
    assert codes(check(two, forgets, X)) == ["GC136"]
    assert check(two, right, X).verdict is Status.PASS


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (np.square, square_vjp),
        (np.tanh, lambda x, y, g: g * (1 - y * y)),
        (lambda x: x.sum(0), lambda x, y, g: np.broadcast_to(g, x.shape)),
        (lambda x: x / np.linalg.norm(x), lambda x, y, g: (g - y * (g * y).sum()) / np.linalg.norm(x)),
    ],
)
def test_right_layers_keep_all_contracts_at_every_scale(forward: Any, backward: Any, scale: float) -> None:
    assert codes(check(forward, backward, scale * X)) == []


def test_sums_are_compared_relative_to_their_largest_element() -> None:
    one = np.array([1.0, 1e-20])
    assert close(one, one, 1.0, None)
    assert close(one + np.array([0, 1e-18]), one, 1.0, None)
    assert not close(one + np.array([1e-9, 0]), one, 1.0, None)
    assert close(None, None, 2.0, None)
    assert not close(one, None, 2.0, None)


@pytest.mark.clause(id="V25")
def test_gradients_that_are_not_finite_are_no_contract_of_linearity() -> None:
    summary = check(np.sqrt, lambda x, y, g: g / (2 * y), [0.0, 1.0, 2.0])
    assert "GC110" not in codes(summary)
