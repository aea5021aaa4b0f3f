"""The op table, checked by the project's own checker: first and second order, every operation.

An operation without a sample of arguments fails here, so that one without a check cannot exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from samples import SAMPLES

import pylayer.paddle as paddle
from gradcheck.backends.recomputation import Recomputation
from gradcheck.case.gradient_check import check_gradient
from gradcheck.checking.problem import Problem
from gradcheck.result import Status
from pylayer.tape.op import Op
from pylayer.tape.vjp import OPS
from pylayer.tensor.array import XP
from pylayer.tensor.tensor import Tensor

DIFFERENTIABLE = [(op, k) for op in OPS.values() if op.differentiable for k in range(len(SAMPLES.get(op.name, [])))]
OTHERS = [(op, k) for op in OPS.values() if not op.differentiable for k in range(len(SAMPLES.get(op.name, [])))]


def ids(value: Any) -> str:
    return value.name if isinstance(value, Op) else str(value)


class Call:
    """An operation on a sample, as a function of its differentiable inputs."""

    def __init__(self, op: Op, arguments: Sequence[Any]) -> None:
        self.op = op
        self.arguments = list(arguments)
        given = list(self.arguments[0]) if op.many else [self.arguments[k] for k in op.positions]
        self.places = [k for k, v in enumerate(given) if isinstance(v, np.ndarray) and v.dtype.kind in "fc"]
        self.given = given
        self.inputs = [given[k] for k in self.places]

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        given = [Tensor(v) if isinstance(v, np.ndarray) else v for v in self.given]
        for k, x in zip(self.places, inputs, strict=True):
            given[k] = x
        arguments = [Tensor(v) if isinstance(v, np.ndarray) else v for v in self.arguments]
        if self.op.many:
            arguments[0] = given
        else:
            for position, x in zip(self.op.positions, given, strict=True):
                arguments[position] = x
        out = self.op.apply(*arguments)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        return [o for o in outs if o.dtype.is_differentiable]


def leaves(arrays: Sequence[Any]) -> list[Tensor]:
    return [Tensor(np.array(a), None, False) for a in arrays]


class Function(NamedTuple):
    forward: Any
    vjp: Any

    def recordable_call(self, arrays: Any) -> Any:
        raise NotImplementedError


class Unrecorded(Recomputation):
    """Runs a function again, but records nothing."""

    def recording(self, *arguments: Any, **options: Any) -> Any:
        return None


def first_order(call: Call) -> Problem:
    def forward(inputs: Any) -> list[Any]:
        return [o.array for o in call([Tensor(np.array(a)) for a in inputs])]

    def vjp(inputs: Any, cotangents: Any) -> list[Any]:
        xs = leaves(inputs)
        pairs = [(o, c) for o, c in zip(call(xs), cotangents, strict=True) if c is not None]
        found = paddle.grad([o for o, _ in pairs], xs, [Tensor(c) for _, c in pairs], allow_unused=True)
        return [None if g is None else g.array for g in found]

    count = len(call(leaves(call.inputs)))
    return Problem(
        names=[f"x{k}" for k in range(len(call.inputs))],
        inputs=call.inputs,
        differentiable=[True] * len(call.inputs),
        output_names=[f"out{k}" for k in range(count)],
        forward=forward,
        vjp=vjp,
        reruns=Unrecorded(Function(forward, vjp), []),
    )


def second_order(call: Call) -> Problem:
    """The vjp as a function of inputs and cotangents."""
    first = first_order(call)
    n = len(first.inputs)
    random = np.random.default_rng(5)
    outs = first.forward(first.inputs)
    cotangents = [np.asarray(random.standard_normal(o.shape)).astype(o.dtype) for o in outs]

    def forward(arrays: Any) -> list[Any]:
        return [x * 0 if g is None else g for x, g in zip(arrays, first.vjp(arrays[:n], arrays[n:]), strict=False)]

    def vjp(arrays: Any, second: Any) -> list[Any]:
        tensors = leaves(arrays)
        gradients = paddle.grad(call(tensors[:n]), tensors[:n], tensors[n:], create_graph=True, allow_unused=True)
        pairs = [
            (g, c)
            for g, c in zip(gradients, second, strict=True)
            if g is not None and c is not None and not g.stop_gradient
        ]
        if not pairs:
            return [None] * len(arrays)
        found = paddle.grad([g for g, _ in pairs], tensors, [Tensor(c) for _, c in pairs], allow_unused=True)
        return [None if g is None else g.array for g in found]

    names = [*first.names, *(f"g{k}" for k in range(len(cotangents)))]
    inputs = [*first.inputs, *cotangents]
    outputs, reruns = [f"dx{k}" for k in range(n)], Unrecorded(Function(forward, vjp), [])
    return Problem(names, inputs, [True] * len(inputs), outputs, forward, vjp, reruns=reruns)


def test_every_operation_has_a_sample() -> None:
    missing = sorted(set(OPS) - set(SAMPLES))
    assert not missing, f"add arguments for {', '.join(missing)} to the tables in samples*.py"


def expected(problem: Problem) -> Status:
    """PASS, unless there is nothing to check: no element of an input, or none of an output."""
    sizes = sum(np.size(x) for x in problem.inputs), sum(np.size(y) for y in problem.forward(problem.inputs))
    return Status.PASS if all(sizes) else Status.INCONCLUSIVE


@pytest.mark.parametrize(("op", "sample"), DIFFERENTIABLE, ids=ids)
def test_first_order(op: Op, sample: int) -> None:
    problem = first_order(Call(op, SAMPLES[op.name][sample]))
    summary = check_gradient(problem)
    assert summary.verdict is expected(problem), (summary.why, summary.wrong[:3])


@pytest.mark.parametrize(("op", "sample"), DIFFERENTIABLE, ids=ids)
def test_second_order(op: Op, sample: int) -> None:
    problem = second_order(Call(op, SAMPLES[op.name][sample]))
    summary = check_gradient(problem)
    assert summary.verdict is expected(problem), (summary.why, summary.wrong[:3])


@pytest.mark.parametrize(("op", "sample"), OTHERS, ids=ids)
def test_no_gradient_flows_through_the_others(op: Op, sample: int) -> None:
    arguments = [Tensor(v, None, False) if isinstance(v, np.ndarray) else v for v in SAMPLES[op.name][sample]]
    out = op.apply(*arguments)
    for tensor in out if isinstance(out, (list, tuple)) else [out]:
        assert type(tensor.array) in XP
        assert (tensor.stop_gradient, tensor.is_leaf) == (True, True)


BROADCASTING = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "atan2"]


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(BROADCASTING),
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    exponent=st.floats(-3, 3),
    seed=st.integers(0, 2**16),
)
def test_broadcasting_is_undone_at_every_scale(name: str, shapes: Any, exponent: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = (np.asarray(10**exponent * random.uniform(0.5, 2, shape)) for shape in shapes.input_shapes)
    assert check_gradient(first_order(Call(OPS[name], (x, y)))).verdict is Status.PASS


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["tanh", "exp", "sigmoid", "square", "multiply", "matmul", "sum", "softmax"])
def test_results_and_gradients_keep_the_dtype(name: str, dtype: str) -> None:
    arguments = [a.astype(dtype) if isinstance(a, np.ndarray) else a for a in SAMPLES[name][0]]
    call = Call(OPS[name], arguments)
    xs = leaves(call.inputs)
    out = call(xs)[0]
    assert out.dtype.name == dtype
    out.sum().backward()
    assert {x.grad.dtype.name for x in xs} == {dtype}
