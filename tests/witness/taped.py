"""A layer's tape, and its own gradient, from arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.backends.bundled import BundledBackend
from gradcheck.case.function import TensorFunction
from gradcheck.checker.problem import Problem
from gradcheck.witness.tape import Tape
from pylayer.paddle.autograd import PyLayer


def problem_of(function: Callable[..., Any], *arrays: np.ndarray) -> Problem:
    """A function of Tensors, or a layer, at arrays, as the checker sees it."""
    call = function.apply if isinstance(function, type) else function
    named = {f"x{k}": np.asarray(a) for k, a in enumerate(arrays)}
    dtypes = {name: a.dtype.name for name, a in named.items()}
    backend = BundledBackend("numpy", "cpu", install=False)
    return TensorFunction(backend, lambda t: call(*t.values()), named, dtypes).problem()


def tape_of(function: Callable[..., Any], *arrays: np.ndarray, lines: bool = False) -> Tape:
    """The tape of a function of Tensors, or of a layer, at arrays."""
    problem = problem_of(function, *arrays)
    assert problem.record is not None
    tape = problem.record(problem.inputs, lines=lines)
    assert tape is not None
    return tape


def unasked(ctx: Any, *cotangents: Any) -> Any:
    raise AssertionError("the tape asks no hand-written backward")


def layer(forward: Callable[..., Any], backward: Callable[..., Any] = unasked) -> type:
    """A layer of a forward that takes the inputs and a backward that takes the inputs, then the cotangents."""

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return backward(*ctx.saved_tensor(), *cotangents)

    return Layer
