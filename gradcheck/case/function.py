"""A function of Tensors as the gradient check sees it: arrays in, arrays out, its vjp, and what it changes."""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import re
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor, flat_tensors, is_differentiable
from gradcheck.backends.bundled import NOT_THE_USERS, Moving, Recording, recorded
from gradcheck.case.layer_calls import LayerCalls, wrapped_methods
from gradcheck.checking.precision import Change
from gradcheck.checking.problem import Observation, Problem
from gradcheck.result import Diagnosis, GradientSummary, Status
from gradcheck.spec.containers import in_variables
from gradcheck.support.foreign import text_of
from pylayer.watch import watched
from pylayer.watch.casts import casts_left_out
from pylayer.watch.numpy_recording import Code, recording_numpy

REFUSED = re.compile(
    r"^(?:\(InvalidArgument\) )?GradNodePyLayer_(\S+?)(?: : |'s backward function,? )(.*)",
    re.DOTALL,
)
"""How both the engine and Paddle begin to say that they do not take what a PyLayer's backward returned."""
APPLIED = r"applied at (?:[^):]*(?:arguments|of_arrays)\.py|[^):]*[/\\][\w.]+:[A-Za-z_][\w.]*):\d+"
"""The place of a call that is this package's own, or of a scenario that ``gradcheck check`` makes up."""
TAIL = re.compile(
    rf"\s*(?:\[Hint: .*|\(at /.*|, please check your PyLayer code.*|\({APPLIED}\))",
    re.DOTALL,
)
"""What Paddle adds that is about its own source, and a place that is not the user's."""
INPUT = re.compile(r"\(input `(\w+)`\)")


class Broken(Exception):  # noqa: N818 - it is what was found, not an error of the checker
    """A contract is broken, so that there is no gradient to check."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text)
        self.diagnosis = diagnosis


class NoGradient(Broken):
    """Backward returned something that is no gradient of its inputs."""

    def __init__(self, text: str, *inputs: str) -> None:
        super().__init__(Diagnosis.of("GC137", f"backward returns {text}", inputs))


def nothing_claimed(
    returned: Any, outputs: Sequence[Array], claimed: Sequence[bool], inputs: Sequence[Array]
) -> str:
    """Why a call leaves nothing to check; empty if an element of an output claims a gradient of one of an input."""
    if not outputs:
        kinds = (
            sorted({type(v).__name__ for v in returned})
            if isinstance(returned, (list, tuple))
            else []
        )
        of = f" of {' and '.join(kinds)}" if kinds else ""
        what = "None" if returned is None else f"a {type(returned).__name__}{of}"
        return f"the call returned {what}, and no Tensor"
    if not any(claimed):
        return "no output has a gradient: stop_gradient is True for all of them"
    kept = [a for a, claim in zip(outputs, claimed, strict=True) if claim]
    real = [a for a in kept if is_differentiable(a)]
    if not real:
        return f"no output has a derivative: they are of dtype {', '.join(sorted({str(a.dtype) for a in kept}))}"
    if not any(a.size for a in real):
        return f"no output has an element: they are of shape {', '.join(str(list(a.shape)) for a in kept)}"
    if not any(x.size for x in inputs):
        return "no input that needs a gradient has an element"
    return ""


def misfit(gradient: Array, x: Array) -> str:
    """In which way an array cannot be the gradient of `x`; empty if it can be."""
    if gradient.shape != x.shape:
        return f"a gradient of shape {list(gradient.shape)} for an input of shape {list(x.shape)}"
    if not is_differentiable(gradient) or (gradient.dtype.kind == "c" and x.dtype.kind != "c"):
        return f"a gradient of dtype {gradient.dtype} for an input of {x.dtype}"
    return ""


def leave_out_own_place(error: BaseException) -> None:
    """Take a place that is not the user's out of the notes of an error."""
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes[:] = [
            re.sub(f", {APPLIED}$", "", note) if isinstance(note, str) else note for note in notes
        ]


def refused(error: BaseException) -> GradientSummary | None:
    """The verdict that an error stands for, if it says that what backward returned are no gradients."""
    if isinstance(error, Broken):
        return GradientSummary(verdict=Status.FAIL, diagnosis=(error.diagnosis,))
    found = REFUSED.match(text_of(error)) if isinstance(error, ValueError) else None
    if found is None:
        return None
    text = f"backward of {found[1]}: {TAIL.sub('', found[2])}"
    return GradientSummary(
        verdict=Status.FAIL, diagnosis=(Diagnosis.of("GC137", text, tuple(INPUT.findall(text))),)
    )


Call = Callable[[dict[str, Tensor]], Any]
"""Takes Tensors by name, and returns whatever a layer returns."""
Forward = Callable[[Sequence[Array]], list[Array]]
Vjp = Callable[[Sequence[Array], Sequence[Array | None]], list[Array | None]]
OnTape = Callable[[Sequence[Array]], tuple[list[Tensor], Callable[[], list[Tensor]]]]
NO_BLOCK: AbstractContextManager[Any] = nullcontext()
ELSEWHERE = (7 / 8, 1.0)
"""Factors of the inputs of a forward at other values: below 1, so that they stay in (−1, 1), and by far more than
rounding; a forward that insists on sums of 1 or orthogonal columns takes the second."""


class settings_of_its_own:  # noqa: N801 - read as a phrase
    """A block after which what a layer may set for the whole process, NumPy's handling of errors, the filters of
    warnings and static mode of a `paddle`, is as it was before: it is in force while the layer runs, not while
    gradcheck computes."""

    def __init__(self, paddle: ModuleType | None = None) -> None:
        self.paddle = paddle

    def __enter__(self) -> None:
        self.dynamic = self.paddle is None or self.paddle.in_dynamic_mode()
        self.filters, self.errors = list(warnings.filters), np.errstate()
        self.errors.__enter__()

    def __exit__(self, *raised: Any) -> None:
        if self.paddle is not None and self.paddle.in_dynamic_mode() is not self.dynamic:
            (self.paddle.disable_static if self.dynamic else self.paddle.enable_static)()
        self.errors.__exit__(*raised)
        if warnings.filters != self.filters:
            warnings.filters[:] = self.filters  # type: ignore[index]
            with warnings.catch_warnings():  # makes Python look at the filters anew
                pass


def output_names(count: int) -> list[str]:
    """What the outputs of a function are called."""
    return ["out"] if count == 1 else [f"out[{k}]" for k in range(count)]


def unnamed(leaf: Tensor) -> str:
    """What a leaf is called that no variable has."""
    return f"a leaf of shape {list(leaf.shape)}"


def unused_name(name: str, used: Collection[str]) -> str:
    """A name, with a number where it is taken."""
    numbered = (f"{name} ({k})" for k in itertools.count(2))
    return name if name not in used else next(one for one in numbered if one not in used)


@dataclass(frozen=True)
class FirstCall:
    """A call at the inputs, as they were before it, and what it returned, as arrays."""

    inputs: list[Array]
    outputs: list[Array]


def placed(found: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
    """What was found, in the places that need it; None in the others."""
    given = iter(found)
    return [next(given) if need else None for need in needed]


@dataclass(eq=False)
class NamespaceCall:
    """A call that is written as an expression, in the namespace of the code that it is of."""

    namespace: dict[str, Any]
    code: CodeType
    nested: bool
    """Whether inputs are in lists or dicts."""

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        self.namespace.update(in_variables(tensors) if self.nested else tensors)
        return eval(self.code, self.namespace)


class TensorFunction:
    """A function of named Tensors on a backend, at given arrays.

    Args:
        backend: whose Tensors they are.
        call: takes the Tensors by name and returns whatever the function returns; None where it is not known yet.
        arrays: the inputs, on the backend's device or the host.
        dtypes: of the inputs, by Paddle's names.
        stopped: the inputs through which no gradient flows.
    """

    closes_over = True
    """Whether leaves that the call reads beside its inputs can be moved as these are."""

    def __init__(
        self,
        backend: Backend,
        call: Call | None,
        arrays: dict[str, Array],
        dtypes: dict[str, str],
        stopped: Sequence[str] = (),
    ) -> None:
        self.backend, self.arrays, self.dtypes, self.stopped = backend, arrays, dtypes, stopped
        self.sources: Sequence[Any] = [call]
        """What the user's code can be reached from."""
        self.subject: Any = call
        """The user's layer or function, whose hand-written backwards must run; None where there need not be one."""
        self.expects_backward = True
        """Whether a check in which no hand-written backward runs is marked."""
        self.calls = LayerCalls(backend.paddle.autograd.PyLayer)
        """The layers of the evaluations since `problem` was called."""
        if call is not None:
            self.call = call
        self.memory: dict[str, Callable[[Array, str | None], Tensor | None]] = {}
        """For inputs that need not have memory of their own in the usual order: makes the Tensor whose memory it is."""
        self.leaves: dict[str, tuple[Array, Tensor]] = {}
        """The inputs of the latest call, with their values, if there are such."""
        self.needed: list[bool] = []
        """Per input, whether it takes a gradient; known once `problem` was called."""
        self.claimed: list[bool] = []
        """Per output, whether the function claims a gradient for it; known once `problem` was called."""
        self.closed_over: dict[str, Tensor] | None = None if self.closes_over else {}
        """Leaves that the call reads beside what it is given, and that need a gradient: they are among the inputs. None
        until they are known."""
        self.held: Sequence[Tensor] = ()
        """These, and others whose gradients a release may add to."""
        self.originals: dict[str, Tensor] = {}
        """By the same names, Tensors of the memory that they had."""
        self.leaves_named: Callable[[], dict[str, Tensor]] = dict
        """Gives the leaves that the user's code refers to, by name."""
        self.first_call: FirstCall | None = None
        """The first call at `arrays`, until `problem` takes it."""
        self.twin: TensorFunction | None = None
        """The same call on a backend that can record what it computes, where this one cannot."""
        self.gave_less = False
        """Whether a backward was seen to return fewer gradients than the documents ask for; known once `observed`."""
        self.gave_other_shapes = False
        """Whether a backward was seen to return a gradient of another shape than its input; known once `observed`."""
        self.evaluations = 0
        """How often it was called."""
        self.unchecked = ""
        """Why there is nothing to check, if so; known once `problem` was called."""

    # ----------------------------------------------------------------- Tensors
    def tensors(self) -> dict[str, Tensor]:
        """The inputs as fresh leaf Tensors."""
        return {
            name: self.tensor(name, array, self.dtypes[name], name in self.stopped)
            for name, array in self.arrays.items()
        }

    def bound(self, arrays: Sequence[Array]) -> dict[str, Tensor]:
        """The inputs as leaf Tensors of the arrays' own dtypes; their stop_gradient is the one that users see."""
        return {
            name: self.tensor(name, array, None, not need)
            for name, array, need in zip(self.arrays, arrays, self.needed, strict=True)
        }

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """One input as a leaf Tensor, with memory of its own or as `memory` says."""
        if self.closed_over and name in self.closed_over:
            leaf = self.closed_over[name]
            self.backend.share(leaf, self.backend.tensor(array, dtype, stop_gradient=True))
            return leaf
        if not self.memory:
            return self.backend.tensor(array, dtype, stop_gradient=stop_gradient)
        view = self.memory[name](array, dtype) if name in self.memory else None
        if view is None:
            leaf = self.backend.tensor(array, dtype, stop_gradient=stop_gradient)
        else:
            leaf = view.detach()
            leaf.stop_gradient = stop_gradient
        self.leaves[name] = array, leaf
        return leaf

    def wanted(self, inputs: dict[str, Tensor]) -> list[Tensor]:
        return [t for t, need in zip(inputs.values(), self.needed, strict=True) if need]

    def starts(
        self, cotangents: Sequence[Array | None], stop_gradient: bool
    ) -> list[Tensor | None]:
        return [
            None if c is None else self.backend.tensor(c, None, stop_gradient=stop_gradient)
            for c in cotangents
        ]

    def called(self, tensors: dict[str, Tensor]) -> Any:
        """What the function returns. What it raises is told apart from what it raises always: with the evaluation."""
        self.evaluations += 1
        try:
            with settings_of_its_own(self.backend.paddle), self.backend.observing(self.calls):
                return self.call(
                    {n: t for n, t in tensors.items() if n not in (self.closed_over or ())}
                )
        except Exception as error:
            if self.evaluations > 1:
                with suppress(Exception):  # its notes may be anything
                    error.add_note(
                        f"raised by evaluation {self.evaluations} of the check, not by those before"
                    )
            raise

    def run_elsewhere(self) -> bool:
        """Run forward at other values of the inputs, and drop what it gives; False if it takes none that were tried."""
        for scale in ELSEWHERE:
            arrays = {
                name: array if name in (self.closed_over or ()) else values_elsewhere(array, scale)
                for name, array in self.arrays.items()
            }
            tensors = {
                name: self.tensor(name, array, self.dtypes[name], name in self.stopped)
                for name, array in arrays.items()
            }
            with suppress(Exception):
                self.called(tensors)
                return True
        return False

    def outputs(self, returned: Any) -> list[Tensor]:
        """The Tensors among what the call returned."""
        tensor_type = self.backend.paddle.Tensor
        if isinstance(returned, tensor_type):
            return [returned]
        return flat_tensors(returned, lambda value: isinstance(value, tensor_type))

    def checked_outputs(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs that claim a gradient, with the inputs bound to `tensors`."""
        outputs = self.outputs(self.called(tensors))
        if len(outputs) != len(self.claimed):
            raise ValueError(
                f"the function returned {len(self.claimed)} Tensors the first time, but {len(outputs)} now"
            )
        return [output for output, claimed in zip(outputs, self.claimed, strict=True) if claimed]

    def gradients(
        self,
        outputs: Sequence[Tensor | None],
        cotangents: Sequence[Tensor | None],
        inputs: list[Tensor],
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """The gradients of leaves that were made for this, of the outputs that have both a graph and a cotangent."""
        pairs = zip(outputs, cotangents, strict=True)
        ends = [
            (out, c)
            for out, c in pairs
            if out is not None and c is not None and not out.stop_gradient
        ]
        if not ends or not inputs:
            return [None] * len(inputs)
        with settings_of_its_own(self.backend.paddle), self.backend.observing(self.calls):
            return self.backend.grad(
                [o for o, _ in ends], inputs, [c for _, c in ends], self.held, create_graph
            )

    # ----------------------------------------------------------------- arrays
    def problem(self) -> Problem:
        """The layer on arrays, with the vjp that its backward claims."""
        first = self.call_first() if self.first_call is None else self.first_call
        self.first_call = None
        twins = None if self.twin is None else self.twin.problem().reruns
        names = output_names(len(first.outputs))
        return Problem(
            names=list(self.arrays),
            inputs=first.inputs,
            differentiable=self.needed,
            output_names=[n for n, claimed in zip(names, self.claimed, strict=True) if claimed],
            forward=self.forward,
            vjp=self.vjp,
            observe=functools.partial(observed, self),
            outputs=[
                one for one, claimed in zip(first.outputs, self.claimed, strict=True) if claimed
            ],
            reruns=self.reruns(twins, self.forward, self.vjp, self.on_tape),
        )

    def call_first(self) -> FirstCall:
        """Call the function at its arrays, which tells what it claims and what it closes over."""
        if (
            self.closed_over is None and not self.backend.records
        ):  # what it reads is not known: what it refers to, then
            self.close_over(self.leaves_named())
        array, tensors = self.backend.array, self.tensors()
        inputs = [array(t).copy() for t in tensors.values()]  # the call may write into them
        self.calls = self.new_calls()
        with self.calls.watching_forwards():
            if self.closed_over is None:
                returned, reached = self.backend.reached(lambda: self.called(tensors))
                others = [
                    weakref.ref(t) for t in reached if not any(t is one for one in tensors.values())
                ]
                del reached
            else:
                returned, others = self.called(tensors), []
        outputs = self.outputs(returned)
        # Outputs that the layer marks as non-differentiable make no claim. One that is cut off from its inputs is a
        # leaf, and claims a gradient of zero.
        self.claimed = [output.is_leaf or not output.stop_gradient for output in outputs]
        arrays = [array(t) for t in outputs]
        is_needed = [not t.stop_gradient and is_differentiable(array(t)) for t in tensors.values()]
        moved = [x for x, need in zip(inputs, is_needed, strict=True) if need]
        self.unchecked = nothing_claimed(returned, arrays, self.claimed, moved)
        if self.closed_over is None:
            returned, outputs = (
                None,
                [],
            )  # a leaf that is made by each call goes with what it was made for
            self.close_over(self.named(others))
            inputs += [x.copy() for n, x in self.arrays.items() if n not in tensors]
        self.needed = is_needed + [True] * (len(self.arrays) - len(is_needed))
        return FirstCall(inputs, arrays)

    # ----------------------------------------------------------------- leaves beside the inputs
    def named(self, others: Sequence[weakref.ref[Tensor]]) -> dict[str, Tensor]:
        """The leaves among `others` that outlive the call, by the names that the user's code has for them."""
        known = {id(leaf): name for name, leaf in self.leaves_named().items()} if others else {}
        if any(id(other()) not in known for other in others):
            gc.collect()  # a graph may be part of a cycle, and leaves of it that nobody else has
        found: dict[str, Tensor] = {}
        for other in others:
            leaf = other()
            if leaf is not None:
                found[unused_name(known.get(id(leaf)) or unnamed(leaf), found)] = leaf
        return found

    def close_over(self, leaves: Mapping[str, Tensor]) -> None:
        """Have `leaves` among the inputs."""
        self.closed_over = {}
        for name, leaf in leaves.items():
            array = self.backend.array(leaf)
            if is_differentiable(array):
                name = unused_name(name, self.arrays)
                self.originals[name] = self.backend.tensor(array, None, stop_gradient=True)
                self.backend.share(self.originals[name], leaf)
                self.closed_over[name] = leaf
                self.arrays[name], self.dtypes[name] = array.copy(), array.dtype.name
        others = [] if self.backend.records else [*self.leaves_named().values()]
        self.held = [*{id(leaf): leaf for leaf in (*self.closed_over.values(), *others)}.values()]

    def restore(self) -> None:
        """Give the leaves that are among the inputs their own memory again."""
        for name, leaf in (self.closed_over or {}).items():
            self.backend.share(leaf, self.originals[name])

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, computed in the grad mode in which users take gradients: code may ask for it, or add hooks."""
        return [self.backend.array(t) for t in self.checked_outputs(self.bound(arrays))]

    def vjp(
        self, arrays: Sequence[Array], cotangents: Sequence[Array | None]
    ) -> list[Array | None]:
        """The gradients of the inputs; None where none is needed or defined.

        Raises:
            NoGradient: one has another shape than its input, or is of a dtype that holds no derivatives.
        """
        inputs = self.bound(arrays)
        found = self.gradients(
            self.checked_outputs(inputs), self.starts(cotangents, True), self.wanted(inputs)
        )
        gradients = [
            None if g is None else self.backend.array(g) for g in placed(found, self.needed)
        ]
        for name, gradient, x in zip(self.arrays, gradients, arrays, strict=True):
            if gradient is None or (gradient.shape == x.shape and gradient.dtype == x.dtype):
                continue
            if text := misfit(gradient, x):
                raise NoGradient(text, name)
        return gradients

    def on_tape(self, arrays: Sequence[Array]) -> tuple[list[Tensor], Callable[[], list[Tensor]]]:
        """The leaves of a call at `arrays` that may be recorded, and that call."""
        tensors = self.bound(arrays)
        return [*tensors.values()], functools.partial(self.checked_outputs, tensors)

    def reruns(
        self,
        twins: Any,
        forward: Forward,
        vjp: Vjp,
        on_tape: OnTape | None = None,
        backwards: bool = False,
    ) -> Reruns | None:
        """The call again, in another precision: that of the function's twin where it has one."""
        if isinstance(twins, Reruns):
            twins.originals = {twins.forward: forward, twins.vjp: vjp}
            return twins
        return (
            Reruns(self.sources, forward, vjp, on_tape, backwards) if self.backend.records else None
        )

    def new_calls(self) -> LayerCalls:
        """An empty record of layers."""
        return LayerCalls(self.backend.paddle.autograd.PyLayer)

    def layer_calls(self) -> LayerCalls:
        """The layers of the evaluations since `problem` was called."""
        return self.calls

    def close(self) -> None:
        """End what was started for it: it is not called any more."""
        self.restore()

    def told(self, summary: GradientSummary) -> GradientSummary:
        """What was found, as it is to be said of this function."""
        return summary

    # ----------------------------------------------------------------- second order
    def second_order(self, first: Problem) -> Problem:
        """The first vjp as a function of the inputs and the cotangents, with its vjp by double backward; `first` is
        what `problem` gave."""
        outs = self.forward(first.inputs) if first.outputs is None else first.outputs
        active = [k for k, out in enumerate(outs) if is_differentiable(out)]
        count, needed = len(first.inputs), self.needed
        random = np.random.default_rng(1)
        cotangents = [
            np.asarray(random.standard_normal(outs[k].shape), outs[k].dtype) for k in active
        ]

        def split(arrays: Sequence[Array]) -> tuple[Sequence[Array], list[Array | None]]:
            return arrays[:count], placed(arrays[count:], [k in active for k in range(len(outs))])

        def forward(arrays: Sequence[Array]) -> list[Array]:
            inputs, given = split(arrays)
            found = self.vjp(inputs, given)
            return [
                x * 0 if g is None else g
                for x, g, need in zip(inputs, found, needed, strict=True)
                if need
            ]

        def vjp(arrays: Sequence[Array], second: Sequence[Array | None]) -> list[Array | None]:
            return self.double_vjp(*split(arrays), second)

        def on_tape(arrays: Sequence[Array]) -> tuple[list[Tensor], Callable[[], list[Tensor]]]:
            inputs, given = split(arrays)
            tensors, starts = self.bound(inputs), self.starts(given, False)

            def call() -> list[Tensor]:
                wanted = self.wanted(tensors)
                found = self.gradients(
                    self.checked_outputs(tensors), starts, wanted, create_graph=True
                )
                return [t * 0 if g is None else g for t, g in zip(wanted, found, strict=True)]

            return [*tensors.values(), *(s for s in starts if s is not None)], call

        twins = None if self.twin is None else self.twin.second_order(self.twin.problem()).reruns
        inputs = [*first.inputs, *cotangents]
        return Problem(
            names=[*first.names, *(f"cotangent of {first.output_names[k]}" for k in active)],
            inputs=inputs,
            differentiable=[*needed, *(True for _ in active)],
            output_names=[
                f"d/d{name}" for name, need in zip(first.names, needed, strict=True) if need
            ],
            forward=forward,
            vjp=vjp,
            outputs=forward(inputs),
            reruns=self.reruns(twins, forward, vjp, on_tape, backwards=True),
            order=2,
        )

    def double_vjp(
        self,
        arrays: Sequence[Array],
        cotangents: Sequence[Array | None],
        second: Sequence[Array | None],
    ) -> list[Array | None]:
        """The gradients, with respect to inputs and cotangents, of the first gradients times `second`."""
        inputs, starts = self.bound(arrays), self.starts(cotangents, False)
        wanted, given = self.wanted(inputs), [s for s in starts if s is not None]
        firsts = self.gradients(self.checked_outputs(inputs), starts, wanted, create_graph=True)
        found = self.gradients(firsts, self.starts(second, True), [*wanted, *given])
        places = placed(found, [*self.needed, *(True for _ in given)])
        return [None if g is None else self.backend.array(g) for g in places]


class Reruns:
    """A function on arrays, computed again on the engine; see `gradcheck.checking.problem.Reruns`.

    Args:
        sources: what the user's code can be reached from, of which NumPy code is seen.
        forward, vjp: as in `Problem`.
        on_tape: gives the leaves of a call that is recorded, and the call, if anything does.
        backwards: whether that call takes gradients itself.
    """

    originals: Mapping[Any, Callable[..., Any]] = {}
    """By forward and vjp, where these are those of a twin: the function's own. They run where nothing is changed and
    the twin leaves no cast out."""

    def __init__(
        self,
        sources: Sequence[Any],
        forward: Forward,
        vjp: Vjp,
        on_tape: OnTape | None = None,
        backwards: bool = False,
    ) -> None:
        self.code = Code(sources, NOT_THE_USERS)
        self.forward, self.vjp, self.on_tape, self.backwards = forward, vjp, on_tape, backwards
        self.leaks: list[str] = []
        self.left_out = set[str]()
        self.left_out_last = set[str]()
        self.seen = set[Any]()
        """What was run once, so that it is known whether it hands values to NumPy."""
        self.casting: dict[Any, bool] = {}
        """Of a twin's forward and vjp, whether casts are left out in them."""
        self.in_numpy = False
        self.hidden = set[Any]()
        """What takes arrays of NumPy's own alone, as code that hands them to a C extension does: it is not seen."""

    def outputs(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        return self.run(self.forward, change, False, inputs)  # type: ignore[no-any-return]

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Sequence[Array | None],
        change: Change | None = None,
        own: bool = False,
    ) -> list[Array | None]:
        return self.run(self.vjp, change, own, inputs, cotangents)  # type: ignore[no-any-return]

    def recording(
        self,
        inputs: Sequence[Array],
        change: Change | None = None,
        own: bool = False,
        lines: bool = False,
    ) -> Recording | None:
        if self.on_tape is None:
            return None
        leaves, call = self.on_tape(inputs)
        code = self.code if self.in_numpy else None
        found = self.block(
            None, own, None, recorded, call, leaves, lines, change, code, self.backwards
        )[0]
        if found.leaks and not self.in_numpy:
            self.in_numpy = True
            return self.recording(inputs, change, own, lines)
        return found  # type: ignore[no-any-return]

    def run(self, function: Any, change: Change | None, own: bool, *given: Any) -> Any:
        """What a function gives. It is run again, with NumPy code seen, if it is the first to hand values to that; and
        as it is where nothing is to be done to NumPy's operations."""
        if (
            change is None
            and self.originals
            and (own or not self.leaves_casts_out(function, *given))
        ):
            return self.originals[function](*given)
        first = function not in self.seen
        if change is None and not first and (own or not self.left_out or not self.in_numpy):
            return self.block(None, own, None, function, *given)
        self.seen.add(function)
        if self.in_numpy:
            return self.seen_in_numpy(change, own, function, *given)
        found = self.block(change, own, False, function, *given)
        if self.leaks:
            self.in_numpy = True
            seen = self.seen_in_numpy(change, own, function, *given)
            if change is not None or (self.left_out and not own):
                return seen
        return found

    def seen_in_numpy(self, change: Change | None, own: bool, function: Any, *given: Any) -> Any:
        """One run with NumPy code seen; as it is where that raises what it does not raise as it is."""
        if function not in self.hidden:
            try:
                return self.block(change, own, True, function, *given)
            except Exception:
                found = self.block(change, own, False, function, *given)
            self.hidden.add(function)
            return found
        return self.block(change, own, False, function, *given)

    def leaves_casts_out(self, function: Any, *given: Any) -> bool:
        """Whether a twin's forward or vjp leaves casts out, which one run of it tells."""
        if function not in self.casting:
            self.seen.add(function)
            self.block(None, False, self.in_numpy, function, *given)
            self.casting[function] = bool(self.left_out_last)
        return self.casting[function]

    def block(
        self,
        change: Change | None,
        own: bool,
        in_numpy: bool | None,
        function: Callable[..., Any],
        *given: Any,
    ) -> Any:
        """One run of a function, `in_numpy` saying whether NumPy code is seen; unless it is None, `leaks` are then what
        was handed to code that nothing sees."""
        self.left_out_last = set[str]()
        casts = NO_BLOCK if own else casts_left_out(self.left_out_last)
        results = numpy = NO_BLOCK
        if in_numpy is not None:
            self.leaks.clear()
            results = watched(Moving(change, self.leaks))
            numpy = recording_numpy(self.code, False) if in_numpy else NO_BLOCK
        try:
            with casts, results, numpy:
                return function(*given)
        finally:
            self.left_out |= self.left_out_last


def observed(function: TensorFunction, cotangents: Sequence[Array | None]) -> Observation:
    """Run forward and backward once and compare the memory of inputs and cotangents before and after. Between the two
    forward runs at other values, as it does when the layer is used twice.

    Raises:
        NoGradient: a backward on the way returned integers or booleans.
    """
    inputs = function.tensors()
    array = function.backend.array
    before = {name: (array(t).copy(), t.inplace_version) for name, t in inputs.items()}
    seen: dict[str, tuple[str, ...]] = {
        "changed_by_forward": (),
        "changed_by_backward": (),
        "aliased": (),
        "integer": (),
    }
    with watched_layers(function, inputs, seen):
        outputs = function.checked_outputs(inputs)
        arrays = [array(out).copy() for out in outputs]
        starts = [
            None
            if c is None
            else function.backend.tensor(c, array(out).dtype.name, stop_gradient=True)
            for out, c in zip(outputs, cotangents, strict=True)
        ]
        given = [name for name in inputs if name not in (function.closed_over or ())]
        changed = {name for name in given if not identical(array(inputs[name]), before[name][0])}
        # an operation in place says that the change is meant; where a gradient is taken that makes no difference
        tracked = {
            n
            for n in changed
            if inputs[n].stop_gradient and inputs[n].inplace_version != before[n][1]
        }
        by_forward = [
            *(n for n in function.arrays if n in changed - tracked),
            *seen["changed_by_forward"],
        ]
        interrupted = function.run_elsewhere()
        found = function.gradients(
            outputs, starts, [t for t in inputs.values() if not t.stop_gradient]
        )
    if seen["integer"]:
        raise NoGradient(*seen["integer"])
    gradients = dict(zip((n for n, t in inputs.items() if not t.stop_gradient), found, strict=True))
    late = {
        name
        for name in given
        if name not in changed and not identical(array(inputs[name]), before[name][0])
    }
    by_backward = [*(n for n in function.arrays if n in late), *seen["changed_by_backward"]]
    return Observation(
        changed_by_forward=tuple(dict.fromkeys(by_forward)),
        changed_in_place=tuple(n for n in function.arrays if n in tracked),
        changed_by_backward=tuple(dict.fromkeys(by_backward)),
        aliased=seen["aliased"],
        outputs=arrays,
        gradients=[None if g is None else array(g) for g in (gradients.get(n) for n in inputs)],
        interrupted=interrupted,
    )


def values_elsewhere(array: Array, scale: float) -> Array:
    """Other values of the kind of those in `array`: its elements at the next place of every axis, times `scale`.

    Signs, ranges and a symmetric positive-definite matrix stay what they are, so that forward takes these values too;
    other masks, sums and norms follow from them.
    """
    if not is_differentiable(array):
        return array
    rolled = np.roll(array, 1, axis=tuple(range(array.ndim))) if array.ndim else array
    other = rolled * array.dtype.type(scale)
    return array + array.dtype.type(1 / 8) if identical(other, array) else other


@contextmanager
def watched_layers(
    function: TensorFunction, inputs: dict[str, Tensor], seen: dict[str, tuple[str, ...]]
) -> Iterator[None]:
    """Have every PyLayer note which of its arguments forward changes, which of its cotangents backward changes, and
    what that returns, or leaves out."""
    tensors_in, array, overlap = function.outputs, function.backend.array, function.backend.overlap
    asked: dict[int, tuple[Any, list[Slot], list[tuple[int, ...]]]] = {}
    """By the id of a context: that context, so that no other gets its id, and the slots and the shapes of its call's
    inputs."""

    def listening(owner: type, forward: Callable[..., Any], position: int) -> Callable[..., Any]:
        @functools.wraps(forward)
        def heard(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= position:
                return forward(*args, **kwargs)
            ctx, values = args[position], (*args[position + 1 :], *kwargs.values())
            slots = [slot for value in values if (slot := slot_of(value, function))]
            asked[id(ctx)] = (
                ctx,
                slots,
                [tuple(t.shape) for value in values for t in tensors_in(value)],
            )
            given = gradient_arguments(forward, args[position + 1 :], kwargs, function)
            copies = [array(t).copy() for _, t in given]
            returned = forward(*args, **kwargs)
            # an input that is returned is changed in place, and takes its place in the graph, unless marked otherwise
            marked = getattr(ctx, "not_inplace_tensors", None) or ()
            in_place = [t for t in tensors_in(returned) if not any(t is other for other in marked)]
            written = [
                f"argument {name} of {owner.__name__}"
                for (name, t), copy in zip(given, copies, strict=True)
                if not any(t is other for other in (*in_place, *inputs.values()))
                and not identical(array(t), copy)
            ]
            seen["changed_by_forward"] = (*seen["changed_by_forward"], *written)
            return returned

        return heard

    def watching(owner: type, backward: Callable[..., Any], position: int) -> Callable[..., Any]:
        @functools.wraps(backward)
        def watched(*args: Any) -> Any:
            ctx, cotangents = args[position], args[position + 1 :]
            given = [t for c in cotangents for t in tensors_in(c)]
            copies = [array(t).copy() for t in given]
            returned = backward(*args)
            if not all(identical(array(t), copy) for t, copy in zip(given, copies, strict=True)):
                seen["changed_by_backward"] = ("the incoming gradient",)
            gradients = tensors_in(returned)
            shared = tuple(n for n, t in inputs.items() if any(overlap(t, g) for g in gradients))
            seen["aliased"] = seen["aliased"] or shared
            whole = [str(array(g).dtype) for g in gradients if not is_differentiable(array(g))]
            seen["integer"] = seen["integer"] or tuple(
                f"a gradient of dtype {name}" for name in whole[:1]
            )
            if id(ctx) in asked and gives_less(returned, asked[id(ctx)][1]):
                function.gave_less = True
            if id(ctx) in asked and gives_other_shapes(gradients, asked[id(ctx)][2]):
                function.gave_other_shapes = True
            return returned

        return watched

    with wrapped_methods(
        function.backend.paddle.autograd.PyLayer, {"forward": listening, "backward": watching}
    ):
        yield


def gradient_arguments(
    forward: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    function: TensorFunction,
) -> list[tuple[str, Tensor]]:
    """The Tensors among the arguments of a forward that need a gradient, also in lists and dicts, with the names that
    its signature gives them."""
    try:
        bound = inspect.signature(forward).bind(None, *args, **kwargs).arguments
        named = dict(list(bound.items())[1:])  # the first is the context
    except (TypeError, ValueError):
        named = {**{f"number {k}": value for k, value in enumerate(args)}, **kwargs}
    array = function.backend.array
    return [
        (name, t)
        for name, value in named.items()
        for t in function.outputs(value)
        if not t.stop_gradient and is_differentiable(array(t))
    ]


Slot = tuple[bool, list[bool]]
"""A place in what backward returns: that of a Tensor, or of a list with Tensors, among forward's arguments; whether it
is a list, and for each Tensor, whether it needs a gradient."""


def slot_of(value: Any, function: TensorFunction) -> Slot | None:
    """The slot of an argument; None if it holds no Tensor."""
    is_list = isinstance(value, (list, tuple))
    tensors = function.outputs(
        [one for one in value if not isinstance(one, (list, tuple, dict))] if is_list else value
    )
    if not tensors or isinstance(value, dict):
        return None
    return is_list, [
        not t.stop_gradient and is_differentiable(function.backend.array(t)) for t in tensors
    ]


def gives_less(returned: Any, slots: Sequence[Slot]) -> bool:
    """Whether a backward returned fewer gradients than its inputs have slots, or None where one is needed."""
    values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    flat = not any(isinstance(value, (list, tuple)) for value in values)
    if len(slots) == 1 and slots[0][0] and isinstance(returned, list) and flat:
        values = [returned]
    pairs = [
        (one, need)
        for value, (_, needed) in zip(values, slots, strict=False)
        for one, need in zip(
            value if isinstance(value, (list, tuple)) else [value] * len(needed),
            needed,
            strict=False,
        )
    ]
    return len(values) < len(slots) or any(one is None and need for one, need in pairs)


def gives_other_shapes(gradients: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether a backward that returned a gradient for each input returned one of another shape."""
    if len(gradients) != len(shapes):
        return False
    return any(
        tuple(gradient.shape) != shape for gradient, shape in zip(gradients, shapes, strict=True)
    )


def identical(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, NaN being equal to itself."""
    return bool(((a == b) | ((a != a) & (b != b))).all())
