"""A static layer, ``forward_fn`` and ``backward_fn``, as something to call: each call builds or reuses a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, flat_tensors, is_differentiable
from gradcheck.case.layer import ScenarioLayer, fitting_cotangent
from gradcheck.checking.problem import Problem

InputTypes = tuple[tuple[tuple[int, ...], str], ...]
"""Shapes and dtypes of the inputs."""


class Program(NamedTuple):
    """A program built for one signature: what is fed, in order, and what is fetched."""

    program: Any
    feeds: list[str]
    fetches: list[Any]


class StaticLayer(ScenarioLayer):
    """The layer in static mode. Its gradients are those that ``paddle.static.gradients`` gives, run by an Executor."""

    default_call = "paddle.static.nn.static_pylayer(forward_fn, [{inputs}], backward_fn)"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.namespace.setdefault("backward_fn", None)
        self.programs: dict[Any, Program] = {}
        self.executor = self.backend.paddle.static.Executor()
        """One for all runs: it keeps what it compiled."""

    # ----------------------------------------------------------------- building
    def build(self, signature: InputTypes, order: int, active: tuple[bool, ...] | None) -> Program:
        """The program of a derivative: 0 for the outputs, 1 for the gradients, 2 for the gradients of those.

        `active` says which outputs take part; None for all that claim a gradient.
        """
        key = signature, order, active
        if key not in self.programs:
            paddle = self.backend.paddle
            main = paddle.static.Program()
            with static_mode(paddle), paddle.static.program_guard(main, paddle.static.Program()):
                feeds, fetches = self.built(signature, order, active)
            self.programs[key] = Program(main, feeds, fetches)
        return self.programs[key]

    def built(self, signature: InputTypes, order: int, active: tuple[bool, ...] | None) -> tuple[list[str], list[Any]]:
        """Names to feed and Variables to fetch of the program that is being built."""
        paddle = self.backend.paddle
        inputs = {}
        for (name, spec), (shape, dtype) in zip(self.inputs.items(), signature, strict=True):
            inputs[name] = paddle.static.data(name, list(shape), dtype)
            inputs[name].stop_gradient = spec.stop_gradient or not is_floating(dtype)
        returned = self(inputs)
        outputs = self.outputs(returned)
        if not self.claimed:
            self.claimed = [not output.stop_gradient for output in outputs]
        checked = [output for output, claimed in zip(outputs, self.claimed, strict=True) if claimed]
        if order == 0:
            return list(inputs), outputs
        ends = [out for k, out in enumerate(checked) if active is None or active[k]]
        starts = [self.cotangent_data(f"cotangent_{k}", out, order == 1) for k, out in enumerate(ends)]
        wanted = [v for v in inputs.values() if not v.stop_gradient]
        first = self.backend.static_gradients(ends, wanted, starts)
        feeds = [*inputs, *(s.name for s in starts)]
        if order == 1:
            return feeds, first
        present = [(k, g) for k, g in enumerate(first) if g is not None and not g.stop_gradient]
        seconds = [self.cotangent_data(f"second_{k}", g, True) for k, g in present]
        found = self.backend.static_gradients([g for _, g in present], [*wanted, *starts], seconds)
        return [*feeds, *(s.name for s in seconds)], found

    def cotangent_data(self, name: str, like: Any, stop_gradient: bool) -> Any:
        """A fed Variable of the shape and dtype of `like`."""
        data = self.backend.paddle.static.data(name, list(like.shape), like.dtype)
        data.stop_gradient = stop_gradient
        return data

    def outputs(self, returned: Any) -> list[Any]:
        """The Variables among what the call returned."""
        return flat_tensors(returned, lambda value: hasattr(value, "stop_gradient"))

    # ----------------------------------------------------------------- running
    def run(self, program: Program, values: Sequence[Array]) -> list[Array]:
        """What the program fetches; None for a gradient that there is not."""
        paddle, backend = self.backend.paddle, self.backend
        live = [f for f in program.fetches if f is not None]
        feed = {name: to_host(value) for name, value in zip(program.feeds, values, strict=True)}
        with static_mode(paddle):
            found = iter(self.executor.run(program.program, feed=feed, fetch_list=live))
        fetched = [None if f is None else next(found) for f in program.fetches]
        return [None if v is None else backend.array(backend.tensor(v, v.dtype.name, True)) for v in fetched]

    def documented(self, cotangent: Any) -> dict[str, Any]:
        """Run forward and gradients once; `out` in the namespace becomes the outputs' values."""
        arrays = [self.backend.array(t) for t in self.tensors().values()]
        outs = self.run(self.build(self.signature(arrays), 0, None), arrays)
        self.namespace["out"] = outs[0] if len(outs) == 1 else outs
        needed = [name for name, x in zip(self.inputs, arrays, strict=True) if self.differentiable(name, x)]
        starts = [np.ones_like(to_host(out)) for out, claimed in zip(outs, self.claimed, strict=True) if claimed]
        if not starts or not needed:
            return dict.fromkeys(self.inputs)
        if cotangent is not None:
            starts[0] = fitting_cotangent(cotangent, starts[0].shape).astype(starts[0].dtype)
        found = self.run(self.build(self.signature(arrays), 1, None), [*arrays, *starts])
        return {**dict.fromkeys(self.inputs), **dict(zip(needed, found, strict=True))}

    def documented_outputs(self) -> Sequence[Any]:
        outs = self.namespace["out"]
        return outs if isinstance(outs, list) else [outs]

    def differentiable(self, name: str, array: Array) -> bool:
        """Whether an input takes a gradient."""
        return not self.inputs[name].stop_gradient and is_differentiable(array)

    def signature(self, arrays: Sequence[Array]) -> InputTypes:
        """Shapes and dtypes."""
        return tuple((tuple(a.shape), a.dtype.name) for a in arrays)

    # ----------------------------------------------------------------- as the gradient check sees it
    def problem(self) -> Problem:
        """The layer on arrays, with the vjp that ``backward_fn`` claims."""
        arrays = [self.backend.array(t) for t in self.tensors().values()]
        self.needed = [self.differentiable(name, x) for name, x in zip(self.inputs, arrays, strict=True)]
        outs = self.forward(arrays)
        return Problem(
            names=list(self.inputs),
            inputs=arrays,
            differentiable=self.needed,
            output_names=["out"] if len(outs) == 1 else [f"out[{k}]" for k in range(len(outs))],
            forward=self.forward,
            vjp=self.vjp,
        )

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        outs = self.run(self.build(self.signature(arrays), 0, None), arrays)
        return [out for out, claimed in zip(outs, self.claimed, strict=True) if claimed]

    def vjp(self, arrays: Sequence[Array], cotangents: Sequence[Array | None]) -> list[Array | None]:
        active = tuple(c is not None for c in cotangents)
        if not any(active):
            return [None] * len(arrays)
        given = [c for c in cotangents if c is not None]
        found = iter(self.run(self.build(self.signature(arrays), 1, active), [*arrays, *given]))
        return [next(found) if need else None for need in self.needed]

    def double_vjp(
        self,
        point: tuple[Sequence[Array], Sequence[Array | None]],
        second: Sequence[Array | None],
    ) -> list[Array | None]:
        arrays, starts = point
        active = tuple(c is not None for c in starts)
        given = [c for c in starts if c is not None]
        program = self.build(self.signature(arrays), 2, active)
        wanted = [x for x, need in zip(arrays, self.needed, strict=True) if need]
        numbers = [int(name.rpartition("_")[2]) for name in program.feeds[len(arrays) + len(given) :]]
        seconds = [wanted[k] * 0 if (c := second[k]) is None else c for k in numbers]
        found = iter(self.run(program, [*arrays, *given, *seconds]))
        return [next(found) if need else None for need in [*self.needed, *(True for _ in given)]]


@contextmanager
def static_mode(paddle: ModuleType) -> Iterator[None]:
    """Static mode within the ``with`` block."""
    before: Callable[[], None] = paddle.disable_static if paddle.in_dynamic_mode() else paddle.enable_static
    paddle.enable_static()
    try:
        yield
    finally:
        before()


def is_floating(dtype: str) -> bool:
    """Whether values of the named dtype have gradients."""
    return dtype.startswith(("float", "bfloat", "complex"))


def to_host(array: Array) -> np.ndarray[Any, Any]:
    """The array in NumPy's memory."""
    return array if isinstance(array, np.ndarray) else array.get()
