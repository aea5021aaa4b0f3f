"""`paddle.jit`'s decorators. Nothing is compiled: a function made static runs eagerly, with the same results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.dtype import as_dtype
from pylayer.ops.arguments import as_ints
from pylayer.tensor import Tensor


def to_static(
    function: Any = None, input_spec: Any = None, build_strategy: Any = None, backend: Any = None, **kwargs: Any
) -> Any:
    """The function, or the layer, as it is: the bundled engine runs it eagerly, and compiles nothing.

    Its results and gradients are those of the function; what only a compiled program shows is not there: `input_spec`
    checks nothing, and branches on values are ordinary Python.
    """
    if function is None:
        return functools.partial(to_static, input_spec=input_spec)
    return function


def not_to_static(func: Callable[..., Any] | None = None) -> Any:
    """The function as it is."""
    return not_to_static if func is None else func


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Accepted: nothing is ever compiled."""


def ignore_module(modules: Sequence[Any]) -> None:
    """Accepted: nothing is ever compiled."""


class InputSpec:
    """What an input of a program is like: its shape, None or -1 for sizes not known, its dtype and its name."""

    def __init__(
        self, shape: Any, dtype: Any = "float32", name: str | None = None, stop_gradient: bool = False
    ) -> None:
        self.shape = tuple(-1 if n is None else n for n in ([shape] if isinstance(shape, int) else shape))
        self.dtype, self.name, self.stop_gradient = as_dtype(dtype), name, stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> InputSpec:
        """The specification of a Tensor."""
        return cls(as_ints(tensor.shape), tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: Any, name: str | None = None) -> InputSpec:
        """The specification of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """With `batch_size` put before the shape, in place."""
        self.shape = (int(batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Without the first size, in place.

        Raises:
            ValueError: there is none.
        """
        if not self.shape:
            raise ValueError("Not support to unbatch a InputSpec when len(shape) == 0.")
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        return (
            f"InputSpec(shape={self.shape}, dtype=paddle.{self.dtype.name}, name={self.name}, "
            f"stop_gradient={self.stop_gradient})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
