"""Every operation of the engine on the tape: gradient, rounding, kinks, wrong gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from few import few
from samples import SAMPLES
from taped import drawn, problem_of, rounding_of

import pylayer.paddle  # noqa: F401 - fills the table
from gradcheck.causes.words import explained_by_tape
from gradcheck.checking.kinks import kinks
from gradcheck.checking.point import Point
from pylayer.tape.vjp import OPS
from pylayer.tensor.tensor import Tensor

CALLS = [(name, arguments) for name, rows in SAMPLES.items() if OPS[name].differentiable for arguments in rows]


def split(name: str, arguments: tuple[Any, ...]) -> tuple[list[np.ndarray], Any]:
    """The floating inputs of an operation, and its call on Tensors in their place."""
    row = OPS[name]
    given = list(arguments[0]) if row.many else [arguments[k] for k in row.positions if k < len(arguments)]
    arrays = [a for a in given if isinstance(a, np.ndarray) and a.dtype.kind == "f"]

    def call(*tensors: Tensor) -> Any:
        left = iter(tensors)

        def placed(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return next(left) if value.dtype.kind == "f" else Tensor(value)
            return value

        values = list(arguments)
        if row.many:
            values[0] = [placed(v) for v in values[0]]
        else:
            for k in row.positions:
                if k < len(values):
                    values[k] = placed(values[k])
        out = row.apply(*values)
        return list(out) if isinstance(out, (list, tuple)) else out

    return arrays, call


@pytest.mark.parametrize("dtype", few(["float64", "float32"], 1))
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[f"{name}-{k}" for k, (name, _) in enumerate(CALLS)])
def test_the_tape_knows_every_operation(name: str, arguments: tuple[Any, ...], dtype: str) -> None:
    arrays, call = split(name, arguments)
    point = Point(problem_of(lambda *x: call(*x), *(a.astype(dtype) for a in arrays)))
    tape = point.tape
    assert tape is not None
    draws = drawn(point, 3)
    claims, bars = point.vjp(draws[0]), rounding_of(point, draws[0])
    for g, claim, bar in zip(point.by_tape(draws[0]), claims, bars, strict=True):
        assert (abs(g - claim) <= bar + 1e-300).all()
    assert all(len(kink.inputs) == tape.recording.inputs for kink in kinks(tape))
    for wrong in (lambda g: 2 * g, lambda g: g[::-1] if g.ndim else g, np.sin):
        explained_by_tape(point, [(u, [wrong(g) for g in point.by_tape(u)]) for u in draws], bars, np.inf)
