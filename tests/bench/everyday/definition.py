"""A layer as people write it: forward, right backward and inputs, computing in NumPy or in Paddle operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pylayer.paddle as paddle

PyLayer: Any = paddle.autograd.PyLayer
Gradients = list[Any]
"""One array per input, None for an integer one."""

Mutation = Callable[[Callable[..., Gradients]], Callable[..., Gradients]]
"""Takes and gives a function of (inputs, outputs, cotangents), lists of arrays, to gradients."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


@dataclass(frozen=True)
class Layer:
    """``forward(*inputs)`` and ``backward(*inputs, y, g)``, a tuple of gradients where there are several inputs.

    Both work on arrays in style "numpy" and on Tensors in style "paddle"; y and g are tuples if there are several
    outputs. `inputs` draws float64, complex128 and int64 arrays from a generator. `coarse`: computes in float32
    whatever the dtype of the inputs.
    """

    name: str
    style: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Sequence[Any]]
    coarse: bool = False

    def drawn(self, seed: int, dtype: str = "float64") -> list[Any]:
        """Inputs for a seed; complex ones have the precision of `dtype`."""
        precision = {"float64": ("float64", "complex128"), "float32": ("float32", "complex64")}[dtype]
        kinds = {"f": precision[0], "c": precision[1]}
        arrays = [np.asarray(x) for x in self.inputs(np.random.default_rng(seed))]
        return [np.array(x, dtype=kinds.get(x.dtype.kind, x.dtype)) for x in arrays]

    def outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """What forward gives for arrays, as arrays in the inputs' precision."""
        if self.style == "numpy":
            return [np.asarray(y) for y in as_tuple(self.forward(*inputs))]
        return [y.numpy() for y in as_tuple(self.forward(*(paddle.to_tensor(x) for x in inputs)))]

    def gradients(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> Gradients:
        """What the right backward gives, on arrays."""
        wrapped = (lambda a: a) if self.style == "numpy" else paddle.to_tensor
        y, g = (tuple(map(wrapped, values)) for values in (outputs, cotangents))
        several = len(y) > 1
        found = as_tuple(self.backward(*map(wrapped, inputs), y if several else y[0], g if several else g[0]))
        arrays = [d.numpy() if isinstance(d, paddle.Tensor) else d for d in found]
        return [
            None if x.dtype.kind not in "fc" else np.asarray(d, dtype=x.dtype)
            for d, x in zip(arrays, inputs, strict=True)
        ]

    def py_layer(self, mutation: Mutation | None = None) -> Any:
        """The PyLayer, with the right backward or with a mutated one."""
        if self.style == "paddle" and mutation is None:
            return paddle_layer(self.forward, self.backward)
        gradients = self.gradients if mutation is None else mutation(self.gradients)
        forward = self.forward if self.style == "paddle" else numpy_forward(self.forward)

        class OnArrays(PyLayer):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, *x: Any) -> Any:
                y = forward(*x)
                ctx.save_for_backward(*x, *as_tuple(y))
                ctx.count = len(x)
                return y

            @staticmethod
            def backward(ctx: Any, *g: Any) -> Any:
                saved = [t.numpy() for t in ctx.saved_tensor()]
                found = gradients(saved[: ctx.count], saved[ctx.count :], [t.numpy() for t in g])
                tensors = tuple(None if d is None else paddle.to_tensor(d) for d in found)
                return tensors if len(tensors) > 1 else tensors[0]

        return OnArrays


def numpy_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of Tensors, its outputs in the dtype of the first floating input."""

    def on_tensors(*x: Any) -> Any:
        arrays = [t.numpy() for t in x]
        dtype = next(a.dtype for a in arrays if a.dtype.kind in "fc")
        y = tuple(result(a, dtype) for a in as_tuple(forward(*arrays)))
        return y if len(y) > 1 else y[0]

    return on_tensors


def result(array: Any, dtype: Any) -> Any:
    """An output as people return it: in the dtype of the input, real where it is real."""
    array = np.asarray(array)
    if dtype.kind == "c" and array.dtype.kind == "f":
        return paddle.to_tensor(array)
    return paddle.to_tensor(array.astype(dtype))


def paddle_layer(run: Callable[..., Any], vjp: Callable[..., Any]) -> Any:
    """A PyLayer in Paddle operations."""

    class OnTensors(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            y = run(*x)
            ctx.save_for_backward(*x, *as_tuple(y))
            ctx.count = len(x)
            return y

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            saved = ctx.saved_tensor()
            x, y = saved[: ctx.count], saved[ctx.count :]
            return vjp(*x, y if len(y) > 1 else y[0], g if len(g) > 1 else g[0])

    return OnTensors
