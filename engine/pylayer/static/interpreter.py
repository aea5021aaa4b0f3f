"""Interpretation of a program: its operators run one by one, and each value is dropped after its last use."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pylayer.static.cond import Conditional
from pylayer.static.operators import Assign, Call, FunctionCall, Gradient
from pylayer.static.program import Operator, Program
from pylayer.static.pylayer_op import PyLayerCall, PyLayerGradient
from pylayer.static.sizes import UnknownSize
from pylayer.static.update import Initialize, Update
from pylayer.static.values import resolved
from pylayer.tape.grad_mode import grad_mode_set
from pylayer.tape.node import apply_rule, unbroadcast
from pylayer.tape.op import compute
from pylayer.tape.vjp import Vjp, raw_ops
from pylayer.tensor.array import XP, Array, as_array
from pylayer.tensor.tensor import Tensor


def flatten(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators in the order in which they run, those of `static_pylayer` in its place."""
    for op in ops:
        if isinstance(op, (PyLayerCall, PyLayerGradient)):
            for _, block in op.blocks():
                yield from flatten(block.ops)
        else:
            yield op


def uses(op: Operator) -> Iterator[Tensor | Call]:
    """What an operator reads or makes: values, and the call whose saved values a gradient reads."""
    yield from op.outputs
    if isinstance(op, Gradient) and isinstance(op.of, Call):
        yield op.of
        yield from (t for t in op.cotangents if t is not None)
    else:
        yield from op.tensors()
    if isinstance(op, Conditional):
        for branch in op.branches:
            for inner in flatten(branch.ops):
                yield from uses(inner)


class SavedInput(NamedTuple):
    """What the gradient of one input of a call is computed from."""

    vjp: Vjp
    reads: tuple[Any, ...]
    shape: tuple[int, ...]


class SavedCall(NamedTuple):
    """What a call leaves for its gradient: by position of an input, and its outputs' shapes and dtypes."""

    inputs: dict[int, SavedInput]
    outputs: list[tuple[tuple[int, ...], Any]]


class Interpreter:
    """One run of a program.

    `last_use` is the index of the last operator that uses a value; its keys are all the values of the program.
    """

    def __init__(self, program: Program, array_type: type) -> None:
        self.array_type = array_type
        self.ops = list(flatten(program.global_block().ops))
        self.last_use = {used: k for k, op in enumerate(self.ops) for used in uses(op)}
        self.values: dict[Tensor, Array] = {}
        self.saved: dict[Call, SavedCall] = {}
        self.wanted: dict[Call, set[int]] = {}
        """By call, the inputs whose gradient is computed somewhere."""
        for op in program.operators():
            if isinstance(op, Gradient) and isinstance(op.of, Call):
                self.wanted.setdefault(op.of, set()).update(op.wanted)

    def tensors(self) -> list[Tensor]:
        """The Tensors and Variables that the program uses."""
        return [used for used in self.last_use if isinstance(used, Tensor)]

    def run(self, keep: Sequence[Tensor]) -> None:
        """Run the program on `values`, of which at the end those of `keep` are left."""
        dropped: list[list[Tensor | Call]] = [[] for _ in self.ops]
        for used, k in self.last_use.items():
            dropped[k].append(used)
        kept = set(keep)
        for op, unused in zip(self.ops, dropped, strict=True):
            self.run_operator(op)
            for used in unused:
                if isinstance(used, Call):
                    self.saved.pop(used, None)
                elif used not in kept:
                    self.values.pop(used, None)

    def run_operator(self, op: Operator) -> None:
        """Run one operator; its errors say where it was recorded."""
        if isinstance(op, Conditional):
            condition = self.values[op.condition].reshape(-1)[0].item()
            for inner in flatten(op.branches[0 if condition else 1].ops):
                self.run_operator(inner)
            return
        try:
            outputs = self.compute(op)
        except Exception as error:
            error.add_note(f"in {op.type}({op.shown()}) of the program, recorded at {op.where}")
            raise
        for tensor, array in zip(op.outputs, outputs, strict=True):
            self.values[tensor] = as_array(array, self.array_type)

    def array(self, tensor: Tensor) -> Array:
        """The value of a Tensor or Variable."""
        return self.values[tensor]

    def as_tensor(self, tensor: Tensor) -> Tensor:
        """The value of a Tensor or Variable, as a Tensor of dynamic mode."""
        return Tensor(self.values[tensor])

    def size(self, size: UnknownSize) -> int:
        """The number that a size turned out to be."""
        assert size.variable is not None
        return int(self.values[size.variable].shape[size.axis])

    # ----------------------------------------------------------------- one operator
    @functools.singledispatchmethod
    def compute(self, op: Operator) -> Sequence[Array]:
        """The outputs of an operator."""
        raise NotImplementedError(type(op).__name__)

    @compute.register
    def _(self, op: Call) -> Sequence[Array]:
        arguments = [resolved(value, self.array, self.size) for value in op.arguments]
        result = compute(op.op, op.op.kernels[self.array_type], arguments)
        outputs = [as_array(o, self.array_type) for o in (result if op.several else [result])]
        if op in self.wanted:
            self.saved[op] = self.saved_call(op, arguments, outputs)
        return outputs

    def saved_call(self, op: Call, arguments: list[Any], outputs: list[Array]) -> SavedCall:
        """What the vjps of a call read."""
        row, inputs = op.op, {}
        given = arguments[0] if row.many else [arguments[k] for k in row.positions]
        out = outputs if op.several else outputs[0]
        for k, (vjp, value) in enumerate(
            zip(row.vjps, given, strict=False)
        ):  # `many` repeats its vjp
            if k in self.wanted[op]:
                inputs[k] = SavedInput(vjp, vjp.pick(*arguments, out, k), value.shape)
        return SavedCall(inputs, [(o.shape, o.dtype) for o in outputs])

    @compute.register
    def _(self, op: Gradient) -> Sequence[Array]:
        if not isinstance(op.of, Call):
            return self.gradient_of_gradient(op)
        saved, xp, F = self.saved[op.of], XP[self.array_type], raw_ops[self.array_type]
        cotangents = [
            xp.zeros(shape, dtype) if cotangent is None else self.values[cotangent]
            for cotangent, (shape, dtype) in zip(op.cotangents, saved.outputs, strict=True)
        ]
        gradients = []
        for position in op.wanted:
            vjp, reads, shape = saved.inputs[position]
            gradient = apply_rule(vjp, cotangents if op.of.several else cotangents[0], F, reads)
            gradient = as_array(gradient, self.array_type)
            gradients.append(
                gradient if gradient.shape == shape else unbroadcast(F, gradient, shape)
            )
        return gradients

    def gradient_of_gradient(self, op: Gradient) -> Sequence[Array]:
        """The vjp on Tensors, differentiated as in dynamic mode."""
        inputs = [
            Tensor(self.values[t], None, not t.dtype.is_differentiable)
            for t in op.inputs
            if t is not None
        ]  # fmt: skip
        with grad_mode_set(True):
            gradients = op.on_tensors(
                inputs, lambda value: resolved(value, self.as_tensor, self.size)
            )
        return [gradient.array for gradient in gradients]

    @compute.register
    def _(self, op: Assign) -> Sequence[Array]:
        value = self.values[op.tensors()[0]]
        if op.like is not None and value.shape != (shape := self.values[op.like].shape):
            raise AssertionError(
                f"shape of inp_grad({list(value.shape)}) and fwd_input({list(shape)}) should be the same: "
                f"the gradient that backward_fn returns for {op.like.name}."
            )
        return [value]

    @compute.register
    def _(self, op: FunctionCall) -> Sequence[Array]:
        args, kwargs = resolved((op.args, op.kwargs), self.as_tensor, self.size)
        return [op.function(*args, **kwargs).array]

    @compute.register
    def _(self, op: Update) -> Sequence[Array]:
        op.apply([self.values[gradient] for _, gradient in op.pairs])
        return []

    @compute.register
    def _(self, op: Initialize) -> Sequence[Array]:
        op.apply()
        return []
