"""Losses of `paddle.nn.functional` that require a margin between classes or pairs."""

from __future__ import annotations

import functools
from collections.abc import Callable

from pylayer.nn.checks import check_label_shape
from pylayer.nn.losses import pairwise_distance, reduce_loss
from pylayer.ops.activation import relu
from pylayer.ops.arguments import require
from pylayer.ops.elementwise import clip, exp, log, minimum, sqrt, square
from pylayer.ops.indexing import where_
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype
from pylayer.tensor.tensor import Tensor


# ------------------------------------------------------------- losses of three inputs
def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to the positive − distance to the negative + margin); the distance is the
    2-norm unless given.

    Args:
        swap: use the distance of positive and negative if it is smaller (Balntas et al., 2016).

    Raises:
        ValueError: the three have different shapes.
    """
    check_label_shape("triplet_margin_loss", input, positive)
    check_label_shape("triplet_margin_loss", input, negative)
    distance = distance_function or pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_loss(clip(near - far + margin, 0.0), reduction)


def triplet_margin_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_with_distance_loss` of p-norms.

    Raises:
        ValueError: the three have different shapes, or the margin is not positive.
    """
    require(margin > 0, "The margin between positive and negative samples should be above 0")
    distance = functools.partial(pairwise_distance, p=p, epsilon=epsilon)
    return triplet_margin_with_distance_loss(
        input, positive, negative, distance, margin, swap, reduction
    )


# ------------------------------------------------------------------- losses for labels 1 and -1
def _by_sign(label: Tensor, same: Tensor, different: Tensor, reduction: str) -> Tensor:
    """`same` where the label is 1, `different` where it is −1, and 0 elsewhere; reduced."""
    return reduce_loss(where_(label == 1, same, where_(label == -1, different, 0.0)), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, label: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """1 − cosine where the label is 1, max(0, cosine − margin) where it is −1.

    Raises:
        ValueError: the inputs have more than two axes or different shapes, or the label does not
            have one axis.
    """
    require(label.ndim == 1, "1D target tensor expected, multi-target not supported", label)
    check_label_shape("cosine_embedding_loss", input1, input2)
    require(input1.ndim < 3, "cosine_embedding_loss(): the inputs should be 1-D or 2-D", input1)
    sizes = (total(square(input1), -1) + 1e-11) * (total(square(input2), -1) + 1e-11)
    cosine = total(input1 * input2, -1) / sqrt(sizes)
    return _by_sign(label, 1 - cosine, clip(cosine - margin, 0.0), reduction)


def hinge_embedding_loss(
    input: Tensor, label: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """`input` where the label is 1, max(0, margin − input) where it is −1."""
    return _by_sign(label, input, relu(margin - input), reduction)


def margin_ranking_loss(
    input: Tensor, other: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, −label · (input − other) + margin)."""
    return reduce_loss(relu(-label * (input - other) + margin), reduction)


def soft_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(−label · input)), of labels ±1.

    Raises:
        ValueError: the label's shape differs.
    """
    check_label_shape("soft_margin_loss", input, label)
    return reduce_loss(log(1 + exp(-astype(label, input.dtype) * input)), reduction)
