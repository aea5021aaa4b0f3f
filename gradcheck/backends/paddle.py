"""The installed Paddle as a backend, to compare its releases with the documents."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Array, ObserverBlock, Tensor, Tensors
from gradcheck.backends.paddle_api import PADDLE_WORDS, PaddleApi
from gradcheck.backends.paddle_ranks import RanksOfProcesses
from pylayer.watch import LayerObserver, layer_observers


class PaddleBackend(PaddleApi):
    """The release that is installed, on the CPU."""

    name = "paddle"
    words = PADDLE_WORDS
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
        held: Sequence[Tensor],
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
            return self.grad_with_graph(outputs, inputs, cotangents, held)
        put_aside = [self.without_gradient(leaf) for leaf in held]
        self.paddle.autograd.backward(outputs, cotangents, retain_graph=True)
        own = {id(leaf) for leaf in held}
        found = [
            leaf.grad.clone() if id(leaf) in own and leaf.grad is not None else leaf.grad
            for leaf in inputs
        ]
        for leaf, before in zip(held, put_aside, strict=True):
            if before is not None:
                for gradient in (leaf.grad, before[0]):
                    self.share(gradient, before[1])
            elif leaf.grad is not None and not any(
                self.overlap(leaf.grad, other) for other in (*inputs, *held)
            ):
                # it frees the memory, which may be that of a Tensor that backward returned
                leaf.clear_gradient(False)
        return found

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
        self, outputs: Tensors, inputs: Tensors, cotangents: Tensors, held: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """The gradients, with a graph for the next derivative.

        Gradients of `held` are requested as well: ``paddle.grad`` tells a PyLayer that an argument
        outside of the requested inputs needs no gradient, and rejects the gradient that its
        backward returns for it.

        Raises:
            NotImplementedError: see `grad`.
        """
        nested: list[str] = []
        wanted = {id(leaf) for leaf in inputs}
        others = [leaf for leaf in held if id(leaf) not in wanted]
        with refusing_within(self.paddle.base.core.eager, "run_partial_grad", nested):
            try:
                found: list[Tensor | None] = self.paddle.grad(
                    outputs,
                    [*inputs, *others],
                    cotangents,
                    retain_graph=True,
                    create_graph=True,
                    allow_unused=True,
                )
                return found[: len(inputs)]
            except OSError:  # what Paddle makes of an exception in a backward
                if not nested:
                    raise
        raise NotImplementedError(
            "Paddle takes no second derivative of a backward that calls paddle.grad"
        )

    @contextmanager
    def observing(self, observer: LayerObserver) -> Iterator[None]:
        """Watch Paddle's calls: ``apply`` makes a context whose backward calls the layer's."""
        found = getattr(self.paddle.autograd.py_layer, "PyLayerBackward", None)
        context, nn = cast(Any, found), self.paddle.static.nn
        if not isinstance(found, type):  # the engine, in the place of a release
            with ObserverBlock(layer_observers, observer):
                yield
            return
        init, backward, static_pylayer = context.__init__, context.backward, nn.static_pylayer

        def applied(ctx: Any, *args: Any) -> None:
            init(ctx, *args)
            observer.applied(ctx._forward_cls, ctx)

        def pulled_back(ctx: Any, *cotangents: Any) -> Any:
            observer.pulled_back(ctx._forward_cls)
            return backward(ctx, *cotangents)

        @functools.wraps(static_pylayer)
        def built(
            forward_fn: Any, inputs: Any, backward_fn: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            if not callable(backward_fn):
                return static_pylayer(forward_fn, inputs, backward_fn, *args, **kwargs)

            @functools.wraps(backward_fn)
            def traced(*cotangents: Any) -> Any:
                observer.pulled_back(backward_fn)
                return backward_fn(*cotangents)

            observer.applied(backward_fn, None)
            return static_pylayer(forward_fn, inputs, traced, *args, **kwargs)

        context.__init__, context.backward, nn.static_pylayer = applied, pulled_back, built
        try:
            yield
        finally:
            context.__init__, context.backward, nn.static_pylayer = init, backward, static_pylayer

    def share(self, leaf: Tensor, other: Tensor) -> None:
        if hasattr(leaf, "get_tensor"):
            leaf.get_tensor()._share_data_with(other.get_tensor())
        else:  # the engine, in the place of a release
            leaf.array, leaf.node = other.array, None

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
def refusing_within(module: Any, name: str, refused: list[str]) -> Iterator[None]:
    """Make a function of a module raise on a nested call of itself, and add that call to
    `refused`.
    """
    function, running = getattr(module, name), list[str]()

    def guarded(*args: Any, **kwargs: Any) -> Any:
        if running:
            refused.append(name)
            raise RuntimeError(f"{name} within {name}")
        running.append(name)
        try:
            return function(*args, **kwargs)
        finally:
            running.pop()

    setattr(module, name, guarded)
    try:
        yield
    finally:
        setattr(module, name, function)
