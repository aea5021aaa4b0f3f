"""A scenario's layer in static mode: its programs, run by an Executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import compress
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcheck.backends.base import (
    Array,
    Backend,
    Cotangents,
    InputGradients,
    Recordable,
    Tensor,
    flat_tensors,
    is_differentiable,
)
from gradcheck.backends.recomputation import Recomputation
from gradcheck.case.engine_twin import recording_engine
from gradcheck.case.function import (
    Call,
    FirstCall,
    NamespaceCall,
    TensorFunction,
    nothing_claimed,
    one_or_all,
    with_gaps,
    with_zeros,
)
from gradcheck.case.layer import ScenarioLayer, fitting_cotangent
from gradcheck.checking.problem import Observation, Problem
from pylayer.static.pylayer_op import running_eagerly

if TYPE_CHECKING:
    from gradcheck.case.case import Case

InputTypes = tuple[tuple[tuple[int, ...], str], ...]
"""Shapes and dtypes of the inputs."""


class Program(NamedTuple):
    """A program built for one signature."""

    program: Any
    feeds: list[str]
    """The names of fed values."""
    fetches: list[Any]
    """The Variables that are fetched, None for a missing gradient."""
    claimed: list[bool]
    """For each output, whether it claims a gradient."""


class StaticLayer(ScenarioLayer):
    """The layer in static mode, with the gradients of ``paddle.static.gradients``."""

    knows_leaves = True
    default_call = "paddle.static.nn.static_pylayer(forward_fn, [{inputs}], backward_fn)"

    def __init__(self, *arguments: Any, make_eager: Callable[[Backend], ScenarioLayer]) -> None:
        super().__init__(*arguments)
        self.make_eager = make_eager
        """The function that makes the `eager` layer on an engine."""

    @cached_property
    def eager(self) -> ScenarioLayer:
        """The layer in dynamic mode, on the Tensors of an engine that records its functions."""
        return self.make_eager(recording_engine(self.backend))

    def load_call(self, case: Case) -> tuple[Call, list[NamespaceCall]]:
        call_and_sources = super().load_call(case)
        self.namespace.setdefault("backward_fn", None)
        self.programs: dict[Any, Program] = {}
        """Programs built so far, by signature, order and active outputs."""
        self.executor = self.backend.paddle.static.Executor()
        """One executor for all runs, because it caches compiled programs."""
        return call_and_sources

    def program(self, order: int, active: Sequence[bool], arrays: Sequence[Array]) -> Program:
        """The program of a derivative at inputs of these shapes and dtypes; see `run`."""
        signature = tuple((tuple(a.shape), a.dtype.name) for a in arrays)
        key = signature, order, tuple(active)
        if key not in self.programs:
            paddle = self.backend.paddle
            main = paddle.static.Program()
            building = paddle.static.program_guard(main, paddle.static.Program())
            with mode(paddle, static=True), building, self.backend.observing(self.calls):
                self.programs[key] = Program(main, *self.build(*key))
        return self.programs[key]

    def run(
        self,
        order: int,
        active: Sequence[bool],
        arrays: Sequence[Array],
        cotangents: Sequence[Array] = (),
        seconds: Sequence[Array] = (),
    ) -> InputGradients:
        """A derivative: 0 for the outputs, 1 for the gradients, 2 for the second gradients.

        Args:
            active: per output that claims a gradient, whether it takes part in a gradient.
            cotangents: of the active outputs.
            seconds: cotangents of the first gradients.
        """
        program, feeds, fetches, _ = self.program(order, active, arrays)
        values = dict(zip(self.inputs, arrays, strict=True))
        values |= {f"cotangent_{k}": value for k, value in enumerate(cotangents)}
        values |= {f"second_{k}": value for k, value in enumerate(seconds)}
        feed = {name: values[name] for name in feeds}
        is_present, wanted = select_present(fetches)
        with mode(self.backend.paddle, static=True):
            results = self.executor.run(program, feed=feed, fetch_list=wanted)
        tensor = self.backend.tensor
        tensors = [tensor(value, value.dtype.name, stop_gradient=True) for value in results]
        return self.in_places(tensors, is_present)

    def build(
        self, signature: InputTypes, order: int, active: Sequence[bool]
    ) -> tuple[list[str], list[Any], list[bool]]:
        """The feeds and fetches of the program under construction; see `Program`."""

        def feed_variable(name: str, shape: Sequence[int], dtype: Any, stop_gradient: bool) -> Any:
            variable = self.backend.paddle.static.data(name, list(shape), dtype)
            variable.stop_gradient = stop_gradient
            return variable

        inputs = {}
        for (name, spec), (shape, dtype) in zip(self.inputs.items(), signature, strict=True):
            is_real = dtype.startswith(("float", "bfloat", "complex"))
            inputs[name] = feed_variable(name, shape, dtype, spec.stop_gradient or not is_real)
        outputs = self.outputs(self.call(inputs))
        claimed = [not output.stop_gradient for output in outputs]
        if order == 0:
            return list(inputs), outputs, claimed
        ends = [*compress(compress(outputs, claimed), active)]
        starts = [
            feed_variable(f"cotangent_{k}", output.shape, output.dtype, order == 1)
            for k, output in enumerate(ends)
        ]
        wanted = [v for v in inputs.values() if not v.stop_gradient]
        first = static_gradients(self.backend, ends, wanted, starts)
        feeds = [*inputs, *(start.name for start in starts)]
        if order == 1:
            return feeds, first, claimed
        firsts, seconds = [], []
        for k, gradient in enumerate(first):
            if gradient is not None and not gradient.stop_gradient:
                firsts.append(gradient)
                seconds.append(feed_variable(f"second_{k}", gradient.shape, gradient.dtype, True))
        second_gradients = static_gradients(self.backend, firsts, [*wanted, *starts], seconds)
        return [*feeds, *(second.name for second in seconds)], second_gradients, claimed

    def outputs(self, returned: Any) -> list[Any]:
        """The Variables in the result of the call."""
        return flat_tensors(returned, lambda value: hasattr(value, "stop_gradient"))

    @cached_property
    def first_call(self) -> FirstCall:
        """Compute the outputs at the inputs, and which of them have a gradient in the program."""
        arrays = [self.backend.array(t) for t in self.tensors().values()]
        pairs = zip(self.inputs.values(), arrays, strict=True)
        needed = [not spec.stop_gradient and is_differentiable(x) for spec, x in pairs]
        claimed = self.program(0, (), arrays).claimed
        outputs: list[Array] = self.run(0, (), arrays)
        unchecked = nothing_claimed(self.backend, outputs, outputs, claimed)
        return FirstCall(arrays, outputs, claimed, needed, unchecked)

    def run_documented(self, cotangent: Any) -> dict[str, Any]:
        """Run forward and gradients once; `out` in the namespace becomes the outputs' values."""
        first = self.first_call
        outs = self.documented_outputs = first.outputs
        self.namespace["out"] = one_or_all(outs)
        starts = [np.ones_like(output) for output in compress(outs, first.claimed)]
        if not starts or not any(first.needed):
            return dict.fromkeys(self.inputs)
        if cotangent is not None:
            starts[0] = fitting_cotangent(cotangent, starts[0].shape).astype(starts[0].dtype)
        return dict(zip(self.inputs, self.vjp(first.inputs, starts), strict=True))

    # ------------------------------------- for the gradient check
    def problem(self) -> Problem:
        return replace(super().problem(), observe=lambda cotangents: Observation())

    def recomputation(
        self, recordable_of: Callable[[TensorFunction], Recordable], takes_gradients: bool = False
    ) -> Recomputation | None:
        """Recorded only in the reference run: an Executor's run cannot be recorded."""
        return super().recomputation(recordable_of, takes_gradients) if self.twin else None

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        claimed = self.program(0, (), arrays).claimed
        return [*compress(self.run(0, (), arrays), claimed)]

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents) -> InputGradients:
        active, active_cotangents = select_present(cotangents)
        return with_gaps(self.run(1, active, arrays, active_cotangents), self.first_call.needed)

    def double_vjp(
        self,
        arrays: Sequence[Array],
        cotangents: Cotangents,
        second: Cotangents,
    ) -> InputGradients:
        active, active_cotangents = select_present(cotangents)
        seconds = with_zeros(second, compress(arrays, self.first_call.needed))
        gradients = self.run(2, active, arrays, active_cotangents, seconds)
        return with_gaps(gradients, self.first_call.needed + [True] * len(active_cotangents))


class EagerStaticLayer(ScenarioLayer):
    """The functions of a static layer, called like those of a PyLayer so that they can be
    recorded.
    """

    knows_leaves = True
    default_call = StaticLayer.default_call

    def evaluate(self, tensors: dict[str, Tensor]) -> Any:
        with mode(self.backend.paddle, static=False), running_eagerly():
            return super().evaluate(tensors)


def select_present(values: Sequence[Any]) -> tuple[list[bool], list[Any]]:
    """For each value, whether it is not None; and the values that are not."""
    flags = [value is not None for value in values]
    return flags, [*compress(values, flags)]


def static_gradients(
    backend: Backend, outputs: list[Any], inputs: list[Any], cotangents: list[Any]
) -> list[Any]:
    """Take the gradients by ``paddle.static.gradients``.

    Before 3.0, Paddle ignores cotangents given for the outputs of a static_pylayer; there, the sum
    of outputs times cotangents is differentiated.
    """
    gradients: Callable[..., list[Any]] = backend.paddle.static.gradients
    if backend.name == "paddle" and int(backend.paddle.__version__.partition(".")[0]) < 3:
        pairs = zip(outputs, cotangents, strict=True)
        return gradients([(output * cotangent).sum() for output, cotangent in pairs], inputs)
    return gradients(outputs, inputs, cotangents)


@contextmanager
def mode(paddle: ModuleType, static: bool) -> Iterator[None]:
    """Static or dynamic mode within the ``with`` block."""
    switch: tuple[Callable[[], None], Callable[[], None]] = (
        paddle.disable_static,
        paddle.enable_static,
    )
    before = switch[not paddle.in_dynamic_mode()]
    switch[static]()
    try:
        yield
    finally:
        before()
