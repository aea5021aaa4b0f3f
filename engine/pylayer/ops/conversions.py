"""What a Tensor is and can become: dtype and place, other dtypes, new Tensors like it, attributes in other words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.array import owner, set_device, to_numpy
from pylayer.invalid import invalid
from pylayer.op import composed
from pylayer.ops.arguments import as_ints
from pylayer.ops.creation import empty, full, ones, zeros
from pylayer.ops.inplace import in_place
from pylayer.ops.random import randn, uniform
from pylayer.ops.shape import astype, cast
from pylayer.tensor import Tensor

DTYPE_METHODS = {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64",
    "char": "int8", "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64",
    "short": "int16",
}  # fmt: skip
"""Methods without arguments that give the Tensor in a dtype."""


def _in_dtype(name: str, dtype: str) -> Callable[..., Tensor]:
    return composed(name, lambda x: astype(x, dtype))


def _new(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`make` in the dtype of a Tensor, unless another is given."""

    def new(
        x: Tensor,
        size: Any,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        made = make(as_ints(size), *args, x.dtype if dtype is None else dtype)
        made.stop_gradient = not requires_grad
        return made

    return composed(f"new_{make.__name__}", new)


def apply(x: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """``func`` of the Tensor; a RuntimeError if that needs a gradient."""
    if not x.stop_gradient:
        raise RuntimeError("Cannot apply function on a tensor that required gradient.")
    return func(x)


apply_ = composed("apply_", lambda x, func: apply(x, in_place(lambda t: func(t))))


def _set_data(x: Tensor, value: Tensor) -> None:
    x.array = value.array


def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether a gradient is wanted; the Tensor."""
    x.stop_gradient = not requires_grad
    return x


strides = composed("strides", lambda x: [n // x.array.dtype.itemsize for n in x.array.strides], "list")


def share_buffer_to(x: Tensor, other: Tensor) -> None:
    """Give `other` the memory of this Tensor; it keeps its shape, which must hold no more elements."""
    other.array = x.array.reshape(-1)[: other.size].reshape(other.array.shape)


def register_backward_hook(x: Tensor, hook: Callable[[], Any]) -> None:
    """Have `hook` called, without arguments, when the gradient of this leaf has been accumulated.

    It is called once per backward, with the gradient that arrives on its way to `grad`.
    """
    if x.stop_gradient or not x.is_leaf:
        raise invalid("_register_backward_hook(): a backward hook is for a leaf that needs a gradient")

    def call(gradient: Tensor) -> None:
        hook()

    x.register_hook(call)


pin_memory = composed("pin_memory", lambda x, blocking=True: x)


randn_like = composed("randn_like", lambda x, dtype=None, **options: randn(x.shape, dtype or x.dtype))
rand_like = composed("rand_like", lambda x, dtype=None, **options: uniform(x.shape, dtype or x.dtype))
is_floating_point = composed("is_floating_point", lambda x: x.dtype.is_floating, "bool")
is_complex = composed("is_complex", lambda x: x.dtype.is_complex, "bool")
is_integer = composed("is_integer", lambda x: x.dtype.rank == 1, "bool")
is_empty = composed("is_empty", lambda x: full([], x.size == 0, "bool"))
cpu = composed("cpu", lambda x: x if x.place.is_cpu_place() else Tensor(to_numpy(x.array), None, x.stop_gradient))


def cuda(x: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """`x` itself if it is on the current GPU, else a RuntimeError: Tensors are made where they are used (see
    `set_device`)."""
    if x.place.is_cpu_place():
        set_device(f"gpu:{device_id or 0}")  # which says what is missing, if something is
        raise RuntimeError("The Tensor is in host memory: make it after paddle.set_device('gpu').")
    return x


def to(x: Tensor, dtype: Any) -> Tensor:
    """A copy of `x` in `dtype`; or, given a Tensor, `x` in the dtype of that."""
    return astype(x, dtype.dtype) if isinstance(dtype, Tensor) else cast(x, dtype)


ATTRIBUTES: dict[str, Any] = {
    **{name: _in_dtype(name, dtype) for name, dtype in DTYPE_METHODS.items()},
    **{f"new_{make.__name__}": _new(make) for make in (zeros, ones, empty, full)},
    "data": property(Tensor.detach, _set_data),
    "requires_grad": property(lambda x: not x.stop_gradient, lambda x, value: setattr(x, "stop_gradient", not value)),
    "requires_grad_": requires_grad_,
    "dim": lambda x: x.ndim,
    "ndimension": lambda x: x.ndim,
    "element_size": lambda x: x.dtype.itemsize,
    "itemsize": property(lambda x: x.array.dtype.itemsize),
    "strides": property(strides),
    "get_strides": strides,
    "is_cuda": property(lambda x: x.place.is_gpu_place()),
    "is_same": lambda x, other: x is other,  # of Values in static mode
    "_is_shared_buffer_with": lambda x, other: owner(x.array) is owner(other.array),
    "_share_buffer_to": share_buffer_to,
    "_register_backward_hook": register_backward_hook,
    "_is_initialized": lambda x: True,
    "_numel": lambda x: int(x.size),
    "_inplace_version": lambda x: x.inplace_version,
    "_grad_ivar": lambda x: x.grad,
}
"""What `ops.methods` gives Tensor."""
