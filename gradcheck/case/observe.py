"""What one forward and backward change beside giving their results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from gradcheck.backends.base import Array, Backend, Tensor, is_differentiable
from gradcheck.case.agreement import same
from gradcheck.case.no_gradient import NoGradient
from gradcheck.checker.problem import Observation


class Observed(Protocol):
    """What is observed: a function of named Tensors on a backend, at given arrays."""

    backend: Backend
    arrays: dict[str, Array]

    def tensors(self) -> dict[str, Tensor]:
        """The inputs as fresh leaf Tensors."""

    def outputs(self, returned: Any) -> list[Tensor]:
        """The Tensors among what the call returned."""

    def checked_outputs(self, inputs: dict[str, Tensor]) -> list[Tensor]:
        """The outputs for `inputs`."""

    def grad(self, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor]) -> list[Tensor | None]:
        """The gradients of `inputs`."""


def observed(function: Observed, cotangents: Sequence[Array | None]) -> Observation:
    """Run forward and backward once and compare the memory of inputs and cotangents before and after.

    Raises:
        NoGradient: a backward on the way returned integers or booleans.
    """
    inputs = function.tensors()
    array = function.backend.array
    before = {name: (array(t).copy(), t.inplace_version) for name, t in inputs.items()}
    seen: dict[str, tuple[str, ...]] = {"changed_by_backward": (), "aliased": (), "integer": ()}
    found: list[Tensor | None] = []
    with watched_backward(function, inputs, seen):
        outputs = function.checked_outputs(inputs)
        arrays = [array(out).copy() for out in outputs]
        ends = [
            (out, function.backend.tensor(c, array(out).dtype.name, True))
            for out, c in zip(outputs, cotangents, strict=True)
            if c is not None and not out.stop_gradient
        ]
        changed = {name for name, t in inputs.items() if not same(array(t), before[name][0])}
        tracked = {name for name in changed if inputs[name].inplace_version != before[name][1]}
        wanted = [t for t in inputs.values() if not t.stop_gradient]
        if ends and wanted:
            found = function.grad([o for o, _ in ends], wanted, [c for _, c in ends])
    if seen["integer"]:
        raise NoGradient(*seen["integer"])
    given = dict(zip((n for n, t in inputs.items() if not t.stop_gradient), found, strict=False))
    late = {name for name, t in inputs.items() if name not in changed and not same(array(t), before[name][0])}
    by_backward = [*(n for n in function.arrays if n in late), *seen["changed_by_backward"]]
    return Observation(
        changed_by_forward=tuple(n for n in function.arrays if n in changed - tracked),
        changed_in_place=tuple(n for n in function.arrays if n in tracked),
        changed_by_backward=tuple(dict.fromkeys(by_backward)),
        aliased=seen["aliased"],
        outputs=arrays,
        gradients=[None if g is None else array(g) for g in (given.get(n) for n in inputs)],
    )


@contextmanager
def watched_backward(function: Observed, inputs: dict[str, Tensor], seen: dict[str, tuple[str, ...]]) -> Iterator[None]:
    """Have every PyLayer's backward note which of its cotangents it changes, and what it returns."""
    tensors_in, array, overlap = function.outputs, function.backend.array, function.backend.overlap

    def watching(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def watched(ctx: Any, *cotangents: Any) -> Any:
            given = [t for c in cotangents for t in tensors_in(c)]
            copies = [array(t).copy() for t in given]
            returned = backward(ctx, *cotangents)
            if not all(same(array(t), copy) for t, copy in zip(given, copies, strict=True)):
                seen["changed_by_backward"] = ("the incoming gradient",)
            gradients = tensors_in(returned)
            shared = tuple(n for n, t in inputs.items() if any(overlap(t, g) for g in gradients))
            seen["aliased"] = seen["aliased"] or shared
            whole = [str(array(g).dtype) for g in gradients if not is_differentiable(array(g))]
            seen["integer"] = seen["integer"] or tuple(f"a gradient of dtype {name}" for name in whole[:1])
            return returned

        return watched

    layers = list(subclasses(function.backend.paddle.autograd.PyLayer))
    kept = [(layer, vars(layer).get("backward")) for layer in layers]
    kept = [(layer, method) for layer, method in kept if method and not isinstance(method, classmethod)]
    try:
        for layer, method in kept:
            layer.backward = staticmethod(watching(getattr(method, "__func__", method)))
        yield
    finally:
        for layer, method in kept:
            layer.backward = method


def subclasses(layer: Any) -> Iterator[Any]:
    """All classes that inherit from `layer`."""
    for child in layer.__subclasses__():
        yield child
        yield from subclasses(child)
