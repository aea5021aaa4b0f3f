"""A step length that meets the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pylayer.array import Array

DECREASE, CURVATURE = 1e-4, 0.9
"""How much of the slope's decrease a step must reach, and of its size the new slope may keep: Paddle's numbers."""
MOST = 25
"""The evaluations beside the first."""


class Trial(NamedTuple):
    """A step length, and there the loss, the gradient and the slope along the direction."""

    length: float
    loss: float
    gradient: Array
    slope: float


def between(a: Trial, b: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two trials is least, held within `bounds`, the trials unless given; else the middle."""
    low, high = bounds or (min(a.length, b.length), max(a.length, b.length))
    with np.errstate(all="ignore"):
        first = a.slope + b.slope - 3 * np.float64(a.loss - b.loss) / (a.length - b.length)
        under_root = first**2 - a.slope * b.slope
        if not under_root >= 0:
            return (low + high) / 2.0
        root = np.sqrt(under_root)
        if a.length <= b.length:
            least = b.length - (b.length - a.length) * ((b.slope + root - first) / (b.slope - a.slope + 2 * root))
        else:
            least = a.length - (a.length - b.length) * ((a.slope + root - first) / (a.slope - b.slope + 2 * root))
    return min(max(float(least), low), high)


def strong_wolfe(
    evaluate: Callable[[float], Trial], start: Trial, length: float, widest: float, tolerance: float = 1e-9
) -> tuple[Trial, int]:
    """The trial to take, and how many evaluations it took.

    Args:
        evaluate: the trial at a step length.
        start: that at length 0.
        length: the first to try.
        widest: the largest absolute element of the direction: a bracket whose steps differ by less is left.
    """

    def too_high(trial: Trial) -> bool:
        return trial.loss > start.loss + DECREASE * trial.length * start.slope

    def flat(trial: Trial) -> bool:
        return abs(trial.slope) <= -CURVATURE * start.slope

    # Longer and longer steps, until two have a good one between them.
    before, trial, count = start, evaluate(length), 0
    while count < MOST:
        if too_high(trial) or (count > 1 and trial.loss >= before.loss):
            break
        if flat(trial):
            return trial, count + 1
        if trial.slope >= 0:
            break
        bounds = trial.length + 0.01 * (trial.length - before.length), trial.length * 10
        before, trial = trial, evaluate(between(before, trial, bounds))
        count += 1
    ends = [before if count < MOST else start, trial]
    # Narrower and narrower brackets, around a good one.
    best = int(ends[0].loss > ends[1].loss)
    stuck = False
    while count < MOST and abs(ends[1].length - ends[0].length) * widest >= tolerance:
        low, high = sorted(end.length for end in ends)
        length, margin = between(ends[0], ends[1]), 0.1 * (high - low)
        if min(high - length, length - low) >= margin:
            stuck = False
        elif stuck or length >= high or length <= low:
            length = high - margin if abs(length - high) < abs(length - low) else low + margin
            stuck = False
        else:
            stuck = True
        trial = evaluate(length)
        count += 1
        if too_high(trial) or trial.loss >= ends[best].loss:
            ends[1 - best] = trial
            best = int(ends[0].loss > ends[1].loss)
            continue
        done = flat(trial)
        if not done and trial.slope * (ends[1 - best].length - ends[best].length) >= 0:
            ends[1 - best] = ends[best]
        ends[best] = trial
        if done:
            break
    return ends[best], count + 1
