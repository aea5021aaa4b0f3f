"""The function that runs a layer on every rank of a world.

Its inputs and outputs are those of all ranks; see `gradcheck.case.world`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Cotangents, Tensor, is_differentiable
from gradcheck.case.broken_contracts import BrokenContract
from gradcheck.case.function import (
    Call,
    NamespaceCall,
    TensorFunction,
    map_present,
    one_or_all,
    output_names,
    with_zeros,
)
from gradcheck.case.layer import ScenarioLayer
from gradcheck.case.layer_calls import LayerCalls
from gradcheck.case.user_code import module_anew, module_of_reference
from gradcheck.case.world import OnRank, WorldDeclaration, WorldOutput
from gradcheck.causes.between_ranks import (
    WorldEvidence,
    WorldGradient,
    backward_of,
    between_ranks,
    wrong_inputs,
)
from gradcheck.checking.contracts import same
from gradcheck.checking.point import shapes_of
from gradcheck.checking.problem import Problem
from gradcheck.checking.tape import Tape
from gradcheck.codes import is_cause, is_contract
from gradcheck.result import Diagnosis, GradientSummary, Status, element
from gradcheck.spec.model import LayerRef, size_of
from pylayer.distributed.call import DeadlockError, MismatchError
from pylayer.distributed.collective_ops import broadcast_ranks
from pylayer.distributed.world import ranks_text
from pylayer.watch import NOBODY, recording_all, watchers

if TYPE_CHECKING:
    from gradcheck.case.case import Case


@contextmanager
def communicating() -> Iterator[None]:
    """A block that turns an error in the ranks' communication into a broken contract."""
    try:
        yield
    except (MismatchError, DeadlockError) as error:
        code = "GC163" if isinstance(error, MismatchError) else "GC164"
        raise BrokenContract(Diagnosis.of(code, str(error))) from error


class WorldCall:
    """A call of a layer on every rank, with Tensors by name.

    A Tensor holds the inputs of all ranks, or one that they share.

    Args:
        call: makes the call of a rank, on that rank, given its number.
        leaf: makes a rank's input from an array; None to share the array's memory where possible.
    """

    def __init__(
        self,
        backend: Backend,
        declared: WorldDeclaration,
        call: Callable[[int], Call],
        leaf: Callable[[str, Array, bool], Tensor] | None = None,
    ) -> None:
        self.backend, self.declared, self.size = backend, declared, declared.size
        make = leaf or (lambda name, array, stop: backend.leaf(array, stop))
        self.raised: Exception | None = None
        """The error of the last backward, of which Paddle keeps only the text."""
        self.broken: dict[tuple[str, str], Diagnosis] = {}
        """The contracts that ranks broke, by code and name."""
        self.outputs: dict[str, WorldOutput] = {}
        """The outputs of the latest forward."""
        self.by_rank: dict[str, list[Array]] = {}
        """The latest gradients of the ranks, by input."""
        self.forward_rows: list[tuple[Any, ...]] = []
        """The latest arguments of the ranks' forwards."""
        with communicating():
            self.ranks = backend.ranks(
                self.size,
                declared.degrees,
                declared.same_random,
                lambda rank: OnRank(backend, call(rank), make),
            )
        self.layer = self.as_layer()

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        """The outputs of the world: its one output, or a list."""
        if not recording_all():
            return self.layer.apply(list(tensors), *tensors.values())
        return one_or_all(self.record(tensors))

    def per_rank(self, parts: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
        """The arguments of each rank, by name."""
        return [{name: values[rank] for name, values in parts.items()} for rank in range(self.size)]

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]] = ()) -> list[Any]:
        """The results of a method of `OnRank` on each rank."""
        with communicating():
            return self.ranks.each(method, arguments or [()] * self.size)

    def output_placements(self, outputs_by_rank: Sequence[Sequence[Any]]) -> list[Any]:
        """The placement of each output.

        Raises:
            ValueError: ranks return different numbers of Tensors.
        """
        counts = list(map(len, outputs_by_rank))
        for rank, count in enumerate(counts):
            if count != counts[0]:
                raise ValueError(
                    f"rank 0 returned {counts[0]} Tensors, rank {rank} returned {count}"
                )
        return self.declared.output_placements(counts[0])

    # ----------------------------------------------------------------- on the tape
    def record(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs, computed in a single graph: operations select the ranks' inputs from those
        of the world.
        """
        parts = self.ranks.call_outside(
            lambda: {name: self.parts_of(name, t) for name, t in tensors.items()}
        )
        outputs_by_rank = self.each("record", [(row,) for row in self.per_rank(parts)])
        return self.ranks.call_outside(lambda: self.join_outputs(outputs_by_rank))  # type: ignore[no-any-return]

    def parts_of(self, name: str, tensor: Tensor) -> list[Tensor]:
        """Each rank's part of an input."""
        if self.declared.input_placement(name) == "split":
            return list(tensor.unbind(0))
        if tensor.stop_gradient:
            return [type(tensor)(tensor.array.copy()) for _ in range(self.size)]
        return list(broadcast_ranks(tensor, self.size))

    def join_outputs(self, outputs_by_rank: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """The outputs of the world, made of the ranks' outputs."""
        paddle, outputs = self.backend.paddle, []
        for placement, ranks in zip(
            self.output_placements(outputs_by_rank), zip(*outputs_by_rank, strict=True), strict=True
        ):
            output = WorldOutput(placement, [tuple(t.shape) for t in ranks])
            outputs.append(output.join(ranks, paddle.stack, paddle.concat))
        return outputs

    # ------------------------------------------------ as a layer of the backend
    def as_layer(self) -> Any:
        """The world as a PyLayer of the backend, which runs the ranks' forwards and backwards."""
        world, paddle = self, self.backend.paddle

        class World(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, names: list[str], *inputs: Tensor) -> Any:
                ctx.names = names
                outputs, unclaimed = world.forward(dict(zip(names, inputs, strict=True)))
                ctx.set_materialize_grads(False)
                ctx.mark_non_differentiable(*unclaimed)
                return one_or_all(tuple(outputs))

            @staticmethod
            def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
                try:
                    return tuple(world.backward(ctx.names, cotangents))
                except Exception as error:
                    world.raised = error
                    raise

        return World

    @contextmanager
    def original_errors(self) -> Iterator[None]:
        """A block that raises the original error of a backward of the world; Paddle keeps only its
        text.
        """
        self.raised = None
        try:
            yield
        except Exception as error:
            if self.raised is None or self.raised is error:
                raise
            raise self.raised.with_traceback(error.__traceback__) from None

    def forward(self, inputs: dict[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs of the world, and which of them have no gradient on any rank."""
        needed = {name: not t.stop_gradient for name, t in inputs.items()}
        values = {name: self.distribute(name, self.backend.array(t)) for name, t in inputs.items()}
        self.forward_rows = [(row, needed) for row in self.per_rank(values)]
        arrays, claims = zip(*self.each("forward", self.forward_rows), strict=True)
        self.note_read_early(chain(*arrays), self.forward_again)
        placements = self.output_placements(arrays)
        outputs, unclaimed = list[Tensor](), list[Tensor]()
        self.outputs = {}
        columns = zip(*arrays, strict=True), zip(*claims, strict=True)
        names = output_names(len(placements))
        for name, placement, ranks, claimed in zip(names, placements, *columns, strict=True):
            array = self.gather(name, placement, ranks)
            outputs.append(self.backend.tensor(array, None, stop_gradient=True))
            if not any(claimed):
                unclaimed.append(outputs[-1])
        return outputs, unclaimed

    def forward_again(self, spared: Collection[str]) -> Iterable[Array]:
        """Outputs of the ranks' forwards, with some calls `spared`."""
        results = self.each("forward", [(*row, spared) for row in self.forward_rows])
        return chain(*next(zip(*results, strict=True)))

    def distribute(self, name: str, values: Array) -> list[Array]:
        """An input's values on each rank.

        A replicated input is copied for every rank but the first, which uses the input's own
        memory.

        Raises:
            ValueError: the input is split, but its first axis is not that of the ranks.
        """
        if self.declared.input_placement(name) != "split":
            return [values, *(values.copy() for _ in range(self.size - 1))]
        if not values.ndim or values.shape[0] != self.size:
            raise ValueError(
                f"{name} is split, so its first axis is that of the {self.size} ranks, but its "
                f"shape is {list(values.shape)}: give the values of all ranks, or declare it "
                "replicated"
            )
        return [values[r : r + 1].reshape(values.shape[1:]) for r in range(self.size)]

    def gather(self, name: str, placement: Any, ranks: Sequence[Array]) -> Array:
        """An output of the world, made of the ranks' outputs."""
        output = self.outputs[name] = WorldOutput(placement, shapes_of(ranks))
        if placement == "replicated" and (where := self.disagreement(name, ranks)):
            text = f"ranks disagree on {name}, which is replicated: {where}"
            raise BrokenContract(
                Diagnosis.of("GC161", text)
            )  # the ranks' values are not one output, so there is no derivative
        return output.join(ranks, np.stack, np.concatenate)

    def backward(
        self, names: list[str], cotangents: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients of the inputs of the world at its latest call."""
        parts = [
            [None] * self.size if c is None else output.split(self.backend.array(c))
            for output, c in zip(self.outputs.values(), cotangents, strict=True)
        ]
        rows = [(list(row),) for row in zip(*parts, strict=True)]
        gradients, unwaited = zip(*self.each("backward", rows), strict=True)
        self.note_unwaited(unwaited)

        def again(spared: Collection[str]) -> Iterable[Array | None]:
            self.forward_again(spared)
            return chain(*next(zip(*self.each("backward", rows), strict=True)))

        self.note_read_early(chain(*gradients), again)
        wholes = map(self.gradient, names, zip(*gradients, strict=True))
        tensor = self.backend.tensor
        return map_present(lambda g: tensor(g, None, stop_gradient=True), wholes)

    def gradient(self, name: str, ranks: Cotangents) -> Array | None:
        """The gradient of an input of the world, from the gradients of the ranks."""
        known = next((g for g in ranks if g is not None), None)
        if known is None:
            return None
        filled = self.by_rank[name] = with_zeros(ranks, [known] * self.size)
        placement = self.declared.input_placement(name)
        if placement == "partial":
            return sum(filled)
        if placement == "split":
            for rank, gradient in enumerate(filled):
                if gradient.shape != filled[0].shape:
                    where = describe_difference(name, filled[0], gradient, rank)
                    text = f"ranks return gradients of {name} that do not fit: {where}"
                    raise BrokenContract(Diagnosis.of("GC137", text))
            return np.stack(filled)
        if where := self.disagreement(name, filled):
            text = f"ranks disagree on the gradient of {name}, which is replicated: {where}"
            self.broken.setdefault(("GC162", name), Diagnosis.of("GC162", text, (name,)))
        return filled[0]

    # ----------------------------------------------------------------- broken contracts
    def disagreement(self, name: str, ranks: Sequence[Array]) -> str:
        """Describe how a rank differs from the first by more than the order of sums explains.

        Empty for nowhere. In a perturbed run, each rank's results change separately, and they are
        not compared.
        """
        for rank, array in enumerate(ranks if watchers.get() is NOBODY else ()):
            if not same(ranks[0], array):
                return describe_difference(name, ranks[0], array, rank)
        return ""

    def note_unwaited(self, texts_by_rank: Sequence[list[str]]) -> None:
        """Record the calls that were not waited for, per rank, in words."""
        for text in sorted(set(chain(*texts_by_rank))):
            who = ranks_text(
                [rank for rank, texts in enumerate(texts_by_rank) if text in texts], self.size
            )
            self.broken.setdefault(("GC165", text), Diagnosis.of("GC165", f"on {who}, {text}"))

    def note_read_early(
        self,
        arrays: Iterable[Array | None],
        again: Callable[[Collection[str]], Iterable[Array | None]],
    ) -> None:
        """Record the calls whose result is read before it is waited for: it then contains NaNs.

        Args:
            again: computes the arrays once more, with some calls `spared`: see `Rank.spared`.
        """
        if watchers.get() is not NOBODY or not count_missing(arrays):
            return
        begun = set(chain(*self.each("begun")))
        if not begun:
            return
        fewest = count_missing(again(begun))
        known = tuple(name for code, name in self.broken if code == "GC165")
        for call in sorted(begun):
            is_known = any(name.startswith(call) for name in known)
            if not is_known and count_missing(again(begun - {call})) > fewest:
                text = f"the result of {call} is read before the call is waited for"
                until = "until then it may be anything"
                self.broken["GC165", call] = Diagnosis.of("GC165", f"{text}: {until}")
        again(())

    # ----------------------------------------------------------------- in words
    def is_ranked(self, name: str) -> bool:
        """Whether the first axis of an input or output of the world is that of the ranks."""
        if name in self.outputs:
            return self.outputs[name].is_ranked
        return self.declared.input_placement(name) == "split"

    def locate_on_rank(self, name: str, index: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Where a rank holds an element of the world's Tensor: its own Tensor's name, the index."""
        if not index:
            return name, index
        rank, rest = index[0], index[1:]
        if not self.is_ranked(name):
            if name not in self.outputs or not self.outputs[name].is_flat:
                return name, index
            rank, rest = self.outputs[name].place(index[0])
        return f"{name}[rank {rank}]", rest

    def in_words(self, summary: GradientSummary) -> GradientSummary:
        """A summary with the ranks named, and the contracts that they broke."""
        changed: dict[str, Any] = {"patterns": tuple(map(self.pattern, summary.patterns))}
        if self.broken:
            diagnoses = (*self.broken.values(), *summary.diagnosis)
            changed |= {"diagnosis": diagnoses, "verdict": Status.FAIL, "certified": False}
        return summary.model_copy(update=changed)

    def pattern(self, text: str) -> str:
        """A slice of an input in words, ``all of x[2, :]``, with its rank named."""
        match = re.fullmatch(r"all of (\w+)\[(\d+), (.*)\]", text)
        if match is None or self.declared.input_placement(match[1]) != "split":
            return text
        rest = f"[{match[3]}]" if set(match[3]) - set(": ,") else ""
        return f"all of {match[1]}[rank {match[2]}]{rest}"


def count_missing(arrays: Iterable[Array | None]) -> int:
    """The number of NaNs in arrays."""
    return sum(
        int(np.isnan(a).sum()) for a in arrays if a is not None and a.dtype.kind not in "iub"
    )


def describe_difference(name: str, first: Array, other: Array, rank: int) -> str:
    """The index at which two ranks differ most, in words."""
    if first.shape != other.shape:
        return f"its shape is {list(first.shape)} on rank 0 and {list(other.shape)} on rank {rank}"
    differences = np.abs(np.asarray(first, np.complex128) - np.asarray(other, np.complex128))
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(differences)), first.shape))
    return (
        f"at {element(name, index)} rank 0 has {first[index]:.6g}, rank {rank} {other[index]:.6g}"
    )


REPLICATED = (
    "or the outputs, which are the same on all ranks, count once: backward is right if they are "
    "declared replicated (--outputs replicated, in a scenario outputs: {ranks: replicated})"
)


class FunctionOfWorld(TensorFunction):
    """A function of the inputs of a world, which calls the layer on all ranks."""

    knows_leaves = True
    layers_by_name = True
    collective_causes: Sequence[Diagnosis] = ()
    """A mistake at a collective that explains every wrong gradient, once it was found."""

    @property
    def world(self) -> WorldCall:
        """The call."""
        return self.call  # type: ignore[return-value]

    def repeat_draws(self) -> None:
        super().repeat_draws()
        self.world.each("repeat_draws")

    def problem(self) -> Problem:
        problem = super().problem()
        names = [*problem.names, *problem.output_names]
        ranked = frozenset(name for name in names if self.world.is_ranked(name))
        return replace(
            problem, causes=self.at_collectives, located=self.world.locate_on_rank, ranked=ranked
        )

    def at_collectives(self) -> Sequence[Diagnosis]:
        """Search for mistakes between ranks, before the search within one layer."""
        if self.world.size > 1:
            self.collective_causes, _ = self.causes_between_ranks(None)
        return self.collective_causes

    @cached_property
    def evidence(self) -> WorldEvidence | None:
        """The evidence for causes; None if the call was not recorded completely."""
        return self.read_evidence()

    def read_evidence(self) -> WorldEvidence | None:
        """The recorded call, random cotangents, and backward's gradients for them.

        None if the call was not recorded completely.
        """
        problem, world = self.problem(), self.world
        reruns = problem.reruns
        recording = reruns and reruns.recording(problem.inputs, keep_casts=True, lines=True)
        if not recording or recording.leaks or recording.error:
            return None
        random = np.random.default_rng(0)
        cotangents = [
            random.standard_normal(a.shape).astype(a.dtype) if is_differentiable(a) else None
            for a in recording.outputs
        ]
        gradients = problem.vjp(list(problem.inputs), cotangents)
        claims = {
            k: WorldGradient(name, world.declared.input_placement(name), g, world.by_rank[name])
            for k, (name, g) in enumerate(zip(problem.names, gradients, strict=True))
            if g is not None
        }
        return Tape(recording), cotangents, claims

    def is_right_if_replicated(self) -> bool:
        """Whether backward is right, and breaks no contract, once all outputs are declared to be
        the same on all ranks.
        """
        world, declared, broken = self.world, self.world.declared, self.world.broken
        if "split" not in declared.outputs:
            return False
        world.declared, world.broken = replace(declared, outputs=("replicated",)), {}
        try:
            evidence = self.read_evidence()
            return evidence is not None and not wrong_inputs(*evidence) and not world.broken
        finally:
            world.declared, world.broken = declared, broken

    def causes_between_ranks(
        self, named: bool | None
    ) -> tuple[Sequence[Diagnosis], dict[str, Any]]:
        """The mistakes between ranks on the tape, and where the layer's backward is.

        Args:
            named: whether another cause was found; None before any search.
        """
        with suppress(Exception):  # the verdict stands; a layer may raise at any of its calls
            if self.evidence is not None:
                diagnoses = between_ranks(*self.evidence, self.world.size, named)
                return diagnoses, backward_of(self.evidence[0])
        return [], {}

    def gradients(self, *arguments: Any, **options: Any) -> list[Tensor | None]:
        with self.world.original_errors():
            return super().gradients(*arguments, **options)

    def layer_calls(self) -> LayerCalls:
        """The layers of all ranks."""
        with suppress(Exception):  # a rank may have died: the verdict stands
            for rows in self.world.each("layer_rows"):
                self.calls.add_rows(rows)
        return self.calls

    def run_elsewhere(self) -> bool:
        """Not supported in a world: its ranks keep only the graph of their latest call."""
        return False

    def close(self) -> None:
        self.world.ranks.close()

    def in_words(self, summary: GradientSummary) -> GradientSummary:
        """A summary with the ranks named, and the causes and broken contracts between them.

        Such causes are more specific than those of a single layer.
        """
        world_summary = self.world.in_words(summary)
        if world_summary.verdict is not Status.FAIL or self.world.size == 1:
            return world_summary
        between, where = self.collective_causes, dict[str, Any]()
        if not between:
            named = any(is_cause(d.code) for d in world_summary.diagnosis)
            between, where = self.causes_between_ranks(named)
        diagnoses = []
        for diagnosis in world_summary.diagnosis:
            if is_cause(diagnosis.code) and not diagnosis.line:
                diagnosis = diagnosis.model_copy(update=where)
            if is_contract(diagnosis.code) or not between:
                diagnoses.append(diagnosis)
        with suppress(
            Exception
        ):  # ranks may disagree on the outputs, so that they are not the same
            if self.is_right_if_replicated():
                between = [*between, Diagnosis.of("GC151", REPLICATED)]
        return world_summary.model_copy(update={"diagnosis": (*diagnoses, *between)})


class WorldLayer(FunctionOfWorld, ScenarioLayer):
    """A scenario's layer on every rank of a world.

    Its source runs once on each, in a namespace of the rank's own. The namespace of the scenario,
    in which its expressions are evaluated, has the inputs and the output of the world.
    """

    import_module = staticmethod(module_anew)

    def load_call(self, case: Case) -> tuple[Call, list[NamespaceCall]]:
        """The call of the world.

        If ranks are processes, only those processes record the calls of the user's code.
        """
        scenario, world = self.scenario, self.scenario.world_at(case.parameters)
        assert world is not None
        if isinstance(scenario.layer, LayerRef):  # outside of the world, as any program's imports
            for reference in scenario.layer.references:
                module_of_reference(reference, self.folder)
        declared = WorldDeclaration(
            size_of(world),
            {name: input.ranks for name, input in scenario.inputs.items()},
            scenario.output_placements,
            {} if isinstance(world, int) else {str(axis): n for axis, n in world.items()},
            scenario.random == "same",
        )
        calls = list[NamespaceCall]()

        def load(rank: int) -> NamespaceCall:
            calls.append(self.load(dict(self.namespace)))
            return calls[-1]

        return WorldCall(self.backend, declared, load, self.leaf), calls

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """An input of the world in its usual layout; the ranks' inputs have the declared one."""
        return self.backend.tensor(array, dtype, stop_gradient=stop_gradient)

    def leaf(self, name: str, array: Array, stop_gradient: bool) -> Tensor:
        """An input of a rank."""
        leaf = self.input_in_layout(name, array, None, stop_gradient)
        return self.backend.leaf(array, stop_gradient) if leaf is None else leaf

    def run_documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        with self.world.original_errors():
            return super().run_documented(cotangent)
