"""Claims: layers with backwards that are right and backwards that are wrong, and what may be said of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pytest
from everyday.definition import as_tuple, paddle_layer

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case import gradient_check
from gradcheck.causes.entries import WrongEntries
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer

GREEN = frozenset({Status.PASS, Status.KINK})
FAIL = frozenset({Status.FAIL})
NOT_GREEN = frozenset({Status.FAIL, Status.INCONCLUSIVE})
NOT_FAIL = frozenset({*GREEN, Status.INCONCLUSIVE})


def numpy_layer(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """A PyLayer that computes in NumPy, in the dtype of its input: ``forward(*x)`` and ``backward(*x, y, g)``."""

    class InNumPy(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            arrays = [t.numpy() for t in x]
            y = tuple(np.asarray(v).astype(arrays[0].dtype) for v in as_tuple(forward(*arrays)))
            ctx.saved = arrays, y
            tensors = [paddle.to_tensor(v) for v in y]
            return tensors if len(tensors) > 1 else tensors[0]

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            arrays, y = ctx.saved
            given = [t.numpy() for t in g]
            several = len(y) > 1
            found = as_tuple(backward(*arrays, y if several else y[0], given if several else given[0]))
            tensors = [paddle.to_tensor(np.asarray(d).astype(x.dtype)) for d, x in zip(found, arrays, strict=True)]
            return tuple(tensors) if len(tensors) > 1 else tensors[0]

    return InNumPy


def recorded_layer(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """A PyLayer whose forward is on the tape and whose backward computes in NumPy."""

    class Recorded(numpy_layer(forward, backward)):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            y = forward(*x)
            ctx.saved = [t.numpy() for t in x], (y.numpy(),)
            return y

    return Recorded


@dataclass(frozen=True)
class Claim:
    """A function, and what may be said of backwards of it.

    `inputs` are arrays, or a function of a seed that draws them; `right` and `wrong` are backwards.
    """

    name: str
    make: Callable[..., Any]
    forward: Callable[..., Any]
    right: Sequence[Callable[..., Any]]
    wrong: Sequence[Callable[..., Any]]
    inputs: Any
    of_right: frozenset[Status] = GREEN
    of_wrong: frozenset[Status] = FAIL
    seeds: int = 1

    def drawn(self, seed: int) -> list[Any]:
        return [np.asarray(x) for x in (self.inputs(seed) if callable(self.inputs) else self.inputs)]


def in_numpy(name: str, forward: Any, right: Any, wrong: Any, inputs: Any, **said: Any) -> list[Claim]:
    made = Claim(f"{name} in numpy", numpy_layer, forward, backwards(right), backwards(wrong), inputs, **said)
    return [made]


def in_paddle(name: str, forward: Any, right: Any, wrong: Any, inputs: Any, **said: Any) -> list[Claim]:
    made = Claim(f"{name} in operations", paddle_layer, forward, backwards(right), backwards(wrong), inputs, **said)
    return [made]


def in_both(
    name: str, forward: Any, right: Any, wrong: Any, inputs: Any, of_wrong_numpy: Any = None, **said: Any
) -> list[Claim]:
    """Functions whose first argument is the module with exp, tanh, where …: NumPy's and Paddle's have the same names.

    `of_wrong_numpy`: what may be said of wrong ones where no operations can be seen.
    """

    def of(module: Any, functions: Sequence[Any]) -> list[Any]:
        return [lambda *a, f=f: f(module, *a) for f in functions]

    said_of_numpy = said | ({"of_wrong": of_wrong_numpy} if of_wrong_numpy else {})
    return [
        *in_numpy(name, of(np, [forward])[0], of(np, backwards(right)), of(np, backwards(wrong)), inputs,
                  **said_of_numpy),
        *in_paddle(name, of(paddle, [forward])[0], of(paddle, backwards(right)), of(paddle, backwards(wrong)), inputs,
                   **said),
    ]  # fmt: skip


def backwards(given: Any) -> list[Any]:
    return [given] if callable(given) else list(given)


def right_ones(*kinds: list[Claim], kept: int = 2) -> Any:
    """Of every right backward of the claims and each seed: the claim, the backward, the seed.

    By default the first `kept` backwards of a claim and the first seed.
    """
    return pytest.mark.parametrize(("claim", "backward", "seed"), list(rows(kinds, lambda claim: claim.right, kept)))


def wrong_ones(*kinds: list[Claim], kept: int = 2) -> Any:
    return pytest.mark.parametrize(("claim", "backward", "seed"), list(rows(kinds, lambda claim: claim.wrong, kept)))


def rows(kinds: Sequence[list[Claim]], of: Callable[[Claim], Sequence[Any]], kept: int) -> Iterator[Any]:
    for claim in (claim for kind in kinds for claim in kind):
        for number, backward in enumerate(of(claim)):
            for seed in range(claim.seeds):
                marks = [pytest.mark.long] if seed or number >= kept else []
                yield pytest.param(claim, backward, seed, id=f"{claim.name}, {number}, seed {seed}", marks=marks)


def normal(*shapes: tuple[int, ...], size: float = 1.0, dtype: str = "float64") -> Callable[[int], list[Any]]:
    """A function of a seed that draws arrays of these shapes."""

    def draw(seed: int) -> list[Any]:
        random = np.random.default_rng(seed)
        return [(size * random.standard_normal(shape)).astype(dtype) for shape in shapes]

    return draw


def factor(by: float, right: Callable[..., Any]) -> Callable[..., Any]:
    """A backward of one input whose gradient is wrong by a factor."""
    return lambda *a: by * right(*a)


def slope(value: float) -> Callable[..., Any]:
    """A backward that multiplies by a number, for `in_both`."""
    return lambda m, x, y, g: value * g


def slopes(low: float, at: float, high: float, place: float = 0.0) -> Callable[..., Any]:
    """A backward with these slopes below, at and above a place, for `in_both`."""
    return lambda m, x, y, g: g * m.where(x > place, 0 * x + high, m.where(x < place, 0 * x + low, 0 * x + at))


def nothing_named(*_: Any) -> tuple[WrongEntries, dict[str, Any]]:
    return WrongEntries(), {}


def verdict_of(layer: Any, *x: Any, **options: Any) -> Status:
    """The verdict alone: to name what is wrong, and why, takes longer than the check. That has tests of its own."""
    with mock.patch.object(gradient_check, "name_wrong", nothing_named):
        return gradcheck.check(layer, *x, **options).verdict


def verdict_on(claim: Claim, backward: Callable[..., Any], seed: int, **options: Any) -> Status:
    return verdict_of(claim.make(claim.forward, backward), *claim.drawn(seed), seed=seed, **options)


def judging(*kinds: list[Claim], kept: int = 2) -> tuple[Callable[..., None], Callable[..., None]]:
    """Two tests: of every right backward, and of every wrong one, the verdict is one that may be said of it."""

    @right_ones(*kinds, kept=kept)
    def right(claim: Claim, backward: Any, seed: int) -> None:
        verdict = verdict_on(claim, backward, seed)
        assert verdict in claim.of_right, verdict

    @wrong_ones(*kinds, kept=kept)
    def wrong(claim: Claim, backward: Any, seed: int) -> None:
        verdict = verdict_on(claim, backward, seed)
        assert verdict in claim.of_wrong, verdict

    return right, wrong
