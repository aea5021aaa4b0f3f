"""The samples of every operation, at once and in a program."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import SAMPLES

import pylayer.paddle as paddle
from pylayer.tape.symbol import recording
from pylayer.tape.vjp import OPS
from pylayer.tensor.tensor import Tensor

OF_MATRICES = {"inv", "cholesky"}
"""They refuse the arrays of ones and zeros from which shapes are inferred."""
CASES = [(n, k) for n in SAMPLES if n in OPS and n not in OF_MATRICES for k in range(len(SAMPLES[n]))]


def is_floating(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def mapped(value: Any, function: Any) -> Any:
    """`value` with every array in it replaced, inside lists and tuples too."""
    if isinstance(value, np.ndarray):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(item, function) for item in value)
    if type(value) is slice:
        return slice(*(mapped(item, function) for item in (value.start, value.stop, value.step)))
    return value


def flat(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (list, tuple)) else [out]


def gradients_of(outs: list[Any], inputs: list[Any], gradients: Any) -> list[Any]:
    """First and second order, each from ones; None where there is none."""
    found: list[Any] = []
    ends = outs
    for _ in range(2):
        ends = [end for end in ends if end is not None and not end.stop_gradient and end.dtype.is_differentiable]
        ends = gradients(ends, inputs) if ends and inputs else [None] * len(inputs)
        found += ends
    return found


def at_once(name: str, arguments: Any) -> list[Any]:
    inputs: list[Tensor] = []

    def tensor(array: Any) -> Tensor:
        inputs.append(Tensor(array, None, not is_floating(array)))
        return inputs[-1]

    token = recording.set(None)
    try:
        outs = flat(OPS[name].apply(*mapped(list(arguments), tensor)))
        wanted = [t for t in inputs if not t.stop_gradient]
        found = gradients_of(outs, wanted, lambda y, x: paddle.grad(y, x, create_graph=True, allow_unused=True))
    finally:
        recording.reset(token)
    return [None if t is None else t.numpy() for t in [*outs, *found]]


WINDOWED = {"conv", "conv_input", "conv_weight"}
"""Operations of which the batch alone may be unknown: how many windows fit depends on both sizes."""


def in_a_program(name: str, arguments: Any, unknown: bool) -> tuple[list[Any], list[Any]]:
    feed: dict[str, Any] = {}
    inputs: list[Any] = []

    def variable(array: Any) -> Any:
        key = f"x{len(feed)}"
        feed[key] = array
        shape = list(array.shape)
        if unknown:
            shape[slice(1 if name in WINDOWED else None)] = [None] * (1 if name in WINDOWED else array.ndim)
        inputs.append(paddle.static.data(key, shape, array.dtype))
        inputs[-1].stop_gradient = not is_floating(array)
        return inputs[-1]

    outs = flat(OPS[name].apply(*mapped(list(arguments), variable)))
    found = gradients_of(outs, [v for v in inputs if not v.stop_gradient], paddle.static.gradients)
    variables = [*outs, *found]
    values = iter(paddle.static.Executor().run(feed=feed, fetch_list=[v for v in variables if v is not None]))
    return variables, [None if v is None else next(values) for v in variables]
