"""First values of parameters that keep the size of what a layer hands on, and functions that write first values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.nn.initializer import (
    Constant,
    Initializer,
    Normal,
    Uniform,
    XavierNormal,
    XavierUniform,
    fans,
)
from pylayer.ops import random
from pylayer.ops.shape import astype
from pylayer.tensor.tensor import Tensor

_LINEAR = "sigmoid linear conv1d conv2d conv3d conv1d_transpose conv2d_transpose conv3d_transpose"
_LINEAR += " conv_transpose1d conv_transpose2d conv_transpose3d"
_GAINS: dict[str, Callable[[float], float]] = {
    **dict.fromkeys(_LINEAR.split(), lambda slope: 1),
    "tanh": lambda slope: 5 / 3,
    "relu": lambda slope: math.sqrt(2),
    "leaky_relu": lambda slope: math.sqrt(2 / (1 + slope * slope)),
    "selu": lambda slope: 3 / 4,
}
"""Paddle's table: by what is applied to the outputs of a layer, the factor to the deviation of its weights."""


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor to the standard deviation of weights before a `nonlinearity`, a leaky relu of slope `param` (0.01).

    Raises:
        ValueError: there is none for it.
    """
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"nonlinearity function {nonlinearity} is not supported now; there are {', '.join(_GAINS)}."
        )
    return _GAINS[nonlinearity](0.01 if param is None else float(param))


class _Kaiming(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        negative_slope: float = 0.0,
        nonlinearity: str = "relu",
        mode: str = "fan_in",
    ) -> None:
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(
                f"The mode of KaimingNormal/KaimingUniform should be 'fan_in' or 'fan_out', but received {mode}."
            )
        if mode == "fan_out" and fan_in is not None:
            raise ValueError(
                "The mode of KaimingNormal/KaimingUniform is 'fan_out', but fan_in is set. Please set fan_in to None."
            )
        self.fan_in, self.negative_slope, self.nonlinearity, self.mode = (
            fan_in,
            negative_slope,
            nonlinearity,
            mode,
        )

    def deviation(self, shape: Sequence[int]) -> float:
        """The standard deviation: the gain over the root of the fan (He et al., 2015, equation 10)."""
        fan = self.fan_in if self.fan_in is not None else fans(shape)[self.mode == "fan_out"]
        return calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan)


class KaimingNormal(_Kaiming):
    """Normal around 0, its standard deviation that of Kaiming."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        return astype(random.normal(0.0, self.deviation(shape), shape), dtype)


class KaimingUniform(_Kaiming):
    """Uniform around 0, its standard deviation that of Kaiming."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values."""
        limit = self.deviation(shape) * math.sqrt(
            3
        )  # uniform within ±a has a standard deviation of a / sqrt(3)
        return random.uniform(shape, dtype, -limit, limit)


# --------------------------------------------------------------------------- into a Tensor that is there
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> None:
    """Write numbers drawn evenly from a to b into `tensor`."""
    Uniform(a, b)(tensor)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> None:
    """Write normal numbers into `tensor`."""
    Normal(mean, std)(tensor)


def constant_(tensor: Tensor, val: float) -> None:
    """Write `val` into every element of `tensor`."""
    Constant(val)(tensor)


def ones_(tensor: Tensor) -> None:
    """Write ones into `tensor`."""
    Constant(1.0)(tensor)


def zeros_(tensor: Tensor) -> None:
    """Write zeros into `tensor`."""
    Constant(0.0)(tensor)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, fan_in: float | None = None, fan_out: float | None = None
) -> None:
    """Write what `XavierUniform` draws into `tensor`."""
    XavierUniform(fan_in, fan_out, gain)(tensor)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, fan_in: float | None = None, fan_out: float | None = None
) -> None:
    """Write what `XavierNormal` draws into `tensor`."""
    XavierNormal(fan_in, fan_out, gain)(tensor)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> None:
    """Write what `KaimingUniform` draws into `tensor`; `a` is the negative slope."""
    KaimingUniform(None, a, nonlinearity, mode)(tensor)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> None:
    """Write what `KaimingNormal` draws into `tensor`; `a` is the negative slope."""
    KaimingNormal(None, a, nonlinearity, mode)(tensor)
