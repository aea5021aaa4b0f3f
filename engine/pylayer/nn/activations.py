"""`paddle.nn.functional`'s rarer activations, and dropout of whole channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.nn.checks import check_format
from pylayer.nn.functional import dropout
from pylayer.ops import random
from pylayer.ops.activation import hardtanh, softmax, swish
from pylayer.ops.arguments import normal_axis, require
from pylayer.ops.creation import arange, zeros_like
from pylayer.ops.elementwise import log
from pylayer.ops.indexing import where_
from pylayer.ops.inplace import in_place
from pylayer.ops.joining import chunk
from pylayer.ops.linalg import einsum
from pylayer.ops.padding import pad
from pylayer.ops.reduction import max as largest
from pylayer.ops.shape import astype, cast, moveaxis, reshape, unsqueeze
from pylayer.ops.sorting import argmax, one_hot
from pylayer.tensor.tensor import Tensor


def hardshrink(x: Tensor, threshold: float = 0.5, name: str | None = None) -> Tensor:
    """x, but 0 between −threshold and threshold; at both, and for NaN, x itself, as in Paddle."""
    return where_((x >= threshold) | (x <= -threshold), x, x * 0.0)


def softshrink(x: Tensor, threshold: float = 0.5, name: str | None = None) -> Tensor:
    """x moved towards 0 by threshold, and 0 where it would pass it.

    Raises:
        ValueError: the threshold is negative.
    """
    if threshold < 0:
        raise ValueError(f"The threshold must be no less than zero. Received: {threshold}.")
    return where_(x > threshold, x - threshold, where_(x < -threshold, x + threshold, x * 0.0))


def thresholded_relu(
    x: Tensor, threshold: float = 1.0, value: float = 0.0, name: str | None = None
) -> Tensor:
    """x where it is above threshold, else value; NaN for NaN."""
    return where_(x > threshold, x, x * 0.0 + value)


def rrelu(
    x: Tensor,
    lower: float = 1.0 / 8.0,
    upper: float = 1.0 / 3.0,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) in training, else their mean (Xu et al., 2015).

    Raises:
        ValueError: not 0 ≤ lower ≤ upper ≤ 1.
    """
    if not 0 <= lower <= upper <= 1:
        raise ValueError(
            f"The lower and upper values must be 0 <= lower <= upper <= 1. Received: {lower}, {upper}."
        )
    slope: Any = (
        random.uniform(x.shape, x.dtype, lower, upper) if training else (lower + upper) / 2.0
    )
    return where_(x >= 0, x, x * slope)


def maxout(x: Tensor, groups: int, axis: int = 1, name: str | None = None) -> Tensor:
    """The largest of each `groups` neighbouring channels, 2 at least (Goodfellow et al., 2013)."""
    require(
        groups > 1, f"Attr(groups) of Op(maxout) should be larger than 1. But received {groups}"
    )
    at = normal_axis(axis, x.ndim)
    shape = list(x.shape)
    return largest(reshape(x, [*shape[:at], shape[at] // groups, groups, *shape[at + 1 :]]), at + 1)


def gumbel_softmax(
    x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Tensor:
    """The softmax of logits plus Gumbel noise, over temperature; with `hard` one-hot, straight through in backward."""
    if temperature <= 0:
        raise ValueError(
            f"The temperature must be greater than 0. But received temperature = {temperature}"
        )
    noise = -log(-log(random.uniform(x.shape, x.dtype, 1e-12, 1.0)))
    soft = softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    at = normal_axis(axis, x.ndim)
    chosen = moveaxis(astype(one_hot(argmax(soft, at), x.shape[at]), x.dtype), -1, at)
    return soft + (chosen - soft).detach()


def swiglu(x: Tensor, y: Tensor | None = None, name: str | None = None) -> Tensor:
    """swish(x) · y; without y, of the two halves of the last axis (Shazeer, 2020)."""
    if y is None:
        x, y = chunk(x, 2, -1)
    return swish(x) * y


def dropout2d(
    x: Tensor,
    p: float = 0.5,
    training: bool = True,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """`dropout` of whole channels of images. Raises ValueError for other axes than those of `data_format`."""
    return _of_channels(x, p, training, data_format, "NCHW")


def dropout3d(
    x: Tensor,
    p: float = 0.5,
    training: bool = True,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Tensor:
    """`dropout` of whole channels of volumes. Raises ValueError for other axes than those of `data_format`."""
    return _of_channels(x, p, training, data_format, "NCDHW")


def _of_channels(x: Tensor, p: float, training: bool, data_format: str, usual: str) -> Tensor:
    check_format(data_format, usual, usual.replace("C", "") + "C")
    if x.ndim != len(usual):
        raise ValueError(
            f"dimensions of x should be {len(usual)}, but received {x.ndim} != {len(usual)}"
        )
    return dropout(x, p, [0, data_format.index("C")], training)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of sequences, those of a batch alike, as in Paddle."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability must be in [0, 1], got {p}")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d expects 2D or 3D input, got {input.ndim}D")
    return dropout(input, p, input.ndim - 2, training)


def alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None
) -> Tensor:
    """Elements set to where `selu` saturates, mean and variance kept (Klambauer et al., 2017)."""
    return _alpha_dropout(x, p, training, x.shape)


def feature_alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = True, name: str | None = None
) -> Tensor:
    """`alpha_dropout` of whole channels."""
    if training and x.ndim < 2:
        raise ValueError("Feature alpha dropout needs at least 2D input.")
    return _alpha_dropout(x, p, training, [*x.shape[:2], *(1 for _ in x.shape[2:])])


def _alpha_dropout(x: Tensor, p: float, training: bool, drawn: Sequence[int]) -> Tensor:
    """`drawn` is the shape of what is drawn."""
    if not 0 <= p <= 1:
        raise ValueError("p argument should between 0 and 1")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    low = -1.6732632423543772 * 1.0507009873554805
    a = ((1 - p) * (1 + p * low**2)) ** -0.5
    b = -a * p * low
    kept = random.uniform(drawn, "float64") >= p
    return where_(kept, x, zeros_like(x) + low) * a + b  # type: ignore[no-any-return]


def bilinear(
    x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None
) -> Tensor:
    """x1ᵀ W_k x2 for every k, plus a bias: weight is [out, size of x1, size of x2]."""
    out = einsum("bi,kij,bj->bk", x1, weight, x2)
    return out if bias is None else out + bias


def zeropad2d(
    x: Tensor, padding: Any, data_format: str = "NCHW", name: str | None = None
) -> Tensor:
    """Zeros around images: left, right, top, bottom."""
    return pad(x, padding, "constant", 0.0, data_format)


def sequence_mask(
    x: Tensor, maxlen: Any = None, dtype: Any = "int64", name: str | None = None
) -> Tensor:
    """1 for positions before each length, along a new last axis of size `maxlen`, the largest length unless given.

    A negative `maxlen` stands for the largest length as well, as in Paddle.
    """
    given = -1 if maxlen is None else int(maxlen)
    count = int(x.array.max().item()) if given < 0 else given
    return astype(arange(count, dtype=x.dtype) < unsqueeze(x, -1), dtype)


hardtanh_, thresholded_relu_ = in_place(hardtanh), in_place(thresholded_relu)
_softmax_in_place = in_place(softmax)


def softmax_(x: Tensor, axis: int = -1, dtype: Any = None, name: str | None = None) -> Tensor:
    """`softmax` in place; with a `dtype` in place of a copy in it, as in Paddle."""
    return _softmax_in_place(x if dtype is None else cast(x, dtype), axis)
