"""The declaration of a world of ranks (placements of Tensors), and the work of one rank in it.

Tensors are declared to be *split*, *replicated* or *partial*. A split input holds separate values
for each rank, along an additional first axis; a replicated input is one value that all ranks hold.
All ranks hold a partial input too, but its derivative is the sum of the ranks' gradients. A
replicated output counts once in the loss, and every rank gets its cotangent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import compress
from math import prod
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Cotangents, GeneratorStates, Tensor
from gradcheck.case.function import Call, gradients_of, map_present, with_gaps
from gradcheck.case.layer_calls import LayerCalls, Way
from gradcheck.case.observe import starts_for, tensors_in
from gradcheck.spec.containers import map_leaves
from gradcheck.spec.literals import Placement
from pylayer.distributed.rank import current


@dataclass(frozen=True)
class WorldArgument:
    """An argument and its placement in a world."""

    value: Any
    placement: Placement


def replicated(value: Any) -> WorldArgument:
    """Mark an argument of a check as one value that all ranks of a world have.

    It is perturbed on all of them at once, and every rank returns the complete gradient.
    """
    return WorldArgument(value, "replicated")


def partial(value: Any) -> WorldArgument:
    """Mark an argument of a check as one value that all ranks of a world have, whose derivative is
    the sum of the ranks' gradients: a weight whose gradient the trainer sums over the ranks later.
    """
    return WorldArgument(value, "partial")


def without_marks(
    name: str, value: Any, placements: dict[str, Placement], mark: Placement = "split"
) -> Any:
    """An argument as the layer gets it, lists and dicts included.

    The placements of marked arrays are added to `placements`, by name.
    """

    def leaf(name: str, item: Any) -> Any:
        if isinstance(item, WorldArgument):
            return without_marks(name, item.value, placements, item.placement)
        if mark != "split":
            placements[name] = mark
        return item

    return map_leaves(name, value, leaf)


@dataclass(frozen=True)
class WorldDeclaration:
    """A world, and the placement of a layer's Tensors in it.

    Args:
        size: the number of ranks.
        inputs: by name; those not named are split.
        outputs: one word for all outputs, or one for each.
        degrees: ranks along the axes of fleet's topology, such as ``{"mp": 4}``; none to leave it
            to the layer.
        same_random: whether all ranks draw the same random numbers.
    """

    size: int
    inputs: Mapping[str, Placement] = field(default_factory=dict)
    outputs: Sequence[Placement] = ("split",)
    degrees: Mapping[str, int] = field(default_factory=dict)
    same_random: bool = False

    def input_placement(self, name: str) -> Placement:
        """The placement of an input."""
        return self.inputs.get(name, "split")

    def output_placements(self, count: int) -> list[Placement]:
        """The placement of each output.

        Raises:
            ValueError: the number of words and of outputs differ.
        """
        if len(self.outputs) == 1:
            return list(self.outputs) * count
        if len(self.outputs) != count:
            raise ValueError(
                f"outputs describes {len(self.outputs)} Tensors, but the layer returns {count}"
            )
        return list(self.outputs)


class OnRank:
    """One rank, which runs the layer, and backward from its outputs.

    Args:
        call: of the layer, on this rank.
        leaf: makes an input from an array.
    """

    def __init__(
        self, backend: Backend, call: Call, leaf: Callable[[str, Array, bool], Tensor]
    ) -> None:
        self.backend, self.call, self.leaf = backend, call, leaf
        self.draws: GeneratorStates = []
        """See `TensorFunction`."""
        self.calls = LayerCalls(backend, by_name=True)
        """The layers of this rank; empty if all ranks share a process."""
        if backend.ranks_are_processes:
            self.blocks = ExitStack()  # left when the process ends
            self.blocks.enter_context(backend.observing(self.calls))
        self.leaves: list[Tensor] = []
        """The Tensors of the latest call, in the form of `outputs`; their gradients may be
        taken.
        """
        self.outputs: list[Tensor] = []

    def record(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs, as part of the graph that contains the inputs."""
        for set_state, state in self.draws:
            set_state(state)
        return tensors_in(self.backend, self.call(tensors))

    def repeat_draws(self) -> None:
        """Make all following calls draw the same random numbers."""
        self.draws = self.backend.generator_states()

    def forward(
        self, arrays: dict[str, Array], needed: dict[str, bool], spared: Sequence[str] = ()
    ) -> list[Any]:
        """The outputs, and for each whether it claims a gradient. `spared`: see `Rank.spared`."""
        leaves = {name: self.leaf(name, array, not needed[name]) for name, array in arrays.items()}
        take_unwaited()  # drops the tasks of calls whose backward never ran
        current().begun.clear()
        current().spared = spared
        is_apart = self.backend.ranks_are_processes
        watching = self.calls.watching_forwards() if is_apart else nullcontext()
        with self.backend.paddle.enable_grad(), watching:
            self.outputs = self.record(leaves)
        self.leaves = list(leaves.values())
        claimed = [self.backend.claims(t) for t in self.outputs]
        return [list(map(self.backend.array, self.outputs)), claimed]

    def backward(self, cotangents: Cotangents) -> list[Any]:
        """The gradients of the inputs (None for an input without one), and the mistakes in waiting
        for calls.
        """
        backend = self.backend
        starts = starts_for(backend, list(map(backend.array, self.outputs)), cotangents)
        needed = [not t.stop_gradient for t in self.leaves]
        gradients = gradients_of(backend, self.outputs, starts, [*compress(self.leaves, needed)])
        return [map_present(backend.array, with_gaps(gradients, needed)), take_unwaited()]

    def begun(self) -> list[str]:
        """The calls since the latest forward began that were not waited for at once, in words."""
        return sorted(current().begun)

    def layer_rows(self) -> list[tuple[str, bool, Way | None]]:
        """The layers that were recorded only on this rank; see `LayerCalls.rows`."""
        return self.calls.rows()


def take_unwaited() -> list[str]:
    """Describe this rank's calls that were never waited for, or whose input was changed before the
    wait, and clear their record.
    """
    this_rank = current()
    until = {True: "its result may be anything", False: "its input must not be changed"}
    tasks = {task.call.describe(False): until[bool(task.targets)] for task in this_rank.unwaited}
    changed = {call.describe(False) for call in this_rank.overwritten}
    this_rank.unwaited.clear()
    this_rank.overwritten.clear()
    return [
        *(
            f"{call} is never waited for: before the wait, {consequence}"
            for call, consequence in tasks.items()
        ),
        *(f"the input of {call} is changed before the call is waited for" for call in changed),
    ]


def rank_ends(shapes: Sequence[tuple[int, ...]]) -> np.ndarray[Any, Any]:
    """The end offsets of arrays of these shapes, laid out one after the other."""
    return np.cumsum([*map(prod, shapes)])


@dataclass(frozen=True)
class WorldOutput:
    """An output of a world, made of the ranks' outputs."""

    placement: Placement
    shapes: list[tuple[int, ...]]
    """Per rank."""

    @property
    def is_ranked(self) -> bool:
        """Whether the first axis of the output is that of the ranks."""
        return self.placement == "split" and len(set(self.shapes)) == 1

    @property
    def is_flat(self) -> bool:
        """Whether the ranks' elements are concatenated, because their shapes differ."""
        return self.placement == "split" and len(set(self.shapes)) > 1

    def join(self, ranks: Sequence[Any], stack: Any, concatenate: Any) -> Any:
        """The outputs of all ranks joined into one, by functions of their library."""
        if self.is_ranked:
            return stack(list(ranks))
        if self.is_flat:
            return concatenate([array.reshape([-1]) for array in ranks])
        return ranks[0]

    def split(self, array: Array) -> Sequence[Array]:
        """Each rank's part of an array of the output's shape."""
        if self.placement != "split":
            return [array.copy() for _ in self.shapes]
        if self.is_ranked:
            return array  # type: ignore[no-any-return]
        pairs = zip(np.split(array, rank_ends(self.shapes)[:-1]), self.shapes, strict=True)
        return [piece.reshape(shape) for piece, shape in pairs]

    def place(self, index: int) -> tuple[int, tuple[int, ...]]:
        """The rank that has an element of a flat output, and the index in its Tensor."""
        ends = rank_ends(self.shapes)
        rank = int(np.searchsorted(ends, index, "right"))
        offset = index - int(ends[rank]) + prod(self.shapes[rank])
        return rank, tuple(int(i) for i in np.unravel_index(offset, self.shapes[rank]))
