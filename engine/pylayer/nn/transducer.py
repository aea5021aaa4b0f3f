"""The loss of recurrent neural network transducers (Graves, 2012), with FastEmit (Yu et al., 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pylayer.array import XP, to_numpy
from pylayer.ops.creation import zeros
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import getitem
from pylayer.ops.joining import concat, stack
from pylayer.ops.reduction import cumsum
from pylayer.ops.reduction import sum as total
from pylayer.ops.running import logcumsumexp
from pylayer.ops.shape import broadcast_to
from pylayer.tensor import Tensor


def _checked(input: Tensor, blank: int, given: dict[str, Tensor]) -> tuple[Any, Any, Any]:
    """The labels, and the lengths of both kinds, as arrays of NumPy."""
    if input.ndim != 4:
        raise ValueError(
            f"(InvalidArgument) rnnt_loss(): input should have the axes batch, time, label and class, but its shape is "
            f"{input.shape}."
        )
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"(NotFound) rnnt_loss(): input should be float32 or float64, not {input.dtype.name}.")
    batch, steps, places, classes = input.shape
    if not 0 <= blank < classes:
        raise ValueError(
            f"(InvalidArgument) The value of Attr(blank) should be in interval [0, {classes}), but received {blank}."
        )
    for name, tensor in given.items():
        if tensor.dtype.name != "int32":
            raise ValueError(
                f"(InvalidArgument) rnnt_loss(): {name} should be int32, not {tensor.dtype.name}. Cast it."
            )
    label, times, counts = (to_numpy(tensor.array) for tensor in given.values())
    if any(len(values) != batch for values in (label, times, counts)) or label.ndim != 2:
        raise ValueError(
            f"(InvalidArgument) rnnt_loss(): for a batch of {batch}, label should be [{batch}, length] and the lengths "
            f"[{batch}], but the shapes are {', '.join(str(list(v.shape)) for v in (label, times, counts))}."
        )
    for name, lengths, least, most in (
        ("input_lengths", times, 1, steps), ("label_lengths", counts, 0, min(label.shape[1], places - 1)),
    ):  # fmt: skip
        if lengths.size and not least <= lengths.min() <= lengths.max() <= most:
            raise ValueError(
                f"(InvalidArgument) rnnt_loss(): {name} should be from {least} to {most}, but are {lengths.tolist()}."
            )
    read = np.where(np.arange(label.shape[1]) < counts[:, None], label, blank)[:, : places - 1]
    if read.size and not 0 <= read.min() <= read.max() < classes:
        raise ValueError(f"(InvalidArgument) rnnt_loss(): label should be from 0 to {classes - 1}, but is {label}.")
    return read, times, counts


def _losses(input: Tensor, label: Any, times: Any, counts: Any, blank: int, weight: float) -> Tensor:
    """Minus the logarithm of the probability of each sequence of labels, by the forward recursion over steps.

    At step t, after u labels: ``a[t, u] = log(exp(a[t-1, u] + blank[t-1, u]) + exp(a[t, u-1] + label[t, u-1]))``. With
    L the running sum of ``label[t]`` from 0 on, this is ``L + logcumsumexp(a[t-1] + blank[t-1] - L)``.
    """
    xp = XP[type(input.array)]
    batch, steps, places, _ = input.shape
    stay = getitem(input, (..., blank))
    next_ = np.pad(label, ((0, 0), (0, places - 1 - label.shape[1])), constant_values=blank).astype("int64")
    wanted = broadcast_to(Tensor(xp.asarray(next_[:, None, :, None])), [batch, steps, places - 1, 1])
    emitted = getitem(
        take_along_axis(getitem(input, (slice(None), slice(None), slice(places - 1))), wanted, 3), (..., 0)
    )
    emitted = emitted + (emitted - emitted.detach()) * weight  # the value as it is, its gradient 1 + weight times
    sums = concat([zeros([batch, steps, 1], input.dtype), cumsum(emitted, 2)], 2)
    reached = [sums[:, 0]]
    for t in range(1, steps):
        reached.append(sums[:, t] + logcumsumexp(reached[-1] + stay[:, t - 1] - sums[:, t], 1))
    ends = (Tensor(xp.arange(batch)), Tensor(xp.asarray(times.astype("int64") - 1)), Tensor(xp.asarray(counts)))
    found: Tensor = getitem(stack(reached, 1) + stay, ends)
    return -found


def rnnt_loss(
    input: Tensor,
    label: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    fastemit_lambda: float = 0.001,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """Minus the logarithm of the probability of `label`, summed over all ways to emit it while going through the steps.

    Args:
        input: logarithms of probabilities, [batch, time, longest label + 1, classes]; no softmax is taken here, as in
            Paddle on a CPU.
        label: int32, [batch, longest label]; not read beyond `label_lengths`.
        input_lengths: int32, [batch], as are `label_lengths`.
        fastemit_lambda: how much larger the gradient of emitting a label is made; the loss stays as it is.
        reduction: none; sum; or mean, over the batch.

    Raises:
        ValueError: shapes, dtypes, lengths, labels or a blank that do not go together.
        RuntimeError: `input` is neither float32 nor float64.
        AssertionError: another `reduction`.
    """
    given = {"label": label, "input_lengths": input_lengths, "label_lengths": label_lengths}
    loss: Tensor = _losses(input, *_checked(input, blank, given), blank, fastemit_lambda)
    if reduction not in ("mean", "sum", "none"):
        raise AssertionError(f"reduction should be 'mean', 'sum' or 'none', but is {reduction!r}.")
    if reduction == "none":
        return loss
    summed: Tensor = total(loss)
    return summed if reduction == "sum" else summed / input.shape[0]
