"""Functions of arrays with a hand-written backward, as problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.checking.problem import Problem


def problem(forward: Callable[..., Any], backward: Callable[..., Any], *inputs: Any) -> Problem:
    """A layer ``y = forward(*x)`` whose gradients are ``backward(*x, y, g)``; several outputs as a tuple."""
    arrays = [np.asarray(x) for x in inputs]

    def outputs(x: Any) -> list[Any]:
        found = forward(*x)
        return [np.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]

    def vjp(x: Any, cotangents: Any) -> list[Any]:
        found = forward(*x)
        gradients = backward(*x, found, cotangents if isinstance(found, tuple) else cotangents[0])
        return list(gradients) if isinstance(gradients, tuple) else [gradients]

    count = len(outputs(arrays))
    return Problem(
        names=[f"x{k}" for k in range(len(arrays))],
        inputs=arrays,
        differentiable=[x.dtype.kind in "fc" for x in arrays],
        output_names=["out"] if count == 1 else [f"out[{k}]" for k in range(count)],
        forward=outputs,
        vjp=vjp,
    )
