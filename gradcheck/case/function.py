"""A function of Tensors as the gradient check sees it: arrays in, arrays out, its vjp, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Mover, Tensor, flat_tensors, is_differentiable
from gradcheck.case.agreement import agree, same
from gradcheck.case.no_gradient import NoGradient, misfit, nothing_claimed
from gradcheck.case.observe import observed
from gradcheck.case.settings import settings_of_its_own
from gradcheck.checker.problem import Problem
from gradcheck.witness.graph import Graph
from gradcheck.witness.tape import Tape


class TensorFunction:
    """A function of named Tensors on a backend, at given arrays.

    Args:
        backend: whose Tensors they are.
        call: takes the Tensors by name and returns whatever the function returns.
        arrays: the inputs, on the backend's device or the host.
        dtypes: of the inputs, by Paddle's names.
        stopped: the inputs through which no gradient flows.
    """

    def __init__(
        self,
        backend: Backend,
        call: Callable[[dict[str, Tensor]], Any],
        arrays: dict[str, Array],
        dtypes: dict[str, str],
        stopped: Sequence[str] = (),
    ) -> None:
        self.backend = backend
        self.call = call
        self.arrays = arrays
        self.dtypes = dtypes
        self.stopped = frozenset(stopped)
        self.claimed: list[bool] = []
        """Per output, whether the function claims a gradient for it; known once `problem` was called."""
        self.held: Sequence[Tensor] = ()
        """Tensors beside the inputs that need a gradient, if known: parameters of a layer."""
        self.twin: TensorFunction | None = None
        """The same call on a backend that can record what it computes, where this one cannot."""
        self.gave_less = False
        """Whether a backward was seen to return fewer gradients than the documents ask for; known once `observed`."""
        self.evaluations = 0
        """How often it was called."""
        self.unchecked = ""
        """Why there is nothing to check, if so; known once `problem` was called."""

    def tensors(self) -> dict[str, Tensor]:
        """The inputs as fresh leaf Tensors."""
        return {
            name: self.tensor(name, array, self.dtypes[name], name in self.stopped)
            for name, array in self.arrays.items()
        }

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """One input as a leaf Tensor that owns its memory."""
        return self.backend.tensor(array, dtype, stop_gradient)

    def called(self, tensors: dict[str, Tensor]) -> Any:
        """What the function returns. What it raises is told apart from what it raises always: with the evaluation."""
        self.evaluations += 1
        try:
            with settings_of_its_own():
                return self.call(tensors)
        except Exception as error:
            if self.evaluations > 1:
                with suppress(Exception):  # its notes may be anything
                    error.add_note(f"raised by evaluation {self.evaluations} of the check, not by those before")
            raise

    def outputs(self, returned: Any) -> list[Tensor]:
        """The Tensors among what the call returned."""
        tensor_type = self.backend.paddle.Tensor
        return flat_tensors(returned, lambda value: isinstance(value, tensor_type))

    def problem(self) -> Problem:
        """The layer on arrays, with the vjp that its backward claims."""
        start = self.tensors()
        differentiable = [not t.stop_gradient and is_differentiable(self.backend.array(t)) for t in start.values()]
        returned = self.called(self.tensors())
        outputs = self.outputs(returned)
        # Outputs that the layer marks as non-differentiable make no claim. One that is cut off from its inputs is a
        # leaf, and claims a gradient of zero.
        self.claimed = [output.is_leaf or not output.stop_gradient for output in outputs]
        names = ["out"] if len(outputs) == 1 else [f"out[{k}]" for k in range(len(outputs))]
        needed = [self.backend.array(t) for t, need in zip(start.values(), differentiable, strict=True) if need]
        self.unchecked = nothing_claimed(returned, [self.backend.array(t) for t in outputs], self.claimed, needed)
        return Problem(
            names=list(self.arrays),
            inputs=[self.backend.array(t) for t in start.values()],
            differentiable=differentiable,
            output_names=[name for name, claimed in zip(names, self.claimed, strict=True) if claimed],
            forward=self.forward,
            vjp=lambda inputs, cotangents: self.vjp(inputs, cotangents, differentiable),
            observe=lambda cotangents: observed(self, cotangents),
            outputs=[self.backend.array(t) for t, claimed in zip(outputs, self.claimed, strict=True) if claimed],
            record=lambda inputs, lines=False: self.record(inputs, differentiable, lines),
        )

    def record(self, arrays: Sequence[Array], needed: Sequence[bool], lines: bool = False) -> Tape | None:
        """The call at `arrays`, recorded, with the lines of the layer that its operations stand on if wanted.

        None where neither the backend nor the function's twin can record, or the twin gives other outputs.
        """
        if self.twin is not None:
            tape = self.twin.record(arrays, needed, lines)
            return tape if tape is not None and agree(tape.outputs, self.forward(arrays), tape.coarsest) else None
        replays = Replays(self, arrays, needed)
        found = replays.run(lines=lines)
        if found is None:
            return None
        recording, changed_in_place = found
        differs = (
            changed_in_place and not recording.error and not all(map(same, recording.outputs, self.forward(arrays)))
        )
        return Tape(recording, replays, differs)

    def checked_outputs(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs that claim a gradient, with the inputs bound to `tensors`."""
        outputs = self.outputs(self.called(tensors))
        if len(outputs) != len(self.claimed):
            raise ValueError(
                f"the function returned {len(self.claimed)} Tensors the first time, but {len(outputs)} now"
            )
        return [output for output, claimed in zip(outputs, self.claimed, strict=True) if claimed]

    def bound(self, arrays: Sequence[Array], needed: Sequence[bool]) -> dict[str, Tensor]:
        """The inputs as leaf Tensors of the arrays' own dtypes."""
        return {
            name: self.tensor(name, array, None, not need)
            for name, array, need in zip(self.arrays, arrays, needed, strict=True)
        }

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, nothing recorded, from inputs whose stop_gradient is the one that users see."""
        needed = [n not in self.stopped and is_differentiable(x) for n, x in zip(self.arrays, arrays, strict=True)]
        with self.backend.paddle.no_grad():
            outputs = self.checked_outputs(self.bound(arrays, needed))
            return [self.backend.array(t) for t in outputs]

    def vjp(
        self, arrays: Sequence[Array], cotangents: Sequence[Array | None], needed: Sequence[bool]
    ) -> list[Array | None]:
        """The gradients of the inputs; None where none is needed or defined.

        Raises:
            NoGradient: one has another shape than its input, or is of a dtype that holds no derivatives.
        """
        inputs = self.bound(arrays, needed)
        ends = [
            (out, self.backend.tensor(cotangent, None, True))
            for out, cotangent in zip(self.checked_outputs(inputs), cotangents, strict=True)
            if cotangent is not None and not out.stop_gradient
        ]
        wanted = [t for t, need in zip(inputs.values(), needed, strict=True) if need]
        if not ends or not wanted:
            return [None] * len(arrays)
        outputs, starts = zip(*ends, strict=True)
        found = iter(self.grad(list(outputs), wanted, list(starts)))
        gradients = [next(found) if need else None for need in needed]
        return self.fitting([None if g is None else self.backend.array(g) for g in gradients], arrays)

    def grad(
        self, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor], create_graph: bool = False
    ) -> list[Tensor | None]:
        """The gradients of leaves that were made for this."""
        with settings_of_its_own():
            return self.backend.grad(outputs, inputs, cotangents, self.held, create_graph)

    def fitting(self, gradients: list[Array | None], arrays: Sequence[Array]) -> list[Array | None]:
        """The gradients, if each has the shape of its input and a dtype that fits. Raises NoGradient."""
        for name, gradient, x in zip(self.arrays, gradients, arrays, strict=True):
            text = "" if gradient is None else misfit(gradient, x)
            if text:
                raise NoGradient(text, name)
        return gradients

    def second_order(self) -> Problem:
        """The first vjp as a function of the inputs and the cotangents, with its vjp by double backward."""
        first = self.problem()
        outs = self.forward(first.inputs)
        active = [k for k, out in enumerate(outs) if is_differentiable(out)]
        count, needed = len(first.inputs), list(first.differentiable)
        random = np.random.default_rng(1)
        cotangents = [(outs[k] * 0 + random.standard_normal(outs[k].shape)).astype(outs[k].dtype) for k in active]

        def split(arrays: Sequence[Array]) -> tuple[Sequence[Array], list[Array | None]]:
            given = iter(arrays[count:])
            return arrays[:count], [next(given) if k in active else None for k in range(len(outs))]

        def forward(arrays: Sequence[Array]) -> list[Array]:
            inputs, given = split(arrays)
            found = self.vjp(inputs, given, needed)
            return [x * 0 if g is None else g for x, g, need in zip(inputs, found, needed, strict=True) if need]

        def vjp(arrays: Sequence[Array], second: Sequence[Array | None]) -> list[Array | None]:
            return self.double_vjp(split(arrays), second, needed)

        return Problem(
            names=[*first.names, *(f"cotangent of {first.output_names[k]}" for k in active)],
            inputs=[*first.inputs, *cotangents],
            differentiable=[*needed, *(True for _ in active)],
            output_names=[f"d/d{name}" for name, need in zip(first.names, needed, strict=True) if need],
            forward=forward,
            vjp=vjp,
        )

    def double_vjp(
        self,
        point: tuple[Sequence[Array], Sequence[Array | None]],
        second: Sequence[Array | None],
        needed: Sequence[bool],
    ) -> list[Array | None]:
        """The gradients, with respect to inputs and cotangents, of the first gradients times `second`."""
        grad, tensor = self.grad, self.backend.tensor
        inputs = self.bound(point[0], needed)
        starts = [None if c is None else tensor(c, c.dtype.name, False) for c in point[1]]
        ends = [
            (out, start)
            for out, start in zip(self.checked_outputs(inputs), starts, strict=True)
            if start is not None and not out.stop_gradient
        ]
        wanted = [t for t, need in zip(inputs.values(), needed, strict=True) if need]
        targets = [*wanted, *(s for s in starts if s is not None)]
        nothing: list[Array | None] = [None] * (len(inputs) + len(targets) - len(wanted))
        if not ends:
            return nothing
        firsts = grad([o for o, _ in ends], wanted, [s for _, s in ends], create_graph=True)
        pairs = [
            (first, tensor(c, c.dtype.name, True))
            for first, c in zip(firsts, second, strict=True)
            if first is not None and c is not None and not first.stop_gradient
        ]
        if not pairs:
            return nothing
        found = iter(grad([f for f, _ in pairs], targets, [c for _, c in pairs]))
        gradients = [next(found) if need else None for need in [*needed, *(True for s in starts if s is not None)]]
        return [None if g is None else self.backend.array(g) for g in gradients]


class Replays:
    """A call at given arrays, run again and again; see `gradcheck.witness.rounding.Replays`."""

    def __init__(self, function: TensorFunction, arrays: Sequence[Array], needed: Sequence[bool]) -> None:
        self.function = function
        self.arrays = arrays
        self.needed = needed
        self.leaks: list[str] = []

    def run(self, lines: bool = False, move: Mover | None = None, arrays: Sequence[Array] | None = None) -> Any:
        """The recording of the call, perhaps at other arrays."""
        tensors = self.function.bound(self.arrays if arrays is None else arrays, self.needed)
        return self.function.backend.recorded(
            lambda: self.function.checked_outputs(tensors), list(tensors.values()), lines, move
        )

    def beside(self, inputs: Sequence[Array], move: Mover) -> Graph:
        recording = self.run(arrays=inputs, move=move)[0]
        if recording.error is not None:  # at the point itself it did not
            raise recording.error
        return Graph(recording)

    def claimed(self, cotangents: Sequence[Array | None], move: Mover) -> list[Array | None]:
        self.leaks.clear()
        with self.function.backend.moving(move, self.leaks, [self.function.call]):
            return self.function.vjp(self.arrays, cotangents, self.needed)
