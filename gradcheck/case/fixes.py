"""The fix of a wrong gradient: the one edit of a hand-written backward, among those that a call
runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gradcheck.backends.base import package_of
from gradcheck.case.function import TensorFunction
from gradcheck.case.layer_calls import LayerCalls, wrapped_methods
from gradcheck.deriving.call import LayerCall
from gradcheck.deriving.repair import Repair
from gradcheck.result import Fix

FunctionPasses = Callable[[TensorFunction], bool]
"""Whether the gradient check passes a function."""
MOST_LAYERS = 8
"""Layers of one call that are looked at."""


def fix_of(function: TensorFunction, passes: FunctionPasses) -> Fix | None:
    """The edit of a backward that makes the gradient of a function right; None if none is found.

    Nothing that the layers raise comes through: the verdict stands.
    """
    if function.backend.name != "numpy" or function.layers_by_name:  # ranks run in a world alone
        return None
    for layer, args, kwargs in forward_calls(function)[:MOST_LAYERS]:

        def passes_with(backward: Any, layer: Any = layer) -> bool:
            with replaced_backward(layer, backward):
                return passes(function.at(function.arrays))

        with suppress(Exception):
            call = LayerCall.of(layer, args, kwargs)
            fix = Repair(call, layer.backward, passes_with).fix()
            if fix is not None:
                return fix
    return None


def forward_calls(function: TensorFunction) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The layers that a call applies, each with the arguments of its first forward."""
    found: dict[Any, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}

    def watched(owner: type, forward: Callable[..., Any], position: int) -> Callable[..., Any]:
        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            layer = calls.latest[0]
            if layer is not None and package_of(layer) not in calls.libraries:
                found.setdefault(layer, (layer, args[position + 1 :], kwargs))
            return forward(*args, **kwargs)

        return call

    calls = LayerCalls(function.backend)
    wrapping = wrapped_methods(function.backend, {"forward": watched}, only_applied=True)
    with suppress(Exception), wrapping as calls.wrap, function.backend.observing(calls):
        function.call(function.tensors())
    return list(found.values())


class replaced_backward:  # noqa: N801 - reads as a block
    """A block in which a layer has another backward."""

    def __init__(self, layer: Any, backward: Callable[..., Any]) -> None:
        self.layer, self.backward = layer, backward
        self.owner = next(cls for cls in layer.__mro__ if "backward" in vars(cls))
        self.before = vars(self.owner)["backward"]

    def __enter__(self) -> None:
        self.owner.backward = staticmethod(self.backward)

    def __exit__(self, *raised: object) -> None:
        self.owner.backward = self.before
