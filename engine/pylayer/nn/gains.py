"""Initial values that keep the scale of a layer's outputs (He et al., 2015)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.nn.initializer import Initializer, fans
from pylayer.ops import random
from pylayer.ops.arguments import one_of, require
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
"""Paddle's table: by the activation behind a layer, the factor for the standard deviation of its
weights.
"""


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor to the standard deviation of weights before a `nonlinearity`, a leaky relu of
    slope `param` (0.01).

    Raises:
        ValueError: it has no recommended gain.
    """
    one_of("calculate_gain(): `nonlinearity`", nonlinearity, *_GAINS)
    return _GAINS[nonlinearity](0.01 if param is None else float(param))


class _Kaiming(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        negative_slope: float = 0.0,
        nonlinearity: str = "relu",
        mode: str = "fan_in",
    ) -> None:
        one_of("the mode of KaimingNormal and KaimingUniform", mode, "fan_in", "fan_out")
        text = "KaimingNormal and KaimingUniform take no fan_in with the mode 'fan_out'"
        require(mode == "fan_in" or fan_in is None, text)
        self.fan_in, self.mode = fan_in, mode
        self.negative_slope, self.nonlinearity = negative_slope, nonlinearity

    def deviation(self, shape: Sequence[int]) -> float:
        """The standard deviation: the gain over the root of the fan (He et al., 2015, equation
        10).
        """
        fan = self.fan_in if self.fan_in is not None else fans(shape)[self.mode == "fan_out"]
        return calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan)


class KaimingNormal(_Kaiming):
    """Normal numbers around 0 with Kaiming's standard deviation."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        return astype(random.normal(0.0, self.deviation(shape), shape), dtype)


class KaimingUniform(_Kaiming):
    """Uniform numbers around 0 with Kaiming's standard deviation."""

    def values(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """The values, for a shape and a dtype."""
        limit = self.deviation(shape) * math.sqrt(3)  # of ±a the deviation is a / √3
        return random.uniform(shape, dtype, -limit, limit)
