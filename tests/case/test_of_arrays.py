"""Functions of NumPy arrays, with gradients written by hand, are checked as layers are."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import gradcheck
from gradcheck.result import Status

RANDOM = np.random.default_rng(0)
X, W, PLACES = RANDOM.standard_normal(5), RANDOM.standard_normal(4), np.array([0, 1, 1, 4])


def softplus_of_some(x: Any, w: Any, places: Any) -> Any:
    z = x[places] * w
    return np.log1p(np.exp(z)), z.sum()


def gradients(x: Any, w: Any, places: Any, g: Any, g_sum: Any, sign: float = -1.0) -> Any:
    z = x[places] * w
    dz = g / (1 + np.exp(sign * z)) + g_sum
    dx = np.zeros_like(x)
    np.add.at(dx, places, dz * w)
    return dx, dz * x[places], None


def test_right_gradients_pass_with_several_outputs_and_none_for_integers() -> None:
    result = gradcheck.check(softplus_of_some, X, W, PLACES, backward=gradients)
    assert result.verdict is Status.PASS
    assert set(result.wrong_counts) == {"x", "w"}


def test_a_wrong_gradient_is_named_at_its_line() -> None:
    result = gradcheck.check(softplus_of_some, X, W, PLACES, backward=lambda *a: gradients(*a, sign=1.0))
    assert result.verdict is Status.FAIL
    cause = result.diagnosis[0]
    assert cause.code == "GC119"
    assert cause.source_line.strip() == "return np.log1p(np.exp(z)), z.sum()"
    assert cause.source_line[cause.column : cause.end_column] == "np.exp(z)"


def test_one_array_needs_no_tuple_and_numbers_are_passed_on() -> None:
    def scaled(x: Any, by: float) -> Any:
        assert isinstance(by, float)
        return x * by

    assert gradcheck.check(scaled, X, 3.0, backward=lambda x, by, g: g * by)
    assert not gradcheck.check(scaled, X, 3.0, backward=lambda x, by, g: g)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_arrays_keep_their_dtype(dtype: str) -> None:
    seen = set()

    def square(x: Any) -> Any:
        seen.add(x.dtype.name)
        return x * x

    x = (X + 0.5).astype(dtype)
    assert gradcheck.check(square, x, backward=lambda x, g: 2 * np.conj(x) * g)
    assert dtype in seen


def test_a_scalar_output_may_be_a_python_number() -> None:
    assert gradcheck.check(lambda x: float(x.sum()), X, backward=lambda x, g: np.full_like(x, g))


def test_what_is_no_function_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="backward must be a function of arrays, not 3"):
        gradcheck.check(np.tanh, X, backward=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the function must be a function of arrays, not 4"):
        gradcheck.check(4, X, backward=np.tanh)


def test_a_forward_that_writes_into_its_argument_is_told_so() -> None:
    def doubled(x: Any) -> Any:
        return np.multiply(x, 2, out=x)

    result = gradcheck.check(doubled, X, backward=lambda x, g: 2 * g)
    assert [found.code for found in result.diagnosis] == ["GC133"]
    assert "forward writes into x" in str(result)


def test_a_tie_is_told_of_both_of_its_elements() -> None:
    def back(x: Any, g: Any) -> Any:
        return g[np.argsort(np.argsort(x))]

    result = gradcheck.check(lambda x: np.sort(x), np.array([2.0, 1.0, 2.0, 3.0]), backward=back)
    # Of the two equal outputs the smaller or the larger one; where the other element decides too, both slopes.
    either = r"\((?:left 1, right 0|left 0, right 1|slopes from 0 to 1)\)"
    assert re.search(rf"x\[0\] {either}, x\[2\] {either};", str(result))


def test_the_function_is_as_it_was_after_a_check() -> None:
    gradcheck.check(softplus_of_some, X, W, PLACES, backward=gradients)
    assert softplus_of_some.__globals__["np"] is np


@pytest.mark.parametrize("chosen", [lambda x: x > 0, lambda x: np.argsort(x), lambda x: (x > 0).any()])
def test_an_output_may_be_a_mask_or_indices(chosen: Any) -> None:
    def verdict(factor: float) -> Status:
        return gradcheck.check(lambda x: (2 * x, chosen(x)), X, backward=lambda x, g, _: factor * g).verdict

    assert (verdict(2.0), verdict(3.0)) == (Status.PASS, Status.FAIL)


def as_none(x: Any, g: Any) -> Any:
    return g, None


@pytest.mark.parametrize("backward", [lambda x, g: g.sum(), lambda x, g: g[:2], as_none])
def test_what_is_no_gradient_of_a_function_without_a_name_is_a_verdict(backward: Any) -> None:
    result = gradcheck.check(lambda x: 2 * x, X, backward=backward)
    assert (result.verdict, [d.code for d in result.diagnosis]) == (Status.FAIL, ["GC137"])


def test_arrays_may_be_in_lists_and_dicts_and_so_may_their_gradients() -> None:
    def both(xs: Any, of: Any) -> Any:
        return xs[0] * xs[1] + of["w"]

    def back(xs: Any, of: Any, g: Any) -> Any:
        return [g * xs[1], g * xs[0]], {"w": g}

    right = gradcheck.check(both, [X, X + 1], {"w": X}, backward=back)
    assert right.verdict is Status.PASS
    assert set(right.wrong_counts) == {"xs[0]", "xs[1]", "of['w']"}
    flat = gradcheck.check(both, [X, X + 1], {"w": X}, backward=lambda xs, of, g: (g * xs[1], g * xs[1], g))
    assert [name for name, (count, _) in flat.wrong_counts.items() if count] == ["xs[1]"]


def test_gradients_in_a_dict_are_those_of_its_keys_in_any_order() -> None:
    def product(of: Any) -> Any:
        return of["a"] * of["b"] ** 2

    def back(of: Any, g: Any) -> Any:
        return ({"b": 2 * g * of["a"] * of["b"], "a": g * of["b"] ** 2},)

    assert gradcheck.check(product, {"a": X, "b": X + 1}, backward=back).verdict is Status.PASS


def test_a_backward_that_writes_into_what_it_is_given_is_told_so() -> None:
    def into_cotangent(x: Any, g: Any) -> Any:
        return np.multiply(g, 2, out=g)

    def into_input(x: Any, g: Any) -> Any:
        x += 1
        return 2 * g

    for backward, named in ((into_cotangent, "the incoming gradient"), (into_input, "x")):
        result = gradcheck.check(lambda x: 2 * x, X, backward=backward)
        assert [found.code for found in result.diagnosis] == ["GC134"]
        assert f"backward writes into {named}" in str(result)


def test_what_backward_returns_is_counted_and_its_shapes_are_held_against_the_arrays() -> None:
    for backward, said in (
        (lambda x, g: (g, g), "backward returns 2 gradients for 1 array"),
        (lambda x, g: g[:2], "gradient 0 (input `x`): the gradient has shape [2], but the input has shape [5]"),
    ):
        result = gradcheck.check(lambda x: 2 * x, X, backward=backward)
        assert result.diagnosis[0].code == "GC137"
        assert said in str(result)
        assert ".py:" not in str(result)  # nothing of the user's own is there to be named


@pytest.mark.parametrize(
    ("function", "backward", "said"),
    [
        (lambda x: {"out": x}, lambda x, g: g, r"<lambda> returned a dict: return an array, or a tuple or list"),
        (lambda x: None, lambda x, g: g, "<lambda> returned None: return an array"),
        (lambda x: x, lambda g: g, r"backward is called with 2 arguments, .* but its signature is \(g\)"),
    ],
)
def test_what_does_not_fit_is_said_in_terms_of_arrays(function: Any, backward: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        gradcheck.check(function, X, backward=backward)


def through_c(x: Any) -> Any:
    """As a C extension takes it: the memory of an array of NumPy's own, and of nothing that stands for one."""
    return np.array(memoryview(np.ascontiguousarray(x)))


@pytest.mark.parametrize("hidden", ["forward", "backward"])
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Status.PASS), (1.02, Status.FAIL)])
def test_code_that_takes_no_recorded_arrays_runs_as_it_is(hidden: str, factor: float, verdict: Status) -> None:
    """Such as torch's `from_numpy`, Numba's and Cython's functions: they raise where something stands for an array."""
    of_forward, of_backward = (through_c if hidden == part else np.asarray for part in ("forward", "backward"))

    def forward(x: Any) -> Any:
        return np.tanh(of_forward(x)) * 3

    def backward(x: Any, g: Any) -> Any:
        return factor * 3 * of_backward(g) * (1 - np.tanh(of_backward(x)) ** 2)

    result = gradcheck.check(forward, X, backward=backward)
    assert result.verdict is verdict
    assert any(cause.line for cause in result.diagnosis) == (hidden == "backward" and factor != 1.0)


def test_what_is_read_off_chosen_indices_is_chosen_as_well() -> None:
    """Rounding is measured with the choices of the plain run: here which of the gradients that are not 0 is lost."""

    def forward(x: Any) -> Any:
        return x * (1 + np.tanh(x))

    def backward(x: Any, g: Any, lost: bool = True) -> Any:
        t = np.tanh(x)
        found = g * (1 + t + x * (1 - t * t))  # 0 where tanh is −1
        alive = np.flatnonzero(found)
        order = np.argsort(np.abs(found[alive]))
        if lost and alive.size:
            found[alive[order[alive.size // 2]]] = 0
        return found

    x = np.linspace(-30.0, 5.0, 64)
    assert gradcheck.check(forward, x, backward=functools.partial(backward, lost=False)).verdict is Status.PASS
    assert gradcheck.check(forward, x, backward=backward).verdict is Status.FAIL


def test_the_order_of_a_spline_is_no_layout() -> None:
    """Which NumPy's own functions call by the same word."""
    ndimage = pytest.importorskip("scipy.ndimage")
    ends = ndimage.zoom(np.eye(4), (2, 1), order=1)
    x = np.random.default_rng(0).normal(size=(4, 4))
    assert gradcheck.check(lambda x: ndimage.zoom(x, 2, order=1), x, backward=lambda x, g: ends.T @ g @ ends)
    rows = gradcheck.check(lambda x: ends @ x, x, backward=lambda x, g: ndimage.zoom(np.eye(4), (2, 1), order=1).T @ g)
    assert rows.verdict == "PASS"


def test_what_a_library_wraps_its_own_functions_in_is_seen_through() -> None:
    linalg = pytest.importorskip("scipy.linalg")

    def backward(c: Any, g: Any) -> Any:
        return np.array([sum(np.trace(g, k) for k in {n, -n}) for n in range(c.size)])

    x = np.random.default_rng(0).normal(size=5)
    assert gradcheck.check(lambda c: linalg.toeplitz(c), x, backward=backward)
    twice = gradcheck.check(lambda c: 2 * linalg.toeplitz(c), x, backward=backward)
    assert twice.verdict is Status.FAIL


def test_what_an_iterator_of_numpy_writes_is_there() -> None:
    def squares(x: Any) -> Any:
        y = np.empty_like(x)
        with np.nditer([x, y], op_flags=[["readonly"], ["writeonly"]]) as both:
            for one, other in both:
                other[...] = one * one
        return y

    def backward(x: Any, g: Any) -> Any:
        dx = 0 * x
        with np.nditer([x, g, dx], op_flags=[["readonly"], ["readonly"], ["writeonly"]]) as all_three:
            for one, cotangent, gradient in all_three:
                gradient[...] = 2 * one * cotangent
        return dx

    x = np.random.default_rng(0).normal(size=(2, 3))
    assert gradcheck.check(squares, x, backward=backward)
    assert gradcheck.check(squares, x, backward=lambda x, g: -backward(x, g)).verdict == "FAIL"
    assert gradcheck.check(lambda x: x * x, x, backward=backward)


@pytest.mark.parametrize("options", [{"mode": "symmetric", "reflect_type": "odd"}, {"mode": "mean", "stat_length": 2}])
def test_a_rule_that_is_not_numpys_is_not_believed_where_operations_are_moved(options: Any) -> None:
    rows, columns = (np.stack([np.pad(row, 2, **options) for row in np.eye(n)]) for n in (5, 6))
    x = np.random.default_rng(0).normal(size=(9, 10))
    assert gradcheck.check(lambda x: rows @ x @ columns.T, x, backward=lambda x, g: np.pad(g, 2, **options))

    def backward(x: Any, g: Any) -> Any:
        return 2 * rows @ (g * np.pad(x, 2, **options)) @ columns.T

    assert gradcheck.check(lambda x: np.pad(x, 2, **options) ** 2, x[:5, :6], backward=backward)
