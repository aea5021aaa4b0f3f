"""A layer on every rank of a world, as one function from the inputs of all ranks to the outputs of all ranks.

What Tensors stand for is declared. A *split* input holds values of each rank's own, along a first axis that the
function has more than the layer; a *replicated* one is one thing that all ranks hold; a *partial* one as well, but the
gradients of the ranks add up to its derivative. A replicated output counts once in the loss, and every rank gets its
cotangent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor, flat_tensors, is_differentiable
from gradcheck.case.function import (
    Broken,
    Call,
    NamespaceCall,
    TensorFunction,
    output_names,
    placed,
)
from gradcheck.case.gradient_check import checked
from gradcheck.case.layer import ScenarioLayer
from gradcheck.case.layer_calls import LayerCalls
from gradcheck.case.user_code import import_anew, import_reference
from gradcheck.causes.between_ranks import WorldGradient, backward_of, between_ranks
from gradcheck.causes.entries import far_off
from gradcheck.checking.contracts import same
from gradcheck.checking.precision import dtype_name
from gradcheck.checking.problem import Problem
from gradcheck.checking.tape import Tape
from gradcheck.checking.verdict import Check
from gradcheck.codes import is_cause, is_contract
from gradcheck.result import Diagnosis, GradientSummary, Status, element
from gradcheck.spec.containers import inside
from gradcheck.spec.literals import Stands
from gradcheck.spec.model import LayerRef, size_of
from pylayer.distributed.call import DeadlockError, MismatchError
from pylayer.distributed.rank import current
from pylayer.distributed.rows import broadcast_ranks
from pylayer.distributed.world import ranks_text
from pylayer.watch import records_all, watching

if TYPE_CHECKING:
    from gradcheck.case.case import Case


class WorldArgument(NamedTuple):
    """An argument, and what it stands for in a world."""

    value: Any
    stands: Stands


def replicated(value: Any) -> WorldArgument:
    """An argument of a check in a world that all ranks have: it is moved on all of them at once, and its gradient,
    complete, is claimed by every rank alike."""
    return WorldArgument(value, "replicated")


def partial(value: Any) -> WorldArgument:
    """An argument of a check in a world that all ranks have, and whose gradients add up to the derivative: that of a
    weight which the trainer sums over the ranks later."""
    return WorldArgument(value, "partial")


def without_marks(name: str, value: Any, stands: dict[str, Stands], mark: Stands = "split") -> Any:
    """An argument as the layer gets it, lists and dicts included; what arrays in it are marked to stand for is added
    to `stands`, by their names."""
    if isinstance(value, WorldArgument):
        return without_marks(name, value.value, stands, value.stands)
    if isinstance(value, dict):
        return {
            key: without_marks(inside(name, key), one, stands, mark) for key, one in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(
            without_marks(inside(name, k), one, stands, mark) for k, one in enumerate(value)
        )
    if mark != "split":
        stands[name] = mark
    return value


@dataclass(frozen=True)
class Declared:
    """A world, and what the Tensors of a layer stand for in it.

    Args:
        size: the number of ranks.
        inputs: by name; those not named are split.
        outputs: one word for all outputs, or one for each.
        degrees: ranks along the axes of fleet's topology, such as ``{"mp": 4}``; none to leave it to the layer.
        same_random: whether all ranks draw the same random numbers.
    """

    size: int
    inputs: Mapping[str, Stands] = field(default_factory=dict)
    outputs: Sequence[Stands] = ("split",)
    degrees: Mapping[str, int] = field(default_factory=dict)
    same_random: bool = False

    def of_input(self, name: str) -> Stands:
        return self.inputs.get(name, "split")

    def of_outputs(self, count: int) -> list[Stands]:
        """What each of the outputs stands for.

        Raises:
            ValueError: words are given for another number of outputs.
        """
        if len(self.outputs) == 1:
            return list(self.outputs) * count
        if len(self.outputs) != count:
            raise ValueError(
                f"outputs says what {len(self.outputs)} Tensors stand for, but the layer returns {count}"
            )
        return list(self.outputs)


class OnRank:
    """What one rank does: it runs the layer, and backward from what that gave.

    Args:
        call: of the layer, on this rank.
        leaf: makes an input of an array.
    """

    def __init__(
        self, backend: Backend, call: Call, leaf: Callable[[str, Array, bool], Tensor]
    ) -> None:
        self.backend, self.call, self.leaf = backend, call, leaf
        self.calls: LayerCalls | None = None
        """The layers of this rank, if it is a process of its own."""
        if backend.ranks_are_processes:
            self.calls = LayerCalls(backend.paddle.autograd.PyLayer, by_name=True)
            self.blocks = ExitStack()  # left when the process ends
            self.blocks.enter_context(backend.observing(self.calls))
        self.graph: tuple[list[Tensor], list[Tensor]] = [], []
        """The leaves and the outputs of the latest call, which may be asked for gradients."""

    def recorded(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs, as part of the graph that the inputs are in."""
        tensor_type = self.backend.paddle.Tensor
        return flat_tensors(self.call(tensors), lambda value: isinstance(value, tensor_type))

    def forward(
        self, arrays: dict[str, Array], needed: dict[str, bool], spared: Sequence[str] = ()
    ) -> list[tuple[Array, bool]]:
        """The outputs, and whether each claims a gradient. `spared`: see `Rank.spared`."""
        leaves = {name: self.leaf(name, array, not needed[name]) for name, array in arrays.items()}
        unwaited()  # those of calls whose backward never ran
        current().begun.clear()
        current().spared = spared
        with (
            self.backend.paddle.enable_grad(),
            self.calls.watching_forwards() if self.calls else nullcontext(),
        ):
            outputs = self.recorded(leaves)
        self.graph = list(leaves.values()), outputs
        return [(self.backend.array(t), t.is_leaf or not t.stop_gradient) for t in outputs]

    def backward(self, cotangents: Sequence[Array | None]) -> list[Any]:
        """The gradients of the inputs, None where there is none; and in words what was wrong with waiting for calls."""
        array, (leaves, outputs) = self.backend.array, self.graph
        ends = [
            (out, self.backend.tensor(c, dtype_name(array(out).dtype), stop_gradient=True))
            for out, c in zip(outputs, cotangents, strict=True)
            if c is not None and not out.stop_gradient
        ]
        wanted = [t for t in leaves if not t.stop_gradient]
        found: list[Tensor | None] = [None] * len(wanted)
        if ends and wanted:
            found = self.backend.grad([o for o, _ in ends], wanted, [c for _, c in ends], (), False)
        gradients = placed(found, [not t.stop_gradient for t in leaves])
        return [*(None if g is None else array(g) for g in gradients), unwaited()]

    def begun(self) -> list[str]:
        """The calls since the latest forward began, in words, that were not waited for at once."""
        return sorted(current().begun)

    def layer_rows(self) -> list[tuple[str, bool, str]]:
        """The layers that this rank alone knows of; see `LayerCalls.rows`."""
        return self.calls.rows() if self.calls else []


def unwaited() -> list[str]:
    """On a rank: the calls of its that nobody has waited for, or not in time, in words; they are forgotten."""
    here = current()
    until = {True: "its result may be anything", False: "what it takes must stay as it is"}
    tasks = {task.call.told(False): until[bool(task.targets)] for task in here.unwaited}
    found = [f"{call} is never waited for: until then {what}" for call, what in tasks.items()]
    found += [
        f"what {call} takes is changed before it is waited for"
        for call in {call.told(False) for call in here.overwritten}
    ]
    here.unwaited.clear()
    here.overwritten.clear()
    return found


@contextmanager
def communicating() -> Iterator[None]:
    """A block that raises what goes wrong between ranks as a broken contract."""
    try:
        yield
    except (MismatchError, DeadlockError) as error:
        raise Broken(
            Diagnosis.of("GC163" if isinstance(error, MismatchError) else "GC164", str(error))
        ) from error


class WorldCall:
    """The call of a layer on every rank, of Tensors by name: the inputs of all ranks, or the one that all have.

    Args:
        call: makes the call of a rank, on that rank, given its number.
        leaf: makes an input of a rank of an array; None for one that shares the array's memory where it can be.
    """

    def __init__(
        self,
        backend: Backend,
        declared: Declared,
        call: Callable[[int], Call],
        leaf: Callable[[str, Array, bool], Tensor] | None = None,
    ) -> None:
        self.backend, self.declared, self.size = backend, declared, declared.size
        self.makers = call, leaf
        make = leaf or (lambda name, array, stop: backend.leaf(array, stop))
        self.raised: Exception | None = None
        """What the last backward raised, of which Paddle leaves a text."""
        self.broken: dict[tuple[str, str], Diagnosis] = {}
        """The contracts that ranks were seen to break, by code and name."""
        self.places: dict[str, list[tuple[int, ...]]] = {}
        """The outputs whose shapes differ between ranks, which lie behind one another: these shapes."""
        self.by_rank: dict[str, list[Array]] = {}
        """The gradients that the ranks gave last, by input."""
        self.forward_rows: list[tuple[Any, ...]] = []
        """What the ranks' forwards were last called with."""
        self.output_names: list[str] = []
        self.output_stands: list[Stands] = []
        with communicating():
            self.ranks = backend.ranks(
                self.size,
                declared.degrees,
                declared.same_random,
                lambda rank: OnRank(backend, call(rank), make),
            )
        self.layer = self.as_layer()

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        """What the world returns: its one output, or a list."""
        found = (
            self.recorded(tensors)
            if records_all()
            else self.layer.apply(list(tensors), *tensors.values())
        )
        found = found if isinstance(found, (list, tuple)) else [found]
        return found[0] if len(found) == 1 else list(found)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of `OnRank` gives on each rank."""
        with communicating():
            return self.ranks.each(method, arguments)

    def stands(self, found: Sequence[Sequence[Any]]) -> list[Stands]:
        """What each output stands for. Raises ValueError where ranks return different numbers of Tensors."""
        for rank, one in enumerate(found):
            if len(one) != len(found[0]):
                raise ValueError(
                    f"rank 0 returned {len(found[0])} Tensors, rank {rank} returned {len(one)}"
                )
        return self.declared.of_outputs(len(found[0]))

    # ----------------------------------------------------------------- on the tape
    def recorded(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs where everything is one graph: the ranks' inputs are taken from the world's by operations."""
        parts = self.ranks.apart(
            lambda: {name: self.parts_of(name, t) for name, t in tensors.items()}
        )
        rows = [({name: part[r] for name, part in parts.items()},) for r in range(self.size)]
        found = self.each("recorded", rows)
        return self.ranks.apart(lambda: self.joined(found))  # type: ignore[no-any-return]

    def parts_of(self, name: str, tensor: Tensor) -> list[Tensor]:
        if self.declared.of_input(name) == "split":
            return list(tensor.unbind(0))
        if tensor.stop_gradient:
            return [type(tensor)(tensor.array.copy()) for _ in range(self.size)]
        return list(broadcast_ranks(tensor, self.size))

    def joined(self, found: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """The outputs of the world, of those of the ranks."""
        paddle, outputs = self.backend.paddle, []
        for stands, ranks in zip(self.stands(found), zip(*found, strict=True), strict=True):
            if stands != "split":
                outputs.append(ranks[0])
            elif len({tuple(t.shape) for t in ranks}) == 1:
                outputs.append(paddle.stack(list(ranks)))
            else:
                outputs.append(paddle.concat([t.reshape([-1]) for t in ranks]))
        return outputs

    # ----------------------------------------------------------------- as it is
    def as_layer(self) -> Any:
        """The world as a PyLayer of the backend: forward runs the ranks' forwards, backward their backwards."""
        world, paddle = self, self.backend.paddle

        class World(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, names: list[str], *inputs: Tensor) -> tuple[Tensor, ...]:
                ctx.names = names
                outputs, claimed = world.forward(names, inputs)
                ctx.set_materialize_grads(False)
                ctx.mark_non_differentiable(
                    *(o for o, claims in zip(outputs, claimed, strict=True) if not claims)
                )
                return tuple(outputs)

            @staticmethod
            def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
                try:
                    return tuple(world.backward(ctx.names, cotangents))
                except Exception as error:
                    world.raised = error
                    raise

        return World

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """A block that raises what a backward of the world raises, of which Paddle keeps the text alone."""
        self.raised = None
        try:
            yield
        except Exception as error:
            if self.raised is None or self.raised is error:
                raise
            raise self.raised.with_traceback(error.__traceback__) from None

    def forward(
        self, names: list[str], inputs: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[bool]]:
        """The outputs of the world, and whether each claims a gradient on any rank."""
        needed = {name: not t.stop_gradient for name, t in zip(names, inputs, strict=True)}
        arrays = {
            name: self.spread(name, self.backend.array(t))
            for name, t in zip(names, inputs, strict=True)
        }
        rows = [({name: one[r] for name, one in arrays.items()}, needed) for r in range(self.size)]
        found = self.each("forward", rows)
        self.forward_rows = rows
        self.hold_waited([array for ranks in found for array, _ in ranks], ())
        self.output_stands = self.stands(found)
        self.output_names = output_names(len(self.output_stands))
        outputs, claimed = [], []
        for name, stands, ranks in zip(
            self.output_names, self.output_stands, zip(*found, strict=True), strict=True
        ):
            whole = self.gathered(name, stands, [array for array, _ in ranks])
            outputs.append(self.backend.tensor(whole, None, stop_gradient=True))
            claimed.append(any(claims for _, claims in ranks))
        return outputs, claimed

    def spread(self, name: str, values: Array) -> list[Array]:
        """An input's values on each rank. The first rank that has replicated ones has them in the input's own memory.

        Raises:
            ValueError: it is split, and its first axis is not that of the ranks.
        """
        if self.declared.of_input(name) != "split":
            return [values, *(values.copy() for _ in range(self.size - 1))]
        if not values.ndim or values.shape[0] != self.size:
            raise ValueError(
                f"{name} is split, so its first axis is that of the {self.size} ranks, but its shape is "
                f"{list(values.shape)}: give the values of all ranks, or declare it replicated"
            )
        return [values[r : r + 1].reshape(values.shape[1:]) for r in range(self.size)]

    def gathered(self, name: str, stands: Stands, ranks: list[Array]) -> Array:
        """An output of the world, of those of the ranks."""
        if stands != "split":
            if not watching:  # what changes results changes those of each rank by itself
                self.hold_equal("GC161", name, ranks)
            return ranks[0]
        if len({a.shape for a in ranks}) == 1:
            self.places.pop(name, None)
            return np.stack(ranks)
        self.places[name] = [a.shape for a in ranks]
        return np.concatenate([a.reshape(-1) for a in ranks])

    def backward(
        self, names: list[str], cotangents: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients of the inputs of the world at its latest call."""
        given = [
            None if c is None else self.parts(k, self.backend.array(c))
            for k, c in enumerate(cotangents)
        ]
        rows = [([None if c is None else c[rank] for c in given],) for rank in range(self.size)]
        found = self.each("backward", rows)
        forgotten = [(says, rank) for rank, ranks in enumerate(found) for says in ranks.pop()]
        for says in sorted({says for says, _ in forgotten}):
            who = ranks_text([rank for other, rank in forgotten if other == says], self.size)
            self.broken.setdefault(("GC165", says), Diagnosis.of("GC165", f"on {who}, {says}"))
        self.hold_waited([g for ranks in found for g in ranks if g is not None], rows)
        wholes = [
            self.gradient(name, list(ranks))
            for name, ranks in zip(names, zip(*found, strict=True), strict=True)
        ]
        return [
            None if whole is None else self.backend.tensor(whole, None, stop_gradient=True)
            for whole in wholes
        ]

    def parts(self, k: int, cotangent: Array) -> Sequence[Array]:
        """Each rank's part of the cotangent of an output."""
        name = self.output_names[k]
        if self.output_stands[k] != "split":
            return [cotangent.copy() for _ in range(self.size)]
        if name not in self.places:
            return cotangent  # type: ignore[no-any-return]
        shapes = self.places[name]
        return [
            a.reshape(shape)
            for a, shape in zip(np.split(cotangent, rank_ends(shapes)[:-1]), shapes, strict=True)
        ]

    def gradient(self, name: str, ranks: list[Array | None]) -> Array | None:
        """The gradient of an input of the world, of those that the ranks give."""
        known = [g for g in ranks if g is not None]
        if not known:
            return None
        filled = self.by_rank[name] = [known[0] * 0 if g is None else g for g in ranks]
        stands = self.declared.of_input(name)
        if stands == "split":
            other = next((r for r, g in enumerate(filled) if g.shape != filled[0].shape), None)
            if other is not None:
                shapes = where_apart(name, filled[0], filled[other], other)
                raise Broken(
                    Diagnosis.of(
                        "GC137", f"ranks return gradients of {name} that do not fit: {shapes}"
                    )
                )
            return np.stack(filled)
        if stands == "partial":
            return sum(filled[1:], filled[0])
        if not watching:
            self.hold_equal("GC162", name, filled)
        return filled[0]

    def hold_waited(self, arrays: Sequence[Array], rows: Sequence[tuple[Any, ...]]) -> None:
        """Note it if numbers are missing among what forward gave, or backward if that was called with `rows`, because
        what a call gives is read before it is waited for."""

        def missing(arrays: Sequence[Array]) -> int:
            return sum(int(np.isnan(a).sum()) for a in arrays if a.dtype.kind not in "iub")

        def missing_if(spared: Collection[str]) -> int:
            found = self.each("forward", [(*row, spared) for row in self.forward_rows])
            if not rows:
                return missing([array for ranks in found for array, _ in ranks])
            found = self.each("backward", rows)
            return missing([g for ranks in found for g in ranks[:-1] if g is not None])

        if watching or not missing(arrays):
            return
        begun = {call for ranks in self.each("begun", [()] * self.size) for call in ranks}
        own = missing_if(begun) if begun else 0
        for call in sorted(begun):
            told = any(code == "GC165" and says.startswith(call) for code, says in self.broken)
            if not told and missing_if(begun - {call}) > own:
                text = f"what {call} gives is read before it is waited for: until then it may be anything"
                self.broken["GC165", call] = Diagnosis.of("GC165", text)
        if begun:
            missing_if(())

    def hold_equal(self, code: str, name: str, ranks: list[Array]) -> None:
        """Note it if ranks do not have the same of what is replicated, up to the order of sums. Raises Broken for an
        output: of what is not one thing there is no derivative."""
        other = next((r for r, a in enumerate(ranks) if not same(ranks[0], a)), None)
        if other is None or (code, name) in self.broken:
            return
        what, inputs = ("the gradient of ", (name,)) if code == "GC162" else ("", ())
        where = where_apart(name, ranks[0], ranks[other], other)
        found = Diagnosis.of(
            code, f"ranks disagree on {what}{name}, which is replicated: {where}", inputs
        )
        if code == "GC161":
            raise Broken(found)
        self.broken[code, name] = found

    # ----------------------------------------------------------------- in words
    def is_ranked(self, name: str) -> bool:
        """Whether the first axis of an input or output of the world is that of the ranks."""
        output = name in self.output_names
        stands = (
            self.output_stands[self.output_names.index(name)]
            if output
            else self.declared.of_input(name)
        )
        return stands == "split" and not (output and name in self.places)

    def named(self, name: str, index: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The name of a rank's Tensor, and the index in it, of an element of the world's."""
        if index and self.is_ranked(name):
            return f"{name}[rank {index[0]}]", index[1:]
        if not index or name not in self.places:
            return name, index
        shapes = self.places[name]
        ends = rank_ends(shapes)
        rank = int(np.searchsorted(ends, index[0], "right"))
        at = index[0] - (ends[rank - 1] if rank else 0)
        return f"{name}[rank {rank}]", tuple(int(i) for i in np.unravel_index(at, shapes[rank]))

    def told(self, summary: GradientSummary) -> GradientSummary:
        """A summary with the ranks named, and the contracts that they were seen to break."""
        changed: dict[str, Any] = {
            "patterns": tuple(self.pattern(text) for text in summary.patterns),
        }
        if self.broken:
            broken = (*self.broken.values(), *summary.diagnosis)
            changed |= {"diagnosis": broken, "verdict": Status.FAIL, "certified": False}
        return summary.model_copy(update=changed)

    def pattern(self, text: str) -> str:
        """A slice of an input in words, ``all of x[2, :]``, with its rank named."""
        found = re.fullmatch(r"all of (\w+)\[(\d+), (.*)\]", text)
        if found is None or self.declared.of_input(found[1]) != "split":
            return text
        return f"all of {found[1]}[rank {found[2]}]" + (
            "" if set(found[3]) <= set(": ,") else f"[{found[3]}]"
        )


def rank_ends(shapes: Sequence[tuple[int, ...]]) -> np.ndarray[Any, Any]:
    """Where arrays of these shapes end that lie behind one another."""
    return np.cumsum([prod(shape) for shape in shapes])


def where_apart(name: str, first: Array, other: Array, rank: int) -> str:
    """Where two ranks differ most, in words."""
    if first.shape != other.shape:
        return f"its shape is {list(first.shape)} on rank 0 and {list(other.shape)} on rank {rank}"
    off = (
        np.abs(np.asarray(first, np.complex128) - np.asarray(other, np.complex128))
        if first.size
        else np.zeros(1)
    )
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), first.shape or (1,)))[
        : first.ndim
    ]
    return f"at {element(name, at)} rank 0 has {first[at]:.6g}, rank {rank} {other[at]:.6g}"


class FunctionOfWorld(TensorFunction):
    """A function of the inputs of a world, its call."""

    closes_over = False
    between: Sequence[Diagnosis] = ()
    """A mistake at a collective that explains all that is wrong, once it was found."""

    @property
    def world(self) -> WorldCall:
        return self.call  # type: ignore[return-value]

    def problem(self) -> Problem:
        problem = super().problem()
        names = [*problem.names, *problem.output_names]
        ranked = frozenset(name for name in names if self.world.is_ranked(name))
        return replace(problem, causes=self.at_collectives, located=self.world.named, ranked=ranked)

    def at_collectives(self) -> Sequence[Diagnosis]:
        """The search that goes before that in one layer by itself."""
        if self.world.size > 1:
            self.between, _ = self.causes_between_ranks(None)
        return self.between

    @cached_property
    def evidence(
        self,
    ) -> tuple[Tape, Sequence[Array | None], Sequence[WorldGradient | None]] | None:
        """The call of the world, recorded with its lines, random cotangents, and what backward gives for these; None
        where not all was recorded."""
        problem, world = self.problem(), self.world
        recording = problem.reruns and problem.reruns.recording(
            problem.inputs, own=True, lines=True
        )
        if not recording or recording.leaks or recording.error:
            return None
        random = np.random.default_rng(0)
        cotangents = [
            random.standard_normal(a.shape).astype(a.dtype) if is_differentiable(a) else None
            for a in recording.outputs
        ]
        found = problem.vjp(list(problem.inputs), cotangents)
        claims = [
            WorldGradient(name, world.declared.of_input(name), g, world.by_rank[name])
            if g is not None
            else None
            for name, g in zip(problem.names, found, strict=True)
        ]
        return Tape(recording), cotangents, claims

    def causes_between_ranks(
        self, named: bool | None
    ) -> tuple[Sequence[Diagnosis], dict[str, Any]]:
        """What goes wrong between ranks, as far as it is found on the tape, and where the layer's backward stands, as
        parts of a diagnosis. `named`: whether another cause is, or None if none was sought yet."""
        with suppress(Exception):  # the verdict stands; a layer may raise at any of its calls
            if self.evidence is not None:
                return between_ranks(*self.evidence, self.world.size, named), backward_of(
                    self.evidence[0]
                )
        return [], {}

    def gradients(self, *given: Any, **options: Any) -> list[Tensor | None]:
        with self.world.own_errors():
            return super().gradients(*given, **options)

    def new_calls(self) -> LayerCalls:
        return LayerCalls(self.backend.paddle.autograd.PyLayer, by_name=True)

    def layer_calls(self) -> LayerCalls:
        """The layers of all ranks."""
        with suppress(Exception):  # a rank may have died: the verdict stands
            for rows in self.world.each("layer_rows", [()] * self.world.size):
                self.calls.add_rows(rows)
        return self.calls

    def run_elsewhere(self) -> bool:
        """Not in a world: its ranks keep the graph of their latest call alone."""
        return False

    def close(self) -> None:
        self.world.ranks.close()

    def told(self, summary: GradientSummary) -> GradientSummary:
        """A summary with the ranks named, the contracts that they were seen to break, and causes that lie between them:
        where there are such, they say more than those of one layer by itself."""
        whole = self.world.told(summary)
        if whole.verdict is not Status.FAIL or self.world.size == 1:
            return whole
        named = any(is_cause(d.code) for d in whole.diagnosis)
        between, where = (self.between, {}) if self.between else self.causes_between_ranks(named)
        kept = [
            d.model_copy(update=where) if is_cause(d.code) and not d.line else d
            for d in whole.diagnosis
            if is_contract(d.code) or not between
        ]
        return whole.model_copy(update={"diagnosis": (*kept, *between, *self.right_if())})

    def right_if(self) -> list[Diagnosis]:
        """The declarations, different in one word, under which the same gradient is right."""
        if isinstance(self.twin, FunctionOfWorld):
            return self.twin.right_if()
        world = self.world
        declared, arrays, right = world.declared, self.arrays, list[str]()
        for changed, says, name in others(declared, list(arrays), len(world.output_stands)):
            given = dict(arrays)
            if name and declared.of_input(name) == "split":
                given[name] = arrays[name][0]
            elif name and changed.of_input(name) == "split":
                given[name] = np.stack([arrays[name]] * declared.size)
            with suppress(Exception):  # it may take no such values
                call = WorldCall(world.backend, changed, *world.makers)
                with closing(call.ranks):
                    other = TensorFunction(
                        world.backend, call, given, self.dtypes, list(self.stopped)
                    )
                    passes = is_right(other.problem(), call)
                if passes and not other.unchecked:
                    right.append(says)
        return (
            [Diagnosis.of("GC153", f"this backward is right if {', or if '.join(right)}")]
            if right
            else []
        )


def is_right(problem: Problem, call: WorldCall) -> bool:
    """Whether a gradient check passes, and ranks agree. Most do not, which two gradients beside the tape's tell."""
    with np.errstate(all="ignore"):
        with suppress(Exception):
            prober = Check(problem, 0, 0.0, False, "strict").prober
            for _ in range(
                2
            ):  # in the first, which looks for casts, ranks are not held against each other
                cotangent, claimed = prober.claimed()
                taped = prober.point.by_tape(cotangent) if prober.point.witnessed else claimed
                if call.broken or any(
                    bool(far_off(c, t).any()) for c, t in zip(claimed, taped, strict=True)
                ):
                    return False
        return (
            checked(problem, 0, 0.0, False, "strict")[1].verdict is Status.PASS and not call.broken
        )


ELSE: Mapping[Stands, Sequence[Stands]] = {
    "split": ("replicated",),
    "replicated": ("partial", "split"),
    "partial": ("replicated",),
}
"""What else an input may stand for, with a gradient of the same kind."""


def others(
    declared: Declared, names: Sequence[str], outputs: int
) -> Iterator[tuple[Declared, str, str]]:
    """Declarations that differ in one word, what they say, and of which input; empty for outputs."""
    for k, stands in enumerate(declared.of_outputs(outputs)):
        words = declared.of_outputs(outputs)
        words[k] = "replicated" if stands == "split" else "split"
        yield (
            replace(declared, outputs=tuple(words)),
            f"{output_names(outputs)[k]} is {words[k]}",
            "",
        )
    for name in names:
        for other in ELSE[declared.of_input(name)]:
            yield (
                replace(declared, inputs={**declared.inputs, name: other}),
                f"{name} is {other}",
                name,
            )


class WorldLayer(FunctionOfWorld, ScenarioLayer):
    """A scenario's layer on every rank of a world: its source runs once on each, in a namespace of the rank's own.

    The namespace of the scenario, in which its expressions are evaluated, has the inputs and the output of the world.
    """

    imported = staticmethod(import_anew)

    def begin(self, case: Case) -> None:
        scenario, layer, world = (
            self.scenario,
            self.scenario.layer,
            self.scenario.world_at(case.parameters),
        )
        assert world is not None
        if isinstance(layer, LayerRef):  # outside of the world, as any program's imports
            import_reference(layer.ref, Path(scenario.path).parent)
        inputs = {name: input.ranks for name, input in scenario.inputs.items()}
        degrees = (
            {} if isinstance(world, int) else {str(axis): degree for axis, degree in world.items()}
        )
        same_random = scenario.random == "same"
        declared = Declared(size_of(world), inputs, scenario.output_stands, degrees, same_random)
        self.sources = calls = list[NamespaceCall]()

        def loaded(rank: int) -> NamespaceCall:
            calls.append(self.load(dict(self.namespace)))
            return calls[-1]

        self.call = WorldCall(self.backend, declared, loaded, self.leaf)
        self.subject = next(
            iter(calls), None
        )  # of ranks that are processes, what they call is known there

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """An input of the world, whose ranks have the layout."""
        return self.backend.tensor(array, dtype, stop_gradient=stop_gradient)

    def leaf(self, name: str, array: Array, stop_gradient: bool) -> Tensor:
        if name not in self.memory or not array.ndim:
            return self.backend.leaf(array, stop_gradient)
        return super().tensor(name, array, None, stop_gradient)

    def documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        with self.world.own_errors():
            return super().documented(cotangent)
