"""Mistakes in a whole gradient, and the order in which these and those in a term are tried."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from gradcheck.checker.subject import Hypothesis, Subject, shown
from gradcheck.checker.terms import operands, ratio, term
from gradcheck.numeric.arrays import module_of
from gradcheck.result import Diagnosis


# --------------------------------------------------------------------------- nothing but the gradient
def zero(s: Subject) -> Diagnosis | None:
    """All zeros."""
    if any(bool((g != 0).any()) for g in s.gradients):
        return None
    return s.diagnosis("GC108", "backward gives 0 everywhere, but the derivative is not 0")


def ignored(s: Subject) -> Diagnosis | None:
    """The same gradient for every cotangent."""
    first, second = s.gradients
    if not bool((first == second).all()):
        return None
    return s.diagnosis("GC109", "backward gives the same whatever the incoming gradient is")


def straight_through(s: Subject) -> Diagnosis | None:
    """The cotangent passed on where the derivative is 0."""
    out = s.single_output
    if out is None or out.shape != s.x.shape:
        return None
    if any(bool((abs(t) > b).any()) for t, b in zip(s.truth, s.bars, strict=True)):
        return None
    if not all(bool((g == u).all()) for g, u in zip(s.gradients, s.shaped(s.x.shape), strict=True)):
        return None
    return s.diagnosis("GC122", "the derivative is 0 here and backward passes the cotangent on (straight-through)")


def conjugated(s: Subject) -> Diagnosis | None:
    """A complex gradient without its conjugate."""
    if s.x.dtype.kind != "c" or not s.holds([g.conj() for g in s.gradients]):
        return None
    return s.diagnosis("GC115", "numeric = conj(analytic)")


def factor(s: Subject) -> Diagnosis | None:
    """A constant factor; −1 and the numbers of elements have names of their own."""
    c = s.factor(s.gradients)
    if c is None or abs(c - 1) <= 1e-6:
        return None
    if c == -1:
        return s.diagnosis("GC102", "numeric = −analytic: the sign is wrong")
    if s.x.size < 2 and shown(c) == f"{c:.6g}" and c != int(c):
        return None  # of one number any factor can be found
    for what, n in sizes(s):
        if n > 2 and abs(abs(c) - n) <= 1e-9 * n:
            return s.diagnosis("GC112", f"numeric = {shown(c)} · analytic, and {n} is {what}")
        if n > 2 and abs(abs(c) * n - 1) <= 1e-9:
            return s.diagnosis("GC112", f"numeric = analytic / {shown(1 / c)}, and {n} is {what}")
    return s.diagnosis("GC101", f"numeric = {shown(c)} · analytic, for all entries")


def sizes(s: Subject) -> Iterator[tuple[str, int]]:
    """The numbers of elements that a factor may be."""
    outputs = [("the output", s.outputs.arrays[k]) for k in s.outputs.active]
    for name, array in ((s.name, s.x), *outputs):
        yield f"the number of elements of {name}", array.size
        yield from ((f"the length of axis {axis} of {name}", n) for axis, n in enumerate(array.shape))


def dead(s: Subject) -> Diagnosis | None:
    """Zero at some elements where the derivative is not, right at all others."""
    xp = module_of(s.x)
    mask = xp.zeros(s.x.shape, dtype=bool)
    for g, t, b in zip(s.gradients, s.truth, s.bars, strict=True):
        wrong = abs(g - t) > b
        if bool((wrong & (g != 0)).any()):
            return None
        mask |= wrong
    count = int(mask.sum())
    if not 0 < count < s.x.size:
        return None
    first = [int(i) for i in np.argwhere(np.asarray(mask.tolist()))[0]]
    where = f"{s.name}{first}" if first else s.name
    text = f"{count} of {s.x.size} elements get 0 where it is not ({where} …), all others are right"
    return s.diagnosis("GC107", text)


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Subject) -> Diagnosis | None:
    """Transposed, rolled, flipped, permuted."""
    xp, shape = module_of(s.x), s.x.shape
    axes = range(len(shape))
    if len(shape) > 1:
        for order in itertools.islice(itertools.permutations(axes), 1, 24):
            if tuple(shape[k] for k in order) == shape and s.holds([xp.transpose(g, order) for g in s.gradients]):
                last = [*axes][:-2] + [*axes][:-3:-1]
                what = "transposed" if list(order) == last else f"with its axes permuted to {list(order)}"
                return s.diagnosis("GC103", f"numeric = analytic {what}")
    for axis in axes:
        if shape[axis] < 2:
            continue
        for step in (1, -1):  # an index that is off by one
            if s.holds([xp.roll(g, step, axis) for g in s.gradients]):
                return s.diagnosis("GC104", f"numeric = analytic rolled by {step} along axis {axis}")
        if s.holds([xp.flip(g, axis) for g in s.gradients]):
            return s.diagnosis("GC104", f"numeric = analytic flipped along axis {axis}")
    return None


def swapped(s: Subject) -> Diagnosis | None:
    """The gradient of another input."""
    for other, name in enumerate(s.names):
        found = [gradients[other] for gradients in s.claimed]
        if other != s.number and found[0].shape == s.x.shape and s.holds(found):
            return s.diagnosis("GC105", f"numeric = the gradient that backward gives for {name}")
    return None


def unsummed(s: Subject) -> Diagnosis | None:
    """What backward gives for the cotangent summed over some axes."""
    out = s.single_output
    if out is None or not 0 < out.ndim <= 4 or s.outputs.complex:
        return None
    xp, shape = module_of(s.x), out.shape
    for chosen in [c for r in range(1, len(shape) + 1) for c in itertools.combinations(range(len(shape)), r)]:
        if all(shape[a] == 1 for a in chosen):
            continue
        summed = [
            xp.broadcast_to(u.reshape(shape).sum(axis=chosen, keepdims=True), shape).reshape(-1).copy()
            for u in s.cotangents
        ]
        if s.holds([s.vjp(u)[s.number] for u in summed]):
            return s.diagnosis("GC106", f"the cotangent must be summed over axis {', '.join(map(str, chosen))}")
    return None


HYPOTHESES: tuple[Hypothesis, ...] = (
    straight_through, zero, ignored, factor, conjugated, dead, swapped, rearranged, unsummed, operands, ratio, term,
)  # fmt: skip
"""In the order in which they are tried: the simplest first."""
