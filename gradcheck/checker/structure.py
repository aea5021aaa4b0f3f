"""Elementwise functions: their Jacobian is diagonal, so that a few looks or vjps tell every entry of it."""

from __future__ import annotations

from collections.abc import Sequence

from gradcheck.checker.beside_tape import ROUNDING, unasked
from gradcheck.checker.look import Look, Looker
from gradcheck.numeric.arrays import Array, module_of
from gradcheck.numeric.jacobian import Entry


def claimed_diagonal(looker: Looker, look: Look, number: int) -> Array | None:
    """The diagonal of the Jacobian that backward claims for one input, flat; None if it claims another Jacobian.

    Of a diagonal one gradient and cotangent have the same ratio for every cotangent. So has the tape, if it is heard.
    """
    point, u = looker.point, look.cotangent
    if point.x[number].size != u.size or point.complex:
        return None
    other, again = looker.claimed()
    pairs: list[tuple[Sequence[Array], Sequence[Array]]] = [(look.gradients, again)]
    if point.witnessed:
        pairs.append((look.tape.gradients if look.tape else point.by_tape(u), point.by_tape(other)))
    for first, second in pairs:
        wanted = u * (second[number].reshape(-1) / other)
        if not bool((abs(first[number].reshape(-1) - wanted) <= ROUNDING * abs(wanted)).all()):
            return None
    return again[number].reshape(-1) / other


def wrong_on_diagonal(
    looker: Looker, first: Look, second: Look, number: int, by_either: bool = False
) -> list[Entry] | None:
    """The wrong entries of one input if its Jacobian is diagonal, by the differences along two directions; `by_either`
    of them, as one may see what the other does not.

    None if backward, or the differences, tell of another Jacobian, or if these were not taken of every output.
    """
    claimed = claimed_diagonal(looker, first, number) if first.by_rows and second.by_rows else None
    if claimed is None:
        return None
    xp = module_of(claimed)
    kinked, wrong, seen = xp.zeros(claimed.shape, bool), [], []
    for look in (first, second):
        d, found = look.direction[number], look.derivative
        if d is None or not bool((d != 0).all()):
            return None
        value, bar = found.both.value / d.reshape(-1), found.both.bar / abs(d.reshape(-1))
        granted = (unasked(looker.point) + looker.rtol) * xp.maximum(abs(claimed), abs(value))
        kinked |= found.kinked | found.unclear
        wrong.append(~(abs(claimed - value) <= bar + granted))
        seen.append((value, bar, bar + granted))
    (value, bar, bars), (again, again_bar, _) = seen
    if not bool(((abs(value - again) <= bar + again_bar) | kinked).all()):
        return None
    outside = wrong[0] | wrong[1] if by_either else wrong[0] & wrong[1]
    return [
        Entry(number, i, i, float(claimed[i]), float(value[i]), float(bars[i]))
        for i in xp.flatnonzero(outside & ~kinked).tolist()
    ]
