"""Autograd Functions of torch, with the interface that derivation and repair need.

The forward runs on torch, and each of its operations is replayed on Tensors of the engine: on a
tape to get the right gradients, in a trace to get their source text. A backward, edited or not,
runs on torch with the context of a forward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradcheck.backends.base import Array
from gradcheck.backends.played import Unplayed, shadow_of
from gradcheck.backends.torch_names import TORCH_NAMES
from gradcheck.backends.torch_operations import (
    Memory,
    OperationMode,
    Shadows,
    array_of,
    is_floating_tensor,
    observed_by,
    tensor_of,
    tensors_among,
)
from gradcheck.backends.torch_private import DEFAULT_SETUP, BackwardCFunction, storage_of
from pylayer.tape.symbol import recording
from pylayer.tensor.tensor import Tensor as Shadow
from pylayer.watch import watchers


class TracedShadows(Shadows):
    """The shadows of all tensors of a traced run, including constants and integers."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, tuple[Any, Shadow]] = {}
        """Shadows by a tensor's storage and view; the tensor is kept so that no other gets its
        address.
        """

    def get(self, tensor: Any) -> Shadow:
        """The shadow of a tensor; a tensor without one is taken as a constant."""
        key = storage_of(tensor), Memory.view(tensor)
        if key not in self.known:
            self.known[key] = tensor, shadow_of(array_of(tensor))
        return self.known[key][1]

    def keeps(self, tensor: Any, shadow: Shadow) -> bool:
        return True

    def put(self, tensor: Any, shadow: Shadow) -> None:
        self.known[storage_of(tensor), Memory.view(tensor)] = tensor, shadow

    def memory(self, tensor: Any) -> Memory:
        """Raises Unplayed: an in-place operation has no text."""
        raise Unplayed("forward writes in place")


class PlayedFunction:
    """A Function whose forward takes and returns the engine's Tensors.

    Args:
        layer: the Function.
    """

    names = TORCH_NAMES

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.book = Shadows()
        """The shadows of the last forward."""

    @property
    def written_forward(self) -> Callable[..., Any]:
        """The function that the user wrote."""
        return self.layer.forward  # type: ignore[no-any-return]

    @property
    def written_backward(self) -> Callable[..., Any] | None:
        """The backward that the user wrote, if any."""
        backward: Callable[..., Any] = self.layer.backward
        return None if backward is torch.autograd.Function.backward else backward

    def signature(self) -> inspect.Signature:
        """The parameters of forward, the context first."""
        signature = inspect.signature(self.layer.forward)
        if self.layer.setup_context is DEFAULT_SETUP:
            return signature
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)
        return signature.replace(parameters=[context, *signature.parameters.values()])

    def apply(self, arguments: Sequence[Any]) -> Any:
        """Apply the Function to tensors of torch."""
        with torch.enable_grad():
            return self.layer.apply(*arguments)

    def forward(self, context: Any, *args: Any) -> Any:
        """Call forward on the engine's Tensors and return Tensors of the engine; `context` gets the
        values that forward keeps for backward.
        """
        arguments = fresh_tensors(args)
        self.book = TracedShadows() if recording.get() is not None else Shadows()
        for tensor, value in zip(arguments, args, strict=True):
            if isinstance(value, Shadow):
                self.book.put(tensor, value)
        mode = OperationMode(watchers.get().observer, self.book)
        with observed_by(mode), mode:
            returned = self.apply(arguments)
        function_context = context_of(returned)
        if function_context is not None:
            vars(context).update(vars(function_context))
            context._saved = tuple(map(self.engine_value, function_context.saved_tensors))
        if isinstance(returned, tuple):
            return tuple(map(self.engine_value, returned))
        return self.engine_value(returned)

    def engine_value(self, value: Any) -> Any:
        """The engine's Tensor for a tensor of the last forward; anything else unchanged."""
        return self.book.shadow(value) if isinstance(value, torch.Tensor) else value

    def pull_back(
        self, backward: Callable[..., Any], args: Sequence[Any], cotangents: Sequence[Array | None]
    ) -> list[Any]:
        """The gradients that a backward gives at some arguments, one per argument."""
        returned = self.apply(fresh_tensors(args))
        starts = [
            torch.zeros_like(output) if cotangent is None else tensor_of(cotangent)
            for output, cotangent in zip(tensors_among([returned]), cotangents, strict=True)
        ]
        with torch.no_grad():
            context = context_of(returned)
            gradients = backward(context, *starts)
            _ = context.saved_tensors  # raises where backward changed one in place
        return [
            self.array(value)
            for value in (gradients if isinstance(gradients, tuple) else (gradients,))
        ]

    @staticmethod
    def array(value: Any) -> Any:
        """The array of a tensor; anything else unchanged."""
        return array_of(value) if isinstance(value, torch.Tensor) else value


def fresh_tensors(args: Sequence[Any]) -> list[Any]:
    """Arguments as ``apply`` gets them: the engine's Tensors as new tensors of torch."""
    return [fresh_tensor(value) if isinstance(value, Shadow) else value for value in args]


def fresh_tensor(value: Shadow) -> Any:
    """A new tensor that is not a leaf, as leaves may not be changed in place."""
    tensor = tensor_of(value.array)
    if is_floating_tensor(tensor) and not value.stop_gradient:
        tensor.requires_grad_()
    with torch.enable_grad():
        return tensor.clone()


def context_of(returned: Any) -> Any:
    """The context of the Function that gave some tensors; None if no gradient is recorded."""
    nodes = (tensor.grad_fn for tensor in tensors_among([returned]))
    return next((node for node in nodes if isinstance(node, BackwardCFunction)), None)
