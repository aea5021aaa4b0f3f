"""The loss of connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pylayer.array import XP, to_numpy
from pylayer.ops.activation import log_softmax
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import where_
from pylayer.ops.joining import concat, stack
from pylayer.ops.reduction import logsumexp, mean
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype, broadcast_to
from pylayer.tensor import Tensor

NEVER = -1e30
"""The logarithm of the probability of what cannot be: finite, so that its gradient is 0 and not NaN. What can be has a
larger one unless scores of a step differ by 1e30."""


def _checked(
    log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: int
) -> tuple[Any, Any, Any]:
    """The labels, blanks where none is read, and the two kinds of lengths, as arrays of NumPy."""
    if log_probs.ndim != 3 or labels.ndim != 2:
        raise ValueError(
            f"(InvalidArgument) ctc_loss(): log_probs should have the axes time, batch and classes, labels batch and "
            f"length, but the shapes are {log_probs.shape} and {labels.shape}."
        )
    if log_probs.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"(NotFound) ctc_loss(): log_probs should be float32 or float64, not {log_probs.dtype}.")
    for name, tensor, dtype in (
        ("labels", labels, "int32"),
        ("input_lengths", input_lengths, "int64"),
        ("label_lengths", label_lengths, "int64"),
    ):
        if tensor.dtype.name != dtype:
            raise ValueError(
                f"(InvalidArgument) ctc_loss(): {name} should be {dtype}, not {tensor.dtype.name}. Cast it."
            )
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ValueError(
            f"(InvalidArgument) The value of Attr(blank) should be in interval [0, {classes}), but received {blank}."
        )
    given, *found = (to_numpy(tensor.array) for tensor in (labels, input_lengths, label_lengths))
    if any(len(values) != batch for values in (given, *found)):
        raise ValueError(f"(InvalidArgument) ctc_loss(): the batch is {batch}, but not that of all arguments.")
    for name, lengths, limit in (("input_lengths", found[0], steps), ("label_lengths", found[1], labels.shape[1])):
        if lengths.size and not 0 <= lengths.min() <= lengths.max() <= limit:
            raise ValueError(f"(InvalidArgument) ctc_loss(): {name} should be from 0 to {limit}, but are {lengths}.")
    read = np.where(np.arange(given.shape[1]) < found[1][:, None], given, blank)
    if read.size and not 0 <= read.min() <= read.max() < classes:
        raise ValueError(f"(InvalidArgument) ctc_loss(): labels should be from 0 to {classes - 1}, but are {given}.")
    return read, found[0], found[1]


def _losses(logits: Tensor, labels: Any, input_lengths: Any, label_lengths: Any, blank: int) -> Tensor:
    """Minus the logarithm of the probability of each sequence of labels, by the forward recursion over steps.

    States are the labels with a blank before, between and behind: a step stays, goes one on, or two on, over a blank
    between two labels that differ.
    """
    xp = XP[type(logits.array)]
    batch, count = labels.shape
    states = np.full((batch, 2 * count + 1), blank, "int64")
    states[:, 1::2] = labels
    skips = np.zeros(states.shape, bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    places = Tensor(xp.asarray(states))
    of_states = log_softmax(logits, -1)
    of_states = take_along_axis(of_states, broadcast_to(places, [logits.shape[0], *states.shape]), 2)
    never = Tensor(xp.full(states.shape, NEVER, logits.array.dtype))
    may_skip = Tensor(xp.asarray(skips))
    alpha = where_(Tensor(xp.arange(states.shape[1]) < 2), of_states[0], never)
    for step in range(1, logits.shape[0]):
        one = concat([never[:, :1], alpha[:, :-1]], 1)
        two = where_(may_skip, concat([never[:, :2], alpha[:, :-2]], 1)[:, : states.shape[1]], never)
        moved = logsumexp(stack([alpha, one, two]), 0) + of_states[step]
        alpha = where_(Tensor(xp.asarray(step < input_lengths)[:, None]), moved, alpha)
    last = 2 * label_lengths[:, None]
    ends = take_along_axis(alpha, Tensor(xp.asarray(np.concatenate([last, np.maximum(last - 1, 0)], 1))), 1)
    no_label = Tensor(xp.asarray((label_lengths == 0)[:, None] & (np.arange(2) == 1)))
    found = logsumexp(where_(no_label, NEVER, ends), 1)
    counts = (found > NEVER / 2) & Tensor(xp.asarray(input_lengths > 0))
    return -where_(counts, found, 0.0)  # type: ignore[no-any-return]


def ctc_loss(
    log_probs: Tensor,
    labels: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the logarithm of the probability of `labels`, summed over all ways to place them among the steps.

    Args:
        log_probs: [time, batch, classes]; the softmax is taken here, as in Paddle, so scores will do.
        labels: int32, [batch, longest]; not read beyond `label_lengths`.
        input_lengths: int64, [batch], as are `label_lengths`.
        reduction: none; sum; or mean, of the losses each by the length of its labels.
        norm_by_times: the gradient is divided by the number of steps of each; the loss is not.
        zero_infinity: without effect: labels that do not fit into the steps have a loss of 0 anyway.

    Raises:
        ValueError: shapes, dtypes, lengths, labels or a blank that do not go together.
        AssertionError: another `reduction`.
    """
    arrays = _checked(log_probs, labels, input_lengths, label_lengths, blank)
    loss = _losses(log_probs, *arrays, blank)
    if norm_by_times:
        shorter = loss / astype(input_lengths, loss.dtype)
        loss = shorter + (loss - shorter).detach()
    if reduction not in ("mean", "sum", "none"):
        raise AssertionError(f"reduction should be 'mean', 'sum' or 'none', but is {reduction!r}.")
    if reduction == "mean":
        return mean(loss / astype(label_lengths, loss.dtype))  # type: ignore[no-any-return]
    return total(loss) if reduction == "sum" else loss
