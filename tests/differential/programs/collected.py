"""What every file of programs uses: the table they go into, and the Tensors they begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Library = Any
Program = Callable[[Library], Any]

PROGRAMS: dict[str, Program] = {}
"""By name. What a program returns, or raises, is to be the same on both sides."""


LAYERS: list[str] = []
"""The programs that run a layer."""


def program(function: Program) -> Program:
    """Put a program into the table."""
    assert function.__name__ not in PROGRAMS
    PROGRAMS[function.__name__] = function
    return function


def leaf(paddle: Library, values: Any, dtype: str = "float64") -> Any:
    """A leaf that needs a gradient."""
    return paddle.to_tensor(np.array(values, dtype), stop_gradient=False)


def constant(paddle: Library, values: Any, dtype: str = "float64") -> Any:
    """A Tensor through which no gradient flows."""
    return paddle.to_tensor(np.array(values, dtype))


def drawn(paddle: Library, *shape: int, seed: int = 0) -> Any:
    """A leaf of float64 with values that follow from `seed`."""
    return leaf(paddle, np.random.default_rng(seed).standard_normal(shape))


def layer_of(paddle: Library, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """The PyLayer with this forward and backward."""
    return type(
        "Layer", (paddle.autograd.PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def product(paddle: Library) -> Any:
    """The PyLayer a · b."""

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b

    def backward(ctx: Any, dy: Any) -> Any:
        a, b = ctx.saved_tensor()
        return dy * b, dy * a

    return layer_of(paddle, forward, backward)


def doubled(paddle: Library) -> Any:
    """The PyLayer 2 x."""
    return layer_of(paddle, lambda ctx, x: x * 2, lambda ctx, dy: dy * 2)


def layer_program(function: Any) -> Any:
    """Put a program into the table, and among those that are held to 1e-12."""
    LAYERS.append(function.__name__)
    return program(function)


def trained(paddle: Library, function: Any, *inputs: Any) -> list[Any]:
    """What a function gives for leaves, and their gradients from cotangents that are all different."""
    out = function(*inputs)
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    roots = [(k, one) for k, one in enumerate(outs) if not one.stop_gradient]
    weights = [np.cos(np.arange(one.numel().item()) + k).reshape(one.shape) for k, one in roots]
    paddle.autograd.backward(
        [one for _, one in roots],
        [
            paddle.to_tensor(w.astype(str(one.dtype).partition(".")[2]))
            for w, (_, one) in zip(weights, roots, strict=True)
        ],
    )  # at once: the release crashes in a second backward through a PyLayer (observed rule 38)
    return [*(one.detach() for one in outs), *(x.grad for x in inputs)]
