"""What one forward and backward change beside giving their results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from gradcheck.backends.base import Array, Backend, Tensor, is_differentiable
from gradcheck.case.no_gradient import NoGradient
from gradcheck.checking.problem import Observation


class Observable(Protocol):
    """What is observed: a function of named Tensors on a backend, at given arrays."""

    backend: Backend
    arrays: dict[str, Array]
    gave_less: bool
    """Whether a backward was seen to return fewer gradients than the documents ask for, or None for one."""

    def tensors(self) -> dict[str, Tensor]:
        """The inputs as fresh leaf Tensors."""

    def outputs(self, returned: Any) -> list[Tensor]:
        """The Tensors among what the call returned."""

    def checked_outputs(self, inputs: dict[str, Tensor]) -> list[Tensor]:
        """The outputs for `inputs`."""

    def grad(self, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor]) -> list[Tensor | None]:
        """The gradients of `inputs`."""


def observed(function: Observable, cotangents: Sequence[Array | None]) -> Observation:
    """Run forward and backward once and compare the memory of inputs and cotangents before and after.

    Raises:
        NoGradient: a backward on the way returned integers or booleans.
    """
    inputs = function.tensors()
    array = function.backend.array
    before = {name: (array(t).copy(), t.inplace_version) for name, t in inputs.items()}
    seen: dict[str, tuple[str, ...]] = {"changed_by_backward": (), "aliased": (), "integer": ()}
    found: list[Tensor | None] = []
    with watched_layers(function, inputs, seen):
        outputs = function.checked_outputs(inputs)
        arrays = [array(out).copy() for out in outputs]
        ends = [
            (out, function.backend.tensor(c, array(out).dtype.name, True))
            for out, c in zip(outputs, cotangents, strict=True)
            if c is not None and not out.stop_gradient
        ]
        changed = {name for name, t in inputs.items() if not identical(array(t), before[name][0])}
        tracked = {name for name in changed if inputs[name].inplace_version != before[name][1]}
        wanted = [t for t in inputs.values() if not t.stop_gradient]
        if ends and wanted:
            found = function.grad([o for o, _ in ends], wanted, [c for _, c in ends])
    if seen["integer"]:
        raise NoGradient(*seen["integer"])
    given = dict(zip((n for n, t in inputs.items() if not t.stop_gradient), found, strict=False))
    late = {name for name, t in inputs.items() if name not in changed and not identical(array(t), before[name][0])}
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
def watched_layers(function: Observable, inputs: dict[str, Tensor], seen: dict[str, tuple[str, ...]]) -> Iterator[None]:
    """Have every PyLayer's backward note which of its cotangents it changes, and what it returns, or leaves out."""
    tensors_in, array, overlap = function.outputs, function.backend.array, function.backend.overlap
    asked: dict[int, tuple[Any, list[Slot]]] = {}
    """By the id of a context: that context, so that no other gets its id, and the slots of its call's inputs."""

    def listening(forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def heard(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            asked[id(ctx)] = ctx, [slot for value in (*args, *kwargs.values()) if (slot := slot_of(value, function))]
            return forward(ctx, *args, **kwargs)

        return heard

    def watching(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def watched(ctx: Any, *cotangents: Any) -> Any:
            given = [t for c in cotangents for t in tensors_in(c)]
            copies = [array(t).copy() for t in given]
            returned = backward(ctx, *cotangents)
            if not all(identical(array(t), copy) for t, copy in zip(given, copies, strict=True)):
                seen["changed_by_backward"] = ("the incoming gradient",)
            gradients = tensors_in(returned)
            shared = tuple(n for n, t in inputs.items() if any(overlap(t, g) for g in gradients))
            seen["aliased"] = seen["aliased"] or shared
            whole = [str(array(g).dtype) for g in gradients if not is_differentiable(array(g))]
            seen["integer"] = seen["integer"] or tuple(f"a gradient of dtype {name}" for name in whole[:1])
            if id(ctx) in asked and gives_less(returned, asked[id(ctx)][1]):
                function.gave_less = True
            return returned

        return watched

    wrappers = {"forward": listening, "backward": watching}
    layers = list(subclasses(function.backend.paddle.autograd.PyLayer))
    kept = [(layer, name, vars(layer).get(name)) for layer in layers for name in wrappers]
    kept = [(layer, name, method) for layer, name, method in kept if method and not isinstance(method, classmethod)]
    try:
        for layer, name, method in kept:
            setattr(layer, name, staticmethod(wrappers[name](getattr(method, "__func__", method))))
        yield
    finally:
        for layer, name, method in kept:
            setattr(layer, name, method)


class Slot(NamedTuple):
    """A place in what backward returns: that of a Tensor, or of a list with Tensors, among forward's arguments."""

    is_list: bool
    needed: list[bool]
    """For each Tensor, whether it needs a gradient."""


def slot_of(value: Any, function: Observable) -> Slot | None:
    """The slot of an argument; None if it holds no Tensor."""
    is_list = isinstance(value, (list, tuple))
    tensors = function.outputs([one for one in value if not isinstance(one, (list, tuple, dict))] if is_list else value)
    if not tensors or isinstance(value, dict):
        return None
    return Slot(is_list, [not t.stop_gradient and is_differentiable(function.backend.array(t)) for t in tensors])


def gives_less(returned: Any, slots: Sequence[Slot]) -> bool:
    """Whether a backward returned fewer gradients than its inputs have slots, or None where one is needed."""
    values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    flat = not any(isinstance(value, (list, tuple)) for value in values)
    if len(slots) == 1 and slots[0].is_list and isinstance(returned, list) and flat:
        values = [returned]
    return len(values) < len(slots) or any(map(lacks_gradient, values, slots))


def lacks_gradient(value: Any, slot: Slot) -> bool:
    """Whether None was returned where the gradient of a Tensor is needed."""
    given = value if isinstance(value, (list, tuple)) else [value] * len(slot.needed)
    return any(one is None and needed for one, needed in zip(given, slot.needed, strict=False))


def subclasses(layer: Any) -> Iterator[Any]:
    """All classes that inherit from `layer`."""
    for child in layer.__subclasses__():
        yield child
        yield from subclasses(child)


def identical(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, NaN being equal to itself."""
    return bool(((a == b) | ((a != a) & (b != b))).all())
