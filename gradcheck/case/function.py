"""The adapter from a function of Tensors to a function of arrays with a vjp, which the gradient
check takes.
"""

from __future__ import annotations

import copy
import functools
import gc
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import (
    Array,
    Backend,
    Cotangents,
    GeneratorStates,
    InputGradients,
    Recordable,
    RecordableCall,
    Tensor,
    is_differentiable,
)
from gradcheck.case.broken_contracts import NoGradient
from gradcheck.case.layer_calls import LayerCalls, definer
from gradcheck.case.observe import (
    ELSEWHERE,
    LayerContracts,
    starts_for,
    tensors_in,
    values_elsewhere,
)
from gradcheck.case.of_arrays import kind_of_result, without_backward
from gradcheck.case.reachable import leaves_of, name_by_shape, unused_name
from gradcheck.case.user_code import spot_of_error
from gradcheck.causes.words import source_place
from gradcheck.checking.precision import identical
from gradcheck.checking.problem import Observation, Problem
from gradcheck.result import GradientSummary
from gradcheck.spec.containers import in_variables

if TYPE_CHECKING:
    from gradcheck.backends.recomputation import Recomputation

Call = Callable[[dict[str, Tensor]], Any]
"""Takes Tensors by name, and returns whatever a layer returns."""


def output_names(count: int) -> list[str]:
    """The names of a function's outputs."""
    return ["out"] if count == 1 else [f"out[{k}]" for k in range(count)]


def one_or_all(outputs: Sequence[Any]) -> Any:
    """The outputs as a function returns them: a single one by itself."""
    return outputs[0] if len(outputs) == 1 else outputs


def with_gaps(values: Sequence[Any], present: Iterable[bool]) -> list[Any]:
    """Values in the places that are present, None in the others."""
    # Loops here and below, as each evaluation comes here: up to Python 3.11 a comprehension is a
    # call.
    remaining = iter(values)
    placed: list[Any] = []
    for is_present in present:
        placed.append(next(remaining) if is_present else None)
    return placed


def map_present(function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """Map a function over values; None stays None."""
    mapped: list[Any] = []
    for value in values:
        mapped.append(None if value is None else function(value))
    return mapped


def with_zeros(values: Iterable[Any], like: Iterable[Any]) -> list[Any]:
    """Values, with zeros of the shapes of `others` in place of None."""
    return [x * 0 if value is None else value for value, x in zip(values, like, strict=True)]


def gradients_of(
    backend: Backend,
    outputs: Sequence[Tensor | None],
    cotangents: Sequence[Tensor | None],
    inputs: list[Tensor],
    existing_leaves: Sequence[Tensor] = (),
    create_graph: bool = False,
) -> list[Tensor | None]:
    """The gradients of leaves, from the outputs that have both a graph and a cotangent."""
    ends: list[Tensor] = []
    starts: list[Tensor] = []
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if output is not None and cotangent is not None and backend.needs_gradient(output):
            ends.append(output)
            starts.append(cotangent)
    if not ends or not inputs:
        return [None] * len(inputs)
    return backend.grad(ends, inputs, starts, existing_leaves, create_graph)


@dataclass(eq=False)
class NamespaceCall:
    """A call given as an expression, in the namespace of its code."""

    namespace: dict[str, Any]
    code: CodeType

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        self.namespace.update(in_variables(tensors))
        return eval(self.code, self.namespace)


@dataclass(frozen=True)
class FirstCall:
    """The first call at some inputs; it shows which inputs and outputs take gradients."""

    inputs: list[Array]
    """The inputs' values before the call, including leaves that the call reads besides its
    arguments.
    """
    outputs: list[Array]
    claimed: list[bool]
    """For each output, whether the function claims a gradient."""
    needed: list[bool]
    """For each input, whether it takes a gradient."""
    unchecked: str
    """The reason why nothing can be checked; otherwise empty."""


class TensorFunction:
    """A function of named Tensors on a backend, at given arrays.

    Args:
        backend: whose Tensors they are.
        call: takes the Tensors by name and returns whatever the function returns.
        arrays: the inputs, on the backend's device or the host.
        dtypes: of the inputs, by name.
        stopped: the inputs through which no gradient flows.
        subject: the user's layer or function, whose hand-written backwards must run; `call` if it
            is not given.
    """

    knows_leaves = False
    """Whether the search for leaves that the call reads is left out: they are known, or not
    checked.
    """
    layers_by_name = False
    """Whether layers of the same name count as one."""
    expects_backward = True
    """Whether the result is marked if no hand-written backward ran."""
    generated_call = ""
    """``file:line`` of the call, if gradcheck wrote it; otherwise empty."""

    def __init__(
        self,
        backend: Backend,
        call: Call,
        arrays: dict[str, Array],
        dtypes: dict[str, str],
        stopped: Sequence[str] = (),
        subject: Any = None,
    ) -> None:
        self.backend, self.call = backend, call
        self.arrays, self.dtypes, self.stopped = arrays, dtypes, stopped
        self.subject = call if subject is None else subject
        self.sources: Sequence[Any] = [call]
        """Objects from which the user's code can be reached."""
        self.calls = self.new_calls()
        """The layers of the evaluations at these arrays."""
        self.closed_over: dict[str, Tensor] = {}
        """Leaves that need a gradient and that the call reads, other than its inputs; once known,
        they are added to the inputs.
        """
        self.existing_leaves: Sequence[Tensor] = ()
        """These leaves, and others whose ``grad`` Paddle may add to."""
        self.originals: dict[str, Tensor] = {}
        """The Tensors whose memory these leaves originally used, by the same names."""
        self.twin: TensorFunction | None = None
        """This call on a backend that can record it, if this one cannot."""
        self.marks: Sequence[str] = ()
        """Marks of the verdict from the observations of `observe`."""
        self.evaluations = 0
        """How often the function was called."""
        self.draws: GeneratorStates = []
        """The states to which random generators are set before each evaluation."""

    def at(self, arrays: dict[str, Array], dtypes: dict[str, str] | None = None) -> TensorFunction:
        """Return a copy of the function at other input values."""
        other = copy.copy(self)
        other.__dict__.pop("first_call", None)
        other.arrays, other.dtypes = arrays, dtypes or self.dtypes
        other.calls = self.new_calls()
        return other

    def new_calls(self) -> LayerCalls:
        """An empty record of layers."""
        return LayerCalls(self.backend, self.layers_by_name)

    # ----------------------------------------------------------------- Tensors
    def tensors(self, arrays: Mapping[str, Array] | None = None) -> dict[str, Tensor]:
        """The inputs, or other arrays of the inputs' dtypes, as fresh leaf Tensors."""
        return {
            name: self.tensor(name, array, self.dtypes[name], name in self.stopped)
            for name, array in (arrays or self.arrays).items()
        }

    def bind_inputs(self, arrays: Sequence[Array]) -> dict[str, Tensor]:
        """The inputs as leaf Tensors of the arrays' own dtypes, as the first call had them."""
        leaves: dict[str, Tensor] = {}
        for name, array, need in zip(self.arrays, arrays, self.first_call.needed, strict=True):
            leaves[name] = self.tensor(name, array, None, not need)
        return leaves

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """One input as a leaf Tensor."""
        if name in self.closed_over:
            leaf = self.closed_over[name]
            self.backend.share(leaf, self.backend.tensor(array, dtype, stop_gradient=True))
            return leaf
        return self.backend.tensor(array, dtype, stop_gradient=stop_gradient)

    def select_needed(self, inputs: dict[str, Tensor]) -> list[Tensor]:
        """The inputs that take a gradient."""
        return [*compress(inputs.values(), self.first_call.needed)]

    def starts(self, cotangents: Cotangents, stop_gradient: bool) -> list[Tensor | None]:
        """Cotangents as Tensors."""
        tensor = functools.partial(self.backend.tensor, dtype=None, stop_gradient=stop_gradient)
        return map_present(tensor, cotangents)

    def evaluate(self, tensors: dict[str, Tensor]) -> Any:
        """The values that the function returns.

        An error that the first evaluation does not raise is marked with the evaluation's number.
        """
        self.evaluations += 1
        for set_state, state in self.draws:
            set_state(state)
        arguments = dict(tensors)
        for name in self.closed_over:
            arguments.pop(name, None)
        try:
            return self.backend.call(self.call, arguments)
        except Exception as error:
            if self.evaluations > 1:
                note = f"raised by evaluation {self.evaluations} of the check, not by those before"
                with suppress(Exception):  # its notes may be anything
                    error.add_note(note)
            raise

    def repeat_draws(self) -> None:
        """Make all evaluations, including the first, draw the same random numbers."""
        self.draws = self.backend.generator_states()
        self.__dict__.pop("first_call", None)

    def outputs(self, returned: Any) -> list[Tensor]:
        """The Tensors in the result of the call."""
        return tensors_in(self.backend, returned)

    def checked_outputs(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs that claim a gradient, with the inputs bound to `tensors`."""
        outputs, claimed = self.outputs(self.evaluate(tensors)), self.first_call.claimed
        if len(outputs) != len(claimed):
            raise ValueError(
                f"the function returned {len(claimed)} Tensors the first time, "
                f"but {len(outputs)} now"
            )
        return [*compress(outputs, claimed)]

    def gradients(
        self,
        outputs: Sequence[Tensor | None],
        cotangents: Sequence[Tensor | None],
        inputs: list[Tensor],
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """The gradients of outputs, by `gradients_of`."""
        return gradients_of(
            self.backend, outputs, cotangents, inputs, self.existing_leaves, create_graph
        )

    def pull_back(
        self,
        tensors: dict[str, Tensor],
        cotangents: Sequence[Tensor | None],
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """Call the function, and take the gradients of the inputs that need one."""
        outputs = self.checked_outputs(tensors)
        return self.gradients(outputs, cotangents, self.select_needed(tensors), create_graph)

    # ----------------------------------------------------------------- the first call
    @property
    def is_plain_apply(self) -> bool:
        """Whether the call is the base class's ``apply`` of a layer. The backend then reports the
        layer before it looks up the forward, so no forward runs outside of this call.
        """
        return (
            self.backend.records
            and isinstance(self.subject, type)
            and definer(self.subject, "apply") is definer(self.calls.base, "apply")
        )

    @cached_property
    def first_call(self) -> FirstCall:
        """The first call at the inputs; it shows which gradients the function claims and which
        leaves it closes over.
        """
        if not self.knows_leaves and not self.backend.records:
            self.close_over(self.named_leaves())  # which of them it reads is unknown
        array, tensors = self.backend.array, self.tensors()
        inputs = [array(t).copy() for t in tensors.values()]  # the call may write into them
        with self.calls.watching_forwards(self.is_plain_apply):
            call = functools.partial(self.calls.run, self.evaluate, tensors)
            returned, read_leaves = (
                (call(), []) if self.knows_leaves else self.backend.collect_leaves(call)
            )
        input_ids = set(map(id, tensors.values()))
        leaf_references = [weakref.ref(leaf) for leaf in read_leaves if id(leaf) not in input_ids]
        del read_leaves
        outputs = self.outputs(returned)
        claimed = list(map(self.backend.claims, outputs))
        arrays = [array(t) for t in outputs]
        needed = [
            self.backend.needs_gradient(t) and is_differentiable(array(t)) for t in tensors.values()
        ]
        unchecked = nothing_claimed(self.backend, returned, arrays, claimed)
        if not self.knows_leaves:
            del returned, outputs  # so that leaves made by this call are freed with its results
            self.close_over(self.name_leaves(leaf_references))
        leaves = [self.arrays[name].copy() for name in self.arrays if name not in tensors]
        needed += [True] * len(leaves)
        return FirstCall([*inputs, *leaves], arrays, claimed, needed, unchecked)

    # ------------------------------------------------------- leaves in addition to the inputs
    def know_leaves(self) -> None:
        """Add the leaves that the call reads to the inputs, if they are not there yet."""
        if not self.knows_leaves:
            _ = self.first_call

    def named_leaves(self) -> dict[str, Tensor]:
        """The leaves that the user's code refers to, by name."""
        call = self.subject
        if not isinstance(call, NamespaceCall):
            return leaves_of(self.backend, call)
        leaves = leaves_of(self.backend, FunctionType(call.code, call.namespace))
        return {name: leaf for name, leaf in leaves.items() if name not in self.arrays}

    def name_leaves(self, references: Sequence[weakref.ref[Tensor]]) -> dict[str, Tensor]:
        """The leaves of `references` that outlive the call, by their names in the user's code."""
        if not references:
            return {}
        known = {id(leaf): name for name, leaf in self.named_leaves().items()}
        if any(id(reference()) not in known for reference in references):
            gc.collect()  # frees leaves that only a graph in a reference cycle keeps alive
        leaves: dict[str, Tensor] = {}
        for leaf in (reference() for reference in references):
            if leaf is not None:
                leaves[unused_name(known.get(id(leaf), name_by_shape(leaf)), leaves)] = leaf
        return leaves

    def close_over(self, leaves: Mapping[str, Tensor]) -> None:
        """Add `leaves` to the inputs."""
        self.existing_leaves = [*(leaves if self.backend.records else self.named_leaves()).values()]
        self.knows_leaves = True
        for name, leaf in leaves.items():
            array = self.backend.array(leaf)
            if is_differentiable(array):
                name = unused_name(name, self.arrays)
                self.originals[name] = self.backend.tensor(array, None, stop_gradient=True)
                self.backend.share(self.originals[name], leaf)
                self.closed_over[name] = leaf
                self.arrays[name], self.dtypes[name] = array.copy(), array.dtype.name

    def restore(self) -> None:
        """Restore the original memory of the leaves that are among the inputs."""
        for name, leaf in self.closed_over.items():
            self.backend.share(leaf, self.originals[name])

    def close(self) -> None:
        """End the processes that were started for it; it is not called again."""
        self.restore()

    # ----------------------------------------------------------------- arrays
    def problem(self) -> Problem:
        """The function on arrays, with the vjp that its backward claims."""
        first = self.first_call
        return Problem(
            names=list(self.arrays),
            inputs=first.inputs,
            differentiable=first.needed,
            output_names=[*compress(output_names(len(first.outputs)), first.claimed)],
            forward=self.forward,
            vjp=self.vjp,
            vjp_alone=self.vjp_alone if self.backend.tells_needs else None,
            observe=self.observe,
            outputs=[*compress(first.outputs, first.claimed)],
            place_of=lambda error: source_place(spot_of_error(error)).fields,
            reruns=self.recomputation(lambda function: function),
        )

    def recomputation(
        self, recordable_of: Callable[[TensorFunction], Recordable], takes_gradients: bool = False
    ) -> Recomputation | None:
        """The function or its gradient for recomputation, on the engine if the function has a
        copy there.
        """
        recorder = self.twin or self
        original = None if recorder is self else recordable_of(self)
        recomputation: Recomputation | None = recorder.backend.recomputation(
            recordable_of(recorder), recorder.sources, original, takes_gradients
        )
        return recomputation

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, computed in the grad mode in which users take gradients."""
        outputs = self.calls.run(self.checked_outputs, self.bind_inputs(arrays))
        return list(map(self.backend.array, outputs))

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents) -> InputGradients:
        """The gradients of the inputs; None for an input without one.

        Raises:
            NoGradient: a gradient's shape differs from its input's, or its dtype cannot hold
                derivatives.
        """
        tensors, starts = self.bind_inputs(arrays), self.starts(cotangents, True)
        needed_gradients = self.calls.run(self.pull_back, tensors, starts)
        gradients = self.in_places(needed_gradients, self.first_call.needed)
        for name, gradient, x in zip(self.arrays, gradients, arrays, strict=True):
            if gradient is None:
                continue
            if gradient.shape != x.shape:
                shapes = f"of shape {list(gradient.shape)} for an input of shape {list(x.shape)}"
                raise NoGradient(f"a gradient {shapes}", name)
            is_real = x.dtype.kind != "c"
            if not is_differentiable(gradient) or (gradient.dtype.kind == "c" and is_real):
                dtypes = f"of dtype {gradient.dtype} for an input of {x.dtype}"
                raise NoGradient(f"a gradient {dtypes}", name)
        return gradients

    def vjp_alone(
        self, number: int, arrays: Sequence[Array], cotangents: Cotangents
    ) -> Array | None:
        """The gradient of one input, where no other input needs one; None if it has none. Leaves
        that the call reads besides its inputs still need a gradient.
        """
        rows = enumerate(zip(self.arrays, arrays, strict=True))
        tensors = {name: self.tensor(name, array, None, k != number) for k, (name, array) in rows}
        outputs = self.calls.run(self.checked_outputs, tensors)
        inputs = [[*tensors.values()][number]]
        (found,) = self.calls.run(self.gradients, outputs, self.starts(cotangents, True), inputs)
        return None if found is None else self.backend.array(found)

    def in_places(
        self, gradients: Sequence[Tensor | None], present: Iterable[bool]
    ) -> InputGradients:
        """Gradients as arrays, in the places of those that are present."""
        return map_present(self.backend.array, with_gaps(gradients, present))

    def recordable_call(self, arrays: Sequence[Array]) -> RecordableCall:
        """The leaves of a call at `arrays` that may be recorded, and that call."""
        tensors = self.bind_inputs(arrays)
        call = functools.partial(self.calls.run, self.checked_outputs, tensors)
        return [*tensors.values()], call

    def layer_calls(self) -> LayerCalls:
        """The layers of the evaluations at these arrays."""
        return self.calls

    def observe(self, cotangents: Cotangents) -> Observation:
        """Run forward and backward once and compare inputs and cotangents before and after.

        In between, forward runs at other values, as in a model that uses the layer twice.

        Raises:
            NoGradient: a backward on the way returned integers or booleans.
        """
        inputs, array = self.tensors(), self.backend.array
        values = {name: array(t).copy() for name, t in inputs.items()}
        versions = {name: self.backend.version(t) for name, t in inputs.items()}
        argument_names = [name for name in inputs if name not in self.closed_over]
        layers = LayerContracts(self.backend, inputs)

        def find_changed() -> list[str]:
            return [
                name for name in argument_names if not identical(array(inputs[name]), values[name])
            ]

        with layers.watching():
            outputs = self.calls.run(self.checked_outputs, inputs)
            arrays = [array(output).copy() for output in outputs]
            starts = starts_for(self.backend, arrays, cotangents)
            by_forward = find_changed()
            # An in-place operation shows that the change is intended. That is no excuse if a
            # gradient is taken.
            in_place = [
                name
                for name in by_forward
                if not self.backend.needs_gradient(inputs[name])
                and self.backend.version(inputs[name]) != versions[name]
            ]
            interrupted = self.run_elsewhere()
            needed = list(map(self.backend.needs_gradient, inputs.values()))
            wanted = [*compress(inputs.values(), needed)]
            gradients = self.calls.run(self.gradients, outputs, starts, wanted)
        if layers.dtype_without_derivatives:
            raise NoGradient(f"a gradient of dtype {layers.dtype_without_derivatives}")
        self.marks = layers.marks()
        not_meant = [name for name in by_forward if name not in in_place]
        late = [name for name in find_changed() if name not in by_forward]
        return Observation(
            changed_by_forward=tuple(dict.fromkeys([*not_meant, *layers.changed_by_forward])),
            changed_in_place=tuple(in_place),
            changed_by_backward=tuple(dict.fromkeys([*late, *layers.changed_by_backward])),
            aliased=tuple(layers.aliased),
            outputs=arrays,
            gradients=self.in_places(gradients, needed),
            interrupted=interrupted,
        )

    def run_elsewhere(self) -> bool:
        """Run forward at other values of the inputs, and drop its outputs.

        False if it raises at all values that were tried.
        """
        for scale in ELSEWHERE:
            arrays = {
                name: array if name in self.closed_over else values_elsewhere(array, scale)
                for name, array in self.arrays.items()
            }
            with suppress(Exception):
                self.calls.run(self.evaluate, self.tensors(arrays))
                return True
        return False

    def in_words(self, summary: GradientSummary) -> GradientSummary:
        """Add this function's marks to a summary."""
        return summary

    # ----------------------------------------------------------------- second order
    def second_order(self, first: Problem) -> Problem:
        """The first vjp as a function of the inputs and the cotangents.

        Its own vjp is by double backward; `first` is the result of `problem`.
        """
        outputs = first.outputs
        assert outputs is not None
        active = [is_differentiable(output) for output in outputs]
        random = np.random.default_rng(1)
        inputs, names = list(first.inputs), list(first.names)
        for name, output, is_active in zip(first.output_names, outputs, active, strict=True):
            if is_active:
                inputs.append(np.asarray(random.standard_normal(output.shape), output.dtype))
                names.append(f"cotangent of {name}")
        gradient_of = functools.partial(GradientFunction, active=active)
        gradient = gradient_of(self)
        return Problem(
            names=names,
            inputs=inputs,
            differentiable=self.first_call.needed + [True] * (len(names) - len(first.names)),
            output_names=[f"d/d{name}" for name in compress(first.names, self.first_call.needed)],
            forward=gradient.forward,
            vjp=gradient.vjp,
            outputs=gradient.forward(inputs),
            reruns=self.recomputation(gradient_of, takes_gradients=True),
            order=2,
            nondet=first.nondet,
        )

    def double_vjp(
        self,
        arrays: Sequence[Array],
        cotangents: Cotangents,
        second: Cotangents,
    ) -> InputGradients:
        """The gradients, with respect to inputs and cotangents, of the first gradients times
        `second`.
        """
        tensors, starts = self.bind_inputs(arrays), self.starts(cotangents, False)
        active_starts = [s for s in starts if s is not None]
        firsts = self.calls.run(self.pull_back, tensors, starts, True)
        inputs = [*self.select_needed(tensors), *active_starts]
        gradients = self.calls.run(self.gradients, firsts, self.starts(second, True), inputs)
        return self.in_places(gradients, self.first_call.needed + [True] * len(active_starts))


@dataclass(frozen=True)
class GradientFunction:
    """The vjp of a function as a function itself: of the inputs, then the cotangents."""

    function: TensorFunction
    active: list[bool]
    """Whether each output has a cotangent."""

    def split(self, arrays: Sequence[Array]) -> tuple[Sequence[Array], InputGradients]:
        """The inputs, and the cotangents of all outputs."""
        count = len(arrays) - sum(self.active)
        return arrays[:count], with_gaps(arrays[count:], self.active)

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The gradients of the inputs that take one."""
        inputs, cotangents = self.split(arrays)
        needed = self.function.first_call.needed
        gradients = compress(self.function.vjp(inputs, cotangents), needed)
        return with_zeros(gradients, compress(inputs, needed))

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents) -> InputGradients:
        """The second gradients."""
        return self.function.double_vjp(*self.split(arrays), cotangents)

    def recordable_call(self, arrays: Sequence[Array]) -> RecordableCall:
        """The leaves of a call that takes the first gradients, and that call."""
        function = self.function
        inputs, cotangents = self.split(arrays)
        tensors, starts = function.bind_inputs(inputs), function.starts(cotangents, False)

        def call() -> list[Tensor]:
            gradients = function.calls.run(function.pull_back, tensors, starts, True)
            return with_zeros(gradients, function.select_needed(tensors))

        return [*tensors.values(), *(s for s in starts if s is not None)], call


def nothing_claimed(
    backend: Backend, returned: Any, outputs: Sequence[Array], claimed: Sequence[bool]
) -> str:
    """Why a call has no gradient to check; empty if it has one."""
    if not outputs:
        text = kind_of_result(returned)
        if isinstance(returned, (list, tuple)) and returned:
            text += f" of {' and '.join(sorted({type(v).__name__ for v in returned}))}"
        text = f"the call returned {text}, and no Tensor"
        return ": ".join(filter(None, (text, without_backward(text))))
    if not any(claimed):
        return f"no output has a gradient: {backend.words.takes_none}"
    claimed_outputs = [*compress(outputs, claimed)]
    real = [*filter(is_differentiable, claimed_outputs)]
    if not real:
        dtypes = ", ".join(sorted({str(a.dtype) for a in claimed_outputs}))
        return f"no output has a derivative: they are of dtype {dtypes}"
    if not any(a.size for a in real):
        shapes = ", ".join(str(list(a.shape)) for a in claimed_outputs)
        return f"no output has an element: they are of shape {shapes}"
    return ""
