"""The rarer activations of `paddle.nn.functional`."""

from __future__ import annotations

from typing import Any

from pylayer.ops import random
from pylayer.ops.activation import hardtanh, softmax, swish
from pylayer.ops.arguments import normal_axis, require
from pylayer.ops.creation import arange
from pylayer.ops.elementwise import log
from pylayer.ops.indexing import where_
from pylayer.ops.inplace import in_place
from pylayer.ops.joining import chunk
from pylayer.ops.shape import astype, cast, moveaxis, unsqueeze
from pylayer.ops.sorting import argmax, one_hot
from pylayer.tensor.tensor import Tensor


def hardshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x, but 0 between −threshold and threshold; at both, and for NaN, x itself, as in Paddle."""
    return where_((x >= threshold) | (x <= -threshold), x, x * 0.0)


def softshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x moved towards 0 by threshold; 0 if it would cross 0.

    Raises:
        ValueError: the threshold is negative.
    """
    require(threshold >= 0, f"The threshold must be no less than zero. Received: {threshold}")
    return where_(x > threshold, x - threshold, where_(x < -threshold, x + threshold, x * 0.0))


def gumbel_softmax(
    x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1
) -> Tensor:
    """The softmax of logits plus Gumbel noise, over temperature; with `hard` one-hot, straight
    through in backward.
    """
    text = f"The temperature must be greater than 0. But received temperature = {temperature}"
    require(temperature > 0, text)
    noise = -log(-log(random.uniform(x.shape, x.dtype, 1e-12, 1.0)))
    soft = softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    axis = normal_axis(axis, x.ndim)
    chosen = moveaxis(astype(one_hot(argmax(soft, axis), x.shape[axis]), x.dtype), -1, axis)
    return soft + (chosen - soft).detach()


def swiglu(x: Tensor, y: Tensor | None = None) -> Tensor:
    """swish(x) · y; without y, x and y are the two halves of the last axis (Shazeer, 2020)."""
    if y is None:
        x, y = chunk(x, 2, -1)
    return swish(x) * y


def sequence_mask(x: Tensor, maxlen: Any = None, dtype: Any = "int64") -> Tensor:
    """1 at positions before each length, along a new last axis of size `maxlen`, by default the
    largest length.

    A negative `maxlen` stands for the largest length as well, as in Paddle.
    """
    count = -1 if maxlen is None else int(maxlen)
    if count < 0:
        count = int(x.array.max().item())
    return astype(arange(count, dtype=x.dtype) < unsqueeze(x, -1), dtype)


hardtanh_ = in_place(hardtanh)
_softmax_in_place = in_place(softmax)


def softmax_(x: Tensor, axis: int = -1, dtype: Any = None) -> Tensor:
    """`softmax` in place; with a `dtype`, applied to a copy in that dtype, as in Paddle."""
    return _softmax_in_place(x if dtype is None else cast(x, dtype), axis)
