"""The loss over all alignments of a sequence of labels with a longer one of their probabilities."""

from __future__ import annotations

from pylayer.array import XP
from pylayer.nn.layer import Layer
from pylayer.ops.activation import log_softmax
from pylayer.ops.creation import full
from pylayer.ops.indexing import where_
from pylayer.ops.joining import concat, stack
from pylayer.ops.positions import take_along_axis
from pylayer.ops.reduction import logsumexp, mean
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype
from pylayer.tensor import Tensor

NEVER = -1e30
"""The logarithm of no probability: finite, so that no difference of two is NaN."""


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
    """Minus the log-probability of labels under all their alignments with the input (Graves et al., 2006).

    Where there is no alignment it is 0, as in Paddle.

    Args:
        log_probs: [times, batch, classes]; their softmax is taken.
        labels: [batch, positions], of which each row has as many as `label_lengths` says.
        blank: the class that stands for no label.
        reduction: none, sum, or mean: of the losses, each divided by its number of labels.
        norm_by_times: gradients are divided by the number of times.
        zero_infinity: no other than the loss is.
    """
    if reduction not in ("mean", "sum", "none"):
        raise AssertionError(f"The value of 'reduction' should be 'sum', 'mean' or 'none', but received {reduction}.")
    for what, given, dtype in (
        ("labels", labels, "int32"),
        ("lengths", input_lengths, "int64"),
        ("lengths", label_lengths, "int64"),
    ):
        if given.dtype.name != dtype:
            raise ValueError(f"ctc_loss(): {what} should be of dtype {dtype}, but are of {given.dtype.name}.")
    if labels.ndim != 2 or log_probs.ndim != 3:
        raise ValueError(
            f"ctc_loss(): {log_probs.shape} and {labels.shape} are not [times, batch, classes] and [batch, positions]."
        )
    xp = XP[type(labels.array)]
    times, batch, _ = log_probs.shape
    given = labels.array.astype("int64")
    classes = xp.full((batch, 2 * given.shape[1] + 1), blank, "int64")  # a blank around every label
    classes[:, 1::2] = given
    apart = xp.zeros(classes.shape, bool)  # labels that need no blank between them and those before
    apart[:, 3::2] = (given[:, 1:] != given[:, :-1]) & (given[:, 1:] != blank)
    scores = take_along_axis(log_softmax(log_probs, -1), Tensor(xp.broadcast_to(classes, (times, *classes.shape))), 2)
    wall = full([batch, 1], NEVER, scores.dtype)
    start = Tensor(xp.broadcast_to(xp.arange(classes.shape[1]) < 2, classes.shape))
    reached = where_(start, scores[0], NEVER)
    lengths, counts = input_lengths.array.reshape(-1, 1), label_lengths.array.reshape(-1, 1)
    for time in range(1, times):
        one = concat([wall, reached[:, :-1]], 1)
        two = where_(Tensor(apart), concat([wall, one[:, :-1]], 1), NEVER)
        on = logsumexp(stack([reached, one, two]), 0) + scores[time]
        reached = where_(Tensor(xp.broadcast_to(time < lengths, classes.shape)), on, reached)
    places = xp.arange(classes.shape[1])
    ends = Tensor((places == 2 * counts) | (places == 2 * counts - 1))
    loss = -logsumexp(where_(ends, reached, NEVER), 1)
    loss = where_(loss >= -NEVER / 2, 0.0, loss)
    if norm_by_times:
        part = loss / astype(input_lengths, loss.dtype)
        loss = part + (loss - part).detach()
    if reduction == "mean":
        return mean(loss / astype(label_lengths, loss.dtype))
    return total(loss) if reduction == "sum" else loss


class CTCLoss(Layer):
    """`nn.functional.ctc_loss` as a layer."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        labels: Tensor,
        input_lengths: Tensor,
        label_lengths: Tensor,
        norm_by_times: bool = False,
    ) -> Tensor:
        """The loss."""
        return ctc_loss(
            log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times,
            self.zero_infinity,
        )  # fmt: skip
