"""What every operation must do on a device, whichever array type stands for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples import SAMPLES

import pylayer.paddle as paddle
from pylayer.tape.op import Op
from pylayer.tape.vjp import OPS
from pylayer.tensor.tensor import Tensor

CASES = [(op, k) for op in OPS.values() for k in range(len(SAMPLES.get(op.name, [])))]

FREE_SIGNS = {"eigh", "svd"}
"""Operations of which some outputs are determined but for the signs of vectors."""


def case_id(value: Any) -> str:
    return value.name if isinstance(value, Op) else str(value)


def results(op: Op, sample: int, to_device: Callable[[Any], Any]) -> list[Any]:
    """Outputs, gradients and second gradients of an operation, as raw arrays; None where there is none."""

    def placed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return Tensor(to_device(value.copy()), None, value.dtype.kind not in "fc" or not op.differentiable)
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            return [placed(v) for v in value]
        return value

    arguments = [placed(v) for v in SAMPLES[op.name][sample]]
    found = op.apply(*arguments)
    outs = list(found) if isinstance(found, (list, tuple)) else [found]
    arrays = [o.array for o in outs]
    random = np.random.default_rng(3)
    flat = [t for a in arguments for t in (a if isinstance(a, list) else [a])]
    leaves = [t for t in flat if isinstance(t, Tensor) and not t.stop_gradient]
    ends = [o for o in outs if not o.stop_gradient]
    if not ends:
        return arrays
    cotangents = []
    for out in ends:
        values = random.standard_normal(out.shape).astype(out.dtype.numpy)
        if op.name in FREE_SIGNS:  # what the cotangents weigh is then the same whichever sign a vector has
            values *= np.sign(out.numpy())
        cotangents.append(Tensor(to_device(values), None, False))
    first = paddle.grad(ends, leaves, cotangents, create_graph=True, allow_unused=True)
    arrays += [None if g is None else g.array for g in first]
    again = [g for g in first if g is not None and not g.stop_gradient]
    if again:
        second = paddle.grad(again, leaves + cotangents, allow_unused=True)
        arrays += [None if g is None else g.array for g in second]
    plain = paddle.grad(op_again(op, arguments), leaves, [Tensor(c.array) for c in cotangents], allow_unused=True)
    return arrays + [None if g is None else g.array for g in plain]


def op_again(op: Op, arguments: list[Any]) -> list[Tensor]:
    """The outputs through which gradients flow, of a call of its own: the ordinary backward runs on raw arrays."""
    found = op.apply(*arguments)
    return [o for o in (found if isinstance(found, (list, tuple)) else [found]) if not o.stop_gradient]


def check(op: Op, sample: int, array_type: type, to_device: Callable[[Any], Any], rtol: float) -> None:
    """The same results as on the host, all of the device's own type."""
    device = results(op, sample, to_device)
    assert {type(a) for a in device if a is not None} <= {array_type}
    host = results(op, sample, lambda a: a)
    assert len(device) == len(host)
    for found, expected in zip(device, host, strict=True):
        if expected is None:
            assert found is None
            continue
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        values = found.get()
        if op.name in FREE_SIGNS:
            values, expected = abs(values), abs(expected)
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=rtol)
