"""Convolutions as layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.nn import convolution
from pylayer.nn.checks import check_format
from pylayer.nn.initializer import Normal
from pylayer.nn.layer import Layer
from pylayer.nn.spatial import ALL_FORMATS, FORMATS, per_axis
from pylayer.nn.words import also
from pylayer.ops.padding import pad
from pylayer.tensor.tensor import Tensor


class _Convolution(Layer):
    """A convolution with a weight and, unless `bias_attr` is False, a bias per output channel.

    The weight starts as normal numbers of variance 2 / (inputs of one output) (He et al., 2015), the bias as zeros.
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
        if weight_attr is False:
            raise AssertionError("weight_attr should not be False in Conv.")
        bias_attr = bias_attr if bias else False
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups.")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"padding_mode must be one of {{'zeros', 'reflect', 'replicate', 'circular'}}, but got "
                f"padding_mode={padding_mode!r}"
            )
        if data_format is not None:
            check_format(data_format, *ALL_FORMATS[1:])
        ndim = type(self).ndim
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = per_axis(kernel_size, ndim, "kernel_size")
        self._stride, self._dilation = (
            per_axis(stride, ndim, "stride"),
            per_axis(dilation, ndim, "dilation"),
        )
        self._padding, self._padding_mode, self.output_padding = padding, padding_mode, 0
        self._data_format = data_format or FORMATS[ndim]
        self._updated_padding = self._padding
        if padding_mode != "zeros":
            if not isinstance(padding, int):
                raise TypeError(
                    "when padding_mode in ['reflect', 'replicate', 'circular'], type of padding must be int"
                )
            self._reversed_padding_repeated_twice, self._updated_padding = [padding] * (2 * ndim), 0
        deviation = math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels))
        shape = [out_channels, in_channels // groups, *self._kernel_size]
        first = Normal(0.0, deviation)
        self.weight = self.create_parameter(
            shape, weight_attr, default_initializer=first, device=device
        )
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    @also(input="x")
    def forward(self, x: Tensor) -> Tensor:
        """The output, of shape [batch, out_channels, *space]."""
        if self._padding_mode != "zeros":
            x = pad(
                x,
                self._reversed_padding_repeated_twice,
                self._padding_mode,
                data_format=self._data_format,
            )
        return type(self).function(
            x, self.weight, self.bias, self._stride, self._updated_padding, dilation=self._dilation,
            groups=self._groups, data_format=self._data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """What the repr shows: what differs from the usual."""
        ndim = type(self).ndim
        shown = [f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"]
        if self._stride != [1] * ndim:
            shown.append(f"stride={self._stride}")
        if self._padding != 0:
            shown.append(f"padding={self._padding}")
        if self._padding_mode != "zeros":
            shown.append(f"padding_mode={self._padding_mode}")
        if self._dilation != [1] * ndim:
            shown.append(f"dilation={self._dilation}")
        if self._groups != 1:
            shown.append(f"groups={self._groups}")
        return ", ".join([*shown, f"data_format={self._data_format}"])


def _convolution(ndim: int) -> Any:
    function = staticmethod(getattr(convolution, f"conv{ndim}d"))
    body = {
        "__doc__": _Convolution.__doc__,
        "__module__": __name__,
        "ndim": ndim,
        "function": function,
    }
    return type(f"Conv{ndim}D", (_Convolution,), body)


Conv1D, Conv2D, Conv3D = (_convolution(ndim) for ndim in (1, 2, 3))
