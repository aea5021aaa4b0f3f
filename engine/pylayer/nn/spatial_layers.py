"""Layers over space: convolutions, normalisations, and functions of `convolution`, `pooling` and `vision` as layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.nn import activations, convolution, pooling, vision
from pylayer.nn.initializer import Constant, Normal, ParamAttr, Uniform
from pylayer.nn.layer import Layer
from pylayer.nn.layers import REQUIRED, function_layer
from pylayer.nn.normalization import batch_norm, group_norm, instance_norm, local_response_norm
from pylayer.nn.spatial import per_axis
from pylayer.ops.padding import pad
from pylayer.ops.shape import unflatten
from pylayer.tensor import Tensor

_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


# --------------------------------------------------------------------------- convolutions
class _Convolution(Layer):
    """A convolution with a weight and, unless `bias_attr` is False, a bias per output channel.

    The weight starts as normal numbers of variance 2 / (inputs of one output) (He et al., 2015), the bias as zeros.
    """

    ndim: int
    function: Callable[..., Tensor]
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        *,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups.")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                f"padding_mode must be one of {{'zeros', 'reflect', 'replicate', 'circular'}}, but got "
                f"padding_mode={padding_mode!r}"
            )
        ndim = type(self).ndim
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel = per_axis(kernel_size, ndim, "kernel_size")
        self.strides, self.dilations = per_axis(stride, ndim, "stride"), per_axis(dilation, ndim, "dilation")
        self.padding, self.padding_mode, self.output_padding = padding, padding_mode, output_padding
        self.data_format = data_format or _FORMATS[ndim]
        inner, outer = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        deviation = math.sqrt(2.0 / (math.prod(self.kernel) * in_channels))
        first = None if self.transposed else Normal(0.0, deviation)
        self.weight = self.create_parameter(
            [inner, outer // groups, *self.kernel], weight_attr, default_initializer=first
        )
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """The output, of shape [batch, out_channels, *space]."""
        padding = self.padding
        if self.padding_mode != "zeros":
            sizes = per_axis(padding, type(self).ndim, "padding")
            around = [n for size in reversed(sizes) for n in (size, size)]
            x, padding = pad(x, around, self.padding_mode, data_format=self.data_format), 0
        return type(self).function(
            x, self.weight, self.bias, self.strides, padding, dilation=self.dilations, groups=self.groups,
            data_format=self.data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """What the repr shows: what differs from the usual."""
        ndim = type(self).ndim
        shown = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel}"]
        if self.strides != [1] * ndim:
            shown.append(f"stride={self.strides}")
        if self.padding != 0:
            shown.append(f"padding={self.padding}")
        if self.padding_mode != "zeros":
            shown.append(f"padding_mode={self.padding_mode}")
        if self.output_padding != 0:
            shown.append(f"output_padding={self.output_padding}")
        if self.dilations != [1] * ndim:
            shown.append(f"dilation={self.dilations}")
        if self.groups != 1:
            shown.append(f"groups={self.groups}")
        return ", ".join([*shown, f"data_format={self.data_format}"])


class _Transposed(_Convolution):
    """A transposed convolution; `weight` is [in, out / groups, *kernel]."""

    transposed = True
    groups_first = False
    """Whether `groups` stands before `dilation` among the arguments, as in Paddle for one and three axes."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        *args: Any,
        dilation: Any = None,
        groups: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
    ) -> None:
        order = ["groups", "dilation"] if self.groups_first else ["dilation", "groups"]
        given = dict(zip([*order, "weight_attr", "bias_attr", "data_format"], args, strict=False))
        named = {"dilation": dilation, "groups": groups, "weight_attr": weight_attr, "bias_attr": bias_attr}
        given |= {key: value for key, value in (named | {"data_format": data_format}).items() if value is not None}
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding=output_padding, **given
        )

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        """The output, of `output_size` if given."""
        return type(self).function(
            x, self.weight, self.bias, self.strides, self.padding,
            output_padding=0 if output_size is not None else self.output_padding, dilation=self.dilations,
            groups=self.groups, output_size=output_size, data_format=self.data_format,
        )  # fmt: skip


def _convolution(ndim: int, transposed: bool) -> Any:
    name = f"Conv{ndim}D{'Transpose' if transposed else ''}"
    function = getattr(convolution, f"conv{ndim}d{'_transpose' if transposed else ''}")
    base = _Transposed if transposed else _Convolution
    body = {"__doc__": base.__doc__, "__module__": __name__, "ndim": ndim, "function": staticmethod(function)}
    return type(name, (base,), body | ({"groups_first": ndim != 2} if transposed else {}))


Conv1D, Conv2D, Conv3D = (_convolution(ndim, False) for ndim in (1, 2, 3))
Conv1DTranspose, Conv2DTranspose, Conv3DTranspose = (_convolution(ndim, True) for ndim in (1, 2, 3))


# --------------------------------------------------------------------------- normalisations
class _BatchNorm(Layer):
    """`nn.functional.batch_norm`: weight of ones, bias of zeros, running mean 0 and variance 1 to start with."""

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
        self.num_features, self.momentum, self.epsilon = num_features, momentum, epsilon
        self.data_format, self.use_global_stats = data_format or self.usual_format, use_global_stats
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        # In Paddle the running statistics are parameters that are not trained.
        fixed = ParamAttr(trainable=False)
        self._mean = self.create_parameter([num_features], fixed, default_initializer=Constant(0.0))
        self._variance = self.create_parameter([num_features], fixed, default_initializer=Constant(1.0))

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training, self.momentum, self.epsilon,
            "NHWC" if self.data_format.endswith("C") and len(self.data_format) > 2 else "NCHW", self.use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """What the repr shows."""
        shown = f"num_features={self.num_features}, momentum={self.momentum}, epsilon={self.epsilon}"
        return f"{shown}, data_format={self.data_format}" if self.data_format.endswith("C") else shown


class BatchNorm1D(_BatchNorm):
    """`batch_norm` of [batch, channels] or [batch, channels, length]."""

    usual_format = "NCL"


class BatchNorm2D(_BatchNorm):
    """`batch_norm` of images."""


class BatchNorm3D(_BatchNorm):
    """`batch_norm` of volumes."""

    usual_format = "NCDHW"


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm2D`: there is one process, with which nothing need be in step."""


class GroupNorm(Layer):
    """`nn.functional.group_norm` with a weight of ones and a bias of zeros to start with."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.epsilon = num_groups, num_channels, epsilon
        self.data_format = data_format
        self.weight = self.create_parameter([num_channels], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return group_norm(input, self.num_groups, self.epsilon, self.weight, self.bias, self.data_format)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, epsilon={self.epsilon}"


class _InstanceNorm(Layer):
    """`nn.functional.instance_norm` with a scale of ones and a bias of zeros to start with."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.num_features, self.epsilon, self.momentum = num_features, epsilon, momentum
        self.scale = self.create_parameter([num_features], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return instance_norm(input, None, None, self.scale, self.bias, True, self.momentum, self.epsilon)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"num_features={self.num_features}, epsilon={self.epsilon}"


class InstanceNorm1D(_InstanceNorm):
    """`instance_norm` of sequences."""


class InstanceNorm2D(_InstanceNorm):
    """`instance_norm` of images."""


class InstanceNorm3D(_InstanceNorm):
    """`instance_norm` of volumes."""


class Bilinear(Layer):
    """`nn.functional.bilinear` with a weight of [out, in1, in2], within 1 / √in1 to start with."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.sizes = (in1_features, in2_features, out_features)
        first = Uniform(-1 / math.sqrt(in1_features), 1 / math.sqrt(in1_features))
        shape = [out_features, in1_features, in2_features]
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=first)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True, default_initializer=first)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The output, [batch, out]."""
        return activations.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """What the repr shows."""
        one, two, out = self.sizes
        return f"in1_features={one}, in2_features={two}, out_features={out}, dtype={self._dtype.name}"


# --------------------------------------------------------------------------- functions as layers
_POOL: dict[str, Any] = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_SHOWN = "kernel_size stride padding"


def _pools(name: str, ndim: int, **options: Any) -> Any:
    """A pooling layer over `ndim` axes."""
    lower = name.replace("Adaptive", "adaptive_").replace("MaxUnPool", "max_unpool").replace("LPPool", "lp_pool")
    function = getattr(pooling, lower.replace("MaxPool", "max_pool").replace("AvgPool", "avg_pool") + f"{ndim}d")
    shown = " ".join(options) if "Adaptive" in name else "output_size" if "Un" in name else _SHOWN
    return function_layer(f"{name}{ndim}D", function, shown.removesuffix(" data_format"), **options)


_FORMATTED = {ndim: {} if ndim == 1 else {"data_format": _FORMATS[ndim]} for ndim in (1, 2, 3)}
MaxPool1D, MaxPool2D, MaxPool3D = (
    _pools("MaxPool", n, **_POOL, return_mask=False, ceil_mode=False, **_FORMATTED[n]) for n in (1, 2, 3)
)
AvgPool1D = _pools("AvgPool", 1, **_POOL, exclusive=True, ceil_mode=False)
AvgPool2D, AvgPool3D = (
    _pools("AvgPool", n, **_POOL, ceil_mode=False, exclusive=True, divisor_override=None, data_format=_FORMATS[n])
    for n in (2, 3)
)
MaxUnPool1D, MaxUnPool2D, MaxUnPool3D = (
    _pools("MaxUnPool", n, **_POOL, data_format=_FORMATS[n], output_size=None) for n in (1, 2, 3)
)
LPPool1D, LPPool2D = (
    function_layer(
        f"LPPool{n}D", getattr(pooling, f"lp_pool{n}d"), f"norm_type {_SHOWN}",
        norm_type=REQUIRED, **_POOL, ceil_mode=False, data_format=_FORMATS[n],
    )
    for n in (1, 2)
)  # fmt: skip
AdaptiveAvgPool1D, AdaptiveAvgPool2D, AdaptiveAvgPool3D = (
    _pools("AdaptiveAvgPool", n, output_size=REQUIRED, **_FORMATTED[n]) for n in (1, 2, 3)
)
AdaptiveMaxPool1D, AdaptiveMaxPool2D, AdaptiveMaxPool3D = (
    _pools("AdaptiveMaxPool", n, output_size=REQUIRED, return_mask=False) for n in (1, 2, 3)
)
LocalResponseNorm = function_layer(
    "LocalResponseNorm", local_response_norm, "size alpha beta k", size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0,
    data_format="NCHW",
)  # fmt: skip


class _Padding(Layer):
    """`nn.functional.pad` of the spatial axes; an int stands for all sides."""

    ndim: int

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.padding = [padding] * (2 * self.ndim) if isinstance(padding, int) else padding
        self.mode, self.value, self.data_format = mode, value, data_format or _FORMATS[self.ndim]

    def forward(self, x: Tensor) -> Tensor:
        """The padded input."""
        return pad(x, self.padding, self.mode, self.value, self.data_format)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"padding={self.padding}, mode={self.mode}, value={self.value}, data_format={self.data_format}"


class _ZeroPadding(_Padding):
    """Zeros around the spatial axes; an int stands for all sides."""

    def __init__(self, padding: Any, data_format: str | None = None, name: str | None = None) -> None:
        super().__init__(padding, data_format=data_format)


def _padding(ndim: int, base: type[_Padding]) -> Any:
    name = f"{'Zero' if base is _ZeroPadding else ''}Pad{ndim}D"
    return type(name, (base,), {"__doc__": base.__doc__, "__module__": __name__, "ndim": ndim})


Pad1D, Pad2D, Pad3D = (_padding(n, _Padding) for n in (1, 2, 3))
ZeroPad1D, ZeroPad2D, ZeroPad3D = (_padding(n, _ZeroPadding) for n in (1, 2, 3))

Upsample = function_layer(
    "Upsample", vision.interpolate, True, size=None, scale_factor=None, mode="nearest", align_corners=False,
    align_mode=0, data_format=None, recompute_scale_factor=None,
)  # fmt: skip


def _upsample_repr(self: Any) -> str:
    values = self.values
    what = "size" if values["scale_factor"] is None else "scale_factor"
    shown = [f"{key}={values[key]}" for key in (what, "mode", "align_corners", "align_mode")]
    return ", ".join([*shown, f"data_format={values['data_format'] or 'NCHW'}"])


Upsample.extra_repr = _upsample_repr  # type: ignore[method-assign]
PixelShuffle = function_layer(
    "PixelShuffle", vision.pixel_shuffle, "upscale_factor", upscale_factor=REQUIRED, data_format="NCHW"
)
PixelUnshuffle = function_layer(
    "PixelUnshuffle", vision.pixel_unshuffle, "downscale_factor", downscale_factor=REQUIRED, data_format="NCHW"
)
ChannelShuffle = function_layer("ChannelShuffle", vision.channel_shuffle, "groups", groups=REQUIRED, data_format="NCHW")
Unfold = function_layer("Unfold", vision.unfold, False, kernel_sizes=REQUIRED, dilations=1, paddings=0, strides=1)
Fold = function_layer(
    "Fold", vision.fold, False, output_sizes=REQUIRED, kernel_sizes=REQUIRED, dilations=1, paddings=0, strides=1
)
Unflatten = function_layer("Unflatten", unflatten, True, axis=REQUIRED, shape=REQUIRED)


def _window_repr(self: Any) -> str:
    values = self.values
    return (
        f"kernel_size={values['kernel_sizes']}, dilation={values['dilations']}, padding={values['paddings']}, "
        f"stride={values['strides']}"
    )


Unfold.extra_repr = Fold.extra_repr = _window_repr  # type: ignore[method-assign]
