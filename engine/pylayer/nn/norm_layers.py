"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from pylayer.nn.initializer import Constant, ParamAttr
from pylayer.nn.layer import Layer
from pylayer.nn.normalization import batch_norm, group_norm
from pylayer.nn.words import also
from pylayer.ops.arguments import require
from pylayer.ops.formats import SPATIAL_FORMATS, are_channels_last, check_format
from pylayer.tensor.tensor import Tensor


class _BatchNorm(Layer):
    """`nn.functional.batch_norm` with an initial weight of ones, bias of zeros, running mean 0 and
    variance 1; in Paddle the running statistics are parameters that are not trained.
    """

    dimensions: tuple[int, ...] = ()
    usual_format = "NCHW"

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format = data_format or self.usual_format
        self._use_global_stats = use_global_stats
        self.weight = self.create_parameter(
            [num_features], weight_attr, default_initializer=Constant(1.0)
        )
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        for statistic, value in (("mean", 0.0), ("variance", 1.0)):
            fixed = ParamAttr(name and f"{name}_{statistic}", Constant(value), trainable=False)
            setattr(self, f"_{statistic}", self.create_parameter([num_features], fixed))

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        self._data_format = "NHWC" if are_channels_last(self._data_format) else "NCHW"
        expected = " or ".join(f"{n}D" for n in self.dimensions)
        fits = input.ndim in self.dimensions
        require(fits, f"expected {expected} input (got {input.ndim}D input)")
        return batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training,
            self._momentum, self._epsilon, self._data_format, self._use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        shown = (
            f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        )
        return f"{shown}, data_format={self._data_format}" if self._data_format != "NCHW" else shown


class BatchNorm1D(_BatchNorm):
    """`batch_norm` of [batch, channels] or [batch, channels, length]."""

    dimensions = (2, 3)
    usual_format = "NCL"


class BatchNorm2D(_BatchNorm):
    """`batch_norm` of images."""

    dimensions = (4,)


class BatchNorm3D(_BatchNorm):
    """`batch_norm` of volumes."""

    dimensions = (5,)
    usual_format = "NCDHW"


class GroupNorm(Layer):
    """`nn.functional.group_norm` with an initial weight of ones and bias of zeros."""

    @also(eps="epsilon")
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        *,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype)
        check_format(data_format, SPATIAL_FORMATS)
        weight_attr, bias_attr = (weight_attr, bias_attr) if affine else (False, False)
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format = data_format
        self.weight = self.create_parameter(
            [num_channels], weight_attr, default_initializer=Constant(1.0), device=device
        )
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return group_norm(
            input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format
        )

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        sizes = f"num_groups={self._num_groups}, num_channels={self._num_channels}"
        return f"{sizes}, epsilon={self._epsilon}"
