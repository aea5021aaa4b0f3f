"""The installed Paddle as a backend, to compare its releases with the documents."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Array, Tensor, Tensors
from gradcheck.backends.paddle_api import PaddleApi
from gradcheck.backends.paddle_ranks import RanksOfProcesses
from pylayer.watch import LayerObserver


class PaddleBackend(PaddleApi):
    """The release that is installed, on the CPU."""

    name = "paddle"
    translates = True
    ranks_are_processes = True

    def __init__(self) -> None:
        super().__init__(import_module("paddle"))
        self.paddle.set_device("cpu")

    def tensor(self, array: Array, dtype: str | None, *, stop_gradient: bool) -> Tensor:
        values: Any = np.ascontiguousarray(array) if array.ndim else array
        if values.dtype == ml_dtypes.bfloat16:  # Paddle takes its bits, as an array of uint16
            dtype = dtype or "bfloat16"
            is_same = dtype == "bfloat16"
            values = np.asarray(values)
            values = values.view(np.uint16) if is_same else values.astype(np.float32)
        return self.paddle.to_tensor(values, dtype=dtype, stop_gradient=stop_gradient)

    def grad(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        existing_leaves: Sequence[Tensor],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """Take gradients by ``backward``, from the leaves; by ``paddle.grad`` if their graph is
        needed.

        Before 3.3, Paddle crashes (segmentation fault) in a ``paddle.grad`` of only some of a
        PyLayer's outputs. All releases crash in a nested ``paddle.grad``, as in a backward that
        calls it.

        Raises:
            NotImplementedError: there is such a call, and the graph of the gradients is needed.
        """
        if create_graph:
            return self.grad_with_graph(outputs, inputs, cotangents, existing_leaves)
        saved_gradients = [self.without_gradient(leaf) for leaf in existing_leaves]
        self.paddle.autograd.backward(outputs, cotangents, retain_graph=True)
        existing_ids = {id(leaf) for leaf in existing_leaves}
        gradients = [
            leaf.grad.clone() if id(leaf) in existing_ids and leaf.grad is not None else leaf.grad
            for leaf in inputs
        ]
        for leaf, before in zip(existing_leaves, saved_gradients, strict=True):
            if before is not None:
                for gradient in (leaf.grad, before[0]):
                    self.share(gradient, before[1])
            elif leaf.grad is not None and not any(
                self.overlap(leaf.grad, other) for other in (*inputs, *existing_leaves)
            ):
                # this frees the gradient's memory, which backward may have shared with a returned
                # Tensor
                leaf.clear_gradient(False)
        return gradients

    def without_gradient(self, leaf: Tensor) -> tuple[Tensor, Tensor] | None:
        """Set a leaf's gradient to zeros. Returns the gradient and a Tensor of the memory that it
        had, so that both can be restored: code that holds one also has the other, and Paddle would
        write into it. None if the leaf has none.
        """
        gradient = leaf.grad
        if gradient is None:
            return None
        memory = self.paddle.zeros([1], gradient.dtype)
        self.share(memory, gradient)
        zeros = self.paddle.zeros_like(leaf)
        self.share(gradient, zeros)
        return gradient, memory

    def grad_with_graph(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        existing_leaves: Sequence[Tensor],
    ) -> list[Tensor | None]:
        """The gradients, with a graph for the next derivative.

        Gradients of `existing_leaves` are requested as well: ``paddle.grad`` tells a PyLayer that
        an argument outside of the requested inputs needs no gradient, and rejects the gradient
        that its backward returns for it.

        Raises:
            NotImplementedError: see `grad`.
        """
        wanted = {id(leaf) for leaf in inputs}
        further_leaves = [leaf for leaf in existing_leaves if id(leaf) not in wanted]
        with refusing_nested_grads(self.paddle.base.core.eager) as nested:
            try:
                gradients: list[Tensor | None] = self.paddle.grad(
                    outputs,
                    [*inputs, *further_leaves],
                    cotangents,
                    retain_graph=True,
                    create_graph=True,
                    allow_unused=True,
                )
                return gradients[: len(inputs)]
            except OSError:  # Paddle's form of an exception in a backward
                if not nested:
                    raise
        raise NotImplementedError(
            "Paddle takes no second derivative of a backward that calls paddle.grad"
        )

    @contextmanager
    def observing(self, observer: LayerObserver) -> Iterator[None]:
        """Watch Paddle's calls: ``apply`` makes a context whose backward calls the layer's."""
        context, nn = self.paddle.autograd.py_layer.PyLayerBackward, self.paddle.static.nn
        init, backward, static_pylayer = context.__init__, context.backward, nn.static_pylayer

        def report_applied(ctx: Any, *args: Any) -> None:
            init(ctx, *args)
            observer.applied(ctx._forward_cls, ctx)

        def report_pulled_back(ctx: Any, *cotangents: Any) -> Any:
            observer.pulled_back(ctx._forward_cls)
            return backward(ctx, *cotangents)

        @functools.wraps(static_pylayer)
        def build_and_report(
            forward_fn: Any, inputs: Any, backward_fn: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            if not callable(backward_fn):
                return static_pylayer(forward_fn, inputs, backward_fn, *args, **kwargs)

            @functools.wraps(backward_fn)
            def report_backward(*cotangents: Any) -> Any:
                observer.pulled_back(backward_fn)
                return backward_fn(*cotangents)

            observer.applied(backward_fn, None)
            return static_pylayer(forward_fn, inputs, report_backward, *args, **kwargs)

        context.__init__, context.backward, nn.static_pylayer = (
            report_applied,
            report_pulled_back,
            build_and_report,
        )
        try:
            yield
        finally:
            context.__init__, context.backward, nn.static_pylayer = init, backward, static_pylayer

    def share(self, leaf: Tensor, other: Tensor) -> None:
        leaf.get_tensor()._share_data_with(other.get_tensor())

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Observes contiguous Tensors, by their first and last addresses."""
        (x, x_end), (y, y_end) = extent(a), extent(b)
        return x < y_end and y < x_end

    def ranks(self, *world: Any) -> RanksOfProcesses:
        return RanksOfProcesses(self, *world)

    def array(self, tensor: Tensor) -> Array:
        values = np.asarray(tensor.numpy())
        return values.view(ml_dtypes.bfloat16) if tensor.dtype == self.paddle.bfloat16 else values


def extent(tensor: Tensor) -> tuple[int, int]:
    """The addresses at which a contiguous Tensor's memory begins and ends; the same address twice
    if it is not contiguous.
    """
    if not tensor.is_contiguous() or not tensor.size:
        return 0, 0
    start = tensor.data_ptr()
    return start, start + tensor.size * tensor.element_size()


@contextmanager
def refusing_nested_grads(eager: Any) -> Iterator[list[str]]:
    """A block in which nested calls of ``paddle.grad`` raise; it yields the messages so far."""
    run, running, refused = eager.run_partial_grad, list[bool](), list[str]()

    def refuse_nested(*args: Any, **kwargs: Any) -> Any:
        if running:
            refused.append("run_partial_grad within run_partial_grad")
            raise RuntimeError(refused[-1])
        running.append(True)
        try:
            return run(*args, **kwargs)
        finally:
            running.pop()

    eager.run_partial_grad = refuse_nested
    try:
        yield refused
    finally:
        eager.run_partial_grad = run
