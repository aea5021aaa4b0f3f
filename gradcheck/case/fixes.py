"""The search for a fix of a wrong gradient: a single edit of a hand-written backward in the
call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

from gradcheck.backends.base import package_of
from gradcheck.case.function import TensorFunction
from gradcheck.case.layer_calls import LayerCalls, definer, wrapped_methods, written_backward
from gradcheck.case.static_calls import applied_functions, replaced_backward_fn
from gradcheck.case.static_layer import StaticLayer
from gradcheck.deriving.call import AppliedCall, LayerCall, on_engine, static_call
from gradcheck.deriving.repair import Repair
from gradcheck.result import Fix
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor

FunctionPasses = Callable[[TensorFunction], bool]
"""Whether the gradient check passes a function."""
MOST_LAYERS = 8
"""The most layers of one call that are searched."""


def fix_of(function: TensorFunction, passes: FunctionPasses, deadline: float) -> Fix | None:
    """The edit of a backward that corrects the gradient of a function; None if none is found before
    a deadline, by `time.monotonic`.

    Exceptions of the layers are swallowed: the verdict stands.
    """
    if function.layers_by_name:  # ranks run only in a world
        return None
    if isinstance(function, StaticLayer):
        with suppress(Exception):
            return fix_of_static(function, passes, deadline)
        return None
    for original, call in calls_on_engine(function):

        def passes_with(backward: Any, layer: Any = original) -> bool:
            with replaced_backward(layer, in_scope_of(written_backward(layer), backward)):
                return passes(function.at(function.arrays))

        with suppress(Exception):
            fix = Repair(*call_and_backward(*call), passes_with).fix(deadline=deadline)
            if fix is not None:
                return fix
    return None


def fix_of_static(layer: StaticLayer, passes: FunctionPasses, deadline: float) -> Fix | None:
    """The edit of a `backward_fn` that corrects the gradient of a static layer; None if no edit
    is found.

    Raises:
        NotDerived: the layer's functions run only in programs.
    """
    for arguments in applied_functions(layer):
        *_, backward_fn, _ = arguments

        def passes_with(backward: Any, replaced: Any = backward_fn) -> bool:
            with replaced_backward_fn(layer, replaced, backward) as changed:
                return passes(changed)

        with suppress(Exception):
            fix = Repair(static_call(*arguments), backward_fn, passes_with).fix(deadline=deadline)
            if fix is not None:
                return fix
    return None


def calls_on_engine(function: TensorFunction) -> Iterator[tuple[Any, AppliedCall]]:
    """The layers that a call applies, each with the engine's layer (the same or its copy) and that
    layer's call.
    """
    known = forward_calls(function)[:MOST_LAYERS]
    if function.backend.name == "numpy":
        yield from ((call[0], call) for call in known)
    elif function.twin is not None:
        yield from zip([layer for layer, _, _ in known], forward_calls(function.twin), strict=False)
    else:
        for layer, args, kwargs in known:
            if (engine_call := on_engine(function.backend, layer, args)) is not None:
                yield layer, (*engine_call, kwargs)


def in_scope_of(original: Any, backward: Any) -> Any:
    """An edited backward that uses the names of the original: those of an installed Paddle, if the
    search ran on the engine.
    """
    before = inspect.unwrap(original)
    scope = {**before.__globals__, **inspect.getclosurevars(before).nonlocals}
    return FunctionType(backward.__code__, scope, backward.__name__, backward.__defaults__)


def call_and_backward(
    layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[LayerCall, Callable[..., Any]]:
    """The call of a layer, or of the function of arrays behind it, and the user's hand-written
    backward.
    """
    backward = written_backward(layer)
    if not hasattr(layer, "pair"):
        return LayerCall.of(layer, args, kwargs), backward
    *arguments, keywords = mapped(args[0](), lambda v: v.numpy() if isinstance(v, Tensor) else v)
    return LayerCall.of(layer.pair[0], arguments, keywords, takes_arrays=True), backward


def forward_calls(function: TensorFunction) -> list[AppliedCall]:
    """The layers that a call applies, each with the arguments of its first forward."""
    first_calls: dict[Any, AppliedCall] = {}

    def note_calls(owner: type, forward: Callable[..., Any], position: int) -> Callable[..., Any]:
        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            layer = calls.latest[0]
            if layer is not None and package_of(layer) not in calls.libraries:
                first_calls.setdefault(layer, (layer, args[position + 1 :], kwargs))
            return forward(*args, **kwargs)

        return call

    calls = LayerCalls(function.backend)
    wrapping = wrapped_methods(function.backend, {"forward": note_calls}, only_applied=True)
    with suppress(Exception), wrapping as calls.wrap, function.backend.observing(calls):
        function.call(function.tensors())
    return list(first_calls.values())


@contextmanager
def replaced_backward(layer: Any, backward: Callable[..., Any]) -> Iterator[None]:
    """A block in which a layer's backward is replaced."""
    name = "pair" if hasattr(layer, "pair") else "backward"
    owner = definer(layer, name)
    before = vars(owner)[name]
    changed = (before[0], backward) if name == "pair" else staticmethod(backward)
    setattr(owner, name, changed)
    try:
        yield
    finally:
        setattr(owner, name, before)
