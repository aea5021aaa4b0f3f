"""The installed Paddle as a backend, to hold its releases against the documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

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
        return self.paddle.to_tensor(values, dtype=dtype, stop_gradient=stop_gradient)

    def array(self, tensor: Tensor) -> Array:
        """The Tensor's values as a NumPy array."""
        return tensor.numpy()

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


def paddle_backend() -> PaddleBackend:
    """The installed Paddle."""
    return PaddleBackend()
