"""Losses of `paddle.nn.functional`: of differences, and of probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pylayer.nn.checks import check_label_shape, check_parameters, check_reduction
from pylayer.nn.functional import check_range
from pylayer.ops.activation import log_softmax, softmax, softplus
from pylayer.ops.arguments import normal_axis, require, vector_shape
from pylayer.ops.creation import full_like
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import check_same_dtype, exp, log, maximum, pow, sigmoid, square
from pylayer.ops.indexing import where_
from pylayer.ops.norms import norm
from pylayer.ops.positions import index_select, take_along_axis
from pylayer.ops.reduction import mean
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype, reshape, squeeze, unsqueeze
from pylayer.ops.sorting import one_hot
from pylayer.tape.symbol import Symbol
from pylayer.tensor.dtype import int64
from pylayer.tensor.tensor import Tensor


def reduce_loss(loss: Tensor, reduction: str) -> Tensor:
    """Reduce a loss to its mean or sum, or return it unchanged (none). Other values raise
    ValueError.
    """
    check_reduction(reduction)
    if reduction == "none":
        return loss
    return mean(loss) if reduction == "mean" else total(loss)


# -------------------------------------------------------------------- losses of differences
def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """(input − label)², element by element."""
    return square(input - label)


def mse_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """The squared difference: its mean, its sum, or (none) every element."""
    difference = input - label
    return reduce_loss(difference * difference, reduction)


def l1_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """The absolute difference: its mean, its sum, or (none) every element."""
    return reduce_loss(absolute(input - label), reduction)


def smooth_l1_loss(
    input: Tensor, label: Tensor, reduction: str = "mean", delta: float = 1.0, is_huber: bool = True
) -> Tensor:
    """Huber's loss: half the square up to `delta`, linear beyond; divided by `delta` unless
    `is_huber`.
    """
    check_label_shape("smooth_l1_loss", input, label)
    size = absolute(input - label)
    loss = where_(size < delta, size * size * 0.5, size * delta - 0.5 * delta * delta)
    return reduce_loss(loss if is_huber else loss / delta, reduction)


def pairwise_distance(
    x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x − y + epsilon along the last axis."""
    return norm(x - y + epsilon, p, -1, keepdim)


# -------------------------------------------------------------------- losses of probabilities
def kl_div(
    input: Tensor, label: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """label · (log label - input), where `input` holds logarithms; batchmean is the sum divided by
    the size of the first axis.
    """
    require(
        input.ndim == label.ndim,
        "kl_div(): input and label should have equally many axes",
        input,
        label,
    )
    check_label_shape("kl_div", input, label)
    if log_target:
        loss = exp(label) * (label - input)
    else:
        positive = label > 0
        loss = where_(positive, label * (log(where_(positive, label, 1.0)) - input), 0.0)
    if reduction == "batchmean":
        return reduce_loss(loss, "sum") / (input.shape[0] if input.ndim else 1)
    return reduce_loss(loss, reduction)


def _bounded_log(x: Tensor) -> Tensor:
    """log x, but at least -100."""
    positive = x > 0
    logarithm = where_(positive, log(where_(positive, x, 1.0)), -100.0)
    return maximum(logarithm, full_like(logarithm, -100.0))


def binary_cross_entropy(
    input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-(label · log input + (1 - label) · log(1 - input)), with logarithms of at least -100, as in
    Paddle.

    Raises:
        ValueError: the label's shape or dtype differs, or a probability is not between 0 and 1.
    """
    check_label_shape("binary_cross_entropy", input, label)
    check_same_dtype("binary_cross_entropy", [input, label])
    if not isinstance(input, Symbol):
        text = "binary_cross_entropy(): the elements of input must be"
        require((input.array >= 0).all(), f"{text} greater than or equal to 0")
        require((input.array <= 1).all(), f"{text} less than or equal to 1")
    loss = -(label * _bounded_log(input) + (1 - label) * _bounded_log(1 - input))
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    logit: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of the sigmoid of `logit`, computed without overflow."""
    check_label_shape("binary_cross_entropy_with_logits", logit, label)
    check_same_dtype("binary_cross_entropy_with_logits", [logit, label])
    positive = label if pos_weight is None else label * pos_weight
    loss = positive * softplus(-logit) + (1 - label) * softplus(logit)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def sigmoid_focal_loss(
    logit: Tensor,
    label: Tensor,
    normalizer: Tensor | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
) -> Tensor:
    """Binary cross-entropy of logits times (1 − p)^gamma, with p the probability of the true class,
    and times alpha or 1 − alpha (Lin et al., 2017); divided by the normalizer.

    Raises:
        ValueError: the label's shape or dtype differs, or the normalizer has more than one
            axis.
    """
    loss = binary_cross_entropy_with_logits(logit, label, reduction="none")
    p = sigmoid(logit)
    truth = p * label + (1 - p) * (1 - label)
    loss = (alpha * label + (1 - alpha) * (1 - label)) * loss * pow(1 - truth, gamma)
    if normalizer is not None:
        text = "Expected zero or one dimension of normalizer in sigmoid_focal_loss"
        require(normalizer.ndim < 2, text, normalizer)
        loss = loss / normalizer
    return reduce_loss(loss, reduction)


def dice_loss(input: Tensor, label: Tensor, epsilon: float = 1e-5) -> Tensor:
    """1 − 2 · overlap / (sum of both), of probabilities in the last axis and classes of size 1
    there.

    Raises:
        AssertionError: the label's number of axes differs, or its last axis is not of size 1.
    """
    fits = label.ndim == input.ndim > 1 and label.shape[-1] == 1
    text = "dice_loss(): The last dimension of label should be 1"
    require(fits, text, input, label, error=AssertionError)
    truth = astype(one_hot(squeeze(label, -1), input.shape[-1]), input.dtype)
    axes = list(range(1, input.ndim))
    sizes = total(input, axes) + total(truth, axes)
    return mean(1 - total(input * truth, axes) * 2 / (sizes + epsilon))


def log_loss(input: Tensor, label: Tensor, epsilon: float = 1e-4) -> Tensor:
    """−(label · log(input + epsilon) + (1 − label) · log(1 − input + epsilon)), of probabilities,
    [batch, 1].

    Raises:
        ValueError: the shape is not [batch, 1], or the label's shape or dtype differs.
    """
    fits = input.ndim == 2 and input.shape[1] == 1
    require(fits, "log_loss(): input and label should be [batch, 1]", input)
    check_label_shape("log_loss", input, label)
    check_same_dtype("log_loss", [input, label])
    return -label * log(input + epsilon) - (1.0 - label) * log(1.0 - input + epsilon)


def poisson_nll_loss(
    input: Tensor,
    label: Tensor,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) − label · input, or without `log_input` input − label · log(input + epsilon).

    Args:
        full: Stirling's approximation of log label! is added where the label is above 1.

    Raises:
        ValueError: the label's shape differs, or `epsilon` is not positive.
    """
    require(epsilon > 0, "The value of `epsilon` in poisson_nll_loss should be positive")
    check_label_shape("poisson_nll_loss", input, label)
    loss = exp(input) - label * input if log_input else input - label * log(input + epsilon)
    if full:
        large = label > 1
        safe = where_(large, label, 1.0)
        loss = loss + where_(large, safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe), 0.0)
    return reduce_loss(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    label: Tensor,
    variance: Tensor,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """½ (log v + (input − label)² / v), where v is the variance, at least `epsilon`; with `full`,
    plus ½ log 2π.

    Raises:
        ValueError: a variance is negative, or the shape of the variances is not that of the input,
            up to a last axis that is missing or of size 1.
    """
    column = [*input.shape[:-1], 1]
    if variance.shape != input.shape:
        fits = list(variance.shape) in (column[:-1], column)
        require(fits, "gaussian_nll_loss(): variance is of incorrect shape", input, variance)
        variance = reshape(variance, column)
    is_negative = not isinstance(variance, Symbol) and (variance.array < 0).any()
    require(not is_negative, "variance has negative entry/entries")
    # The gradient also passes where the bound applies.
    bounded = maximum(variance, full_like(variance, epsilon))
    clamped = variance + (bounded - variance).detach()
    loss = 0.5 * (log(clamped) + square(input - label) / clamped)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def nll_loss(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the element `label` of log-probabilities, classes along the second axis; see
    `cross_entropy`.

    Raises:
        ValueError: there are no classes; the label is not of int64, or the weight not of the
            input's dtype; or a class is out of range.
    """
    require(input.ndim > 1, f"nll_loss(): Expected 2 or more dimensions (got {input.ndim})")
    require(label.dtype is int64, "nll_loss(): the label should be of int64", label)
    check_parameters("nll_loss", input, weight)
    check_range("label value", label, input.shape[1], ValueError, ignore_index)
    return _label_loss(input, label, weight, ignore_index, reduction, 1)


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    """(1 − epsilon) · label + epsilon · the prior distribution, which is uniform unless given;
    epsilon is in single precision.

    Raises:
        ValueError: `epsilon` is not between 0 and 1.
        RuntimeError: labels are not probabilities.
    """
    require(0 <= epsilon <= 1, "The value of epsilon must be between 0 and 1")
    text = "label_smooth(): the labels should be probabilities"
    require(label.dtype.is_floating, text, label, error=RuntimeError)
    single = np.float32(epsilon)
    scaled: Tensor = label * float(1 - single)
    if prior_dist is None:
        return scaled + float(single / np.float32(label.shape[-1]))
    return scaled + prior_dist * float(single)


def cross_entropy(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the log of the softmax of `input` at `label`, or averaged over the distribution `label`
    (`soft_label`).

    Args:
        label: classes, of the shape of `input` without `axis` or with size 1 there; or
            probabilities; with `label_smoothing`, labels with as many axes as `input` count as
            probabilities.
        weight: of each class; the mean is then weighted.
        ignore_index: the class whose entries add nothing, and if not negative do not count in the
            mean either.
        reduction: mean, sum or none; none keeps the label's shape.
        use_softmax: False if `input` holds probabilities already.

    Raises:
        ValueError: shapes do not match, or an unknown `reduction`.
        IndexError: a class is out of range.
    """
    axis = normal_axis(axis, input.ndim)
    logarithms = log_softmax(input, axis) if use_softmax else log(input)
    check_reduction(reduction)
    text = "When soft_label == True, 'ignore_index' should be '-100'"
    require(not soft_label or ignore_index <= 0, f"{text}, but received {ignore_index}")
    if label_smoothing > 0:
        if label.ndim < input.ndim:  # classes
            label = one_hot(label, input.shape[-1])
        label = astype(label_smooth(label, None, label_smoothing), input.dtype)
    elif not soft_label:
        check_range("label value", label, input.shape[axis], IndexError, ignore_index)
        return _label_loss(logarithms, label, weight, ignore_index, reduction, axis)
    check_same_dtype("cross_entropy", [input, label])
    loss = -total(logarithms * label, axis, None, True)
    if weight is None:
        return reduce_loss(loss, reduction)
    weight = reshape(weight, vector_shape(axis, input.ndim))
    weights = total(label * weight, axis, None, True)
    if reduction == "mean":
        return total(loss * weights) / total(weights)
    return reduce_loss(loss * weights, reduction)


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """`cross_entropy` of every entry, with a size of 1 along `axis`; with `return_softmax` a pair
    with the softmax.
    """
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    if loss.ndim < logits.ndim:
        loss = unsqueeze(loss, axis)
    return (loss, softmax(logits, axis)) if return_softmax else loss


def _label_loss(
    logarithms: Tensor,
    label: Tensor,
    weight: Tensor | None,
    ignored: int,
    reduction: str,
    axis: int,
) -> Tensor:
    """Minus the element at the label along `axis`, weighted and reduced."""
    kept_axis = label.ndim == logarithms.ndim
    classes = label if kept_axis else unsqueeze(label, axis)
    expected = [*logarithms.shape[:axis], 1, *logarithms.shape[axis + 1 :]]
    fits = list(classes.shape) == expected
    require(fits, f"The label should have shape {expected} for the axis {axis}", label, logarithms)
    counts: Any = classes != ignored
    classes = where_(counts, classes, 0)
    weights = astype(counts, logarithms.dtype)
    if weight is not None:
        weights = weights * reshape(index_select(weight, reshape(classes, [-1])), classes.shape)
    loss = -take_along_axis(logarithms, classes, axis) * weights
    if reduction == "mean" and (weight is not None or ignored >= 0):
        counted = total(weights)
        return total(loss) / (counted + astype(counted == 0, counted.dtype))
    return reduce_loss(loss if kept_axis else squeeze(loss, axis), reduction)
