"""Activation functions. Except for the primitives, they are compositions without own vjps."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import normal_axis, one_of, require, vector_shape
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import check_same_dtype, erf, expm1, sigmoid, tanh
from pylayer.ops.formats import ALL_FORMATS, are_channels_last, check_format
from pylayer.ops.indexing import where_
from pylayer.ops.inplace import in_place
from pylayer.ops.joining import chunk
from pylayer.ops.shape import astype, reshape
from pylayer.tape.op import composed, op, unary
from pylayer.tensor.array import Array
from pylayer.tensor.tensor import Tensor

# --------------------------------------------------------------------------- rectifiers
# A gradient that is NaN or infinite is passed on as NaN where the slope is 0, as in Paddle, because
# it is multiplied by the slope. A product is also ten times as fast as a choice.
relu = unary(
    "relu", lambda g, F, out: g * F.cast(out > 0, g.dtype), lambda xp: lambda x: xp.fmax(x, 0)
)


# A number next to bfloat16, which is not a dtype of NumPy itself, gives float32: results are cast
# back.
@op(x=lambda g, F, x, negative_slope: F.where(x > 0, g, F.cast(g * negative_slope, g.dtype)))
def leaky_relu(xp: ModuleType, x: Array, negative_slope: float = 0.01) -> Array:
    """x where it is positive, otherwise `negative_slope` times x."""
    return xp.where(x > 0, x, (x * negative_slope).astype(x.dtype, copy=False))


@op(x=lambda g, F, x, min, max: g * F.cast((x > min) & (x < max), g.dtype))
def hardtanh(xp: ModuleType, x: Array, min: float = -1.0, max: float = 1.0) -> Array:
    """x clamped to `min` and `max`; unlike in `clip`, the gradient at the bounds is 0."""
    return xp.clip(x, min, max).astype(x.dtype, copy=False)


def _elu_vjp(g: Any, F: Any, x: Any, alpha: float) -> Any:
    slope = alpha * F.exp(F.where(x > 0, 0, x))
    return F.where(x > 0, g, F.cast(g * slope, g.dtype))


@op(x=_elu_vjp)
def elu(xp: ModuleType, x: Array, alpha: float = 1.0) -> Array:
    """x where it is positive, otherwise alpha (eˣ - 1) (Clevert et al., 2015)."""
    below = alpha * xp.expm1(xp.where(x > 0, xp.zeros_like(x), x))
    return xp.where(x > 0, x, below.astype(x.dtype, copy=False))


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, otherwise alpha (exp(x / alpha) - 1) (Barron, 2017); a
    ZeroDivisionError for an alpha of 0.
    """
    require(alpha != 0, "alpha cannot be 0 for celu", error=ZeroDivisionError)
    return where_(x > 0, x, alpha * expm1(where_(x > 0, 0.0, x / alpha)))


def selu(x: Tensor, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> Tensor:
    """`elu` times a scale above 1, (Klambauer et al., 2017); a ValueError if alpha is below 0."""
    require(scale > 1, f"The scale must be greater than 1.0. Received: {scale}")
    require(alpha >= 0, f"The alpha must be no less than zero. Received: {alpha}")
    return elu(x, alpha) * scale


relu6 = composed("relu6", lambda x: hardtanh(x, 0.0, 6.0))
hardsigmoid = composed(
    "hardsigmoid", lambda x, slope=1 / 6, offset=0.5: hardtanh(x * slope + offset, 0.0, 1.0)
)


def hardswish(x: Tensor) -> Tensor:
    """x times (x + 3 clamped to 0 and 6), divided by 6 (Howard et al., 2019)."""
    check_same_dtype("hardswish", [x])
    return x * relu6(x + 3) / 6


def prelu(x: Tensor, weight: Tensor, data_format: str = "NCHW") -> Tensor:
    """`leaky_relu` with a learned slope: one for all, or one per channel; otherwise an
    AssertionError.

    Raises:
        ValueError: `weight` has another dtype, or there are several slopes and `data_format` is
            unknown.
    """
    check_same_dtype("prelu", [x, weight])
    if weight.size > 1:
        check_format(data_format, ALL_FORMATS)
        channel = x.ndim - 1 if are_channels_last(data_format) else 1
        text = "The weight size should be equal to x input channel in prelu()"
        fits = x.ndim > 1 and weight.size == x.shape[channel]
        require(fits, text, weight, x, error=AssertionError)
        weight = reshape(weight, vector_shape(channel, x.ndim))
    return where_(x > 0, x, x * weight)


# --------------------------------------------------------------------------- smooth
@op(x=lambda g, F, x, beta, threshold: F.where(x * beta > threshold, g, g * F.sigmoid(x * beta)))
def softplus(xp: ModuleType, x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above `threshold`."""
    return xp.where(x * beta > threshold, x, xp.logaddexp(x * beta, 0) / beta).astype(x.dtype)


def log_sigmoid(x: Tensor) -> Tensor:
    """The logarithm of the sigmoid, without overflow."""
    check_same_dtype("log_sigmoid", [x])
    return -softplus(-x, 1.0, math.inf)


silu = composed("silu", lambda x, inplace=False: x * sigmoid(x))
swish = composed("swish", lambda x: silu(x))
mish = composed("mish", lambda x: x * tanh(softplus(x)))  # Misra, 2019


def gelu(x: Tensor, approximate: bool | str = False) -> Tensor:
    """x times the normal distribution function at x, or its approximation by tanh (Hendrycks and
    Gimpel, 2016).
    """
    one_of("gelu(): `approximate`", approximate, True, False, "tanh", "none")
    if approximate in (True, "tanh"):
        return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


softsign = composed("softsign", lambda x: x / (1 + absolute(x)))
tanhshrink = composed("tanhshrink", lambda x: x - tanh(x))


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half along `axis` times the sigmoid of the second (Dauphin et al., 2016)."""
    value, gate = chunk(x, 2, axis)
    return value * sigmoid(gate)


# --------------------------------------------------------------------------- softmax
def _subtract_largest(x: Array, axis: int) -> Array:
    """x less its largest element along `axis`, so that no exponential overflows."""
    axis = normal_axis(axis, x.ndim)
    return x - x.max(axis, keepdims=True) if x.size else x


@op(floating=True, x=lambda g, F, out, axis: out * (g - F.sum(g * out, axis, None, True)))
def softmax_(xp: ModuleType, x: Array, axis: int) -> Array:
    """Exponentials over their sum along `axis`, without overflow."""
    powers = xp.exp(_subtract_largest(x, axis))
    return powers / powers.sum(axis, keepdims=True)


@op(floating=True, x=lambda g, F, out, axis: g - F.exp(out) * F.sum(g, axis, None, True))
def log_softmax_(xp: ModuleType, x: Array, axis: int) -> Array:
    """The logarithm of the softmax along `axis`, without overflow."""
    shifted = _subtract_largest(x, axis)
    return shifted - xp.log(xp.exp(shifted).sum(axis, keepdims=True))


def _softmax_in(function: Callable[..., Tensor], x: Tensor, axis: int, dtype: Any) -> Tensor:
    """`softmax_` or `log_softmax_` in `dtype`, if given; a 0-d Tensor has the axis 0."""
    x = x if dtype is None else astype(x, dtype)
    if not x.ndim:
        return reshape(function(reshape(x, [1]), normal_axis(axis, 1)), [])
    return function(x, axis)


softmax = composed("softmax", lambda x, axis=-1, dtype=None: _softmax_in(softmax_, x, axis, dtype))
log_softmax = composed(
    "log_softmax", lambda x, axis=-1, dtype=None: _softmax_in(log_softmax_, x, axis, dtype)
)

relu_, elu_, leaky_relu_ = map(in_place, (relu, elu, leaky_relu))


def legacy_softmax(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`softmax` of `paddle.special`: without an axis along the first of 0, 1 or 3 axes, otherwise
    along the second.
    """
    if axis is None:
        axis = 0 if x.ndim in (0, 1, 3) else 1
    return softmax(x, axis, dtype)
