"""Short forms that the tests of static mode share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pylayer.paddle as paddle

Array = np.ndarray[Any, Any]


def data(
    name: str = "X", shape: Sequence[int | None] = (None, 3), dtype: str = "float64", stop_gradient: bool = False
) -> Any:
    """A fed Variable, by default one that needs a gradient."""
    variable = paddle.static.data(name, list(shape), dtype)
    variable.stop_gradient = stop_gradient
    return variable


def fetch(variables: Any, **feed: Any) -> Any:
    """The values of Variables, or of one, in a run of the default program."""
    several = isinstance(variables, (list, tuple))
    values = paddle.static.Executor().run(feed=feed, fetch_list=list(variables) if several else [variables])
    return values if several else values[0]


def in_dynamic_mode(function: Callable[..., Any], *arrays: Array) -> Any:
    """What a function gives, and its gradients from ones, computed at once."""
    paddle.disable_static()
    try:
        tensors = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
        out = function(*tensors)
        return out.numpy(), [g.numpy() for g in paddle.grad(out, tensors)]
    finally:
        paddle.enable_static()


def chain(h: Any, w: Any, b: Any, count: int) -> Any:
    """tanh, times w, plus b, in turn; summed up."""
    for i in range(count):
        h = paddle.tanh(h) if i % 3 == 0 else h * w if i % 3 == 1 else h + b
    return h.sum()


def chain_both_ways(size: int, count: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A chain and its gradients at once, and as a program: two functions that run them."""
    arrays = list(np.random.default_rng(0).normal(size=(3, size)))
    feed = dict(zip("hwb", arrays, strict=True))
    variables = [data(name, [None]) for name in feed]
    found = paddle.static.gradients(chain(*variables, count), variables)
    executor = paddle.static.Executor()
    program = paddle.static.default_main_program()
    paddle.disable_static()
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    return (
        lambda: [g.numpy() for g in paddle.grad(chain(*tensors, count), tensors)],
        lambda: executor.run(program, feed=feed, fetch_list=found),
    )
