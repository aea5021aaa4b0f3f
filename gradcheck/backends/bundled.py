"""The bundled engine as a backend, on NumPy or CuPy, its recording of a call, and its own rules to pull that back.

What is checked may run on a device; what checks it is NumPy's: arrays come to the host where they leave this file.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import pylayer
from gradcheck.backends.base import Backend, Spot, Tensors, WorldRanks, is_differentiable
from pylayer.array import XP, Array, default_module, set_device, to_numpy
from pylayer.autograd import gradients_of
from pylayer.distributed.topology import lay_out
from pylayer.distributed.world import World, apart
from pylayer.grad_mode import enable_grad
from pylayer.graph import Node, Output
from pylayer.op_node import OpNode, PackedSaved, SeveralOutputs, apply_rule, parent_of, unbroadcast
from pylayer.ops.creation import to_tensor
from pylayer.py_layer import as_releases
from pylayer.release import missing_name, stand_ins_refused
from pylayer.symbol import at_once
from pylayer.tensor import Tensor
from pylayer.vjp import Row, Vjp, raw_ops
from pylayer.watch import Watch, watched
from pylayer.watch.layers import LayerObserver, observing_layers
from pylayer.watch.numpy_recording import Code, is_users, recording_numpy

NARROW = {
    "float16": "float64",
    "bfloat16": "float64",
    "float32": "float64",
    "complex64": "complex128",
}
"""The dtypes in which nothing is pulled back, and what is taken for them."""
Mover = Callable[[str, Array, int], None]
"""Changes the fresh output of an operation in place, given its name, the output, and that one's number on the tape, or
-1 where nothing is recorded."""


@dataclass(slots=True, eq=False)
class Step:
    """One operation of a recording."""

    name: str
    values: list[Array]
    """Its outputs."""
    first: int
    """The number of the first of them."""
    edges: list[int]
    """The numbers of its inputs, -1 for a constant."""
    node: OpNode
    spot: Spot | None
    called: Spot | None
    """Where the user's code calls the function that the spot is in, if it does."""

    def pull(self, cotangents: Sequence[Array | None]) -> list[tuple[int, int, Array]]:
        """Per input that is no constant: its position, its number, and its cotangent, in double precision."""
        given = self.given(cotangents)
        node = self.node
        rules = enumerate(zip(node.op.vjps, self.edges, node.plain_values(), node.shapes))  # noqa: B905 - the rule of a list is repeated
        return [
            (k, edge, pulled(vjp, given, [widened(v) for v in values], shape))
            for k, (vjp, edge, values, shape) in rules
            if edge >= 0
        ]

    def given(self, cotangents: Sequence[Array | None]) -> Any:
        """The cotangents of its outputs as its rules take them: one, or a list without gaps."""
        if not isinstance(self.node, SeveralOutputs):
            return cotangents[0]
        return [
            widened(np.zeros_like(v)) if c is None else c
            for c, v in zip(cotangents, self.values, strict=True)
        ]

    def operands(self) -> dict[str, Any]:
        """What its rules read, by the name of the argument; ``out`` is the output."""
        found: dict[str, Any] = {}
        for vjp, values in zip(self.node.op.vjps, self.node.plain_values()):  # noqa: B905 - as above
            found |= dict(zip(vjp.reads, map(widened, values), strict=False))
        return found

    def replaced(
        self, position: int, cotangents: Sequence[Array | None], values: Mapping[str, Array]
    ) -> Array:
        """The cotangent of one input if its rule reads `values`, by name, in place of those of the call.

        The output is computed again where it is a function of the one value replaced.
        """
        rules = zip(self.node.op.vjps, self.node.plain_values(), self.node.shapes)  # noqa: B905 - as above
        vjp, saved, shape = next(islice(rules, position, None))
        read = {**dict(zip(vjp.reads, map(widened, saved), strict=False)), **values}
        if self.node.op.arguments == tuple(values) and "out" in read:
            read["out"] = self.node.op.kernels[np.ndarray](*values.values())
        return pulled(vjp, self.given(cotangents), [read[name] for name in vjp.reads], shape)

    def again(self, cotangent: Array) -> Array | None:
        """The operation itself on a cotangent in place of its first input; None where that is not possible."""
        arguments = self.operands()
        try:
            rest = {
                name: arguments[name] for name in self.node.op.arguments[1:] if name in arguments
            }
            return self.node.op.kernels[np.ndarray](cotangent, **rest)
        except (ValueError, TypeError, IndexError):
            return None


def pulled(vjp: Vjp, given: Any, values: Sequence[Any], shape: Sequence[int] | None) -> Array:
    """What a rule makes of the cotangent of the output, summed to the shape of the input."""
    ops = raw_ops[np.ndarray]
    gradient = np.asarray(apply_rule(vjp, given, ops, values))
    if not bool(np.isfinite(gradient).all()):
        gradient = without_flow(gradient, given)
    if shape is not None and gradient.shape != tuple(shape):
        gradient = unbroadcast(ops, gradient, tuple(shape))
    return gradient


def without_flow(gradient: Array, given: Any) -> Array:
    """A gradient with 0 in place of NaN where nothing flows: 0 times a slope that is not finite."""
    if type(given) is list:  # an operation of several outputs
        return gradient
    shape, extra = np.shape(given), gradient.ndim - np.ndim(given)
    if extra < 0 or any(
        n not in (1, m) for n, m in zip(shape, gradient.shape[extra:], strict=True)
    ):
        return gradient
    return np.where((given == 0) & np.isnan(gradient), 0.0, gradient)


def widened(value: Any) -> Any:
    """Arrays in double precision, on the host, and dtypes to cast to; anything else unchanged."""
    if type(value) in XP:
        return to_numpy(value).astype(in_double(value.dtype), copy=False)
    if type(value) in (list, tuple):
        return type(value)(widened(v) for v in value)
    if isinstance(value, np.dtype):
        return in_double(value)
    return value


@functools.cache
def in_double(dtype: Any) -> Any:
    """The dtype of double precision for a floating one, or the same."""
    return np.dtype(NARROW[dtype.name]) if dtype.name in NARROW else dtype


NOT_THE_USERS = tuple(
    f"{folder}{os.sep}" for folder in (Path(pylayer.__file__).parent, Path(__file__).parents[1])
)
"""The code of engine and harness: what an operation is called from there is not the line of the layer."""


class InputNode(Node):
    """An input, as a result that code may change in place."""

    label = "input"


class Decision(NamedTuple):
    """Something chosen by the values: a comparison, the truth of a value, a sort, a cast to an integer."""

    name: str
    arguments: Sequence[str]
    inputs: list[Any]
    """What it read, arrays and numbers, by the names in `arguments`."""
    edges: list[int]
    at: int
    """How many values there were before it."""
    spot: Spot | None


class Recording(Watch):
    """A call as it was computed, and the watch that notes it. Values are numbered: the inputs first, then the outputs
    of each operation.

    Args:
        lines: whether to note where in the user's code operations stand.
        move: changes the output of each operation.
        backwards: whether the call takes gradients, of which everything is recorded.
    """

    records = True

    def __init__(
        self, inputs: Sequence[Tensor], lines: bool, move: Mover | None, backwards: bool
    ) -> None:
        self.lines, self.move, self.backwards = lines, move, backwards
        self.numbers: dict[Node, int] = {}
        self.of_layers: dict[tuple[Node, int], int] = {}
        """The same of the outputs of PyLayers that keep their backward."""
        self.inputs = len(inputs)
        self.arrays: list[Array] = [tensor.array for tensor in inputs]
        """The values, by number."""
        self.steps: list[Step] = []
        self.decisions: list[Decision] = []
        self.layers: list[type] = []
        """The PyLayers whose forward was recorded in place of their backward."""
        self.outputs: Sequence[Array] = ()
        self.ends: Sequence[int] = ()
        """The numbers of the outputs, -1 where one does not depend on the inputs."""
        self.taken_out: list[tuple[int, str]] = []
        """How many values there were, and what took one out."""
        self.leaks: Sequence[str] = ()
        """What took values out of the graph, which may have found their way into an output."""
        self.error: Exception | None = None
        """What the call raised while it was recorded, if it did."""
        for number, tensor in enumerate(inputs):
            if not tensor.stop_gradient:
                tensor.node = node = InputNode((), ())
                self.numbers[node] = number

    def end(self, outputs: Sequence[Tensor]) -> None:
        """Note what the call returned, and bring what lies on a device to the host."""
        self.outputs = [to_numpy(tensor.array) for tensor in outputs]
        if any(type(array) is not np.ndarray for array in self.arrays):
            self.arrays = [to_numpy(array) for array in self.arrays]
            for step in self.steps:
                step.values = self.arrays[step.first : step.first + len(step.values)]
            for decision in self.decisions:
                decision.inputs[:] = [to_numpy(v) if type(v) in XP else v for v in decision.inputs]
        self.ends = [self.number_of(parent_of(tensor)) for tensor in outputs]
        # A value that is taken out after the last operation cannot be part of the result.
        self.leaks = [
            text
            for at, text in self.taken_out
            if any(end < 0 or end >= at for end in self.ends) or not self.ends
        ]

    def number_of(self, parent: Any) -> int:
        """The number of the value that a gradient goes to; -1 where there is none."""
        if type(parent) is Output:
            made_by: Any = parent.parents[0]
            first = self.numbers.get(made_by)
            return (
                self.of_layers.get((made_by, parent.index), -1)
                if first is None
                else first + parent.index
            )
        return self.numbers.get(parent, -1)

    def spots(self) -> tuple[Spot | None, Spot | None]:
        """Where the code stands that is neither the engine's nor ours, and the code that called it, if wanted."""
        frame = users_frame(sys._getframe(1)) if self.lines else None
        caller = (
            None
            if frame is None or frame.f_code is recorded.__code__
            else users_frame(frame.f_back)
        )
        return spot_of(frame), spot_of(caller)

    def chose(self, name: str, arguments: Sequence[str], inputs: Sequence[Any]) -> None:
        """Note a decision if it was made on something that depends on the inputs."""
        edges = [self.number_of(parent_of(value)) for value in inputs]
        if any(edge >= 0 for edge in edges):
            arrays = [getattr(value, "array", value) for value in inputs]
            self.decisions.append(
                Decision(name, arguments, arrays, edges, len(self.arrays), self.spots()[0])
            )

    # ----------------------------------------------------------------- what the engine tells
    def made(self, node: Node, out: Any) -> None:
        assert isinstance(node, OpNode)
        edges = [-1 if parent is None else self.number_of(parent) for parent in node.parents]
        if all(edge < 0 for edge in edges):
            return
        values = list(out) if isinstance(node, SeveralOutputs) else [out]
        (spot, called), first = self.spots(), len(self.arrays)
        if self.move is not None:
            move_outputs(
                self.move, node.op, values, [self.arrays[e] for e in edges if e >= 0], first
            )
        if not is_differentiable(values[0]):
            inputs = [self.arrays[e] if e >= 0 else None for e in edges]
            self.decisions.append(
                Decision(f"{node.op.name} to integers", node.op.inputs, inputs, edges, first, spot)
            )
            return
        self.numbers[node] = first
        self.steps.append(Step(node.op.name, values, first, edges, node, spot, called))
        self.arrays += values

    def computed(self, op: Row, inputs: Sequence[Any], out: Any) -> None:
        if self.move is not None:
            move_outputs(self.move, op, out, [getattr(value, "array", value) for value in inputs])
        self.chose(op.name, op.arguments, inputs)

    def decided(self, tensor: Tensor) -> None:
        self.chose("bool", ("x",), (tensor,))

    def left(self, tensor: Tensor, how: str) -> None:
        recorded = self.backwards and how == RECORDED_WALK
        if (
            not recorded
            and self.number_of(parent_of(tensor)) >= 0
            and is_differentiable(tensor.array)
        ):
            frame = users_frame(sys._getframe(1))
            where = "" if frame is None else f" in line {frame.f_lineno}"
            self.taken_out.append((len(self.arrays), f"{how}{where}"))

    def applied(self, layer: type) -> None:
        self.layers.append(layer)

    def stands_for(self, output: Output, made_by: Any) -> None:
        layer: Any = output.parents[0]
        self.of_layers[layer, output.index] = self.number_of(made_by)


RECORDED_WALK = "grad(create_graph=True)"
WALKS = ("grad()", RECORDED_WALK, "backward()")
"""What takes values off a tape and computes with operations of its own, which are moved."""


@dataclass(eq=False)
class Moving(Watch):
    """The watch that lets everything run as it would, and moves what comes out of each operation, if wanted."""

    move: Mover | None
    leaks: list[str]
    """What handed values to code outside of the graph is added to these."""

    def made(self, node: Node, out: Any) -> None:
        if self.move is None:
            return
        assert isinstance(node, OpNode)
        packed = (
            type(node.saved) is PackedSaved
        )  # unpacking runs hooks of the user's, here at a time of our choosing
        read = [] if packed else [v for values in node.values() for v in values]
        outs = out if isinstance(out, (tuple, list)) else [out]
        # outputs that are saved as well were not read
        move_outputs(
            self.move, node.op, out, [v for v in read if not any(v is array for array in outs)]
        )

    def computed(self, op: Row, inputs: Sequence[Any], out: Any) -> None:
        if self.move is not None:
            move_outputs(self.move, op, out, [getattr(value, "array", value) for value in inputs])

    def left(self, tensor: Tensor, how: str) -> None:
        if how not in WALKS and is_differentiable(tensor.array):
            self.leaks.append(how)


class Reaching(Watch):
    """The watch that notes which leaves that need a gradient are computed with, inside the forward of a PyLayer too."""

    def __init__(self) -> None:
        self.leaves: dict[int, Tensor] = {}

    def note(self, values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, (list, tuple)):
                self.note(value)
            elif isinstance(value, Tensor) and value.is_leaf and not value.stop_gradient:
                self.leaves[id(value)] = value

    def made(self, node: Node, out: Any) -> None:
        self.note(node.parents)

    def computed(self, op: Row, inputs: Sequence[Any], out: Any) -> None:
        self.note(inputs)

    def left(self, tensor: Tensor, how: str) -> None:
        self.note([tensor])


def move_outputs(move: Mover, op: Row, out: Any, read: Sequence[Any], number: int = -1) -> None:
    """Move the fresh outputs of an operation, neither what was `read` itself nor what it was exactly widened from;
    `number` is that of the first on the tape."""
    for k, one in enumerate(out if isinstance(out, (tuple, list)) else [out]):
        if one is None:  # a choice of which nothing is told
            continue
        widens = op.name == "cast" and any(
            np.dtype(getattr(v, "dtype", v)).itemsize <= one.dtype.itemsize
            for v in read[:1]
            if hasattr(v, "dtype") or isinstance(v, np.dtype)
        )
        if widens or any(one is v for v in read):
            continue
        host, place = to_numpy(one), number + k if number >= 0 else -1
        if host is one:
            move(op.name, one, place)
            continue
        # a broadcast view, of which NumPy says that it is not to be written, has one element in many places
        repeats = any(n > 1 and not step for n, step in zip(one.shape, one.strides, strict=True))
        host.flags.writeable = not repeats and getattr(one.flags, "writeable", True)
        move(op.name, host, place)
        if host.flags.writeable:
            one[...] = XP[type(one)].asarray(host)


def recorded(
    call: Callable[[], Sequence[Tensor]],
    inputs: Sequence[Tensor],
    lines: bool,
    move: Mover | None = None,
    numpy: Code | None = None,
    backwards: bool = False,
) -> tuple[Recording, bool]:
    """A call with the leaves `inputs`, and whether it changed something in place; see `Recording`.

    What the call raises is the recording's `error`. NumPy code that can be reached from `numpy` is recorded as well.
    """
    found = Recording(inputs, lines, move, backwards)
    outputs: Sequence[Tensor] = ()
    with watched(found) as moved, enable_grad(), recording_numpy(numpy or Code(()), move is None):
        try:
            outputs = call()
        except Exception as problem:  # whatever the layer raises where it is recorded
            found.error = problem
        found.end(outputs)
    return found, bool(moved)


def spot_of(frame: FrameType | None) -> Spot | None:
    """What a frame is about to do."""
    return None if frame is None else (frame.f_code, frame.f_lasti)


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of what is recorded, from one on, whose code is neither the engine's nor ours."""
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = (
            None if frame.f_code is recorded.__code__ else frame.f_back
        )  # beyond it is who asked for the check
    return frame


def is_library_file(path: str) -> bool:
    """Whether a file of code belongs to the engine, the harness, NumPy, SciPy or Python itself."""
    return path.endswith(".py") and not is_users(path, NOT_THE_USERS)


class RanksInTurns(WorldRanks):
    """The ranks of a world in this process, each with what `work` makes for it."""

    def __init__(
        self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]
    ) -> None:
        self.world = World(size, same_random)

        def begin(rank: int) -> Any:
            lay_out(degrees)
            return work(rank)

        self.work = self.world.run(begin)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self.world.run(lambda rank: getattr(self.work[rank], method)(*arguments[rank]))

    apart = staticmethod(apart)


class BundledBackend(Backend):
    """The engine, with ``import paddle`` in this process resolved to its facade unless `install` is False."""

    records = True

    def __init__(self, name: str, device: str, install: bool = True) -> None:
        self.name = name
        if set_device(device) != "cpu":
            self.array = lambda tensor: to_numpy(tensor.array)
        if install:
            pylayer.install_paddle()
        self.paddle: ModuleType = import_module("paddle" if install else "pylayer.paddle")

    tensor = staticmethod(at_once(to_tensor))

    @contextmanager
    def observing(self, observer: LayerObserver) -> Iterator[None]:
        with observing_layers(observer), stand_ins_refused():
            yield

    def grad(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        held: Sequence[Any],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """As ``backward`` would, which asks every layer for all of its gradients: also those that a backward adds to
        leaves itself, as that of `recompute` does."""
        before = [leaf.grad for leaf in held]
        for leaf in held:
            leaf.clear_grad(False)
        with as_releases():
            found = gradients_of(outputs, inputs, cotangents, create_graph, allow_unused=True)
        for k, leaf in enumerate(inputs):
            if any(leaf is one for one in held) and leaf.grad is not None:
                found[k] = leaf.grad.detach() if found[k] is None else found[k] + leaf.grad.detach()
        for leaf, gradient in zip(held, before, strict=True):
            leaf.grad = gradient
        return found

    def share(self, leaf: Tensor, other: Tensor) -> None:
        leaf.array, leaf.node = other.array, None

    def reached(self, call: Callable[[], Any]) -> tuple[Any, Tensors]:
        watch = Reaching()
        with watched(watch):
            returned = call()
        return returned, list(watch.leaves.values())

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Told of arrays on the host."""
        x, y = a.array, b.array
        return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.shares_memory(x, y)

    lacks = staticmethod(missing_name)

    array = staticmethod(attrgetter("array"))

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        return Tensor(default_module().asarray(array), None, stop_gradient)

    ranks = staticmethod(RanksInTurns)
