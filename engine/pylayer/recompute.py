"""Recomputation: a forward that keeps its inputs alone, and runs again when its gradient is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.autograd import backward
from pylayer.grad_mode import enable_grad
from pylayer.ops.random import generator
from pylayer.py_layer import PyLayer
from pylayer.tensor import Tensor


class _Recomputed(PyLayer):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, kwargs: dict[str, Any], *args: Any) -> Any:
        ctx.function, ctx.kwargs, ctx.args = function, kwargs, args
        ctx.random = generator().get_state() if preserve else None
        ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
        return function(*args, **kwargs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        saved = iter(ctx.saved_tensor() or ())
        inputs = []
        for given in ctx.args:
            if isinstance(given, Tensor):
                tensor = next(saved).detach()
                tensor.stop_gradient = given.stop_gradient
                inputs.append(tensor)
            else:
                inputs.append(given)
        here = generator().get_state()
        if ctx.random is not None:
            generator().set_state(ctx.random)
        try:
            with enable_grad():
                outputs = ctx.function(*inputs, **ctx.kwargs)
        finally:
            generator().set_state(here)
        listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        pairs = [
            (o, g)
            for o, g in zip([o for o in listed if isinstance(o, Tensor)], cotangents, strict=True)
            if not o.stop_gradient
        ]
        if not pairs:
            raise RuntimeError("none of output has stop_gradient=False, this recompute() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        tensors = [t for t in inputs if isinstance(t, Tensor)]
        return tuple(None if t.stop_gradient else t.grad for t in tensors)


def recompute(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, of whose intermediate results nothing is kept: it runs again in backward.

    Gradients reach the Tensors among `args`, and what `function` closes over, such as the parameters of a layer; at
    least one of `args` must need a gradient.

    Args:
        preserve_rng_state: random numbers are the same both times.
        use_reentrant: accepted; there is one way to do it.
    """
    return _Recomputed.apply(function, preserve_rng_state, kwargs, *args)
