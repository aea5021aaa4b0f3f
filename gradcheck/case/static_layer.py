"""A static layer, ``forward_fn`` and ``backward_fn``, as something to call: each call builds or reuses a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Backend, flat_tensors, is_differentiable
from gradcheck.case.function import output_names, placed
from gradcheck.case.layer import ScenarioLayer, fitting_cotangent
from gradcheck.checking.problem import Problem

if TYPE_CHECKING:
    from gradcheck.case.case import Case

InputTypes = tuple[tuple[tuple[int, ...], str], ...]
"""Shapes and dtypes of the inputs."""
Active = tuple[bool, ...] | None
"""Which of the outputs that claim a gradient take part; None for all."""


class Program(NamedTuple):
    """A program built for one signature: the names of what is fed, and what is fetched."""

    program: Any
    feeds: list[str]
    fetches: list[Any]


class StaticLayer(ScenarioLayer):
    """The layer in static mode. Its gradients are those that ``paddle.static.gradients`` gives, run by an Executor."""

    default_call = "paddle.static.nn.static_pylayer(forward_fn, [{inputs}], backward_fn)"

    def begin(self, case: Case) -> None:
        super().begin(case)
        self.namespace.setdefault("backward_fn", None)
        self.programs: dict[Any, Program] = {}
        self.executor = self.backend.paddle.static.Executor()
        """One for all runs: it keeps what it compiled."""

    def run(
        self,
        order: int,
        active: Active,
        arrays: Sequence[Array],
        cotangents: Sequence[Array] = (),
        seconds: Sequence[Array] = (),
    ) -> list[Array]:
        """A derivative: 0 for the outputs, 1 for the gradients, 2 for the gradients of those; None where there is none.

        Args:
            cotangents: of the active outputs.
            seconds: of the first gradients.
        """
        paddle, backend = self.backend.paddle, self.backend
        key = tuple((tuple(a.shape), a.dtype.name) for a in arrays), order, active
        if key not in self.programs:
            main = paddle.static.Program()
            with static_mode(paddle), paddle.static.program_guard(main, paddle.static.Program()):
                self.programs[key] = Program(main, *self.built(*key))
        program, feeds, fetches = self.programs[key]
        values = dict(zip(self.inputs, arrays, strict=True))
        values |= {f"cotangent_{k}": one for k, one in enumerate(cotangents)}
        values |= {f"second_{k}": one for k, one in enumerate(seconds)}
        with static_mode(paddle):
            feed = {name: to_host(values[name]) for name in feeds}
            found = self.executor.run(program, feed=feed, fetch_list=[f for f in fetches if f is not None])
        fetched = placed(found, [f is not None for f in fetches])
        return [None if v is None else backend.array(backend.tensor(v, v.dtype.name, True)) for v in fetched]

    def built(self, signature: InputTypes, order: int, active: Active) -> tuple[list[str], list[Any]]:
        """Names to feed and Variables to fetch of the program that is being built."""
        data = self.backend.paddle.static.data
        inputs = {}
        for (name, spec), (shape, dtype) in zip(self.inputs.items(), signature, strict=True):
            inputs[name] = data(name, list(shape), dtype)
            inputs[name].stop_gradient = spec.stop_gradient or not dtype.startswith(("float", "bfloat", "complex"))
        outputs = self.outputs(self.call(inputs))
        if not self.claimed:
            self.claimed = [not output.stop_gradient for output in outputs]
        if order == 0:
            return list(inputs), outputs

        def fed(name: str, like: Any, stop_gradient: bool) -> Any:
            variable = data(name, list(like.shape), like.dtype)
            variable.stop_gradient = stop_gradient
            return variable

        checked = [output for output, claimed in zip(outputs, self.claimed, strict=True) if claimed]
        ends = [out for k, out in enumerate(checked) if active is None or active[k]]
        starts = [fed(f"cotangent_{k}", out, order == 1) for k, out in enumerate(ends)]
        wanted = [v for v in inputs.values() if not v.stop_gradient]
        first = static_gradients(self.backend, ends, wanted, starts)
        feeds = [*inputs, *(s.name for s in starts)]
        if order == 1:
            return feeds, first
        present = [(k, g) for k, g in enumerate(first) if g is not None and not g.stop_gradient]
        seconds = [fed(f"second_{k}", g, True) for k, g in present]
        found = static_gradients(self.backend, [g for _, g in present], [*wanted, *starts], seconds)
        return [*feeds, *(s.name for s in seconds)], found

    def outputs(self, returned: Any) -> list[Any]:
        """The Variables among what the call returned."""
        return flat_tensors(returned, lambda value: hasattr(value, "stop_gradient"))

    def begun(self) -> list[Array]:
        """The inputs, once it is known which take a gradient."""
        arrays = [self.backend.array(t) for t in self.tensors().values()]
        pairs = zip(self.inputs.values(), arrays, strict=True)
        self.needed = [not spec.stop_gradient and is_differentiable(x) for spec, x in pairs]
        return arrays

    def documented(self, cotangent: Any) -> dict[str, Any]:
        """Run forward and gradients once; `out` in the namespace becomes the outputs' values."""
        arrays = self.begun()
        outs = self.documented_outputs = self.run(0, None, arrays)
        self.namespace["out"] = outs[0] if len(outs) == 1 else outs
        starts = [np.ones_like(to_host(out)) for out, claimed in zip(outs, self.claimed, strict=True) if claimed]
        if not starts or not any(self.needed):
            return dict.fromkeys(self.inputs)
        if cotangent is not None:
            starts[0] = fitting_cotangent(cotangent, starts[0].shape).astype(starts[0].dtype)
        found = self.run(1, None, arrays, starts)
        return dict(zip(self.inputs, placed(found, self.needed), strict=True))

    # ----------------------------------------------------------------- as the gradient check sees it
    def problem(self) -> Problem:
        """The layer on arrays, with the vjp that ``backward_fn`` claims."""
        arrays = self.begun()
        return Problem(
            names=list(self.inputs),
            inputs=arrays,
            differentiable=self.needed,
            output_names=output_names(len(self.forward(arrays))),
            forward=self.forward,
            vjp=self.vjp,
        )

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        outs = self.run(0, None, arrays)
        return [out for out, claimed in zip(outs, self.claimed, strict=True) if claimed]

    def vjp(self, arrays: Sequence[Array], cotangents: Sequence[Array | None]) -> list[Array | None]:
        active = tuple(c is not None for c in cotangents)
        if not any(active):
            return [None] * len(arrays)
        return placed(self.run(1, active, arrays, [c for c in cotangents if c is not None]), self.needed)

    def double_vjp(
        self, arrays: Sequence[Array], cotangents: Sequence[Array | None], second: Sequence[Array | None]
    ) -> list[Array | None]:
        given = [c for c in cotangents if c is not None]
        wanted = [x for x, need in zip(arrays, self.needed, strict=True) if need]
        seconds = [x * 0 if c is None else c for x, c in zip(wanted, second, strict=True)]
        found = self.run(2, tuple(c is not None for c in cotangents), arrays, given, seconds)
        return placed(found, [*self.needed, *(True for _ in given)])


def static_gradients(backend: Backend, outputs: list[Any], inputs: list[Any], cotangents: list[Any]) -> list[Any]:
    """As ``paddle.static.gradients`` gives them.

    Before 3.0 Paddle finds no cotangents that are given for the outputs of a static_pylayer: there they come from the
    sum of the products of both.
    """
    gradients: Callable[..., list[Any]] = backend.paddle.static.gradients
    if backend.name == "paddle" and int(backend.paddle.__version__.partition(".")[0]) < 3:
        return gradients([(out * cotangent).sum() for out, cotangent in zip(outputs, cotangents, strict=True)], inputs)
    return gradients(outputs, inputs, cotangents)


@contextmanager
def static_mode(paddle: ModuleType) -> Iterator[None]:
    """Static mode within the ``with`` block."""
    before: Callable[[], None] = paddle.disable_static if paddle.in_dynamic_mode() else paddle.enable_static
    paddle.enable_static()
    try:
        yield
    finally:
        before()


def to_host(array: Array) -> np.ndarray[Any, Any]:
    """The array in NumPy's memory."""
    return array if isinstance(array, np.ndarray) else array.get()
