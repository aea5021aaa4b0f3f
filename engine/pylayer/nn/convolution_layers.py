"""Convolutions as layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.nn import convolution
from pylayer.nn.initializer import Normal
from pylayer.nn.layer import Layer
from pylayer.nn.spatial import per_axis
from pylayer.nn.words import also
from pylayer.ops.arguments import one_of, require
from pylayer.ops.formats import FORMATS, SPATIAL_FORMATS, check_format
from pylayer.ops.padding import pad
from pylayer.tensor.tensor import Tensor


class _Convolution(Layer):
    """A convolution with a weight and, unless `bias_attr` is False, a bias per output channel.

    The weight is initialised by normal numbers of variance 2 / (inputs of one output) (He et al.,
    2015), the bias by zeros.
    """

    ndim: int
    function: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype)
        modes = ("zeros", "reflect", "replicate", "circular")
        ndim = type(self).ndim
        data_format = data_format or FORMATS[ndim][0]
        text = "weight_attr should not be False in Conv"
        require(weight_attr is not False, text, error=AssertionError)
        require(in_channels % groups == 0, "in_channels must be divisible by groups")
        one_of("padding_mode", padding_mode, *modes)
        text = f"type of padding must be int when padding_mode is one of {modes[1:]}"
        fits = padding_mode == "zeros" or isinstance(padding, int)
        require(fits, text, error=TypeError)
        check_format(data_format, SPATIAL_FORMATS)
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = per_axis(kernel_size, ndim, "kernel_size")
        self._stride = per_axis(stride, ndim, "stride")
        self._dilation = per_axis(dilation, ndim, "dilation")
        self._padding, self._padding_mode, self.output_padding = padding, padding_mode, 0
        self._data_format = data_format
        deviation = math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels))
        shape = [out_channels, in_channels // groups, *self._kernel_size]
        first = Normal(0.0, deviation)
        self.weight = self.create_parameter(
            shape, weight_attr, default_initializer=first, device=device
        )
        self.bias = self.create_parameter(
            [out_channels], bias_attr if bias else False, is_bias=True
        )

    @also(input="x")
    def forward(self, x: Tensor) -> Tensor:
        """The output, of shape [batch, out_channels, *space]."""
        padding = self._padding
        if self._padding_mode != "zeros":
            around = [padding] * (2 * type(self).ndim)
            x = pad(x, around, self._padding_mode, data_format=self._data_format)
            padding = 0
        return type(self).function(
            x, self.weight, self.bias, self._stride, padding, dilation=self._dilation,
            groups=self._groups, data_format=self._data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Text of the repr: arguments that differ from the defaults."""
        once = [1] * type(self).ndim
        options = {
            "stride": (self._stride, once),
            "padding": (self._padding, 0),
            "padding_mode": (self._padding_mode, "zeros"),
            "dilation": (self._dilation, once),
            "groups": (self._groups, 1),
        }
        shown = [f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"]
        shown += [f"{n}={value}" for n, (value, usual) in options.items() if value != usual]
        return ", ".join([*shown, f"data_format={self._data_format}"])


class Conv1D(_Convolution):
    """A convolution of sequences; see `nn.functional.conv1d`."""

    ndim, function = 1, staticmethod(convolution.conv1d)


class Conv2D(_Convolution):
    """A convolution of images; see `nn.functional.conv2d`."""

    ndim, function = 2, staticmethod(convolution.conv2d)


class Conv3D(_Convolution):
    """A convolution of volumes; see `nn.functional.conv3d`."""

    ndim, function = 3, staticmethod(convolution.conv3d)
