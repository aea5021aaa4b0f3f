"""All undocumented names of torch that gradcheck uses, in one place: a release may lack them.

Each name is looked up here once; the message for a missing name says which release has it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

KNOWN_RELEASE = "2.13"
"""A release of torch that has all of these names."""


class TorchTooDifferentError(ImportError):
    """The installed torch lacks a name that nothing documents."""


def private(module: str, name: str) -> Any:
    """An undocumented name of torch.

    Raises:
        TorchTooDifferentError: the installed release does not have it.
    """
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise TorchTooDifferentError(
            f"torch {torch.__version__} has no {module}.{name}, which gradcheck needs to "
            f"observe what torch computes: torch {KNOWN_RELEASE} has it"
        ) from None


TorchDispatchMode: Any = private("torch.utils._python_dispatch", "TorchDispatchMode")
BackwardCFunction: Any = private("torch.autograd.function", "BackwardCFunction")
"""The base class of the contexts of Functions, which have the Function as ``_forward_cls``."""
WeakTensors: Any = private("torch.utils.weak", "WeakTensorKeyDictionary")
"""A dictionary keyed by tensors, which it does not keep alive."""
CUSTOM_OPERATIONS: Any = private("torch._library.custom_ops", "OPDEFS")
"""The operations of `torch.library.custom_op`, by name."""
DEFAULT_SETUP: Any = torch.autograd.Function.setup_context
"""The ``setup_context`` of a Function that defines none: its forward takes a context."""


AUTOGRAD: Any = private("torch.autograd", "Variable")._execution_engine


def run_backward(
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    inputs: Sequence[Any] = (),
    *,
    create_graph: bool = False,
    retain_graph: bool = True,
) -> tuple[Any, ...]:
    """The gradients of inputs as ``torch.autograd.grad`` gives them, None where no output depends
    on an input; without inputs, those of the leaves are added to their ``grad``.

    torch's own function compares the shapes of outputs and cotangents, which are the same here, in
    a module that imports SymPy: half a second before the first gradient.
    """
    gradients: tuple[Any, ...] = AUTOGRAD.run_backward(
        tuple(outputs),
        tuple(cotangents),
        retain_graph,
        create_graph,
        tuple(inputs),
        True,  # an input may be out of reach
        accumulate_grad=not inputs,
    )
    return gradients


class Patch:
    """Replacements of attributes of torch classes within ``with`` blocks, which may be nested.

    Setting an attribute of a class that has many subclasses takes a millisecond, so that a check
    has one block around all its evaluations.

    Args:
        rows: classes, names of attributes, and their replacements.
    """

    def __init__(self, *rows: tuple[type, str, Any]) -> None:
        self.rows = rows
        self.before: list[Any] = []
        """The classes' own definitions of these attributes; None if a class has none."""
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1
        if self.depth == 1:
            self.before = [vars(owner).get(name) for owner, name, _ in self.rows]
            for row in self.rows:
                setattr(*row)

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.depth:
            return
        for (owner, name, _), before in zip(self.rows, self.before, strict=True):
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


functorch: Any = private("torch._C", "_functorch")
without_transforms: Callable[[], Any] = private("torch._C", "_DisableFuncTorch")
"""A block in which operations give plain tensors, also within `torch.func`."""


def plain_tensor(tensor: Any) -> Any:
    """A tensor without the wrappers of `torch.func`."""
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


def is_zero_tensor(tensor: Any) -> bool:
    """Whether a tensor is torch's zero without memory, such as the derivative of a step
    function.
    """
    return bool(tensor._is_zerotensor())


def storage_of(tensor: Any) -> int:
    """A number that identifies the storage of a tensor while something keeps it."""
    return int(tensor.untyped_storage()._cdata)


def python_code_of(func: Any) -> Callable[..., Any] | None:
    """The Python function that an operation of `torch.library.custom_op` runs; None for others."""
    return getattr(CUSTOM_OPERATIONS.get(func._schema.name), "_init_fn", None)


def layer_of_context(context: Any) -> Any:
    """The user's layer for which a context was made."""
    return users_layer(context._forward_cls)


def users_layer(layer: Any) -> Any:
    """The user's layer behind a Function that torch generated from it.

    This is the user's class for a Function that torch runs under `torch.func`, and the backward
    function for an operation of `torch.library`. Any other Function is returned unchanged.
    """
    if not str(layer.__module__).startswith("torch."):
        return layer
    for cell in getattr(layer.backward, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # it is not set
            continue
        if isinstance(value, type) and issubclass(value, torch.autograd.Function):
            return users_layer(value)
        if (backward := getattr(value, "_backward_fn", None)) is not None:
            return backward
    return layer
