"""Every family of operations, checked by the project's own checker on what hypothesis draws: values, sizes, layouts,
dtypes, first and second order.

The long run, 1,000 examples per family and order, printing the counts:

    pytest tests/engine/test_families.py -m long -s
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import samples
from test_ops import DIFFERENTIABLE, OTHERS, Call, expected, first_order, second_order

from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import Status
from pylayer.tape.op import Op
from pylayer.tape.vjp import OPS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def family(op: Op) -> str:
    """The module of the operation's vjps."""
    return next(iter(op.vjps)).rule.__module__.rpartition(".")[2]


FAMILIES = sorted({family(op) for op in OPS.values() if op.differentiable})

FIXED = {
    "as_complex", "as_strided", "broadcast_to", "broadcast_view", "concat", "split", "reshape", "getitem",
    "scatter_sum", "setitem", "scattered_at", "where", "put_reduced",
    "conv", "conv_input", "conv_weight", "fold", "unfold", "window_spread", "window_sum", "svd",
}  # fmt: skip
"""Operations with an argument that goes with one shape of their sample."""

COMPLEX = [
    "add", "subtract", "multiply", "divide", "neg", "square", "reciprocal", "exp", "sin", "cos", "sinh", "cosh", "tanh",
    "sum", "mean", "matmul", "einsum_explicit", "transpose", "reshape", "concat", "stack", "conj", "real", "imag",
    "getitem", "flip", "roll", "tile", "tril", "pad",
]  # fmt: skip
"""Operations that take complex numbers."""

STEPS = {"floor", "ceil", "trunc", "round", "sign", "floor_divide"}
"""Operations that are flat between jumps. Without a tape of its own, flat is not told from saturated: nothing need be
seen."""

LAYOUTS = ["C", "F", "every second", "backwards", "read-only"]


def laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    """The same values in another layout."""
    if layout == "F":
        return np.asfortranarray(array) if array.ndim else array
    if layout == "every second" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "backwards" and array.ndim:
        return array[::-1].copy()[::-1]
    if layout == "read-only":
        array = array.copy()
        array.setflags(write=False)
    return array


def changed(value: Any, change: Any) -> Any:
    """A sample with every floating-point array in it changed, also inside lists."""
    if isinstance(value, list) and any(isinstance(v, np.ndarray) for v in value):
        return [changed(v, change) for v in value]
    return np.asarray(change(value)) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value


@st.composite
def calls(draw: st.DrawFn, name: str) -> Call:
    """An operation of a family on arguments like one of its samples."""
    op = draw(st.sampled_from([op for op in OPS.values() if op.differentiable and family(op) == name]))
    seed = draw(st.integers(0, 2**20))
    sizes = {} if op.name in FIXED else {n: draw(st.integers(1, 5)) for n in (2, 3, 4)}
    rows = samples(seed, sizes)[op.name]
    k = draw(st.integers(0, len(rows) - 1))
    arguments: Sequence[Any] = rows[k]
    if op.name in COMPLEX and draw(st.booleans()):
        others = iter(np.random.default_rng(seed).uniform(-0.5, 0.5, 4096))
        arguments = [
            changed(v, lambda a: a + 1j * np.reshape([next(others) for _ in range(a.size)], a.shape)) for v in arguments
        ]
    elif op.name != "cast" and draw(st.booleans()):
        arguments = [changed(v, lambda a: a.astype("float32") if a.dtype.kind == "f" else a) for v in arguments]
    layout = draw(st.sampled_from(LAYOUTS))
    return Call(op, [changed(v, lambda a: laid_out(a, layout)) for v in arguments])


def check_family(name: str, examples: int) -> Counter[str]:
    """Check drawn calls of a family in first and second order, and count them."""
    counts: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(call=calls(name))
    def check(call: Call) -> None:
        for order, problem in (("first", first_order(call)), ("second", second_order(call))):
            found = check_gradient(problem)
            counts[f"{order} order: {found.verdict}"] += 1
            flat = [Status.INCONCLUSIVE] if call.op.name in STEPS else []
            assert found.verdict in (expected(problem), Status.KINK, *flat), (
                order,
                call.op,
                call.arguments,
                found.why,
                found.wrong[:3],
            )

    check()
    return counts


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_on_drawn_arguments(name: str) -> None:
    assert sum(check_family(name, 5).values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_on_a_thousand_drawn_arguments(name: str) -> None:
    counts = check_family(name, 1000)
    operations = [op for op in OPS.values() if op.differentiable and family(op) == name]
    tests = sum(op in operations for op, _ in DIFFERENTIABLE)
    print(
        f"\n{name}: {len(operations)} operations, {tests} samples each in first and second order; drawn: {dict(counts)}"
    )
    assert sum(counts.values()) >= 2000


@pytest.mark.long
def test_count_of_the_table() -> None:
    assert {op.name for op, _ in (*DIFFERENTIABLE, *OTHERS)} == set(OPS)
    print(
        f"\n{len(OPS)} operations; {len(DIFFERENTIABLE)} samples checked in first order and as many in second, "
        f"{len(OTHERS)} of operations without a derivative"
    )
