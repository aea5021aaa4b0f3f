"""Recorded and perturbed runs of a call on the bundled engine, and the vjps of recorded operations.

The checked code may run on a device, the checker is NumPy code: arrays are copied to the host
before they leave this file.
"""

from __future__ import annotations

import copy
import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Protocol

import ml_dtypes
import numpy as np

import pylayer
from gradcheck.backends.base import (
    FRAMEWORK_PACKAGES,
    Cotangents,
    Spot,
    flat_tensors,
    folders_of,
    is_differentiable,
)
from pylayer.tape.grad_mode import enable_grad
from pylayer.tape.graph import Node, Output
from pylayer.tape.node import OpNode, apply_rule, parent_of, unbroadcast
from pylayer.tape.op import Op
from pylayer.tape.vjp import OpDef, Vjp, raw_ops
from pylayer.tensor.array import XP, Array, to_numpy
from pylayer.tensor.array import quietly as quietly
from pylayer.tensor.tensor import Tensor
from pylayer.watch import Observer, observe
from pylayer.watch.casts import casts
from pylayer.watch.numpy_recording import Code, is_users, recording_numpy

NARROW = {
    "float16": "float64",
    "bfloat16": "float64",
    "float32": "float64",
    "complex64": "complex128",
}
"""Dtypes in which no cotangent is computed, and the wider dtypes used instead."""
Perturbation = Callable[[str, Array, int], None]
"""Changes the fresh output of an operation in place, given the operation's name, the output, and
the output's number on the tape (-1 if nothing is recorded).
"""
STEP_FUNCTIONS = {"floor", "ceil", "trunc", "round", "sign"}
"""Operations whose floating results are choices."""
VjpRule = tuple[Vjp, Sequence[Any], Sequence[int]]
"""The vjp of an input, the values that it reads, and the input's shape."""


ROUNDINGS = 16.0
"""How far a replayed value may be from the recorded one, in units of rounding of the largest entry:
the exponential functions of torch and NumPy differ by 1 to 2, and a dozen operations add up. A
perturbation of float64 is 16,000 times as large.
"""


@dataclass(eq=False)
class Step:
    """One operation of a recording."""

    name: str
    op: Op
    arguments: Sequence[Any]
    """The arguments of the operation's kernel."""
    values: list[Array]
    """Its outputs."""
    is_list: bool
    """Whether the operation's vjps take the outputs as a list."""
    first: int
    """The number of the first output."""
    edges: list[int]
    """The numbers of the inputs, -1 for a constant."""
    spot: Spot | None
    called: Spot | None
    """The source position where the user's code calls the function that contains `spot`, if it
    does.
    """

    @functools.cached_property
    def rules(self) -> list[VjpRule]:
        """The vjps of the inputs, which read values in double precision; the vjp of a list is
        repeated for each item.
        """
        outputs = self.values if self.is_list else self.values[0]
        rules: list[VjpRule] = []
        inputs = self.op.inputs_in(self.arguments)
        for k, (vjp, edge, value) in enumerate(zip(self.op.vjps, self.edges, inputs)):  # noqa: B905
            read = () if edge < 0 else vjp.pick(*self.arguments, outputs, k)
            rules.append((vjp, [*map(widen_values, read)], getattr(value, "shape", ())))
        return rules

    def pull(self, cotangents: Cotangents) -> list[tuple[int, int, Array]]:
        """The cotangents of its inputs, each with its position and number, in double precision.

        Constants have none.
        """
        cotangent, gradients = self.pack_cotangents(cotangents), []
        for k, (edge, rule) in enumerate(zip(self.edges, self.rules, strict=True)):
            if edge >= 0:
                gradients.append((k, edge, apply_vjp(cotangent, *rule)))
        return gradients

    def pack_cotangents(self, cotangents: Cotangents) -> Any:
        """The cotangents of the outputs in the form that the vjps take: one, or a list without
        gaps.
        """
        if not self.is_list:
            return cotangents[0]
        return [
            widen_values(np.zeros_like(v)) if c is None else c
            for c, v in zip(cotangents, self.values, strict=True)
        ]

    @functools.cached_property
    def operands(self) -> dict[str, Any]:
        """The values that the vjps read, by the name of the argument; ``out`` is the output."""
        operands: dict[str, Any] = {}
        for vjp, values, _ in self.rules:
            operands |= dict(zip(vjp.reads, values, strict=False))
        return operands

    def pull_with_values(
        self, position: int, cotangents: Cotangents, values: Mapping[str, Array]
    ) -> Array:
        """The cotangent of one input if its vjp reads `values` in place of those of the call.

        The output is computed again where it is a function of the one value replaced.
        """
        vjp, saved, shape = self.rules[position]
        read = {**dict(zip(vjp.reads, saved, strict=False)), **values}
        if self.op.arguments == tuple(values) and "out" in read:
            read["out"] = self.op.kernels[np.ndarray](*values.values())
        return apply_vjp(
            self.pack_cotangents(cotangents), vjp, [read[name] for name in vjp.reads], shape
        )

    def apply_to(self, cotangent: Array) -> Array | None:
        """The operation itself on a cotangent in place of its first input; None if it fails."""
        arguments = self.operands
        rest = {name: arguments[name] for name in self.op.arguments[1:] if name in arguments}
        try:
            return self.op.kernels[np.ndarray](cotangent, **rest)
        except (ValueError, TypeError, IndexError):
            return None

    def outputs_for(self, inputs: Sequence[Array | None]) -> list[Array]:
        """The operation's outputs for other inputs; None for a constant."""
        outputs = self.op.kernels[np.ndarray](*self.op.with_inputs(self.arguments, inputs))
        as_array = functools.partial(np.asarray, order=None if self.op.view else "C")
        return list(map(as_array, outputs if self.is_list else [outputs]))

    def with_values(self, arrays: Sequence[Array]) -> Step:
        """Return the operation with other values, looked up by number."""
        inputs = [arrays[edge] if edge >= 0 else None for edge in self.edges]
        arguments = self.op.with_inputs(self.arguments, inputs)
        values = list(arrays[self.first : self.first + len(self.values)])
        return replace(self, arguments=arguments, values=values)


def apply_vjp(cotangent: Any, vjp: Vjp, values: Sequence[Any], shape: Sequence[int]) -> Array:
    """A vjp's result for the cotangent of the output, summed to the shape of the input."""
    ops = raw_ops[np.ndarray]
    gradient = np.asarray(apply_rule(vjp, cotangent, ops, values))
    # Faster than the array's method all, and every edge of every walk comes here.
    if not np.logical_and.reduce(np.isfinite(gradient), axis=None):
        gradient = without_flow(gradient, cotangent)
    if gradient.shape != tuple(shape):
        gradient = unbroadcast(ops, gradient, tuple(shape))
    return gradient


def without_flow(gradient: Array, cotangent: Any) -> Array:
    """A gradient with 0 in place of NaN wherever the cotangent is 0 (0 times a slope that is not
    finite).

    The gradient is unchanged if its shape does not fit that of the cotangents.
    """
    try:
        nothing = np.broadcast_to(cotangent == 0, gradient.shape)
    except ValueError:
        return gradient
    return np.where(nothing & np.isnan(gradient), 0.0, gradient)


def widen_values(value: Any) -> Any:
    """Arrays in double precision, on the host, and dtypes to cast to; anything else unchanged."""
    if type(value) is np.ndarray:
        return value.astype(double_dtype(value.dtype), copy=False)
    if type(value) in XP:
        return widen_values(to_numpy(value))
    if type(value) in (list, tuple):
        return type(value)(map(widen_values, value))
    if isinstance(value, np.dtype):
        return double_dtype(value)
    return value


@functools.cache
def double_dtype(dtype: Any) -> Any:
    """The dtype of double precision for a floating one, or the same."""
    return np.dtype(NARROW.get(dtype.name, dtype))


NOT_THE_USERS = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(pylayer.__file__).parent,
        Path(__file__).parents[1],
        *folders_of(FRAMEWORK_PACKAGES - {"paddle"}),
    )
)
"""The folders of engine, harness and frameworks: an operation that is called from there is not
attributed to a line of the layer. The engine's code stands in for Paddle.
"""


class TracedOperation(Protocol):
    """The source position of an operation that a framework traced before it is replayed."""

    @property
    def spots(self) -> tuple[Spot | None, Spot | None]:
        """The places for `Recording.spots`."""


played_at: ContextVar[TracedOperation | None] = ContextVar("played_at", default=None)
"""The operation being replayed, while no frame of the user's code is running."""


class InputNode(Node):
    """An input as a non-leaf, which code may change in place."""

    label = "input"


class Decision(NamedTuple):
    """A choice made by values: a comparison, the truth of a value, a sort, a cast to an integer."""

    name: str
    arguments: Sequence[str]
    inputs: list[Any]
    """Arrays and numbers that the choice read, by the names in `arguments`."""
    edges: list[int]
    values_before: int
    """The number of values recorded before the choice."""
    spot: Spot | None


class Recording(Observer):
    """A recorded call, and the observer that records it.

    Values are numbered: the inputs first, then the outputs of each operation. They are kept on the
    host.

    Args:
        lines: whether to note the line of the user's code for each operation.
        perturbation: changes the output of each operation.
        backwards: whether the call takes gradients; these are recorded completely.
    """

    records = True

    def __init__(
        self,
        inputs: Sequence[Tensor],
        lines: bool,
        perturbation: Perturbation | None,
        backwards: bool,
    ) -> None:
        self.lines, self.perturbation, self.backwards = lines, perturbation, backwards
        self.leaves_casts_out = casts.left_out is not None
        self.numbers: dict[tuple[Any, int], int] = {}
        """Numbers of values, by node and position among its outputs. Outputs of PyLayers that keep
        their backward have the number of the value that they came from.
        """
        self.inputs = len(inputs)
        self.arrays: list[Array] = [to_numpy(tensor.array) for tensor in inputs]
        """The values, by number."""
        self.steps: list[Step] = []
        self.chosen: dict[int, Array] = {}
        """The outputs of operations that are choices, by number; see `chooses`."""
        self.decisions: list[Decision] = []
        self.layers: list[type] = []
        """The PyLayers whose forward was recorded in place of their backward."""
        self.outputs: Sequence[Array] = ()
        self.ends: Sequence[int] = ()
        """The numbers of the outputs, -1 where one does not depend on the inputs."""
        self.taken_out: list[tuple[int, str]] = []
        """For each leak: the number of values recorded before it, and the name of the code that
        took a value out.
        """
        self.leaks: Sequence[str] = ()
        """Source positions of code that took values out of the graph; the values may be part of an
        output.
        """
        self.uses_numpy = False
        """Whether the call handed values to NumPy code."""
        self.error: Exception | None = None
        """The call's error while it was recorded, if any."""
        for number, tensor in enumerate(inputs):
            if not tensor.stop_gradient:
                tensor.node = InputNode((), ())
                self.numbers[tensor.node, 0] = number

    def end(self, outputs: Sequence[Tensor]) -> None:
        """Store the results of the call."""
        self.outputs = [to_numpy(tensor.array) for tensor in outputs]
        self.ends = [self.number_of(parent_of(tensor)) for tensor in outputs]
        # A value that leaves the recording after the last operation cannot be part of the result.
        last = max(self.ends) if min(self.ends, default=-1) >= 0 else len(self.arrays)
        self.leaks = [text for count, text in self.taken_out if last >= count]

    @np.errstate(all="ignore")
    def recompute(
        self, inputs: Sequence[Array], perturbation: Perturbation | None = None
    ) -> list[Array]:
        """Compute the values by the recorded operations on other inputs, without running the user's
        code.

        Choices, and values that do not depend on the inputs, stay as they were.
        """
        values: dict[int, Any] = {-1: None, **dict(enumerate(inputs))}
        before, casts.left_out = casts.left_out, set() if self.leaves_casts_out else None
        try:
            for step in self.steps:
                read = list(map(values.__getitem__, step.edges))
                for number, value in enumerate(step.outputs_for(read), step.first):
                    values[number] = self.chosen.get(number, value)
                    if perturbation is None or number in self.chosen:
                        continue
                    if is_fresh(step.name, value, read):
                        perturbation(step.name, value, number)
        finally:
            casts.left_out = before
        return list(values.values())[1:]

    def outputs_among(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of the call if its operations had these values."""
        pairs = zip(self.ends, self.outputs, strict=True)
        return [arrays[end] if end >= 0 else output for end, output in pairs]

    def replay(
        self, inputs: Sequence[Array], perturbation: Perturbation | None = None
    ) -> Recording:
        """The recording of `recompute`."""
        replayed = copy.copy(self)
        replayed.arrays = self.recompute(inputs, perturbation)
        replayed.steps = [step.with_values(replayed.arrays) for step in self.steps]
        replayed.outputs = self.outputs_among(replayed.arrays)
        return replayed

    @functools.cached_property
    def replays(self) -> bool:
        """Whether a replay on the same inputs gives the same values up to rounding.

        It does not if memory that an operation reads was overwritten, or if a kernel draws random
        numbers. A framework's own values are rounded differently from the engine's.
        """
        try:
            values = self.recompute(self.arrays[: self.inputs])
        except Exception:  # for example, a kernel of another array module
            return False
        known, replayed = [*self.arrays, *self.outputs], [*values, *self.outputs_among(values)]
        return all(map(is_replayed, known, replayed))

    def number_of(self, parent: Any) -> int:
        """The number of the value that a gradient belongs to; -1 if there is none."""
        key = (parent.parents[0], parent.index) if type(parent) is Output else (parent, 0)
        return self.numbers.get(key, -1)

    def spots(self) -> tuple[Spot | None, Spot | None]:
        """The source position in the user's code, and that of its caller, if requested."""
        if not self.lines:
            return None, None
        equation = played_at.get()
        if equation is not None:
            return equation.spots
        frame = users_frame(sys._getframe(1))
        return spot_of(frame), spot_of(frame and users_frame(frame.f_back))

    def chose(self, name: str, arguments: Sequence[str], inputs: Sequence[Any]) -> None:
        """Note a decision if it was made on something that depends on the inputs."""
        edges = [self.number_of(parent_of(value)) for value in inputs]
        if any(edge >= 0 for edge in edges):
            arrays, spot = list(map(on_host, operand_arrays(inputs))), self.spots()[0]
            self.decisions.append(Decision(name, arguments, arrays, edges, len(self.arrays), spot))

    # ----------------------------------------------------------------- reports of the engine
    def made(self, node: Node, arguments: Sequence[Any], out: Any) -> None:
        assert isinstance(node, OpNode)
        assert isinstance(node.op, Op)
        op = node.op
        edges = list(map(self.number_of, node.parents))
        if max(edges, default=-1) < 0:
            return
        values = outputs_of(out)
        (spot, called), first = self.spots(), len(self.arrays)
        inputs = [self.arrays[edge] if edge >= 0 else None for edge in edges]
        perturb_outputs(self.perturbation, op, values, inputs, itertools.count(first))
        values = list(map(to_numpy, values))
        if not is_differentiable(values[0]):
            name = f"{op.name} to integers"
            self.decisions.append(Decision(name, op.inputs, inputs, edges, first, spot))
            return
        for number, value in enumerate(values, first):
            self.numbers[node, number - first] = number
            if chooses(op.name, value):
                self.chosen[number] = value
        is_list = type(out) is list
        self.steps.append(Step(op.name, op, arguments, values, is_list, first, edges, spot, called))
        self.arrays += values

    def computed(self, op: OpDef, inputs: Sequence[Any], out: Any) -> None:
        perturb_outputs(self.perturbation, op, out, operand_arrays(inputs))
        self.chose(op.name, op.arguments, inputs)

    def decided(self, tensor: Tensor) -> None:
        self.chose("bool", ("x",), (tensor,))

    def left(self, tensor: Tensor, how: str) -> None:
        if self.backwards and how == RECORDED_WALK:
            return
        if self.number_of(parent_of(tensor)) >= 0 and is_differentiable(tensor.array):
            frame = users_frame(sys._getframe(1))
            where = "" if frame is None else f" in line {frame.f_lineno}"
            self.leaked(f"{how}{where}")

    def leaked(self, how: str) -> None:
        self.taken_out.append((len(self.arrays), how))

    def applied(self, layer: Any, context: Any) -> None:
        self.layers.append(layer)

    def stands_for(self, output: Output, made_by: Any) -> None:
        self.numbers[output.parents[0], output.index] = self.number_of(made_by)


RECORDED_WALK = "grad(create_graph=True)"
WALKS = ("grad()", RECORDED_WALK, "backward()")
"""Backward walks that take values off a tape; the operations of the walk itself are perturbed."""


@dataclass(eq=False)
class PerturbingWatch(Observer):
    """An observer that only perturbs the output of each operation."""

    perturbation: Perturbation | None
    """None to perturb nothing."""
    leaks: list[str]
    """A list to which source positions that passed values to code outside of the graph are
    added.
    """

    def made(self, node: Node, arguments: Sequence[Any], out: Any) -> None:
        assert isinstance(node, OpNode)
        assert isinstance(node.op, Op)
        perturb_outputs(self.perturbation, node.op, out, node.op.inputs_in(arguments))

    def computed(self, op: OpDef, inputs: Sequence[Any], out: Any) -> None:
        perturb_outputs(self.perturbation, op, out, operand_arrays(inputs))

    def left(self, tensor: Tensor, how: str) -> None:
        if how not in WALKS and is_differentiable(tensor.array):
            self.leaked(how)

    def leaked(self, how: str) -> None:
        self.leaks.append(how)


class LeafWatch(Observer):
    """An observer that notes which leaves with a gradient are used.

    Operations inside the forward of a PyLayer count too.
    """

    def __init__(self) -> None:
        self.leaves: dict[int, Tensor] = {}

    def note(self, values: Sequence[Any]) -> None:
        for tensor in flat_tensors(values, lambda value: isinstance(value, Tensor)):
            if tensor.is_leaf and not tensor.stop_gradient:
                self.leaves[id(tensor)] = tensor

    def made(self, node: Node, arguments: Sequence[Any], out: Any) -> None:
        self.note(node.parents)

    def computed(self, op: OpDef, inputs: Sequence[Any], out: Any) -> None:
        self.note(inputs)

    def left(self, tensor: Tensor, how: str) -> None:
        self.note([tensor])


def operand_arrays(inputs: Sequence[Any]) -> list[Any]:
    """The arguments of an operation, with Tensors replaced by their arrays."""
    return [getattr(value, "array", value) for value in inputs]


def chooses(name: str, output: Array) -> bool:
    """Whether an output of an operation is a choice: a boolean, an integer, a step."""
    return output.dtype.kind in "biu" or name in STEP_FUNCTIONS


def is_replayed(known: Array, again: Array) -> bool:
    """Whether a value equals the recorded one: up to `ROUNDINGS`, or exactly for integers and
    booleans.
    """
    if known.dtype != again.dtype or known.shape != again.shape:
        return False
    if known.tobytes() == again.tobytes():
        return True
    return is_differentiable(known) and is_close(again, known, ROUNDINGS)


def is_close(ours: Array, theirs: Array, roundings: float | None = None, dtype: Any = None) -> bool:
    """Whether two floating arrays agree to half of the digits of a dtype, their own unless given,
    or up to a number of roundings of the largest finite entry, with NaN and infinities in the same
    places.
    """
    limits: Any = ml_dtypes.finfo(dtype or theirs.dtype)  # type: ignore[no-untyped-call]
    tolerance = roundings * float(limits.eps) if roundings else 2.0 ** -(limits.nmant // 2)
    a, b = widen_values(ours), widen_values(theirs)
    size = np.abs(b).max(initial=0.0, where=np.isfinite(b))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool((same | (np.abs(a - b) <= tolerance * size)).all())


def outputs_of(returned: Any) -> list[Any]:
    """The outputs of an operation."""
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]


def on_host(value: Any) -> Any:
    """An array in NumPy's memory; anything else unchanged."""
    return to_numpy(value) if type(value) in XP else value


def perturb_outputs(
    perturbation: Perturbation | None,
    op: OpDef,
    outputs: Any,
    read: Sequence[Any],
    numbers: Iterable[int] = itertools.repeat(-1),
) -> None:
    """Perturb the fresh outputs of an operation, which have these numbers on the tape.

    An output that is None is a choice that was not reported.
    """
    if perturbation is None:
        return
    for value, number in zip(outputs_of(outputs), numbers):  # noqa: B905 - numbers do not end
        if value is None or not is_fresh(op.name, value, read):
            continue
        host = to_numpy(value)
        if host is not value:
            # A broadcast view has one element in many places; NumPy marks it as read-only.
            axes = zip(value.shape, value.strides, strict=True)
            repeats = any(n > 1 and not step for n, step in axes)
            host.flags.writeable = not repeats and getattr(value.flags, "writeable", True)
        perturbation(op.name, host, number)
        if host is not value and host.flags.writeable:
            value[...] = XP[type(value)].asarray(host)


def is_fresh(name: str, output: Array, read: Sequence[Any]) -> bool:
    """Whether an output is new: neither one of the values read nor an exact widening of the
    first.
    """
    return id(output) not in map(id, read) and not (
        read and name == "cast" and widens(output, read[0])
    )


def widens(value: Array, read: Any) -> bool:
    """Whether the output of a cast has at least as many bytes as the value read, or as that
    dtype.
    """
    source = np.dtype(getattr(read, "dtype", read))
    return source.itemsize <= value.dtype.itemsize  # type: ignore[no-any-return]


def record_call(
    call: Callable[[], Sequence[Tensor]],
    inputs: Sequence[Tensor],
    lines: bool,
    perturbation: Perturbation | None = None,
    numpy: Code | None = None,
    backwards: bool = False,
) -> Recording:
    """Record a call whose leaves are `inputs`; see `Recording`.

    An exception of the call is the recording's `error`. NumPy code that can be reached from `numpy`
    is recorded as well.
    """
    recording = Recording(inputs, lines, perturbation, backwards)
    outputs: Sequence[Tensor] = ()
    numpy_code = recording_numpy(numpy or Code(()), perturbation is None)
    with observe(recording), enable_grad(), numpy_code as session:
        try:
            outputs = call()
        except Exception as problem:  # whatever the layer raises where it is recorded
            recording.error = problem
        recording.end(outputs)
        recording.uses_numpy = session.is_used
    return recording


def spot_of(frame: FrameType | None) -> Spot | None:
    """The instruction that a frame is about to execute."""
    return None if frame is None else (frame.f_code, frame.f_lasti)


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's code in the recorded call, starting from a frame."""
    while frame is not None and frame.f_code is not record_call.__code__:
        if not is_library_file(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None  # the frames beyond belong to the code that called the checker


def is_library_file(path: str) -> bool:
    """Whether a file of code belongs to the engine, the harness, NumPy, SciPy or Python itself."""
    return path.endswith(".py") and not is_users(path, NOT_THE_USERS)
