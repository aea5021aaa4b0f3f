"""The installed Paddle as a backend, to hold its releases against the documents."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Array, Tensor, package_of, subclasses


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

    def array(self, tensor: Tensor) -> Array:
        """The Tensor's values as a NumPy array."""
        values = np.asarray(tensor.numpy())
        return values.view(ml_dtypes.bfloat16) if tensor.dtype == self.paddle.bfloat16 else values

    def grad(self, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor]) -> list[Tensor | None]:
        """As ``paddle.grad`` gives them, or ``backward`` where a PyLayer's own backward calls ``paddle.grad``.

        The 3.3.1 release dies of a segmentation fault in a ``paddle.grad`` within another. `backward` also adds to
        the ``grad`` of other leaves, the parameters of an ``nn.Layer``.
        """
        if not any(calls_grad(layer) for layer in subclasses(self.paddle.autograd.PyLayer)):
            return self.paddle.grad(outputs, inputs, cotangents, allow_unused=True)  # type: ignore[no-any-return]
        self.paddle.autograd.backward(outputs, cotangents)
        return [leaf.grad for leaf in inputs]

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Told of contiguous Tensors by where they begin and end."""
        (x, x_end), (y, y_end) = extent(a), extent(b)
        return x < y_end and y < x_end


def extent(tensor: Tensor) -> tuple[int, int]:
    """The addresses at which a contiguous Tensor's memory begins and ends; the same one twice if it is not."""
    if not tensor.is_contiguous() or not tensor.size:
        return 0, 0
    start = tensor.data_ptr()
    return start, start + tensor.size * tensor.element_size()


def calls_grad(layer: Any) -> bool:
    """Whether the backward of a PyLayer that is not Paddle's own names ``grad``, itself or in a function within it."""
    if package_of(layer) == "paddle":
        return False
    backward = vars(layer).get("backward")
    function = getattr(backward, "__func__", backward)
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code is not None and any("grad" in part.co_names for part in nested(code))


def nested(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def paddle_backend() -> PaddleBackend:
    """The installed Paddle."""
    return PaddleBackend()
