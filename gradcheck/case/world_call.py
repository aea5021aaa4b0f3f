"""A layer on every rank of a world, as one function from the inputs of all ranks to the outputs of all ranks.

What Tensors stand for is declared. A *split* input holds values of each rank's own, along a first axis that the
function has more than the layer; a *replicated* one is one thing that all ranks hold; a *partial* one as well, but the
gradients of the ranks add up to its derivative. A replicated output counts once in the loss, and every rank gets its
cotangent.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor, flat_tensors, is_differentiable
from gradcheck.case.function import TensorFunction
from gradcheck.case.no_gradient import Broken
from gradcheck.causes.between_ranks import WorldGradient, backward_of, between_ranks
from gradcheck.causes.summary import checked
from gradcheck.causes.wrong_entries import far_off
from gradcheck.checking.arrays import dtype_name
from gradcheck.checking.contracts import same
from gradcheck.checking.graph import Tape
from gradcheck.checking.problem import Problem
from gradcheck.checking.verdict import Check
from gradcheck.codes import is_cause, is_contract
from gradcheck.result import Diagnosis, GradientSummary, Status, StepScan, WrongEntry, element
from gradcheck.spec.literals import Stands

Call = Callable[[dict[str, Tensor]], Any]


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
        """What an input stands for."""
        return self.inputs.get(name, "split")

    def of_outputs(self, count: int) -> list[Stands]:
        """What each of the outputs stands for.

        Raises:
            ValueError: words are given for another number of outputs.
        """
        if len(self.outputs) == 1:
            return list(self.outputs) * count
        if len(self.outputs) != count:
            raise ValueError(f"outputs says what {len(self.outputs)} Tensors stand for, but the layer returns {count}")
        return list(self.outputs)


class OnRank:
    """What one rank does: it runs the layer, and backward from what that gave.

    Args:
        call: of the layer, on this rank.
        leaf: makes an input of an array.
    """

    def __init__(self, backend: Backend, call: Call, leaf: Callable[[str, Array, bool], Tensor]) -> None:
        self.backend, self.call, self.leaf = backend, call, leaf
        self.kept: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        """The leaves and the outputs of calls that may still be asked for gradients, by number."""

    def tensors_of(self, returned: Any) -> list[Tensor]:
        """The Tensors that a call returned."""
        tensor_type = self.backend.paddle.Tensor
        return flat_tensors(returned, lambda value: isinstance(value, tensor_type))

    def recorded(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs, as part of the graph that the inputs are in."""
        return self.tensors_of(self.call(tensors))

    def forward(
        self, number: int, arrays: dict[str, Array], needed: dict[str, bool], gone: Sequence[int]
    ) -> list[tuple[Array, bool]]:
        """The outputs, and whether each claims a gradient; the graph is kept under a number. The graphs of calls that
        are `gone` are forgotten."""
        for old in gone:
            self.kept.pop(old, None)
        leaves = {name: self.leaf(name, array, not needed[name]) for name, array in arrays.items()}
        self.backend.unwaited()  # those of calls whose backward never ran
        with self.backend.paddle.enable_grad():
            outputs = self.tensors_of(self.call(leaves))
        self.kept[number] = list(leaves.values()), outputs
        return [(self.backend.array(t), t.is_leaf or not t.stop_gradient) for t in outputs]

    def backward(self, number: int, cotangents: Sequence[Array | None]) -> list[Any]:
        """The gradients of the inputs, None where there is none; and in words the calls that nobody waited for."""
        leaves, outputs = self.kept[number]
        ends = [
            (out, self.backend.tensor(c, dtype_name(self.backend.array(out).dtype), True))
            for out, c in zip(outputs, cotangents, strict=True)
            if c is not None and not out.stop_gradient
        ]
        wanted = [t for t in leaves if not t.stop_gradient]
        found: list[Tensor | None] = []
        if ends and wanted:
            found = self.backend.grad([o for o, _ in ends], wanted, [c for _, c in ends])
        given = iter(found)
        gradients = [None if t.stop_gradient else next(given, None) for t in leaves]
        return [*(None if g is None else self.backend.array(g) for g in gradients), self.backend.unwaited()]


class Kept:
    """A call whose graph the ranks keep as long as this lives."""

    def __init__(self, number: int, dropped: list[int]) -> None:
        self.number, self.dropped = number, dropped

    def __del__(self) -> None:
        self.dropped.append(self.number)


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
        self.backend, self.declared = backend, declared
        self.makers = call, leaf
        make = leaf or (lambda name, array, stop: backend.leaf(array, stop))
        self.numbers = itertools.count()
        self.raised: Exception | None = None
        """What the last backward raised, of which Paddle leaves a text."""
        self.dropped: list[int] = []
        self.broken: dict[tuple[str, str], Diagnosis] = {}
        """The contracts that ranks were seen to break, by code and name."""
        self.places: dict[str, list[tuple[int, ...]]] = {}
        """The outputs whose shapes differ between ranks, which lie behind one another: these shapes."""
        self.by_rank: dict[str, list[Array]] = {}
        """The gradients that the ranks gave last, by input."""
        self.output_names: list[str] = []
        self.output_stands: list[Stands] = []
        with self.told():
            self.ranks = backend.ranks(
                declared.size, declared.degrees, declared.same_random, lambda rank: OnRank(backend, call(rank), make)
            )
        self.layer = self.as_layer()

    def told(self) -> Any:
        """A block in which what goes wrong between ranks is raised as a broken contract."""
        return communicating(self.backend)

    def __call__(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs of the world."""
        if self.backend.recording_all():
            return self.recorded(tensors)
        found = self.layer.apply(list(tensors), *tensors.values())
        return list(found) if isinstance(found, (list, tuple)) else [found]

    # ----------------------------------------------------------------- on the tape
    def recorded(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs where everything is one graph: the ranks' inputs are taken from the world's by operations."""
        size = self.declared.size
        parts = self.ranks.apart(lambda: {name: self.parts_of(name, t) for name, t in tensors.items()})
        with self.told():
            found = self.ranks.each(
                "recorded", [({name: part[r] for name, part in parts.items()},) for r in range(size)]
            )
        return self.ranks.apart(lambda: self.joined(found))  # type: ignore[no-any-return]

    def parts_of(self, name: str, tensor: Tensor) -> list[Tensor]:
        """The input of each rank."""
        if self.declared.of_input(name) == "split":
            return list(tensor.unbind(0))
        return self.backend.for_ranks(tensor, self.declared.size)

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

    def stands(self, found: Sequence[Sequence[Any]]) -> list[Stands]:
        """What each output stands for. Raises ValueError where ranks return different numbers of Tensors."""
        for rank, one in enumerate(found):
            if len(one) != len(found[0]):
                raise ValueError(f"rank 0 returned {len(found[0])} Tensors, rank {rank} returned {len(one)}")
        return self.declared.of_outputs(len(found[0]))

    # ----------------------------------------------------------------- as it is
    def as_layer(self) -> Any:
        """The world as a PyLayer of the backend: forward runs the ranks' forwards, backward their backwards."""
        world, paddle = self, self.backend.paddle

        class World(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, names: list[str], *inputs: Tensor) -> tuple[Tensor, ...]:
                ctx.names = names
                ctx.kept, outputs, claimed = world.forward(names, inputs)
                ctx.set_materialize_grads(False)
                ctx.mark_non_differentiable(*(o for o, claims in zip(outputs, claimed, strict=True) if not claims))
                return tuple(outputs)

            @staticmethod
            def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
                try:
                    return tuple(world.backward(ctx.kept, ctx.names, cotangents))
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

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of `OnRank` gives on each rank."""
        with self.told():
            return self.ranks.each(method, arguments)

    def forward(self, names: list[str], inputs: Sequence[Tensor]) -> tuple[Kept, list[Tensor], list[bool]]:
        """The graph, the outputs of the world, and whether each claims a gradient on any rank."""
        size, array = self.declared.size, self.backend.array
        needed = {name: not t.stop_gradient for name, t in zip(names, inputs, strict=True)}
        arrays = {name: self.spread(name, array(t)) for name, t in zip(names, inputs, strict=True)}
        gone, self.dropped[:] = list(self.dropped), []
        kept = Kept(next(self.numbers), self.dropped)
        rows = [(kept.number, {name: one[r] for name, one in arrays.items()}, needed, gone) for r in range(size)]
        found = self.each("forward", rows)
        self.output_stands = self.stands(found)
        count = len(self.output_stands)
        self.output_names = ["out"] if count == 1 else [f"out[{k}]" for k in range(count)]
        outputs = []
        for k, (name, stands) in enumerate(zip(self.output_names, self.output_stands, strict=True)):
            ranks = [one[k][0] for one in found]
            outputs.append(self.backend.tensor(self.gathered(name, stands, ranks), None, True))
        return kept, outputs, [any(one[k][1] for one in found) for k in range(count)]

    def spread(self, name: str, values: Array) -> list[Array]:
        """An input's values on each rank. The first rank that has replicated ones has them in the input's own memory.

        Raises:
            ValueError: it is split, and its first axis is not that of the ranks.
        """
        size = self.declared.size
        if self.declared.of_input(name) != "split":
            return [values, *(values.copy() for _ in range(size - 1))]
        if not values.ndim or values.shape[0] != size:
            raise ValueError(
                f"{name} is split, so its first axis is that of the {size} ranks, but its shape is "
                f"{list(values.shape)}: give the values of all ranks, or declare it replicated"
            )
        return [values[r : r + 1].reshape(values.shape[1:]) for r in range(size)]

    def gathered(self, name: str, stands: Stands, ranks: list[Array]) -> Array:
        """An output of the world, of those of the ranks."""
        if stands != "split":
            if not self.backend.watched():
                self.hold_equal("GC161", name, ranks)
            return ranks[0]
        if len({a.shape for a in ranks}) == 1:
            self.places.pop(name, None)
            return self.backend.stacked(ranks)
        self.places[name] = [a.shape for a in ranks]
        return np.concatenate([a.reshape(-1) for a in ranks])

    def backward(self, kept: Kept, names: list[str], cotangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of the inputs of the world."""
        size = self.declared.size
        given = [None if c is None else self.backend.array(c) for c in cotangents]
        rows = [
            (kept.number, [None if c is None else self.part(k, c, rank) for k, c in enumerate(given)])
            for rank in range(size)
        ]
        found = self.each("backward", rows)
        self.hold_waited([ranks.pop() for ranks in found])
        gradients = []
        for name, ranks in zip(names, zip(*found, strict=True), strict=True):
            whole = self.gradient(name, list(ranks))
            gradients.append(None if whole is None else self.backend.tensor(whole, None, True))
        return gradients

    def part(self, k: int, cotangent: Array, rank: int) -> Array:
        """A rank's part of the cotangent of an output."""
        name = self.output_names[k]
        if self.output_stands[k] != "split":
            return cotangent.copy()
        if name not in self.places:
            return cotangent[rank]
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in self.places[name]]
        start = sum(sizes[:rank])
        return cotangent[start : start + sizes[rank]].reshape(self.places[name][rank])

    def gradient(self, name: str, ranks: list[Array | None]) -> Array | None:
        """The gradient of an input of the world, of those that the ranks give."""
        known = [g for g in ranks if g is not None]
        if not known:
            return None
        filled = self.by_rank[name] = [known[0] * 0 if g is None else g for g in ranks]
        stands = self.declared.of_input(name)
        if stands == "split":
            if len({g.shape for g in filled}) > 1:
                raise ValueError(f"the gradients of {name} have different shapes on the ranks")
            return self.backend.stacked(filled)
        if stands == "partial":
            return sum(filled[1:], filled[0])
        if not self.backend.watched():
            self.hold_equal("GC162", name, filled)
        return filled[0]

    def hold_equal(self, code: str, name: str, ranks: list[Array]) -> None:
        """Note it if ranks do not have the same of what is replicated, up to the order of sums."""
        other = next((r for r, a in enumerate(ranks) if not same(ranks[0], a)), None)
        if other is None or (code, name) in self.broken:
            return
        what = "the gradient of " if code == "GC162" else ""
        self.broken[code, name] = Diagnosis.of(
            code,
            f"ranks disagree on {what}{name}, which is replicated: {where_apart(name, ranks[0], ranks[other], other)}",
            (name,) if code == "GC162" else (),
        )
        if code == "GC161":  # of what is not one thing there is no derivative
            raise Broken(self.broken.pop((code, name)))

    def hold_waited(self, unwaited: Sequence[Sequence[str]]) -> None:
        """Note the calls whose results no rank has waited for when backward has ended."""
        for rank, calls in enumerate(unwaited):
            for call in calls:
                text = f"rank {rank} never waits for {call}: until then its result may be anything"
                self.broken.setdefault(("GC165", call), Diagnosis.of("GC165", text))

    # ----------------------------------------------------------------- in words
    def named(self, name: str, index: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The name of a rank's Tensor, and the index in it, of an element of the world's."""
        output = name in self.output_names
        stands = self.output_stands[self.output_names.index(name)] if output else self.declared.of_input(name)
        if stands != "split" or not index:
            return name, index
        if name in self.places and output:
            at = index[0]
            for rank, shape in enumerate(self.places[name]):
                size = int(np.prod(shape, dtype=np.int64))
                if at < size:
                    return f"{name}[rank {rank}]", tuple(int(i) for i in np.unravel_index(at, shape))
                at -= size
        return f"{name}[rank {index[0]}]", index[1:]


class FunctionOfWorld(TensorFunction):
    """A function of the inputs of a world, its call."""

    world: WorldCall

    between: Sequence[Diagnosis] = ()
    """A mistake at a collective that explains all that is wrong, once it was found."""

    def problem(self) -> Problem:
        return replace(super().problem(), causes=self.at_collectives)

    def at_collectives(self) -> Sequence[Diagnosis]:
        """The search that goes before that in one layer by itself."""
        if self.world.declared.size > 1:
            self.between, _ = causes_between_ranks(self, None)
        return self.between

    @cached_property
    def evidence(self) -> tuple[Tape, Sequence[Array | None], Sequence[WorldGradient | None]] | None:
        """The call of the world, recorded with its lines, random cotangents, and what backward gives for these; None
        where not all was recorded."""
        problem, world = self.problem(), self.world
        recording = problem.reruns and problem.reruns.recording(problem.inputs, own=True, lines=True)
        if not recording or recording.leaks or recording.error:
            return None
        random = np.random.default_rng(0)
        cotangents = [
            random.standard_normal(a.shape).astype(a.dtype) if is_differentiable(a) else None for a in recording.outputs
        ]
        found = problem.vjp(list(problem.inputs), cotangents)
        claims = [
            WorldGradient(name, world.declared.of_input(name), g, world.by_rank[name]) if g is not None else None
            for name, g in zip(problem.names, found, strict=True)
        ]
        return Tape(recording), cotangents, claims

    def grad(
        self, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor], create_graph: bool = False
    ) -> list[Tensor | None]:
        with self.world.own_errors():
            return super().grad(outputs, inputs, cotangents, create_graph)

    def close(self) -> None:
        self.world.ranks.close()

    def told(self, summary: GradientSummary) -> GradientSummary:
        return told_of(self, summary)


class WorldFunction(FunctionOfWorld):
    """One of a layer or function from Python.

    Args:
        source: what the user's code can be reached from.
    """

    def __init__(
        self,
        backend: Backend,
        call: WorldCall,
        arrays: dict[str, Array],
        dtypes: dict[str, str],
        stopped: Sequence[str],
        source: Any,
    ) -> None:
        super().__init__(backend, call, arrays, dtypes, stopped)
        self.world = call
        self.sources = [source]


def told_of(function: FunctionOfWorld, summary: GradientSummary) -> GradientSummary:
    """A summary with the ranks named, the contracts that they were seen to break, and causes that lie between them:
    where there are such, they say more than those of one layer by itself."""
    whole = told_by_rank(function.world, summary)
    if whole.verdict is not Status.FAIL or function.world.declared.size == 1:
        return whole
    named = any(is_cause(d.code) for d in whole.diagnosis)
    between, where = (function.between, {}) if function.between else causes_between_ranks(function, named)
    kept = [
        d.model_copy(update=where) if is_cause(d.code) and not d.line else d
        for d in whole.diagnosis
        if is_contract(d.code) or not between
    ]
    return whole.model_copy(update={"diagnosis": (*kept, *between, *right_if(function))})


def causes_between_ranks(function: FunctionOfWorld, named: bool | None) -> tuple[Sequence[Diagnosis], dict[str, Any]]:
    """What goes wrong between ranks, as far as it is found on the tape, and where the layer's backward stands, as parts
    of a diagnosis. `named`: whether another cause is, or None if none was sought yet."""
    with suppress(Exception):  # the verdict stands; a layer may raise at any of its calls
        if function.evidence is not None:
            size = function.world.declared.size
            return between_ranks(*function.evidence, size, named), backward_of(function.evidence[0])
    return [], {}


def right_if(function: FunctionOfWorld) -> list[Diagnosis]:
    """The declarations, different in one word, under which the same gradient is right."""
    if isinstance(function.twin, FunctionOfWorld):
        return right_if(function.twin)
    world = function.world
    declared, arrays, right = world.declared, function.arrays, list[str]()
    for changed, says, name in others(declared, list(arrays), len(world.output_stands)):
        given = dict(arrays)
        if name and declared.of_input(name) == "split":
            given[name] = arrays[name][0]
        elif name and changed.of_input(name) == "split":
            given[name] = world.backend.stacked([arrays[name]] * declared.size)
        with suppress(Exception):  # it may take no such values
            call = WorldCall(world.backend, changed, *world.makers)
            with closing(call.ranks):
                other = TensorFunction(world.backend, call, given, function.dtypes, list(function.stopped))
                passes = is_right(other.problem(), call)
            if passes and not other.unchecked:
                right.append(says)
    return [Diagnosis.of("GC153", f"this backward is right if {', or if '.join(right)}")] if right else []


def is_right(problem: Problem, call: WorldCall) -> bool:
    """Whether a gradient check passes, and ranks agree. Most do not, which two gradients beside the tape's tell."""
    with np.errstate(all="ignore"):
        with suppress(Exception):
            prober = Check(problem, 0, 0.0, False, "strict").prober
            for _ in range(2):  # in the first, which looks for casts, ranks are not held against each other
                cotangent, claimed = prober.claimed()
                taped = prober.point.by_tape(cotangent) if prober.point.witnessed else claimed
                if call.broken or any(bool(far_off(c, t).any()) for c, t in zip(claimed, taped, strict=True)):
                    return False
        return checked(problem, 0, 0.0, False, "strict")[1].verdict is Status.PASS and not call.broken


ELSE: Mapping[Stands, Sequence[Stands]] = {
    "split": ("replicated",),
    "replicated": ("partial", "split"),
    "partial": ("replicated",),
}
"""What else an input may stand for, with a gradient of the same kind."""


def others(declared: Declared, names: Sequence[str], outputs: int) -> Iterator[tuple[Declared, str, str]]:
    """Declarations that differ in one word, what they say, and of which input; empty for outputs."""
    for k, stands in enumerate(declared.of_outputs(outputs)):
        words = declared.of_outputs(outputs)
        words[k] = "replicated" if stands == "split" else "split"
        name = "out" if outputs == 1 else f"out[{k}]"
        yield replace(declared, outputs=tuple(words)), f"{name} is {words[k]}", ""
    for name in names:
        for other in ELSE[declared.of_input(name)]:
            yield replace(declared, inputs={**declared.inputs, name: other}), f"{name} is {other}", name


def told_by_rank(world: WorldCall, summary: GradientSummary) -> GradientSummary:
    """A summary with the ranks named, and the contracts that they were seen to break."""
    changed: dict[str, Any] = {"wrong": tuple(entry_by_rank(world, entry) for entry in summary.wrong)}
    if summary.scan is not None:
        changed["scan"] = entry_by_rank(world, summary.scan)
    changed["patterns"] = tuple(pattern_of(world, text) for text in summary.patterns)
    broken = tuple(world.broken.values())
    if broken:
        changed["diagnosis"] = (*broken, *summary.diagnosis)
        changed["verdict"], changed["certified"] = Status.FAIL, False
    return summary.model_copy(update=changed)


AnyEntry = TypeVar("AnyEntry", WrongEntry, StepScan)


def entry_by_rank(world: WorldCall, entry: AnyEntry) -> AnyEntry:
    """An entry of the Jacobian with the ranks named."""
    (name, index), (output, output_index) = (
        world.named(entry.input, entry.index),
        world.named(entry.output, entry.output_index),
    )
    update = {"input": name, "index": index, "output": output, "output_index": output_index}
    return entry.model_copy(update=update)


def pattern_of(world: WorldCall, text: str) -> str:
    """A slice of an input in words, ``all of x[2, :]``, with its rank named."""
    found = re.fullmatch(r"all of (\w+)\[(\d+), (.*)\]", text)
    if found is None or world.declared.of_input(found[1]) != "split":
        return text
    return f"all of {found[1]}[rank {found[2]}]" + ("" if set(found[3]) <= set(": ,") else f"[{found[3]}]")


def where_apart(name: str, first: Array, other: Array, rank: int) -> str:
    """Where two ranks differ most, in words."""
    if first.shape != other.shape:
        return f"its shape is {list(first.shape)} on rank 0 and {list(other.shape)} on rank {rank}"
    off = np.abs(np.asarray(first, np.complex128) - np.asarray(other, np.complex128)) if first.size else np.zeros(1)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), first.shape or (1,)))[: first.ndim]
    return f"at {element(name, at)} rank 0 has {first[at]:.6g}, rank {rank} {other[at]:.6g}"


class communicating:  # noqa: N801 - read as a phrase
    """A block that raises what goes wrong between ranks as a broken contract."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        code = self.backend.between_ranks(error) if error is not None else ""
        if code:
            raise Broken(Diagnosis.of(code, str(error))) from error
