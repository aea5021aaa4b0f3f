"""NumPy overwrites large arrays that nobody else holds, cotangents among them; small ones, of less than 256 KiB, never.

So a program of elementwise operations must find for many copies of some values what it finds for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pylayer.paddle as paddle
from pylayer.fast import puller
from pylayer.fast.walk import own
from pylayer.tape.vjp import OPS

VALUES, COPIES = 8, 8192
"""64 bytes, never overwritten, and 512 KiB."""


class Keeps(paddle.autograd.PyLayer):
    """The identity; its backward keeps what it gives back."""

    kept: ClassVar[list[Any]] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Keeps.kept.append(g)
        return g


def halves_swapped(x: Any, y: Any) -> Any:
    """Of a large array the halves of copies, of a small one (a single copy) itself: both views."""
    shaped = x.reshape([-1, VALUES])
    if shaped.shape[0] == 1:
        return shaped.reshape([-1])
    first, second = paddle.split(shaped, 2)
    return paddle.concat([second, first]).reshape([-1])


def in_place(x: Any, y: Any) -> Any:
    """An operation in place, on a result that no vjp reads."""
    result = x + y
    result.add_(y)
    return result


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "tanh": lambda x, y: paddle.tanh(x),
    "exp": lambda x, y: paddle.exp(-x * x),
    "negate": lambda x, y: -x,
    "half": lambda x, y: 0.5 * x,
    "divide": lambda x, y: x / (1 + y * y),
    "reshape": lambda x, y: x.reshape([2, -1]).reshape([-1]),
    "halves": halves_swapped,
    "in place": in_place,
    "layer": lambda x, y: Keeps.apply(x),
    "detached": lambda x, y: x * y.detach(),
    "maximum": lambda x, y: paddle.maximum(x, y),
}

HOOKS = ("", "sees", "keeps", "doubles", "writes", "retains")

PROGRAMS = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 99), st.integers(0, 99), st.sampled_from(HOOKS)),
    min_size=1,
    max_size=10,
)


def found(program: Any, how: str, copies: int) -> list[np.ndarray[Any, Any]]:
    """Every gradient that the program can see, at the end."""
    r = np.random.default_rng(0)
    leaves = [paddle.to_tensor(np.tile(r.uniform(-1, 1, VALUES), copies), stop_gradient=False) for _ in range(2)]
    seed = np.tile(r.uniform(-1, 1, VALUES), copies)
    results, seen, retained = list(leaves), [], []
    Keeps.kept = seen

    def hook(kind: str) -> Callable[[Any], Any]:
        def run(g: Any) -> Any:
            seen.append(g if kind == "keeps" else g.clone())
            if kind == "writes" and how != "double":  # what is recorded is not written to
                with paddle.no_grad():
                    g.multiply_(paddle.to_tensor(3.0, "float64"))
            return g * 2 if kind == "doubles" else g if kind == "keeps" else None

        return run

    for step, first, second, kind in program:
        result = STEPS[step](results[first % len(results)], results[second % len(results)])
        if kind == "retains":
            result.retain_grads()
            retained.append(result)
        elif kind:
            result.register_hook(hook(kind))
        results.append(result)
    cotangent = paddle.to_tensor(seed)
    given: list[Any] = []
    if how in ("grad", "double"):
        wanted = [*leaves, *results[2:-1][:1]]
        given = paddle.grad(results[-1], wanted, cotangent, create_graph=how == "double", allow_unused=True)
        if how == "double":
            needed = [g for g in given if g is not None and not g.stop_gradient]
            if needed:
                paddle.autograd.backward(needed, [cotangent] * len(needed))
    else:
        results[-1].backward(cotangent, retain_graph=how == "twice")
        if how == "twice":
            seen += [leaf.grad.clone() for leaf in leaves if leaf.grad is not None]
            results[-1].backward(cotangent)
    gradients = [t.grad for t in (*leaves, *retained)]
    assert (cotangent.numpy() == seed).all()
    return [np.array(g.numpy()) for g in (*given, *gradients, *seen) if g is not None]


@pytest.mark.parametrize("how", ["once", "twice", "grad", "double"])
@settings(max_examples=60, deadline=None)
@given(program=PROGRAMS)
def test_what_is_found_for_many_copies_is_what_is_found_for_one(how: str, program: Any) -> None:
    few, many = found(program, how, 1), found(program, how, COPIES)
    assert len(few) == len(many)
    for one, all_ in zip(few, many, strict=True):
        np.testing.assert_allclose(all_.reshape(COPIES, VALUES), np.tile(one, (COPIES, 1)), rtol=1e-10, atol=1e-12)


def test_a_cotangent_that_nobody_else_holds_may_be_overwritten_and_no_other() -> None:
    pull, n = puller(OPS["multiply"]), VALUES * COPIES
    saved = np.full(n, 3.0), np.full(n, 2.0), None  # x, y, and the output, which nothing reads
    ours = np.full(n, 5.0)
    view = ours[:1]
    for held in ([ours], [view.base[:]]):
        other = pull(held, saved)
        (first,) = held
        gradients = [first, other]
        assert [g[0] for g in gradients] == [10, 15]
        assert not any(np.shares_memory(g, ours) for g in gradients)
    assert (ours == 5).all()


def test_an_array_that_nobody_else_holds_is_handed_on_and_any_other_copied() -> None:
    held = [np.ones(3)]
    assert own(held) is held[0]
    also = held[0]
    assert not np.shares_memory(own(held), also)
    view = [np.ones(3)[:2]]
    assert not np.shares_memory(own(view), view[0])


KEPT = paddle.ones([2, 2], "float64")


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: x + y,
        lambda x, y: x.transpose([1, 0]) + y,
        lambda x, y: x.reshape([4]).reshape([2, 2]) - y.clone(),
        lambda x, y: Keeps.apply(x) + Keeps.apply(y),
        lambda x, y: x @ y,
    ],
)
@pytest.mark.parametrize("hook", [None, lambda g: KEPT, lambda g: g.transpose([1, 0])])
def test_the_gradient_of_a_leaf_is_memory_of_its_own(program: Callable[..., Any], hook: Any) -> None:
    x, y = (paddle.to_tensor(np.ones((2, 2)), stop_gradient=False) for _ in range(2))
    seed = paddle.to_tensor(np.ones((2, 2)))
    handed = [seed, KEPT]
    x.register_hook(handed.append)
    if hook:
        x.register_hook(hook)
    Keeps.kept.clear()
    out = program(x, y)
    out.backward(seed, retain_graph=True)
    found = [x.grad, y.grad, *paddle.grad(out, [x, y], seed)]
    for k, gradient in enumerate(found):
        others = (*found[:k], *found[k + 1 :], *handed, *Keeps.kept)
        assert not any(np.shares_memory(gradient.array, other.array) for other in others)
