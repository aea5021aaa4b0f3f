"""Hooks on gradients: functions that get, and may replace, the accumulated gradient of a Tensor."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from pylayer.tape.grad_mode import grad_mode_set
from pylayer.tape.graph import Cotangent
from pylayer.tensor.array import duplicate
from pylayer.tensor.tensor import Tensor

_hook_ids = itertools.count()

final_hooks: list[Callable[[], Any]] = []
"""Functions that the next backward calls at its end."""


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Call `hook` with the accumulated gradient once per backward; its result, unless None,
    replaces the gradient.

    A hook runs in grad mode, as in Paddle, and gets the gradient as a leaf, which may not be
    changed in place except under `no_grad`.

    Raises:
        RuntimeError: gradients stop at this Tensor (observed rule 85); in backward, the hook
            returned a gradient of another dtype.
    """
    if tensor._stop_gradient:
        raise RuntimeError("Cannot register hook on a tensor that stop gradient.")
    holder: Any = tensor if tensor.is_leaf else tensor.node
    if holder._hooks is None:
        holder._hooks = {}

    def run(cotangent: Cotangent) -> Cotangent:
        recorded = isinstance(cotangent, Tensor)
        # A hook may change it in place.
        gradient = cotangent if recorded else Tensor(duplicate(cotangent), None, False)
        with grad_mode_set(True):
            result = hook(gradient)
        if result is None:
            result = gradient
        if not isinstance(result, Tensor):
            raise TypeError(
                f"A gradient hook must return a Tensor or None, but got {type(result).__name__}."
            )
        if result.dtype is not gradient.dtype:
            raise RuntimeError(
                f"(InvalidArgument) The dtypes of the gradient before ({gradient.dtype.name}) and "
                f"after ({result.dtype.name}) a hook are not consistent. Cast what it returns with "
                "astype()."
            )
        return result if recorded else result.array

    return HookHandle(holder._hooks, run)


def at_end_of_backward(hook: Callable[[], Any]) -> None:
    """Call `hook` once, without arguments, at the end of the next backward."""
    final_hooks.append(hook)


def retain_grads(tensor: Tensor) -> None:
    """Keep the gradient of this result in `grad`: only that of the latest backward, as Paddle does
    not accumulate them.
    """
    if tensor.is_leaf or tensor._stop_gradient:
        return
    this = weakref.ref(tensor)

    def keep(gradient: Tensor) -> None:
        target = this()
        if target is not None:
            target._grad = Tensor(duplicate(gradient.array), None, False)

    register_hook(tensor, keep)


class HookHandle:
    """The handle of a registered hook; `remove` unregisters the hook."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._key = next(_hook_ids)
        self._hooks = hooks
        hooks[self._key] = hook

    def remove(self) -> bool:
        """Remove the hook; False if it was removed before."""
        return self._hooks.pop(self._key, None) is not None
