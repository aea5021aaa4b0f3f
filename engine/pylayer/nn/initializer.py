"""First values of parameters, and the attributes with which a layer asks for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.ops import creation, random
from pylayer.ops.elementwise import clip
from pylayer.ops.inplace import check_changeable
from pylayer.ops.shape import astype
from pylayer.ops.special import erfinv
from pylayer.symbol import Parameter, at_once
from pylayer.tensor import Tensor
from pylayer.versions import mark_changed


class Initializer:
    """Gives the first values of a parameter of some shape and dtype."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        raise NotImplementedError(f"{type(self).__name__} must override values().")

    def __call__(self, param: Tensor, block: Any = None) -> Tensor:
        check_changeable(param, f"paddle.nn.initializer.{type(self).__name__} of what is there")
        param.array[...] = self.values(param.shape, param.dtype).array
        mark_changed(param.array)
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


class TruncatedNormal(Initializer):
    """Normally distributed within [a, b]; the bounds are values, not multiples of `std`."""

    def __init__(
        self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, name: str | None = None
    ) -> None:
        self.mean, self.std, self.a, self.b = mean, std, a, b

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values: the inverse of the distribution function, of numbers drawn evenly from its value at a to b's."""
        low, high = (math.erf((bound - self.mean) / (self.std * math.sqrt(2))) for bound in (self.a, self.b))
        drawn = erfinv(random.uniform(shape, "float64", low, high))
        return astype(clip(drawn * (self.std * math.sqrt(2)) + self.mean, self.a, self.b), dtype)


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many inputs and outputs a weight of `shape` connects: a matrix is [in, out], a filter [out, in, …]."""
    if len(shape) < 2:
        return math.prod(shape), math.prod(shape)
    window = math.prod(shape[2:])
    return (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * window, shape[0] * window)


class _Xavier(Initializer):
    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, gain: float = 1.0, name: str | None = None
    ) -> None:
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def deviation(self, shape: Sequence[int]) -> float:
        """The standard deviation: `gain` times sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010, equation 12)."""
        given = zip((self.fan_in, self.fan_out), fans(shape), strict=True)
        return self.gain * math.sqrt(2 / max(sum(own if fan is None else fan for fan, own in given), 1))


class XavierUniform(_Xavier):
    """Uniform around 0, its standard deviation that of Xavier."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        limit = self.deviation(shape) * math.sqrt(3)  # uniform within ±a has a standard deviation of a / sqrt(3)
        return random.uniform(shape, dtype, -limit, limit)


class XavierNormal(_Xavier):
    """Normal around 0, its standard deviation that of Xavier."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        return astype(random.normal(0.0, self.deviation(shape), shape), dtype)


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


_usual: dict[str, Initializer | None] = {"weight": None, "bias": None}


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """Have parameters start from these, unless their attributes name another; None for each layer's own.

    Raises:
        TypeError: one is no Initializer.
    """
    for what, given in (("weight_init", weight_init), ("bias_init", bias_init)):
        if given is not None and not isinstance(given, Initializer):
            raise TypeError(f"{what} must be an Initializer or None, but got {type(given).__name__}.")
    _usual.update(weight=weight_init, bias=bias_init)


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
    usual = _usual["bias" if is_bias else "weight"]
    initializer = attr.initializer or usual or default_initializer or (Constant(0.0) if is_bias else XavierUniform())
    if not isinstance(initializer, Initializer):
        raise TypeError(f"A parameter's initializer must be an Initializer, but got {type(initializer).__name__}.")
    parameter = Parameter(initializer.values(list(shape), dtype).array, attr.trainable)
    vars(parameter).update(  # for optimizers
        optimize_attr={"learning_rate": attr.learning_rate}, regularizer=attr.regularizer, need_clip=attr.need_clip
    )
    if attr.name or name:
        parameter.name = attr.name or str(name)
    return parameter
