"""Compositions of operations for `paddle.nn.functional`: linear maps, embedding, dropout,
normalisation, cosine similarity.
"""

from __future__ import annotations

from typing import Any

from pylayer.nn.checks import check_parameters
from pylayer.ops import random
from pylayer.ops.arguments import as_ints, axes_of, one_of, require
from pylayer.ops.creation import full_like
from pylayer.ops.elementwise import clip, logical_and, maximum, rsqrt, sqrt
from pylayer.ops.indexing import where_
from pylayer.ops.linalg import matmul
from pylayer.ops.norms import norm
from pylayer.ops.reduction import mean
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype, broadcast_tensors, clone, reshape, unsqueeze
from pylayer.ops.sorting import one_hot
from pylayer.tape.symbol import Symbol
from pylayer.tape.versions import mark_changed
from pylayer.tensor.tensor import Tensor


# --------------------------------------------------------------------------- layers
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight + bias`` with `weight` of shape [in, out]."""
    product: Tensor = matmul(x, weight)
    return product if bias is None else product + bias


def embedding(
    x: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    sparse: bool = False,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """The rows `x` of `weight`; rows for `padding_idx` are zeros without a gradient.

    Args:
        max_norm: rows with a larger `norm_type`-norm are first scaled down to it, in `weight`
            itself.
        sparse: a hint that is ignored.
        scale_grad_by_freq: not part of the bundled engine.

    Raises:
        ValueError: `padding_idx` or an element of `x` is out of range, or `scale_grad_by_freq`.
        NotImplementedError: the dtype of `x` is not int32 or int64.
    """
    text = "embedding(): scale_grad_by_freq=True is not part of the bundled engine"
    require(not scale_grad_by_freq, text)
    if max_norm:
        _hold_rows(weight, x, max_norm, norm_type)
    is_integer = x.dtype.name in ("int32", "int64")
    require(is_integer, "embedding(): x should be of int32 or int64", x, error=NotImplementedError)
    check_range("embedding(): an element", x, weight.shape[0], ValueError)
    rows: Tensor = weight[x]
    if padding_idx is None:
        return rows
    check_padding_row(padding_idx, weight.shape[0])
    padded = padding_idx % weight.shape[0]
    return where_(unsqueeze(x != padded, -1), rows, 0.0)


def check_padding_row(padding_idx: int, rows: int) -> None:
    """Check that an embedding of `rows` rows has a row `padding_idx`."""
    text = f"padding_idx must be within [-{rows}, {rows}), but got {padding_idx}"
    require(-rows <= padding_idx < rows, text)


def check_range(
    subject: str, x: Tensor, count: int, error: type[Exception], ignored: int | None = None
) -> None:
    """Check that indices are below `count`, or are to be ignored; skipped while a program is built,
    as they have no values yet.
    """
    if isinstance(x, Symbol):
        return
    wrong = x.array[((x.array < 0) | (x.array >= count)) & (x.array != ignored)]
    if wrong.size:
        text = f"{subject} should be >= 0 and < {count} unless it is ignored ({ignored})"
        raise error(f"(OutOfRange) {text}, but received {wrong.flat[0]}.")


def _hold_rows(weight: Tensor, x: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows `x` of `weight` down to a norm of `max_norm`, in place and outside the
    graph.
    """
    bare = weight.detach()
    size = norm(bare, norm_type, 1, True)
    named = one_hot(reshape(x, [-1]), weight.shape[0]).sum(0) > 0
    too_large = logical_and(reshape(named, [-1, 1]), size > max_norm)
    weight.array[...] = where_(too_large, bare * (max_norm / (size + 1e-7)), bare).array
    mark_changed(weight.array)


def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: Any = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
) -> Tensor:
    """Elements set to zero with probability `p` in training (whole slices, if `axis` is given).

    The others are divided by 1 - p (upscale_in_train), or all times 1 - p outside training
    (downscale_in_infer).

    Raises:
        ValueError: `p` is not a probability, or `mode` is unknown.
    """
    require(0 <= p <= 1, f"p argument should between 0 and 1, but got {p}")
    one_of("dropout(): `mode`", mode, "upscale_in_train", "downscale_in_infer")
    upscale = mode == "upscale_in_train"
    if p == 0:
        return x
    if not training and upscale:
        return clone(x) if axis is None else x  # as in Paddle
    if not training:
        return x * (1 - p)
    if p == 1:
        return x * 0.0
    axes = axes_of(axis, x.ndim)
    is_kept = random.rand([n if k in axes else 1 for k, n in enumerate(x.shape)], "float64") >= p
    return x * (astype(is_kept, x.dtype) * (1 / (1 - p) if upscale else 1.0))


def layer_norm(
    x: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """`x` normalised to mean 0 and variance 1 over the last axes, of shape `normalized_shape`;
    times `weight` plus `bias` (Ba et al., 2016).

    Raises:
        ValueError: the last axes have a different shape, or are all axes; weight or bias is not a
            row, or has another dtype; or the epsilon is outside of 0 to 0.001, the range that
            Paddle accepts.
    """
    epsilon_fits = 0 <= epsilon <= 0.001
    text = f"layer_norm(): 'epsilon' should be between 0.0 and 0.001, but received {epsilon}"
    require(epsilon_fits, text)
    check_rows("layer_norm", x, weight, bias)
    axes = last_axes("layer_norm", x, normalized_shape)
    text = "layer_norm(): there should be an axis before the normalised ones"
    require(len(axes) < x.ndim, text, x)
    sizes = x.shape[axes[0] :]
    centred = x - mean(x, axes, True)
    normalized = centred * rsqrt(mean(centred * centred, axes, True) + epsilon)
    if weight is not None:
        normalized = normalized * reshape(weight, sizes)
    return normalized if bias is None else normalized + reshape(bias, sizes)


def last_axes(name: str, x: Tensor, normalized_shape: Any) -> list[int]:
    """The last axes, checked to have the shape `normalized_shape`. Raises ValueError if they do
    not.
    """
    sizes = as_ints(normalized_shape)
    axes = list(range(max(x.ndim - len(sizes), 0), x.ndim))
    text = f"{name}(): the last axes should be {sizes}, as normalized_shape says"
    require([x.shape[k] for k in axes] == sizes, text, x)
    return axes


def check_rows(name: str, x: Tensor, *rows: Tensor | None) -> None:
    """Check that weight and bias, if given, have one axis each and match the dtype of `x`."""
    for row in rows:
        if row is not None:
            require(row.ndim == 1, f"{name}(): weight and bias should have 1 dimension", row)
    check_parameters(name, x, *rows)


def normalize(x: Tensor, p: float = 2, axis: int = 1, epsilon: float = 1e-12) -> Tensor:
    """`x` divided by its p-norm along `axis`, or by `epsilon` if that is larger."""
    size = norm(x, p, axis, True)
    return x / maximum(size, full_like(size, epsilon))


def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between slices along `axis`; the product of their norms is at least
    `eps`.
    """
    x1, x2 = broadcast_tensors([x1, x2])
    # Bounded before the root is taken: the root of 0 has an infinite slope, and infinity times 0 is
    # NaN.
    squares = clip(total(x1 * x1, axis) * total(x2 * x2, axis), eps * eps)
    return total(x1 * x2, axis) / sqrt(squares)
