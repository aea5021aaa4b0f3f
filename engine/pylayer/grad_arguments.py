"""The arguments of backward and grad, checked as Paddle does, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.array import XP
from pylayer.graph import Cotangent, Target
from pylayer.symbol import recording
from pylayer.tensor import Tensor


def checked_tensors(name: str, value: Any) -> list[Tensor]:
    """A Tensor or a list of some, as a list.

    Raises:
        AssertionError: it is neither, or empty.
    """
    if value is None:
        raise AssertionError(f"{name} should not be None")
    if not isinstance(value, (Tensor, list, tuple)):
        raise AssertionError(f"{name} must be Tensor or list of Tensor, but got {type(value).__name__}.")
    tensors = [value] if isinstance(value, Tensor) else list(value)
    if not tensors:
        raise AssertionError(f"{name} cannot be empty")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"Elements of {name} must be paddle.Tensor, but got {type(tensor).__name__}.")
    return tensors


def check_dynamic() -> None:
    """Raise AssertionError in static mode, in which there are no gradients at once."""
    if recording.get() is not None:
        raise AssertionError(
            "We only support 'grad()' in dynamic graph mode, please call 'paddle.disable_static()' to enter dynamic "
            "graph mode. In a program take paddle.static.gradients."
        )


def check_distinct(name: str, tensors: Sequence[Tensor]) -> None:
    """Raise RuntimeError if one of the Tensors is given twice."""
    seen: set[int] = set()
    for tensor in tensors:
        if id(tensor) in seen:
            raise RuntimeError(
                f"(AlreadyExists) {name} contain duplicate tensor {tensor.name}, please check {name} carefully. "
                f"Give each Tensor once."
            )
        seen.add(id(tensor))


def checked_cotangents(name: str, own: str, outputs: Sequence[Tensor], value: Any) -> list[Tensor | None]:
    """One cotangent or None per output, of the argument `own`; none at all for None and an empty list.

    Raises:
        AssertionError: they are not as many, or one is neither a Tensor nor None.
    """
    cotangents = [value] if isinstance(value, Tensor) else value
    if not isinstance(cotangents, (list, tuple, type(None))) or not all(
        isinstance(c, (Tensor, type(None))) for c in cotangents or ()
    ):
        raise AssertionError(f"{own} must be None, a Tensor or a list containing None or Tensors, but got {value!r}.")
    if not cotangents:
        return [None] * len(outputs)
    if len(cotangents) != len(outputs):
        raise AssertionError(
            f"The length of {own} must be equal to {name}: {len(outputs)} outputs, but {len(cotangents)} cotangents."
        )
    return list(cotangents)


def checked_barred(value: Any) -> list[Tensor]:
    """The `no_grad_vars`.

    Raises:
        AssertionError: they are no Tensors.
    """
    tensors = [value] if isinstance(value, Tensor) else value
    if tensors is None:
        return []
    if not isinstance(tensors, (list, tuple, set, frozenset)) or not all(isinstance(t, Tensor) for t in tensors):
        raise AssertionError(f"no_grad_vars must be None, Tensor or list/tuple/set of Tensors, but got {value!r}.")
    return list(tensors)


def check_switch(name: str, value: Any) -> None:
    """Raise AssertionError unless a switch is True or False."""
    if not isinstance(value, bool):
        raise AssertionError(f"{name} must be True or False, but got {value!r}.")


def wrong_shape(output: Tensor, given: Tensor) -> AssertionError:
    """The error for a cotangent that does not fit."""
    return AssertionError(
        f"Tensor shape not match, Tensor of grad_tensor [ {given.name} ] with shape {list(given.shape)} mismatch "
        f"Tensor [ {output.name} ] with shape {list(output.shape)}"
    )


def cotangent_for(output: Tensor, given: Tensor | None, create_graph: bool = False) -> Cotangent:
    """The cotangent to start from, ones unless given, in the shape of `output`: an array.

    With `create_graph` a Tensor that needs a gradient: what is computed from it is part of a graph, as in Paddle.

    Raises:
        AssertionError: it has another number of elements. The release goes on, and reads memory that is not there.
    """
    if given is None:
        ones = XP[type(output.array)].ones_like(output.array)
        return Tensor(ones, None, False) if create_graph else ones
    if given.array.shape == output.array.shape:
        if not create_graph:
            return given.array
        return Tensor(given.array, None, False) if given._stop_gradient else given
    if given.array.size != output.array.size:
        raise wrong_shape(output, given)
    shaped = given.reshape(output.shape)
    return cotangent_for(output, shaped, create_graph)


def target_of(tensor: Tensor) -> Target:
    """Where a cotangent of `tensor` goes: its node, or itself."""
    return tensor if tensor.node is None else tensor.node


def not_in_the_graph(k: int, tensor: Tensor) -> ValueError:
    """The error of an input that no output depends on (observed rule 79)."""
    return ValueError(
        f"The {k}-th input does not appear in the backward graph: no output depends on it"
        f"{', because its stop_gradient is True' if tensor._stop_gradient else ''}. "
        f"Pass allow_unused=True to get None for it."
    )
