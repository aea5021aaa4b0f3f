"""The installed Paddle as a backend, to hold its releases against the documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Array, Tensor


class PaddleBackend:
    """The release that is installed, on the CPU."""

    name = "paddle"

    def __init__(self) -> None:
        self.paddle: ModuleType = import_module("paddle")
        self.paddle.set_device("cpu")

    def tensor(self, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """A leaf Tensor with a copy of the values."""
        values: Any = np.ascontiguousarray(array) if array.ndim else array
        if values.dtype == ml_dtypes.bfloat16:  # Paddle takes its bits, as an array of uint16
            values, dtype = np.asarray(values).view(np.uint16), dtype or "bfloat16"
            if dtype != "bfloat16":
                return self.tensor(np.asarray(array, np.float32), dtype, stop_gradient)
        return self.paddle.to_tensor(values, dtype=dtype, stop_gradient=stop_gradient)

    def grad(
        self,
        outputs: list[Tensor],
        inputs: list[Tensor],
        cotangents: list[Tensor],
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """As ``paddle.grad`` gives them, or ``backward`` where a PyLayer's own backward calls ``paddle.grad``.

        The 3.3.1 release dies of a segmentation fault in a ``paddle.grad`` within another. `backward` also adds to
        the ``grad`` of other leaves, such as the parameters of an ``nn.Layer``.

        Raises:
            NotImplementedError: there is such a call, and the graph of the gradients is wanted.
        """
        nested: list[str] = []
        with refusing_within(self.paddle.base.core.eager, "run_partial_grad", nested):
            try:
                return self.paddle.grad(  # type: ignore[no-any-return]
                    outputs, inputs, cotangents, retain_graph=True, create_graph=create_graph, allow_unused=True
                )
            except OSError:  # what Paddle makes of an exception in a backward
                if not nested:
                    raise
        if create_graph:
            raise NotImplementedError("Paddle takes no second derivative of a backward that calls paddle.grad")
        self.paddle.autograd.backward(outputs, cotangents)
        return [leaf.grad for leaf in inputs]

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Told of contiguous Tensors by where they begin and end."""
        (x, x_end), (y, y_end) = extent(a), extent(b)
        return x < y_end and y < x_end

    def lacks_kernel(self, error: Exception) -> bool:
        """As Paddle says it of most operations in float16 and bfloat16 on a CPU."""
        return isinstance(error, (RuntimeError, OSError)) and bool(
            re.search(r"kernel .* is not registered", str(error))
        )

    def lacks(self, error: BaseException) -> str:
        """Nothing: it is the release."""
        return ""

    def array(self, tensor: Tensor) -> Array:
        """The Tensor's values as a NumPy array."""
        values = np.asarray(tensor.numpy())
        return values.view(ml_dtypes.bfloat16) if tensor.dtype == self.paddle.bfloat16 else values

    def recorded(
        self,
        call: Callable[[], Sequence[Tensor]],
        inputs: Sequence[Tensor],
        lines: bool,
        move: Callable[[str, Array, int], None] | None = None,
    ) -> None:
        """Paddle does not say what it computes."""

    def moving(self, move: Callable[[str, Array, int], None]) -> AbstractContextManager[None]:
        """Nothing is moved."""
        return nullcontext()


def extent(tensor: Tensor) -> tuple[int, int]:
    """The addresses at which a contiguous Tensor's memory begins and ends; the same one twice if it is not."""
    if not tensor.is_contiguous() or not tensor.size:
        return 0, 0
    start = tensor.data_ptr()
    return start, start + tensor.size * tensor.element_size()


@contextmanager
def refusing_within(module: Any, name: str, refused: list[str]) -> Iterator[None]:
    """Have a function of a module raise when it is called within itself, and note that in `refused`."""
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


def paddle_backend() -> PaddleBackend:
    """The installed Paddle."""
    return PaddleBackend()
