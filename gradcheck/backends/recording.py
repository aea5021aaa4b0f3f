"""The bundled engine's recording of a call: every operation on the way, and the engine's own rule to pull it back.

What `gradcheck.backends.base.Recording` asks for. Values are numbered: the inputs first, then each output of each
operation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import pylayer
from gradcheck.backends.base import Array, Mover, Spot, Tensor, is_differentiable
from gradcheck.backends.recorded_step import Step
from pylayer.grad_mode import enable_grad
from pylayer.graph import Node, Output
from pylayer.op_node import OpNode, SeveralOutputs, parent_of
from pylayer.saved import PackedSaved
from pylayer.vjp import Row
from pylayer.watch import watched
from pylayer.watch.numpy_recording import Code, is_users, recording_numpy

NOT_THE_USERS = tuple(f"{folder}{os.sep}" for folder in (Path(pylayer.__file__).parent, Path(__file__).parents[1]))
"""The code of engine and harness: what an operation is called from there is not the line of the layer."""


class InputNode(Node):
    """An input, as a result that code may change in place."""

    label = "input"


class Decision(NamedTuple):
    """Something chosen by the values: see `gradcheck.backends.base.Decision`."""

    name: str
    arguments: Sequence[str]
    inputs: list[Any]
    edges: list[int]
    at: int
    spot: Spot | None


class Recorder:
    """The watch that makes a recording."""

    records = True

    def __init__(self, lines: bool, move: Mover | None, backwards: bool) -> None:
        self.lines = lines
        self.move = move
        self.backwards = backwards
        self.numbers: dict[Node, int] = {}
        self.of_layers: dict[tuple[Node, int], int] = {}
        """The same of the outputs of PyLayers that keep their backward."""
        self.arrays: list[Array] = []
        """The values, by number."""
        self.steps: list[Step] = []
        self.decisions: list[Decision] = []
        self.layers: list[type] = []
        self.leaks: list[tuple[int, str]] = []
        """How many values there were, and what took one out."""

    def input(self, tensor: Tensor) -> None:
        """Make a leaf an input."""
        if not tensor.stop_gradient:
            tensor.node = node = InputNode((), ())
            self.numbers[node] = len(self.arrays)
        self.arrays.append(tensor.array)

    def number_of(self, parent: Any) -> int:
        """The number of the value that a gradient goes to; -1 where there is none."""
        if type(parent) is Output:
            made_by: Any = parent.parents[0]
            first = self.numbers.get(made_by)
            return self.of_layers.get((made_by, parent.index), -1) if first is None else first + parent.index
        return self.numbers.get(parent, -1)

    def spot(self) -> Spot | None:
        """Where the code stands that is neither the engine's nor ours, if that is wanted."""
        frame = users_frame() if self.lines else None
        return None if frame is None else (frame.f_code, frame.f_lasti)

    # ----------------------------------------------------------------- what the engine tells
    def made(self, node: Node, out: Any) -> None:
        assert isinstance(node, OpNode)
        edges = [-1 if parent is None else self.number_of(parent) for parent in node.parents]
        if all(edge < 0 for edge in edges):
            return
        values = list(out) if isinstance(node, SeveralOutputs) else [out]
        spot = self.spot()
        if self.move is not None:
            move_outputs(self.move, node.op, values, [self.arrays[e] for e in edges if e >= 0], len(self.arrays))
        if not is_differentiable(values[0]):
            inputs = [self.arrays[e] if e >= 0 else None for e in edges]
            self.decisions.append(
                Decision(f"{node.op.name} to integers", node.op.inputs, inputs, edges, len(self.arrays), spot)
            )
            return
        self.numbers[node] = len(self.arrays)
        self.steps.append(Step(node.op.name, values, len(self.arrays), edges, node, spot))
        self.arrays += values

    def computed(self, op: Row, inputs: Sequence[Any], out: Any) -> None:
        if self.move is not None:
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            move_outputs(self.move, op, outs, [getattr(value, "array", value) for value in inputs])
        self.chose(op.name, op.arguments, inputs)

    def decided(self, tensor: Tensor) -> None:
        self.chose("bool", ("x",), (tensor,))

    def chose(self, name: str, arguments: Sequence[str], inputs: Sequence[Any]) -> None:
        """Note a decision if it was made on something that depends on the inputs."""
        edges = [self.number_of(parent_of(value)) for value in inputs]
        if any(edge >= 0 for edge in edges):
            arrays = [getattr(value, "array", value) for value in inputs]
            spot = self.spot()
            self.decisions.append(Decision(name, arguments, arrays, edges, len(self.arrays), spot))

    def left(self, tensor: Tensor, how: str) -> None:
        recorded = self.backwards and how == RECORDED_WALK
        if not recorded and self.number_of(parent_of(tensor)) >= 0 and is_differentiable(tensor.array):
            frame = users_frame()
            where = "" if frame is None else f" in line {frame.f_lineno}"
            self.leaks.append((len(self.arrays), f"{how}{where}"))

    def applied(self, layer: type) -> None:
        self.layers.append(layer)

    def stands_for(self, output: Output, made_by: Any) -> None:
        layer: Any = output.parents[0]
        self.of_layers[layer, output.index] = self.number_of(made_by)


class Recorded:
    """A call as it was computed; see `gradcheck.backends.base.Recording`."""

    def __init__(self, recorder: Recorder, inputs: int, outputs: Sequence[Tensor], error: Exception | None) -> None:
        self.inputs = inputs
        self.arrays: Sequence[Array] = recorder.arrays
        self.steps: Sequence[Any] = recorder.steps
        self.decisions: Sequence[Any] = recorder.decisions
        self.layers: Sequence[type] = recorder.layers
        self.error = error
        self.outputs: Sequence[Array] = [tensor.array for tensor in outputs]
        self.ends: Sequence[int] = [recorder.number_of(parent_of(tensor)) for tensor in outputs]
        # A value that is taken out after the last operation cannot be part of the result.
        self.leaks: Sequence[str] = [
            text for at, text in recorder.leaks if any(end < 0 or end >= at for end in self.ends) or not self.ends
        ]


RECORDED_WALK = "grad(create_graph=True)"
WALKS = ("grad()", RECORDED_WALK, "backward()")
"""What takes values off a tape and computes with operations of its own, which are moved."""


class Moving:
    """The watch that lets everything run as it would, and moves what comes out of each operation."""

    records = backwards = False

    def __init__(self, move: Mover, leaks: list[str]) -> None:
        self.move = move
        self.leaks = leaks

    def made(self, node: Node, out: Any) -> None:
        assert isinstance(node, OpNode)
        packed = type(node.saved) is PackedSaved  # unpacking runs hooks of the user's, here at a time of our choosing
        read = [] if packed else [v for values in node.values() for v in values]
        outs = out if isinstance(out, (tuple, list)) else [out]
        # outputs that are saved as well were not read
        self.moved(node.op, out, [v for v in read if not any(v is array for array in outs)])

    def computed(self, op: Row, inputs: Sequence[Any], out: Any) -> None:
        self.moved(op, out, [getattr(value, "array", value) for value in inputs])

    def moved(self, op: Row, out: Any, read: Sequence[Any]) -> None:
        """Move the outputs of an operation that read these arrays, or dtypes."""
        move_outputs(self.move, op, list(out) if isinstance(out, (tuple, list)) else [out], read)

    def left(self, tensor: Tensor, how: str) -> None:
        if how not in WALKS and is_differentiable(tensor.array):
            self.leaks.append(how)

    def decided(self, tensor: Tensor) -> None:
        pass

    def applied(self, layer: type) -> None:
        pass

    def stands_for(self, output: Output, made_by: Any) -> None:
        pass


def move_outputs(move: Mover, op: Row, outs: Sequence[Array], read: Sequence[Any], number: int = -1) -> None:
    """Move fresh outputs: neither what was read itself nor what it was exactly widened from."""
    for k, out in enumerate(outs):
        if out is None:  # a choice of which nothing is told
            continue
        widens = op.name == "cast" and any(
            np.dtype(getattr(v, "dtype", v)).itemsize <= out.dtype.itemsize
            for v in read[:1]
            if hasattr(v, "dtype") or isinstance(v, np.dtype)
        )
        if not widens and not any(out is v for v in read):
            move(op.name, out, number + k if number >= 0 else -1)


def recorded(
    call: Callable[[], Sequence[Tensor]],
    inputs: Sequence[Tensor],
    lines: bool,
    move: Mover | None = None,
    numpy: Code | None = None,
    backwards: bool = False,
) -> tuple[Recorded, bool]:
    """A call with the leaves `inputs`, and whether it changed something in place.

    What the call raises is the recording's `error`. `move` changes the output of each operation in place, and NumPy
    code that can be reached from `numpy` is recorded as well. With `backwards` the call takes gradients, of which
    everything is recorded.
    """
    recorder = Recorder(lines, move, backwards)
    outputs: Sequence[Tensor] = ()
    error: Exception | None = None
    for tensor in inputs:
        recorder.input(tensor)
    with watched(recorder) as moved, enable_grad(), recording_numpy(numpy or Code(()), move is None):
        try:
            outputs = call()
        except Exception as problem:  # whatever the layer raises where it is recorded
            error = problem
        found = Recorded(recorder, len(inputs), outputs, error)
    return found, bool(moved)


def users_frame() -> FrameType | None:
    """The innermost frame of what is recorded whose code is neither the engine's nor ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = None if frame.f_code is recorded.__code__ else frame.f_back  # beyond it is who asked for the check
    return frame


def is_library_file(path: str) -> bool:
    """Whether a file of code belongs to the engine, the harness, NumPy, SciPy or Python itself."""
    return path.endswith(".py") and not is_users(path, NOT_THE_USERS)
