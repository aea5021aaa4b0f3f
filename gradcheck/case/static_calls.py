"""Functions that a scenario's static layer uses, and replacement of its `backward_fn`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from gradcheck.case.engine_twin import matching_twin
from gradcheck.case.static_layer import StaticLayer, mode
from gradcheck.deriving.graph import NotDerived
from gradcheck.spec.containers import in_variables
from gradcheck.support.foreign import describe_error
from pylayer.static.pylayer_op import running_eagerly
from pylayer.tensor.tensor import Tensor

AppliedFunctions = tuple[Any, Sequence[Any], Any, Mapping[str, Tensor]]
"""The forward_fn, the inputs and the backward_fn of a `static_pylayer`, and the Variables that the
functions can read, by name. All Variables are replaced by Tensors of the engine.
"""


def applied_functions(layer: StaticLayer) -> list[AppliedFunctions]:
    """The functions that a layer passes to `static_pylayer`, in the order of the calls.

    Raises NotDerived: the functions run only in programs.
    """
    applied: list[AppliedFunctions] = []

    def note_call(forward_fn: Any, inputs: Sequence[Any], backward_fn: Any) -> Any:
        applied.append((forward_fn, inputs, backward_fn, variables))
        return forward_fn(*inputs)  # without the backward, which may be wrong

    try:
        eager = layer.eager
        tensors = eager.tensors()
        named = in_variables(tensors).items()
        variables = {name: value for name, value in named if isinstance(value, Tensor)}
        with mode(eager.backend.paddle, static=False), running_eagerly(note_call):
            eager.call(tensors)
    except Exception as error:
        reason = f"forward_fn does not run on Tensors: {describe_error(error)}"
        raise NotDerived(reason) from None
    return applied


@contextmanager
def replaced_backward_fn(
    layer: StaticLayer, old: Any, backward: FunctionType
) -> Iterator[StaticLayer]:
    """A block in which the layer's code has another `backward_fn`; it yields the layer, whose
    programs are built again.

    Raises:
        NotDerived: `old` has no name in the layer's code.
    """
    scopes = [layer.namespace, layer.eager.namespace]
    names = [name for name, value in scopes[1].items() if value is old]
    if not names:
        raise NotDerived("backward_fn is not a function at the top level of the layer's code")
    before = [scope[names[0]] for scope in scopes]
    changed: Any = layer.at(layer.arrays)
    changed.programs = {}
    try:
        for scope in scopes:
            scope[names[0]] = FunctionType(
                backward.__code__, scope, backward.__name__, backward.__defaults__
            )
        changed.twin = matching_twin(changed, lambda engine: layer.eager.at(layer.eager.arrays))
        yield changed
    finally:
        for scope, function in zip(scopes, before, strict=True):
            scope[names[0]] = function
