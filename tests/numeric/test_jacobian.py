"""Every entry of a Jacobian: which axes are independent, and which entries are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import Array

from gradcheck.numeric.arrays import flat, real
from gradcheck.numeric.jacobian import Block, paired_axes, wrong_in_block
from gradcheck.numeric.line import Line, Scan, scale_of
from gradcheck.numeric.noise import measured

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Vjp = Callable[..., Array]
RANDOM = np.random.default_rng(5)
W = RANDOM.standard_normal((4, 3))
RTOL = 1e-12


@dataclass
class Case:
    """A function of arrays, its gradient with respect to one, and the lines that were taken."""

    f: Callable[..., Array]
    vjp: Vjp
    x: Sequence[Array]
    number: int = 0
    evaluations: int = 0
    vjps: int = 0

    def block(self, claimed: Vjp | None = None, taped: bool = False) -> Block:
        """The block with a claim in place of the gradient; with the tape's gradient if wished."""
        outputs = real(flat([self.f(*self.x)]))

        def line(direction: Sequence[Array | None]) -> Line:
            def f(v: Sequence[Array]) -> list[Array]:
                self.evaluations += 1
                return [self.f(*v)]

            return Line(f, self.x, direction, outputs)

        def counted(g: Array) -> Array:
            self.vjps += 1
            return (claimed or self.vjp)(*self.x, g)

        def tape(g: Array) -> Array:
            return self.vjp(*self.x, g)

        scales = [scale_of(x) for x in self.x]
        return Block(line, self.x, scales, self.number, 0, self.f(*self.x).shape, counted, tape if taped else None)

    def noise(self) -> Array:
        """The noise of the outputs."""
        return measured(Scan(self.block().along(scale_of(self.x[self.number]))))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_vjp(x: Array, g: Array) -> Array:
    y = softmax(x)
    return y * (g - (g * y).sum(-1, keepdims=True))


def drawn(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).uniform(0.3, 0.9, shape)


CASES: dict[str, tuple[Case, list[tuple[int, int]]]] = {
    "elementwise": (Case(np.tanh, lambda x, g: g * (1 - np.tanh(x) ** 2), [drawn(3, 4)]), [(0, 0), (1, 1)]),
    "softmax over the last axis": (Case(softmax, softmax_vjp, [drawn(3, 4)]), [(0, 0)]),
    "a matrix product": (Case(lambda x: x @ W, lambda x, g: g @ W.T, [drawn(5, 4)]), [(0, 0)]),
    "its other operand": (Case(lambda a, b: a @ b, lambda a, b, g: a.T @ g, [drawn(5, 4), drawn(4, 3)], 1), [(1, 1)]),
    "a transpose": (Case(lambda x: np.sin(x.T), lambda x, g: (g * np.cos(x.T)).T, [drawn(3, 4)]), [(0, 1), (1, 0)]),
    "a running sum": (Case(lambda x: x.cumsum(0), lambda x, g: g[::-1].cumsum(0)[::-1], [drawn(4, 3)]), [(1, 1)]),
    "the sum of an axis": (Case(lambda x: (x * x).sum(1), lambda x, g: 2 * x * g[:, None], [drawn(4, 3)]), [(0, 0)]),
    "all on all": (Case(lambda x: np.fft.fft(x).real, lambda x, g: np.fft.fft(g).real, [drawn(6)]), []),
    "a scalar": (Case(lambda x: np.sum(x**3), lambda x, g: 3 * x * x * g, [drawn(2, 3)]), []),
    "of a scalar": (Case(np.exp, lambda x, g: g * np.exp(x), [np.asarray(0.3)]), []),
}  # fmt: skip
"""By name: a function, and the axes of input and output along which its Jacobian is diagonal."""


def jacobian(case: Case) -> Array:
    """Every entry of the true Jacobian: one row an output."""
    shape = case.f(*case.x).shape
    rows = [case.vjp(*case.x, one.reshape(shape)).reshape(-1) for one in np.eye(math.prod(shape))]
    return np.array(rows)


# --------------------------------------------------------------------------- structure
@pytest.mark.parametrize("name", CASES)
def test_the_axes_along_which_a_jacobian_is_diagonal_are_paired(name: str) -> None:
    case, pairs = CASES[name]
    for seed in range(3):
        assert paired_axes(case.block(), np.random.default_rng(seed)) == pairs


@pytest.mark.parametrize("name", ["elementwise", "softmax over the last axis", "a matrix product"])
def test_an_axis_that_the_claim_crosses_is_not_paired(name: str) -> None:
    case, pairs = CASES[name]
    for claimed in (lambda x, g: np.roll(case.vjp(x, g), 1, 0), lambda x, g: case.vjp(x, g) + 1e-9 * g.sum()):
        assert (0, 0) in pairs
        assert (0, 0) not in paired_axes(case.block(claimed), np.random.default_rng(0))


def test_an_axis_that_the_function_crosses_is_not_paired_whatever_is_claimed() -> None:
    case = Case(lambda x: np.tanh(x) + 1e-6 * x[::-1], lambda x, g: g * (1 - np.tanh(x) ** 2), [drawn(5)])
    assert paired_axes(case.block(), np.random.default_rng(0)) == []


def test_a_diagonal_jacobian_takes_hardly_more_evaluations_for_a_thousand_elements_than_for_ten() -> None:
    counts = []
    for n in (10, 1000):
        case = Case(np.tanh, lambda x, g: g * (1 - np.tanh(x) ** 2), [drawn(n)])
        noise, block = case.noise(), case.block()
        case.evaluations = 0
        assert list(wrong_in_block(block, paired_axes(block, np.random.default_rng(0)), noise, RTOL)) == []
        counts.append(case.evaluations + case.vjps)
    assert counts[1] <= 3 * counts[0]


# --------------------------------------------------------------------------- entries
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("taped", [False, True])
def test_of_a_right_claim_no_entry_is_wrong(name: str, taped: bool) -> None:
    case, pairs = CASES[name]
    assert list(wrong_in_block(case.block(taped=taped), pairs, case.noise(), RTOL)) == []


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_wrong_entry_is_found_with_its_place_and_its_value(name: str, taped: bool, data: st.DataObject) -> None:
    case, _ = CASES[name]
    true = jacobian(case)
    outputs, inputs = true.shape
    row, column = data.draw(st.integers(0, outputs - 1)), data.draw(st.integers(0, inputs - 1))
    error = data.draw(st.sampled_from([1e-6, -2.0, 1.0]))

    def claimed(*a: Array) -> Array:
        *x, g = a
        found = np.array(case.vjp(*x, g), dtype=float, order="C")
        found.reshape(-1)[column] += error * g.reshape(-1)[row]
        return found

    block = case.block(claimed, taped)
    found = list(wrong_in_block(block, paired_axes(block, np.random.default_rng(0)), case.noise(), RTOL))
    assert [(e.index, e.output) for e in found] == [(column, row)]
    assert found[0].analytic == pytest.approx(true[row, column] + error, abs=1e-12)
    assert abs(found[0].numeric - true[row, column]) <= found[0].bar < abs(error)


def test_every_entry_of_a_claim_that_is_wrong_throughout_is_named() -> None:
    case, pairs = CASES["a matrix product"]
    found = list(wrong_in_block(case.block(lambda x, g: 2 * g @ W.T), pairs, case.noise(), RTOL))
    every = {(4 * b + k, 3 * b + j) for b in range(5) for k in range(4) for j in range(3)}
    assert {(e.index, e.output) for e in found} == every


def test_rows_are_counted_from_where_the_output_begins() -> None:
    def f(x: Array) -> Array:
        return np.concatenate([x * x, np.exp(x)])

    x = drawn(3)
    case = Case(f, lambda x, g: g[3:] * np.exp(x) + g[:3] * 2 * x, [x])
    whole = case.block()
    part = Block(whole.line, whole.x, whole.scales, 0, 3, (3,), lambda g: g * np.exp(x) * np.array([1, 2, 1]), None)
    found = list(wrong_in_block(part, [(0, 0)], case.noise(), RTOL))
    assert [(e.index, e.output) for e in found] == [(1, 4)]


def test_a_nan_in_the_claim_is_wrong() -> None:
    case, pairs = CASES["softmax over the last axis"]
    found = list(wrong_in_block(case.block(lambda x, g: softmax_vjp(x, g) * np.nan), pairs, case.noise(), RTOL))
    assert len(found) == 3 * 4 * 4
