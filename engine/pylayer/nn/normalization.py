"""Normalisations of `paddle.nn.functional` other than `layer_norm`, and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pylayer.nn.checks import check_parameters, check_positive
from pylayer.nn.functional import dropout, last_axes
from pylayer.ops.activation import softmax
from pylayer.ops.arguments import require
from pylayer.ops.creation import zeros_like
from pylayer.ops.elementwise import rsqrt
from pylayer.ops.formats import (
    ALL_FORMATS,
    SPATIAL_FORMATS,
    channels_back,
    channels_first,
    check_format,
)
from pylayer.ops.indexing import where_
from pylayer.ops.linalg import matmul
from pylayer.ops.positions import repeat_interleave
from pylayer.ops.reduction import mean
from pylayer.ops.shape import reshape, squeeze, transpose, unsqueeze
from pylayer.tape.symbol import Symbol
from pylayer.tape.versions import mark_changed
from pylayer.tensor.array import XP
from pylayer.tensor.invalid import UnsupportedError
from pylayer.tensor.tensor import Tensor


def _scale_and_shift(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """`x`, channels second, times `weight` plus `bias`, with one number of each per channel."""
    shape = [1, -1, *[1] * (x.ndim - 2)]
    x = x if weight is None else x * reshape(weight, shape)
    return x if bias is None else x + reshape(bias, shape)


def _update_statistic(running: Tensor, value: Tensor, momentum: float) -> None:
    """Update a running statistic in place: ``momentum · running + (1 − momentum) · value``."""
    running.array[...] = running.array * momentum + value.array.reshape(running.array.shape) * (
        1 - momentum
    )
    mark_changed(running.array)


def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
) -> Tensor:
    """`x` normalised to mean 0 and variance 1 per channel, over batch and space; times `weight`
    plus `bias` (Ioffe and Szegedy, 2015).

    In training the statistics are those of `x`, and the running ones move towards them by 1 −
    `momentum`, in place; otherwise the running ones are used. `use_global_stats`, if given, decides
    which.

    Raises:
        UnsupportedError: in training, on a Variable of static mode.
        AssertionError: `x` has no channels.
        ValueError: an unknown `data_format`, or parameters whose dtype differs from that of `x`.
    """
    if training and isinstance(x, Symbol):
        raise UnsupportedError("batch_norm() in training in static mode")
    require(x.ndim > 1, "batch_norm(): input dim must be larger than 1", x, error=AssertionError)
    check_format(data_format, ALL_FORMATS)
    check_parameters("batch_norm", x, weight, bias)
    x = channels_first(x, data_format)
    shape = [1, -1, *[1] * (x.ndim - 2)]
    if use_global_stats is None:
        use_global_stats = not training
    if use_global_stats:
        check_parameters("batch_norm", x, running_mean, running_var)
        centred = x - reshape(running_mean, shape)
        normalized = centred * rsqrt(reshape(running_var, shape) + epsilon)
    elif x.size == x.shape[1]:
        # A single number per channel has no variance: Paddle returns it unchanged, and the
        # gradients of weight and bias are zeros.
        return channels_back(x + _scale_and_shift(zeros_like(x), weight, bias) * 0.0, data_format)
    else:
        axes = [k for k in range(x.ndim) if k != 1]
        average = mean(x, axes, True)
        centred = x - average
        variance = mean(centred * centred, axes, True)
        normalized = centred * rsqrt(variance + epsilon)
        if training:
            _update_statistic(running_mean, average, momentum)
            _update_statistic(running_var, variance, momentum)
    return channels_back(_scale_and_shift(normalized, weight, bias), data_format)


def _normalize(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    centred = x - mean(x, list(axes), True)
    return centred * rsqrt(mean(centred * centred, list(axes), True) + epsilon)


def group_norm(
    x: Tensor,
    num_groups: int,
    epsilon: float = 1e-5,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """`x` normalised to mean 0 and variance 1 per sample and group of channels; times `weight` plus
    `bias` (Wu and He, 2018).

    Raises:
        ValueError: the channels do not divide into the groups, the `data_format` is unknown, or
            weight or bias has another dtype.
    """
    check_format(data_format, SPATIAL_FORMATS)
    check_positive("group_norm", groups=num_groups)
    check_parameters("group_norm", x, weight, bias)
    x = channels_first(x, data_format)
    fits = not x.shape[1] % num_groups
    require(fits, f"group_norm(): the channels do not divide into {num_groups} groups", x)
    groups = reshape(x, [x.shape[0], num_groups, -1])
    normalized = reshape(_normalize(groups, [2], epsilon), x.shape)
    return channels_back(_scale_and_shift(normalized, weight, bias), data_format)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-5,
    data_format: str = "NCHW",
) -> Tensor:
    """`x` normalised to mean 0 and variance 1 per sample and channel; times `weight` plus `bias`
    (Ulyanov et al., 2016).

    Raises:
        ValueError: `x` has no channels, or weight or bias has another dtype.
    """
    require(
        x.ndim > 1, "instance_norm(): the dimension of input X must greater than or equal to 2", x
    )
    check_parameters("instance_norm", x, weight, bias)
    x = channels_first(x, data_format)
    points = reshape(x, [*x.shape[:2], math.prod(x.shape[2:])])  # [N, C] is one per channel
    normalized = reshape(_normalize(points, [2], eps), x.shape)
    return channels_back(_scale_and_shift(normalized, weight, bias), data_format)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    """`input` over the root of its mean square over the last axes, times `weight` (Zhang and
    Sennrich, 2019).

    Returns:
        The result, and the reciprocal of that root.

    Raises:
        ValueError: the last axes are not those of `normalized_shape`.
    """
    axes = last_axes("rms_norm", input, normalized_shape)
    inverse = rsqrt(mean(input * input, axes, True) + eps)
    normalized = input * inverse
    if weight is not None:
        normalized = normalized * reshape(weight, input.shape[axes[0] :])
    return normalized, reshape(inverse, input.shape[: axes[0]])


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    backend: str | None = None,
    scale: float | None = None,
    enable_gqa: bool = True,
) -> Tensor:
    """softmax(Q Kᵀ · scale + mask) V per head (Vaswani et al., 2017); all are [batch, length,
    heads, size].

    Without a batch they are [length, heads, size].

    Args:
        attn_mask: added to the scores; or bool, True where attention is allowed.
        is_causal: no attention to later positions.
        scale: 1 / √size unless given.
        enable_gqa: keys and values of fewer heads serve several heads of the query each.

    Raises:
        AssertionError: the heads of the keys do not divide those of the query.
        ValueError: a wrong number of axes.
    """
    require(query.ndim in (3, 4), "scaled_dot_product_attention(): needs 3 or 4 axes", query)
    if query.ndim == 3:
        q, k, v = (unsqueeze(t, 0) for t in (query, key, value))
        attended = scaled_dot_product_attention(
            q, k, v, attn_mask, dropout_p, is_causal, training, backend, scale, enable_gqa
        )
        return squeeze(attended, 0)
    if enable_gqa and key.shape[2] != query.shape[2]:
        text = f"The number of groups in query must be divisible by that in key, {key.shape[2]}"
        require(query.shape[2] % key.shape[2] == 0, text, query, error=AssertionError)
        times = query.shape[2] // key.shape[2]
        key, value = repeat_interleave(key, times, 2), repeat_interleave(value, times, 2)
    q, k, v = (transpose(t, [0, 2, 1, 3]) for t in (query, key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = matmul(q, k, transpose_y=True) * scale
    if is_causal:
        rows, columns = scores.shape[-2:]
        allowed = XP[type(scores.array)].tri(rows, columns, dtype=bool)
        scores = where_(Tensor(allowed), scores, -math.inf)
    if attn_mask is not None and attn_mask.dtype.name == "bool":
        scores = where_(attn_mask, scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = dropout(softmax(scores, -1), dropout_p, training=training)
    return transpose(matmul(weights, v), [0, 2, 1, 3])
