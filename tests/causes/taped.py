"""A layer's tape, its own gradient and the rounding of both, from arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import BundledBackend
from gradcheck.case.function import TensorFunction
from gradcheck.checking.point import Point
from gradcheck.checking.precision import noting, unflatten
from gradcheck.checking.problem import Problem
from gradcheck.checking.tape import Tape
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
    return recorded(problem_of(function, *arrays), lines)


def recorded(problem: Problem, lines: bool = False) -> Tape:
    """The tape of a problem at its inputs, casts left out, complete or not."""
    assert problem.reruns is not None
    choices: list[Array] = []
    recording = problem.reruns.recording(problem.inputs, noting(choices), lines=lines)
    assert recording is not None
    return Tape(recording, choices)


def rounding_of(point: Point, cotangent: Array) -> list[Array]:
    """How far the claimed gradients and the tape's may be apart by rounding, entry by entry."""
    random = np.random.default_rng(0)
    parts, tape = point.outputs.split(cotangent), point.tape
    assert tape is not None
    if not point.x:
        return []
    both = (
        point.measured_claim(parts, random),
        point.measured_tape(tape, parts, point.by_tape(cotangent), random),
    )
    for measured in both:
        for _ in range(4):
            measured.draw()
    return unflatten(sum(m.bounds(absolute=True) for m in both), point.x)


def drawn(point: Point, count: int) -> list[Array]:
    """Random cotangents, flat."""
    return [np.random.default_rng(k).standard_normal(point.outputs.vector.size) for k in range(count)]


def unasked(ctx: Any, *cotangents: Any) -> Any:
    raise AssertionError("the tape asks no hand-written backward")


def layer(forward: Callable[..., Any], backward: Callable[..., Any] = unasked) -> type:
    """A layer of a forward of the inputs and a backward of the inputs and the cotangents."""

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return backward(*ctx.saved_tensor(), *cotangents)

    return Layer
