"""`paddle.nn.functional`'s losses beside the everyday ones of `functional`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.nn.checks import check_label_shape, check_reduction
from pylayer.nn.common_losses import _reduced, cross_entropy
from pylayer.ops.activation import log_sigmoid, relu, softmax, softplus
from pylayer.ops.arguments import require
from pylayer.ops.creation import full_like
from pylayer.ops.elementwise import (
    check_same_dtype,
    clip,
    equal,
    exp,
    log,
    maximum,
    minimum,
    pow,
    sigmoid,
    square,
)
from pylayer.ops.indexing import where_
from pylayer.ops.linalg import matmul
from pylayer.ops.norms import norm
from pylayer.ops.positions import take_along_axis
from pylayer.ops.reduction import cumprod, mean
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype, reshape, squeeze, unsqueeze
from pylayer.ops.sorting import one_hot
from pylayer.tape.symbol import Symbol
from pylayer.tensor.tensor import Tensor

Distance = Callable[[Tensor, Tensor], Tensor]


def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """(input − label)², element by element."""
    return square(input - label)


def log_loss(
    input: Tensor, label: Tensor, epsilon: float = 1e-4, name: str | None = None
) -> Tensor:
    """−(label · log(input + epsilon) + (1 − label) · log(1 − input + epsilon)), of probabilities, [batch, 1].

    Raises:
        ValueError: another shape, or the label is of another shape or dtype.
    """
    require(
        input.ndim == 2 and input.shape[1] == 1,
        "log_loss(): input and label should be [batch, 1]",
        input,
    )
    check_label_shape("log_loss", input, label)
    check_same_dtype("log_loss", [input, label])
    return -label * log(input + epsilon) - (1.0 - label) * log(1.0 - input + epsilon)


def dice_loss(
    input: Tensor, label: Tensor, epsilon: float = 1e-5, name: str | None = None
) -> Tensor:
    """1 − 2 · overlap / (sum of both), of probabilities in the last axis and classes of size 1 there.

    Raises:
        AssertionError: the label has another number of axes, or another size than 1 in the last.
    """
    fits = label.ndim == input.ndim > 1 and label.shape[-1] == 1
    require(
        fits,
        "dice_loss(): The last dimension of label should be 1",
        input,
        label,
        error=AssertionError,
    )
    truth = astype(one_hot(squeeze(label, -1), input.shape[-1]), input.dtype)
    axes = list(range(1, input.ndim))
    overlap = total(input * truth, axes)
    return mean(1 - overlap * 2 / (total(input, axes) + total(truth, axes) + epsilon))


def sigmoid_focal_loss(
    logit: Tensor,
    label: Tensor,
    normalizer: Tensor | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: str | None = None,
) -> Tensor:
    """Binary cross-entropy of logits times (1 − p of the truth)^gamma, and alpha or 1 − alpha (Lin et al., 2017).

    Raises:
        ValueError: the label is of another shape or dtype, or the normalizer has more than one axis.
    """
    check_label_shape("sigmoid_focal_loss", logit, label)
    check_same_dtype("sigmoid_focal_loss", [logit, label])
    if normalizer is not None:
        require(
            normalizer.ndim < 2,
            "Expected zero or one dimension of normalizer in sigmoid_focal_loss",
            normalizer,
        )
    loss = label * softplus(-logit) + (1 - label) * softplus(logit)
    p = sigmoid(logit)
    truth = p * label + (1 - p) * (1 - label)
    loss = (alpha * label + (1 - alpha) * (1 - label)) * loss * pow(1 - truth, gamma)
    return _reduced(loss if normalizer is None else loss / normalizer, reduction)


def margin_ranking_loss(
    input: Tensor,
    other: Tensor,
    label: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """max(0, −label · (input − other) + margin)."""
    return _reduced(relu(-label * (input - other) + margin), reduction)


def hinge_embedding_loss(
    input: Tensor,
    label: Tensor,
    margin: float = 1.0,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """`input` where the label is 1, max(0, margin − input) where it is −1."""
    nothing = full_like(input, 0)
    loss = where_(equal(label, 1), input, nothing) + where_(
        equal(label, -1), relu(margin - input), nothing
    )
    return _reduced(loss, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    label: Tensor,
    margin: float = 0,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """1 − cosine where the label is 1, max(0, cosine − margin) where it is −1.

    Raises:
        ValueError: the inputs have more than two axes or different shapes, or the label not one axis.
    """
    require(label.ndim == 1, "1D target tensor expected, multi-target not supported", label)
    if input1.shape != input2.shape or input1.ndim > 2:
        raise ValueError(
            f"the shape of input tensor 1 should be equal to input tensor 2 and 1-D or 2-D, but they are "
            f"{input1.shape} and {input2.shape}"
        )
    products = total(input1 * input2, -1)
    sizes = (total(square(input1), -1) + 1e-11) * (total(square(input2), -1) + 1e-11)
    cosine = products / pow(sizes, 0.5)
    nothing = full_like(cosine, 0)
    loss = where_(equal(label, 1), 1 - cosine, nothing) + where_(
        equal(label, -1), clip(cosine - margin, 0.0), nothing
    )
    return _reduced(loss, reduction)


def pairwise_distance(
    x: Tensor,
    y: Tensor,
    p: float = 2.0,
    epsilon: float = 1e-6,
    keepdim: bool = False,
    name: str | None = None,
) -> Tensor:
    """The p-norm of x − y + epsilon along the last axis."""
    return norm(x - y + epsilon, p, -1, keepdim)


def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """max(0, distance to the positive − distance to the negative + margin); the distance is the 2-norm unless given.

    Args:
        swap: the distance of positive and negative counts if it is the smaller (Balntas et al., 2016).

    Raises:
        ValueError: the three have different shapes.
    """
    check_label_shape("triplet_margin_loss", input, positive, negative)
    distance: Distance = distance_function or (lambda a, b: pairwise_distance(a, b, 2))
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return _reduced(clip(near - far + margin, 0.0), reduction)


def triplet_margin_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """`triplet_margin_with_distance_loss` of p-norms. Raises ValueError for a margin that is not positive."""
    if margin <= 0:
        raise ValueError(
            "The margin between positive samples and negative samples should be greater than 0."
        )
    return triplet_margin_with_distance_loss(
        input,
        positive,
        negative,
        lambda a, b: pairwise_distance(a, b, p, epsilon),
        margin,
        swap,
        reduction,
    )


def poisson_nll_loss(
    input: Tensor,
    label: Tensor,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """exp(input) − label · input, or without `log_input` input − label · log(input + epsilon).

    Args:
        full: Stirling's approximation of log label! is added where the label is above 1.
    """
    if epsilon <= 0:
        raise ValueError(
            f"The value of `epsilon` in poisson_nll_loss should be positive, but received {epsilon}."
        )
    check_label_shape("poisson_nll_loss", input, label)
    loss = exp(input) - label * input if log_input else input - label * log(input + epsilon)
    if full:
        large = label > 1
        safe = where_(large, label, 1.0)
        loss = loss + where_(large, safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe), 0.0)
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    label: Tensor,
    variance: Tensor,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """½ (log v + (input − label)² / v), v the variance but at least `epsilon`; with `full`, plus ½ log 2π.

    Raises:
        ValueError: a variance is negative, or they have not the shape of the input, where the last axis may be left
            out or have size 1.
    """
    rows, sizes = list(input.shape[:-1]), list(variance.shape)
    if sizes != list(input.shape):
        require(
            sizes in (rows, [*rows, 1]),
            "gaussian_nll_loss(): variance is of incorrect shape",
            input,
            variance,
        )
        variance = reshape(variance, [*rows, 1])
    if not isinstance(variance, Symbol) and (variance.array < 0).any():
        raise ValueError("variance has negative entry/entries")
    size = maximum(variance, full_like(variance, epsilon))
    held = variance + (size - variance).detach()
    loss = 0.5 * (log(held) + square(input - label) / held)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def soft_margin_loss(
    input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """log(1 + exp(−label · input)), of labels ±1."""
    check_label_shape("soft_margin_loss", input, label)
    return _reduced(log(1 + exp(-astype(label, input.dtype) * input)), reduction)


def multi_label_soft_margin_loss(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """Binary cross-entropy of logits, averaged over the last axis."""
    check_label_shape("multi_label_soft_margin_loss", input, label)
    loss = -(label * log_sigmoid(input) + (1 - label) * log_sigmoid(-input))
    return _reduced(mean(loss if weight is None else loss * weight, -1), reduction)


def multi_margin_loss(
    input: Tensor,
    label: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """The mean over the wrong classes of max(0, margin − (truth − other))^p, per row of a matrix.

    Labels are [batch], or [batch, 1].
    """
    label = reshape(label, [-1])
    truth = take_along_axis(input, unsqueeze(label, -1), 1)
    gaps = pow(clip(margin - truth + input, 0.0), p) * (
        1 - astype(one_hot(label, input.shape[1]), input.dtype)
    )
    if weight is not None:
        gaps = reshape(weight[label], [-1, 1]) * gaps
    return _reduced(mean(gaps, 1), reduction)


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: float = 0.002) -> Tensor:
    """Cross-entropy of the products of anchors and positives, with a penalty on their squares (Sohn, 2016)."""
    count = labels.shape[0]
    column = reshape(labels, [count, 1])
    same = astype(equal(column, reshape(labels, [1, count])), anchor.dtype)
    targets = same / total(same, 1, None, True)
    penalty = (mean(total(square(anchor), 1)) + mean(total(square(positive), 1))) * 0.25 * l2_reg
    found = softmax_with_cross_entropy(
        matmul(anchor, positive, transpose_y=True), targets, soft_label=True
    )
    return penalty + mean(total(targets * found, 0))


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """`cross_entropy` of every entry, with a size of 1 along `axis`; with `return_softmax` a pair with the softmax."""
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    if loss.ndim < logits.ndim:
        loss = unsqueeze(loss, axis)
    return (loss, softmax(logits, axis)) if return_softmax else loss


def multi_label_margin_loss(
    input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """How far classes that are not in a row of `label` come within 1 of those that are, by the number of classes.

    Args:
        label: [batch, positions]; -1 ends a row.

    Raises:
        ValueError: other shapes, labels that are no classes, or another `reduction`.
    """
    check_reduction(reduction)
    for what, tensor in (("input", input), ("label", label)):
        if tensor.ndim != 2:
            raise ValueError(f"Expected 2D {what} tensor, but got {tensor.ndim}D")
    classes = input.shape[1]
    if label.size and label.array.min() < -1:
        raise ValueError("label values should be >= -1")
    if label.size and label.array.max() >= classes:
        raise ValueError(f"label values should be < {classes}")
    there = cumprod(astype(label != -1, input.dtype), 1)
    targets = astype(where_(there > 0, label, 0), "int64")
    named = (
        total(astype(one_hot(targets, classes), input.dtype) * unsqueeze(there, -1), 1, None, True)
        > 0
    )
    gaps = 1 - unsqueeze(take_along_axis(input, targets, 1), -1) + unsqueeze(input, 1)
    margins = maximum(gaps, full_like(gaps, 0))
    counted = where_(named, 0.0, margins) * unsqueeze(there, -1)
    return _reduced(total(counted, [1, 2]) / classes, reduction)
