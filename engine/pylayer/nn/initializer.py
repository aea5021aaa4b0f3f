"""Initializers of parameters, and `ParamAttr`, the attributes with which a layer requests a
parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.ops import creation, random
from pylayer.ops.arguments import require
from pylayer.ops.inplace import check_changeable
from pylayer.ops.shape import astype
from pylayer.optimizer.regularizer import L2Decay
from pylayer.tape.grad_mode import no_grad
from pylayer.tape.symbol import Parameter, at_once
from pylayer.tape.versions import mark_changed
from pylayer.tensor.invalid import check_supported
from pylayer.tensor.tensor import Tensor
from pylayer.tensor.unique_names import generate


class Initializer:
    """Gives the initial values of a parameter. A user's subclass overrides `forward` or `__call__`
    to write them.
    """

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        raise NotImplementedError(f"{type(self).__name__} must override forward().")

    def forward(self, param: Tensor, block: Any = None) -> Any:
        """Write the values into a parameter; values of a different shape replace its array."""
        check_changeable(
            param, f"paddle.nn.initializer.{type(self).__name__} of an existing parameter"
        )
        values = self.values(param.shape, param.dtype).array
        if values.shape == param.array.shape:
            param.array[...] = values
        else:
            param.array = values
        mark_changed(param.array)
        return param

    def __call__(self, param: Tensor, block: Any = None) -> Any:
        return self.forward(param, block)


class Constant(Initializer):
    """Initialises all elements by one value."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        return creation.full(shape, self.value, dtype)


class Normal(Initializer):
    """Normally distributed values."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        self.mean, self.std = mean, std

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        return astype(random.normal(self.mean, self.std, shape), dtype)


class Uniform(Initializer):
    """Uniformly distributed values from `low` to `high`."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        self.low, self.high = low, high

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        return random.uniform(shape, dtype, self.low, self.high)


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """The number of inputs and outputs that a weight of `shape` connects: a matrix is [in, out], a
    filter [out, in, …].
    """
    if len(shape) < 2:
        return math.prod(shape), math.prod(shape)
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


class _Xavier(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        fan_out: float | None = None,
        gain: float = 1.0,
        name: str | None = None,
    ) -> None:
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def deviation(self, shape: Sequence[int]) -> float:
        """The standard deviation: `gain` times sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio,
        2010, equation 12).
        """
        fan_in: float
        fan_out: float
        fan_in, fan_out = fans(shape)
        fan_in = fan_in if self.fan_in is None else self.fan_in
        fan_out = fan_out if self.fan_out is None else self.fan_out
        return self.gain * math.sqrt(2 / max(fan_in + fan_out, 1))


class XavierUniform(_Xavier):
    """Uniform numbers around 0 with Xavier's standard deviation."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        limit = self.deviation(shape) * math.sqrt(3)  # numbers within ±a have deviation a / √3
        return random.uniform(shape, dtype, -limit, limit)


class XavierNormal(_Xavier):
    """Normal numbers around 0 with Xavier's standard deviation."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        return astype(random.normal(0.0, self.deviation(shape), shape), dtype)


class Assign(Initializer):
    """The given values, in their own shape, as in Paddle."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        self.value = value

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        tensor: Tensor = creation.to_tensor(self.value, dtype)
        return tensor


class ParamAttr:
    """How a parameter is created and trained: name, initial values, a factor for the learning rate,
    weight decay.
    """

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
        self.name, self.initializer, self.trainable = name, initializer, trainable
        self.learning_rate, self.regularizer = learning_rate, regularizer
        self.do_model_average, self.need_clip = do_model_average, need_clip


def as_attribute(attr: Any) -> ParamAttr:
    """The attributes of a parameter, from a layer's argument: a ParamAttr, None, True, a name, an
    initializer, an `L2Decay`.

    Raises:
        TypeError: the argument has another type.
    """
    check_supported(attr)
    if isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, Initializer):
        return ParamAttr(initializer=attr)
    if isinstance(attr, L2Decay):
        return ParamAttr(regularizer=attr)
    known = attr is None or attr is True or isinstance(attr, str)
    text = "A parameter's attr must be a ParamAttr, an Initializer or a name"
    require(known, f"{text}, but got {type(attr).__name__}", error=TypeError)
    return ParamAttr(attr if isinstance(attr, str) else None)


def create_parameter(
    shape: Sequence[int],
    dtype: Any = None,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Callable[..., Any] | None = None,
) -> Parameter:
    """A new parameter; by default a bias is initialised by zeros, others by `XavierUniform`; `attr`
    and `default_initializer` override that.

    Args:
        attr: see `as_attribute`.

    Raises:
        TypeError: the initializer cannot be called.
    """
    return parameter_of("", shape, dtype, name, attr, is_bias, default_initializer)


@at_once
def parameter_of(
    scope: str,
    shape: Any,
    dtype: Any,
    name: str | None,
    attr: Any,
    is_bias: bool,
    default_initializer: Any,
) -> Parameter:
    """A new parameter of a layer, named after the layer's `scope` unless it has a name."""
    attribute = as_attribute(attr)
    usual = Constant(0.0) if is_bias else XavierUniform()
    initializer = attribute.initializer or default_initializer or usual
    kind = type(initializer)
    is_ours = getattr(kind, "forward", None) is Initializer.forward
    if is_ours and kind.__call__ is Initializer.__call__:
        parameter = Parameter(initializer.values(list(shape), dtype).array, attribute.trainable)
    else:  # a user's, which writes into the parameter
        parameter = Parameter(creation.zeros(list(shape), dtype).array, attribute.trainable)
        with no_grad():
            initializer(parameter, None)
    vars(parameter).update(  # for optimizers
        optimize_attr={"learning_rate": attribute.learning_rate},
        regularizer=attribute.regularizer,
        need_clip=attribute.need_clip,
    )
    kind_of_name = "b" if is_bias else "w"
    parameter.name = (
        attribute.name
        or name
        or generate(f"{scope or generate('create_parameter')}.{kind_of_name}")
    )
    return parameter
