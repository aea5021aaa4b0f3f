"""What a program leaves: the Tensors and arrays that its names hold, and the gradients of its leaves.

Variables of a static program hold no values; what an Executor has fetched does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend

SAMPLE = 4
"""Random numbers by which the state of a generator is told from another: of 24 bits each."""


def left_by(namespace: Mapping[str, Any], before: Mapping[str, Any], backend: Backend) -> Iterator[tuple[str, Any]]:
    """Names of the program and what they hold, as ``y``, ``x.grad`` where there is one, ``outs[1]``.

    `before` are the names that the program was given; what these still hold is not its own, nor what has an underscore
    in front. Lists and tuples are looked into once.
    """
    for name, value in namespace.items():
        if name.startswith("_") or (name in before and before[name] is value):
            continue
        several = value if isinstance(value, (list, tuple)) else ()
        yield from held(name, value, backend)
        for at, one in enumerate(several):
            yield from held(f"{name}[{at}]", one, backend)


def held(name: str, value: Any, backend: Backend) -> Iterator[tuple[str, Any]]:
    """A Tensor or an array under its name, and the gradient of a leaf; nothing of anything else."""
    # isinstance says of Paddle's eager Tensors that they are Variables
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        yield name, value
    elif isinstance(value, backend.paddle.Tensor) and not issubclass(type(value), backend.paddle.static.Variable):
        yield name, value
        if value.is_leaf and value.grad is not None:
            yield f"{name}.grad", value.grad


def has_drawn(paddle: Any, seed: int) -> bool:
    """Whether the generator is no longer as `seed` made it: what is computed from its numbers differs by backend."""
    now = paddle.rand([SAMPLE]).numpy()
    paddle.seed(seed)
    return bool((now != paddle.rand([SAMPLE]).numpy()).any())
