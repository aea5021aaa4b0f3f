"""PyTorch as a backend: the backward of its autograd Functions is compared with their forward."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gradcheck.backends.base import (
    Array,
    Backend,
    Computed,
    FrameworkWords,
    Generator,
    ObserverBlock,
    Recordable,
    Refusal,
    Tensor,
    Tensors,
)
from gradcheck.backends.recomputation import Recomputation
from gradcheck.backends.torch_layers import PlayedFunction
from gradcheck.backends.torch_operations import (
    METHODS,
    LeafMode,
    ObservedFunction,
    array_of,
    is_floating_tensor,
    tensor_of,
    users_code,
)
from gradcheck.backends.torch_private import (
    DEFAULT_SETUP,
    BackwardCFunction,
    Patch,
    WeakTensors,
    layer_of_context,
    run_backward,
)
from gradcheck.support.foreign import text_of
from pylayer.watch import LayerObserver, watchers

REFUSED_BY_TORCH = re.compile(
    r"[Ff]unction (\S+?)Backward returned (an (?:invalid gradient|incorrect number of gradients).*)"
    r"|(\S+?)Backward.*?(expected Variable or None \(got .*?\))",
    re.DOTALL,
)
"""torch's message when it rejects the result of a Function's backward."""
ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"
"""Torch's message where such a backward's gradients are differentiated."""
NEEDS_BACKWARD = "compatible with .grad()"
"""Message of reentrant checkpoints, torch's and others, which only ``backward`` can run."""


class TorchBackend(Backend):
    """The installed torch, on the CPU."""

    name = "torch"
    records = True
    tells_needs = True
    packages = ("torch", "functorch")
    words = FrameworkWords(
        framework="torch",
        layer="Function",
        module="nn.Module",
        takes_gradient="requires_grad=True",
        takes_none="requires_grad is False for all of them",
        rules="torch's",
    )
    lacks_kernel = re.compile(r"not implemented for '(?:Half|BFloat16)'")
    submodules = "_modules"
    tensor_type = torch.Tensor
    layer_type = torch.autograd.Function
    module_type = torch.nn.Module
    array = staticmethod(array_of)

    def names(self) -> dict[str, Any]:
        return {"torch": torch, "Function": torch.autograd.Function}

    def seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def generators(self) -> list[Generator]:
        return [*super().generators(), (torch.get_rng_state, torch.set_rng_state)]

    def settings(self) -> Any:
        """The grad mode and the default dtype."""
        return torch.is_grad_enabled(), torch.get_default_dtype()

    def restore_settings(self, before: Any) -> None:
        if before != self.settings():  # setting them takes as long as a small layer
            torch.set_grad_enabled(before[0])
            torch.set_default_dtype(before[1])

    # ----------------------------------------------------------------- tensors
    def tensor(self, array: Array, dtype: str | None, *, stop_gradient: bool) -> Tensor:
        tensor = tensor_of(array, dtype)
        takes_gradient = not stop_gradient and is_floating_tensor(tensor)
        return tensor.requires_grad_() if takes_gradient else tensor

    def needs_gradient(self, tensor: Tensor) -> bool:
        return bool(tensor.requires_grad)

    def claims(self, output: Tensor) -> bool:
        """An output that is cut off from the inputs claims a gradient of zero, unless a Function
        marked it as non-differentiable.
        """
        return bool(output.requires_grad) or output not in non_differentiable

    def version(self, tensor: Tensor) -> int:
        return int(tensor._version)

    def share(self, leaf: Tensor, other: Tensor) -> None:
        leaf.data = other.detach()

    def alias(self, tensor: Tensor, stop_gradient: bool) -> Tensor:
        return tensor.detach().requires_grad_(not stop_gradient)

    def reverse_axes(self, tensor: Tensor) -> Tensor:
        return tensor.permute([*range(tensor.ndim)][::-1])

    def strided_view(self, tensor: Tensor, shape: list[int], strides: list[int]) -> Tensor:
        return torch.as_strided(tensor, shape, strides)

    def may_change(self, context: Any, returned: Tensors) -> Tensors:
        """The tensors that a forward marks as dirty; all returned tensors for a Function with
        ``setup_context``, which marks them later.
        """
        return returned if context is None else list(getattr(context, "dirty_tensors", ()) or ())

    # ----------------------------------------------------------------- gradients
    def call(self, function: Callable[[dict[str, Tensor]], Any], tensors: dict[str, Tensor]) -> Any:
        with torch.enable_grad(), users_code():
            return function(tensors)

    def grad(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        existing_leaves: Sequence[Tensor],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """The gradients as ``torch.autograd.grad`` gives them, or, if a layer allows only
        ``backward``, from the leaves after it.
        """
        try:
            with users_code():
                taken_gradients = run_backward(
                    outputs, cotangents, inputs, create_graph=create_graph
                )
            if any(gradient is None for gradient in taken_gradients) and is_of_once_differentiable(
                outputs
            ):
                raise RuntimeError(ONCE)
            return list(taken_gradients)
        except RuntimeError as error:
            if NEEDS_BACKWARD not in str(error) or create_graph:
                raise
        leaves = [*existing_leaves, *inputs]
        before = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        with users_code():
            run_backward(outputs, cotangents)
        gradients = [leaf.grad for leaf in inputs]
        for leaf, gradient in zip(leaves, before, strict=True):
            leaf.grad = gradient
        return gradients

    def backward(self, outputs: Tensors, cotangents: list[Tensor | None]) -> None:
        run_backward(outputs, self.starts(outputs, cotangents), retain_graph=False)

    def refusal(self, error: BaseException) -> Refusal | None:
        if not isinstance(error, (RuntimeError, TypeError)):
            return None
        match = REFUSED_BY_TORCH.search(text_of(error))
        if match is None:
            return None
        name, text, other, other_text = match.groups()
        text = (text or other_text).partition("\n")[0]
        layer = name or other
        return Refusal(f"backward of {layer}: returned {text}", layer=layer)

    # ----------------------------------------------------------------- layers
    def layer_of(self, value: Any) -> Any:
        """A Function, or the backward of an operation of `torch.library`."""
        return getattr(value, "_backward_fn", None) or super().layer_of(value)

    def played_layer(self, layer: Any) -> PlayedFunction | None:
        return PlayedFunction(layer) if isinstance(layer, type) else None

    def takes_context(self, layer: Any) -> bool:
        return getattr(layer, "setup_context", DEFAULT_SETUP) is DEFAULT_SETUP

    def observing(self, observer: LayerObserver) -> ObserverBlock:
        return ObservingContexts(layer_observers, observer)

    @contextmanager
    def session(self) -> Iterator[None]:
        with CONTEXTS, METHODS:
            yield

    def collect_leaves(self, call: Callable[[], Any]) -> tuple[Any, Tensors]:
        mode = LeafMode()
        with mode:
            returned = call()
        return returned, list(mode.leaves.values())

    def recomputation(
        self,
        function: Recordable,
        sources: Sequence[Any],
        original: Computed | None,
        takes_gradients: bool,
    ) -> Recomputation:
        return Recomputation(ObservedFunction(function), (), None, takes_gradients)


def is_of_once_differentiable(outputs: Tensors) -> bool:
    """Whether Tensors are gradients of a backward that is marked ``once_differentiable``: torch
    raises only where gradients are taken into leaves.
    """
    waiting, visited = [output.grad_fn for output in outputs], set[Any]()
    while waiting:
        node = waiting.pop()
        if node is None or node in visited:
            continue
        if node.name().endswith("Error"):
            return True
        visited.add(node)
        waiting += [parent for parent, _ in node.next_functions]
    return False


# ----------------------------- reports of contexts
layer_observers: list[LayerObserver] = []
"""The current observers."""
non_differentiable = WeakTensors()
"""The tensors that Functions marked as non-differentiable while there was an observer."""
RAW_APPLY = BackwardCFunction.apply
RAW_MARK = torch.autograd.function.FunctionCtx.mark_non_differentiable


def report_applied(context: Any, *args: Any) -> None:
    """A Function is about to run its forward."""
    layer = layer_of_context(context)
    watchers.get().observer.applied(layer, context)
    for observer in layer_observers:
        observer.applied(layer, context)


def report_pulled_back(context: Any, *args: Any) -> Any:
    """A Function is about to run its backward."""
    for observer in layer_observers:
        observer.pulled_back(layer_of_context(context))
    return RAW_APPLY(context, *args)


def report_marked(context: Any, *tensors: Any) -> None:
    """A Function marks outputs as non-differentiable."""
    for tensor in tensors:
        non_differentiable[tensor] = True
    RAW_MARK(context, *tensors)


CONTEXTS = Patch(
    (BackwardCFunction, "__init__", report_applied),
    (BackwardCFunction, "apply", report_pulled_back),
    (torch.autograd.function.FunctionCtx, "mark_non_differentiable", report_marked),
)
"""Contexts report their creation, their backward, and the outputs that they mark."""


class ObservingContexts(ObserverBlock):
    """Watch torch's calls: ``apply`` makes a context, whose own ``apply`` is the backward."""

    def __enter__(self) -> None:
        CONTEXTS.__enter__()
        self.observers.append(self.observer)

    def __exit__(self, *error: object) -> None:
        self.observers.remove(self.observer)
        CONTEXTS.__exit__(*error)
