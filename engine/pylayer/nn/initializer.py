"""First values of parameters, and the attributes with which a layer asks for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.ops import creation, random
from pylayer.ops.shape import astype
from pylayer.symbol import at_once
from pylayer.tensor import Parameter, Tensor


class Initializer:
    """Gives the first values of a parameter of some shape and dtype."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        raise NotImplementedError(f"{type(self).__name__} must override values().")

    def __call__(self, param: Tensor, block: Any = None) -> Tensor:
        param.array[...] = self.values(param.shape, param.dtype).array
        return param


class Constant(Initializer):
    """All elements the same."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        return creation.full(shape, self.value, dtype)


class Normal(Initializer):
    """Normally distributed."""

    def __init__(self, mean: float = 0.0, std: float = 1.0) -> None:
        self.mean, self.std = mean, std

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        return astype(random.normal(self.mean, self.std, shape), dtype)


class Uniform(Initializer):
    """Evenly distributed from `low` to `high`."""

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low, self.high = low, high

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        return random.uniform(shape, dtype, self.low, self.high)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many inputs and outputs a weight of `shape` connects: a matrix is [in, out], a filter [out, in, …]."""
    if len(shape) < 2:
        return math.prod(shape), math.prod(shape)
    window = math.prod(shape[2:])
    return (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * window, shape[0] * window)


class XavierUniform(Initializer):
    """Uniform within sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010, equation 16)."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        limit = math.sqrt(6 / max(sum(_fans(shape)), 1))
        return random.uniform(shape, dtype, -limit, limit)


class XavierNormal(Initializer):
    """Normal with variance 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        return astype(random.normal(0.0, math.sqrt(2 / max(sum(_fans(shape)), 1)), shape), dtype)


class Assign(Initializer):
    """The given values."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values.

        Raises:
            ValueError: they are of another shape.
        """
        given = creation.to_tensor(self.value, dtype)
        if list(given.shape) != list(shape):
            raise ValueError(f"Assign has values of shape {given.shape}, but the parameter's shape is {list(shape)}.")
        return given


class ParamAttr:
    """How a parameter is to be made and trained: name, first values, a factor to the learning rate, weight decay."""

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        self.name, self.initializer, self.learning_rate, self.trainable = name, initializer, learning_rate, trainable
        self.regularizer, self.do_model_average, self.need_clip = regularizer, do_model_average, need_clip


@at_once
def create_parameter(
    shape: Sequence[int],
    dtype: Any = None,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Callable[..., Any] | None = None,
) -> Parameter:
    """A new parameter: zeros for a bias, else `XavierUniform`, unless `attr` or `default_initializer` says otherwise.

    Args:
        attr: None, a ParamAttr, an Initializer, or a name.

    Raises:
        TypeError: `attr` is something else.
    """
    if attr is None or isinstance(attr, str):
        attr = ParamAttr(attr)
    elif isinstance(attr, Initializer):
        attr = ParamAttr(None, attr)
    if not isinstance(attr, ParamAttr):
        raise TypeError(
            f"A parameter's attr must be a ParamAttr, an Initializer or a name, but got {type(attr).__name__}."
        )
    initializer = attr.initializer or default_initializer or (Constant(0.0) if is_bias else XavierUniform())
    if not isinstance(initializer, Initializer):
        raise TypeError(f"A parameter's initializer must be an Initializer, but got {type(initializer).__name__}.")
    parameter = Parameter(initializer.values(list(shape), dtype).array, attr.trainable)
    vars(parameter).update(  # for optimizers
        optimize_attr={"learning_rate": attr.learning_rate}, regularizer=attr.regularizer, need_clip=attr.need_clip
    )
    if attr.name or name:
        parameter.name = attr.name or str(name)
    return parameter
