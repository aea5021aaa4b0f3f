"""Layers over space: functions of `convolution`, `pooling` and `vision` as layers."""

from __future__ import annotations

import functools
from typing import Any

from pylayer.nn import adaptive_pooling, interpolation, pooling, vision
from pylayer.nn.checks import check_count, check_format
from pylayer.nn.layer import Layer
from pylayer.nn.layers import REQUIRED, function_layer
from pylayer.nn.normalization import local_response_norm
from pylayer.nn.spatial import FORMATS
from pylayer.nn.words import also
from pylayer.ops.padding import pad
from pylayer.ops.shape import unflatten
from pylayer.tensor import Tensor

# --------------------------------------------------------------------------- functions as layers
_POOL: dict[str, Any] = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_SHOWN = "kernel_size stride padding"


def _pools(name: str, ndim: int, **options: Any) -> Any:
    """A pooling layer over `ndim` axes."""
    lower = name.replace("Adaptive", "adaptive_").replace("MaxUnPool", "max_unpool").replace("LPPool", "lp_pool")
    room = adaptive_pooling if "Adaptive" in name else pooling
    function = getattr(room, lower.replace("MaxPool", "max_pool").replace("AvgPool", "avg_pool") + f"{ndim}d")
    shown = " ".join(options) if "Adaptive" in name else "output_size" if "Un" in name else _SHOWN
    taken = "input" if ndim == 1 and ("Adaptive" in name or name == "MaxPool") else ""
    return function_layer(f"{name}{ndim}D", function, shown.removesuffix(" data_format"), taken, **options)


_FORMATTED = {ndim: {} if ndim == 1 else {"data_format": FORMATS[ndim]} for ndim in (1, 2, 3)}
MaxPool1D, MaxPool2D, MaxPool3D = (
    _pools("MaxPool", n, **_POOL, return_mask=False, ceil_mode=False, **_FORMATTED[n]) for n in (1, 2, 3)
)
AvgPool1D = _pools("AvgPool", 1, **_POOL, exclusive=True, ceil_mode=False)
AvgPool2D, AvgPool3D = (
    _pools("AvgPool", n, **_POOL, ceil_mode=False, exclusive=True, divisor_override=None, data_format=FORMATS[n])
    for n in (2, 3)
)
MaxUnPool1D, MaxUnPool2D, MaxUnPool3D = (
    _pools("MaxUnPool", n, **_POOL, data_format=FORMATS[n], output_size=None) for n in (1, 2, 3)
)


def _unpooled(self: Any, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
    """What was pooled, at its places; of `output_size`, or else that of the layer."""
    window = (self.kernel_size, self.stride, self.padding)
    unpool: Any = type(self).function
    found: Tensor = unpool(x, indices, *window, self.data_format, output_size or self.output_size)
    return found


for _layer in (MaxUnPool1D, MaxUnPool2D, MaxUnPool3D):
    _layer.forward = _unpooled
LPPool1D, LPPool2D = (
    function_layer(
        f"LPPool{n}D", getattr(pooling, f"lp_pool{n}d"), f"norm_type {_SHOWN}",
        norm_type=REQUIRED, **_POOL, ceil_mode=False, data_format=FORMATS[n],
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
    "LocalResponseNorm", local_response_norm, "size alpha beta k", "input", size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0,
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
        self._mode, self.value, self._data_format = mode, value, data_format or FORMATS[self.ndim]

    @also(input="x")
    def forward(self, x: Tensor) -> Tensor:
        """The padded input."""
        return pad(x, self.padding, self._mode, self.value, self._data_format)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"padding={self.padding}, mode={self._mode}, value={self.value}, data_format={self._data_format}"


def _padding(name: str, base: type[_Padding], mode: str, valued: bool = False) -> Any:
    """A layer that pads in one mode."""

    def with_value(
        self: Any, padding: Any, value: float, data_format: str | None = None, name: str | None = None
    ) -> None:
        base.__init__(self, padding, mode, value, data_format)

    def without(self: Any, padding: Any, data_format: str | None = None, name: str | None = None) -> None:
        base.__init__(self, padding, mode, 0.0, data_format)

    init = with_value if valued else without
    init.__qualname__ = f"{name}.__init__"
    return type(name, (base,), {"__doc__": f"`nn.functional.pad` in mode {mode}.", "__init__": init})


Pad1D, Pad2D, Pad3D = (type(f"Pad{n}D", (_Padding,), {"__doc__": _Padding.__doc__, "ndim": n}) for n in (1, 2, 3))
_PADS = {1: Pad1D, 2: Pad2D, 3: Pad3D}
ConstantPad1D, ConstantPad2D, ConstantPad3D = (
    _padding(f"ConstantPad{n}D", base, "constant", True) for n, base in _PADS.items()
)
ZeroPad1D, ZeroPad2D, ZeroPad3D = (_padding(f"ZeroPad{n}D", base, "constant") for n, base in _PADS.items())
ReflectionPad1D, ReflectionPad2D, ReflectionPad3D = (
    _padding(f"ReflectionPad{n}D", base, "reflect") for n, base in _PADS.items()
)
ReplicationPad1D, ReplicationPad2D, ReplicationPad3D = (
    _padding(f"ReplicationPad{n}D", base, "replicate") for n, base in _PADS.items()
)
CircularPad1D, CircularPad2D, CircularPad3D = (
    _padding(f"CircularPad{n}D", base, "circular") for n, base in _PADS.items()
)

Upsample = function_layer(
    "Upsample", interpolation.interpolate, True, size=None, scale_factor=None, mode="nearest", align_corners=False,
    align_mode=0, data_format=None, recompute_scale_factor=None,
)  # fmt: skip


def _upsample_repr(self: Any) -> str:
    what = "size" if self.scale_factor is None else "scale_factor"
    shown = [f"{key}={getattr(self, key)}" for key in (what, "mode", "align_corners", "align_mode")]
    return ", ".join([*shown, f"data_format={self.data_format or 'NCHW'}"])


Upsample.extra_repr = _upsample_repr  # type: ignore[method-assign]


def _upsampling(name: str, **options: Any) -> Any:
    def function(x: Tensor, size: Any, scale_factor: Any, data_format: str) -> Tensor:
        return interpolation.interpolate(x, size, scale_factor, data_format=data_format, **options)

    function.__name__ = "interpolate"
    layer = function_layer(name, function, size=None, scale_factor=None, data_format="NCHW")

    def extra_repr(self: Any) -> str:
        what = "size" if self.scale_factor is None else "scale_factor"
        return ", ".join(f"{key}={getattr(self, key)}" for key in (what, "data_format"))

    layer.extra_repr = extra_repr  # type: ignore[method-assign]
    return layer


UpsamplingBilinear2D = _upsampling("UpsamplingBilinear2D", mode="bilinear", align_corners=True)
UpsamplingNearest2D = _upsampling("UpsamplingNearest2D", mode="nearest")
PixelShuffle = function_layer(
    "PixelShuffle", vision.pixel_shuffle, "upscale_factor", upscale_factor=REQUIRED, data_format="NCHW"
)
PixelUnshuffle = function_layer(
    "PixelUnshuffle", vision.pixel_unshuffle, "downscale_factor", downscale_factor=REQUIRED, data_format="NCHW"
)
ChannelShuffle = function_layer("ChannelShuffle", vision.channel_shuffle, "groups", groups=REQUIRED, data_format="NCHW")
for _layer, _factor in (
    (PixelShuffle, "upscale_factor"), (PixelUnshuffle, "downscale_factor"), (ChannelShuffle, "groups")
):  # fmt: skip
    _layer.checks = {
        _factor: functools.partial(check_count, _factor),
        "data_format": lambda data_format: check_format(data_format, "NCHW", "NHWC"),
    }
Unfold = function_layer(
    "Unfold", vision.unfold, False, "input", kernel_sizes=REQUIRED, dilations=1, paddings=0, strides=1
)
Fold = function_layer(
    "Fold",
    vision.fold,
    False,
    "input",
    output_sizes=REQUIRED,
    kernel_sizes=REQUIRED,
    dilations=1,
    paddings=0,
    strides=1,
)
Unflatten = function_layer("Unflatten", unflatten, True, "input", axis=REQUIRED, shape=REQUIRED)


def _window_repr(self: Any) -> str:
    return f"kernel_size={self.kernel_sizes}, dilation={self.dilations}, padding={self.paddings}, stride={self.strides}"


Unfold.extra_repr = Fold.extra_repr = _window_repr  # type: ignore[method-assign]
