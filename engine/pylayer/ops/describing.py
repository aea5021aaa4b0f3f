"""What a Tensor is: its dimensions, its dtype, its place."""

from __future__ import annotations

from typing import Any

from pylayer.array import set_device, to_numpy
from pylayer.ops.creation import full
from pylayer.ops.shape import astype, cast
from pylayer.tensor import Tensor


def dim(x: Tensor) -> int:
    """The number of dimensions."""
    return x.ndim


ndimension = dim


def element_size(x: Tensor) -> int:
    """The bytes of one element."""
    return x.dtype.itemsize


def is_floating_point(x: Tensor) -> bool:
    """Whether the elements are real floating-point numbers."""
    return x.dtype.is_floating


def is_complex(x: Tensor) -> bool:
    """Whether the elements are complex numbers."""
    return x.dtype.is_complex


def is_integer(x: Tensor) -> bool:
    """Whether the elements are integers; bools are not."""
    return x.dtype.rank == 1


def is_empty(x: Tensor) -> Tensor:
    """Whether there are no elements, as a Tensor."""
    return full([], x.size == 0, "bool")


def cpu(x: Tensor) -> Tensor:
    """`x` itself if it is in host memory, else a copy there, outside the graph."""
    return x if x.place.is_cpu_place() else Tensor(to_numpy(x.array), None, x.stop_gradient)


def cuda(x: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """`x` itself if it is on the current GPU.

    Raises:
        RuntimeError: it is in host memory. Tensors are made where they are used: see `set_device`.
    """
    if x.place.is_cpu_place():
        set_device(f"gpu:{device_id or 0}")  # which says what is missing, if something is
        raise RuntimeError("The Tensor is in host memory: make it after paddle.set_device('gpu').")
    return x


def to(x: Tensor, dtype: Any) -> Tensor:
    """A copy of `x` in `dtype`; or, given a Tensor, `x` in the dtype of that."""
    return astype(x, dtype.dtype) if isinstance(dtype, Tensor) else cast(x, dtype)
