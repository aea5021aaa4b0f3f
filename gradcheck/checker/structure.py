"""Elementwise functions: their Jacobian is diagonal, so that a few looks or vjps tell every entry of it."""

from __future__ import annotations

import numpy as np

from gradcheck.checker.look import ROUNDING, Look, Looker
from gradcheck.checker.point import Entry
from gradcheck.numeric.arrays import module_of, only


def shows_diagonal(looker: Looker, look: Look) -> bool:
    """Whether claim and tape, or claim alone, are elementwise: two cotangents give the same ratios."""
    point, u = looker.point, look.cotangent
    if len(point.x) != 1 or point.x[0].size != u.size or point.complex or not bool((u != 0).all()):
        return False
    other, again = looker.claimed()
    pairs = [(look.gradients[0], again[0])]
    if point.witnessed:
        taped = look.tape.gradients if look.tape is not None else point.by_tape(u)
        pairs.append((taped[0], point.by_tape(other)[0]))
    for first, second in pairs:
        a, b = first.reshape(-1) / u, second.reshape(-1) / other
        if not bool((abs(a - b) <= ROUNDING * abs(a)).all()):
            return False
    return True


def diagonal(looker: Looker, first: Look, second: Look | None) -> list[Entry] | None:
    """Of an elementwise function of a single input, the wrong entries; None if it is another, or too little is known.

    The differences along two directions show it, or two cotangents of the tape.
    """
    if first.rejected is not None:
        return None
    if second is None:
        return [] if looker.point.witnessed and shows_diagonal(looker, first) else None
    if not first.by_rows or not second.by_rows or not shows_diagonal(looker, first):
        return None
    d, other = (look.direction[0] for look in (first, second))
    if d is None or other is None or not bool((d != 0).all()):
        return None
    d, other = d.reshape(-1), other.reshape(-1)
    value, bar = first.derivative.both.value / d, first.derivative.both.bar / abs(d)
    again, again_bar = second.derivative.both.value / other, second.derivative.both.bar / abs(other)
    if not bool((abs(value - again) <= bar + again_bar).all()) or not bool(np.isfinite(bar).all()):
        return None
    claimed = first.gradients[0].reshape(-1) / first.cotangent
    bar = bar + (ROUNDING + looker.rtol) * module_of(d).maximum(abs(claimed), abs(value))
    again_bar = again_bar + (ROUNDING + looker.rtol) * module_of(d).maximum(abs(claimed), abs(again))
    apart = (abs(claimed - value) > bar) & (abs(claimed - again) > again_bar)
    return [
        Entry(0, i, i, float(claimed[i]), float(value[i]), float(bar[i]))
        for i in module_of(d).flatnonzero(apart).tolist()
    ]


def elementwise(looker: Looker, look: Look, number: int) -> list[Entry] | None:
    """The wrong entries of one input whose Jacobian is diagonal; None if it is not."""
    point, u, d = looker.point, look.cotangent, look.direction[number]
    if d is None or not look.by_rows or d.size != u.size or point.complex or d.size < 2:
        return None
    other = looker.look(only(number, d != 0, point.x), whole=True)
    other_d = other.direction[number]
    assert other_d is not None
    xp, d, other_d = module_of(u), d.reshape(-1), other_d.reshape(-1)
    value, bar = look.derivative.both.value / d, look.derivative.both.bar / abs(d)
    again, again_bar = other.derivative.both.value / other_d, other.derivative.both.bar / abs(other_d)
    kinked = xp.stack([v for f in (look, other) for v in (f.derivative.kinked, f.derivative.unclear)]).any(axis=0)
    if not bool(((abs(value - again) <= bar + again_bar) | kinked).all()):
        return None
    ones = xp.ones_like(u)
    claimed, weighted = (g[number].reshape(-1) for g in (point.vjp(ones), look.gradients))
    used = u != 0
    if not bool((abs(weighted - u * claimed)[used] <= ROUNDING * abs(weighted[used])).all()):
        return None
    bar = bar + (ROUNDING + looker.rtol) * xp.maximum(abs(claimed), abs(value))
    return [
        Entry(number, i, i, float(claimed[i]), float(value[i]), float(bar[i]))
        for i in xp.flatnonzero(~(abs(claimed - value) <= bar) & ~kinked).tolist()
    ]
