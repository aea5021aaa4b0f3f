"""The arrays of a scenario's inputs, the same for every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcheck.spec.inputs import Input

Array = np.ndarray[Any, Any]


def make_input(spec: Input, dtype: str, random: np.random.Generator) -> Array:
    """The values of an input of `dtype`, in float64, int64, bool or complex128: the backend casts them.

    `near` shifts the drawn values, scaled to 1e-3, to the given points in turn. Complex inputs draw both parts.
    """
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype).kind
    if spec.values is not None:
        values = np.array(spec.values)
    elif kind == "c":
        values = draw(spec, random) + 1j * draw(spec, random)
    else:
        values = draw(spec, random)
    return values.astype({"f": np.float64, "c": np.complex128, "b": np.bool_}.get(kind, np.int64))


def draw(spec: Input, random: np.random.Generator) -> Array:
    """Values of the input's shape as its `init` says."""
    shape = tuple(int(size) for size in spec.shape or ())
    match spec.init:
        case "zeros":
            values = np.zeros(shape)
        case "ones":
            values = np.ones(shape)
        case "uniform":
            values = random.uniform(*spec.limits, shape)
        case "linspace":
            count = int(np.prod(shape, dtype=np.int64))
            values = np.linspace(*spec.limits, count).reshape(shape)
        case "integers":
            low, high = spec.limits
            values = random.integers(int(low), int(high), shape).astype(np.float64)
        case _:
            values = random.standard_normal(shape)
    if spec.near:
        centres = np.resize(np.asarray(spec.near, dtype=np.float64), values.size).reshape(shape)
        values = centres + 1e-3 * values
    return values
