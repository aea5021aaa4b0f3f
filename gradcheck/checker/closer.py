"""Further looks: along more directions, and at some elements by themselves, where a small share of the gradient is seen
at its own scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gradcheck.checker.cotangents import known_less
from gradcheck.checker.decide import POWER, Decision
from gradcheck.checker.look import Look, Looker
from gradcheck.numeric.arrays import Array, module_of, only
from gradcheck.numeric.derivative import APART
from gradcheck.numeric.jacobian import Entry
from gradcheck.numeric.line import RATIO, USUAL

SECOND_SIZE = 64.0
"""How much larger the second look's cotangent is: a backward that clips or squares it shows at some size."""
MOST_AGAIN = 3
"""Whole looks along further directions. A projection is so small by chance that a factor of 1 + `POWER` is hidden in
two of five where the bar is half of `POWER`, as of a layer in float32: in all four once in 40."""
MOST_REGROUPED = 8
"""Looks at what was too small to be seen beside the rest, each at its own scale: eight times a factor of 1e9
is all of float64."""
MOST_LOOKS = 4
"""Whole looks until one confirms a FAIL, or sees that it was by chance: along some directions nothing is seen."""


def whole_look(looker: Looker, masks: Sequence[Array | None] | None, by_rows: bool) -> Look:
    """A scan over all steps. FAIL is not believed once: more directions follow, until one of them sees anything."""
    look = looker.look(masks, whole=True, by_rows=by_rows)
    if looker.fine or look.decision is not Decision.FAIL:
        return look
    for _ in range(MOST_LOOKS - 1):
        if look.kinked or look.rejected is not None:
            break
        look = looker.look(masks, whole=True, by_rows=by_rows)
        if look.decision is not Decision.UNSEEN:
            break
    return look


def again(looker: Looker, look: Look) -> Look:
    """A look along another direction after one that says PASS; more of them until a wrong factor would have shown.

    It says FAIL, or holds the claim; or neither, if one of them did neither: then it is that one.
    """
    found = looker.look(like=look.derivative if look.by_rows else None, size=SECOND_SIZE)
    disputed = None
    for _ in range(MOST_AGAIN):
        if found.decision is Decision.PASS and (shows_factors(look) or shows_factors(found)):
            break
        found = looker.look(whole=True, size=SECOND_SIZE)
        if found.decision is Decision.FAIL:
            return found
        if not found.seen.holds(found.claim.value):
            disputed = found
    return disputed or found


def shows_factors(look: Look) -> bool:
    """Whether a claim that is wrong by a factor would have shown, or nothing is claimed."""
    return not look.claim.size or look.seen.bar <= POWER * abs(look.seen.value)


def parts_alone(looker: Looker, look: Look) -> Look | None:
    """What a projection over everything shows less well, by itself: the first look that shows a part to be wrong."""
    return inputs_alone(looker, look) or outputs_alone(looker, look) or too_small(looker, look)


def inputs_alone(looker: Looker, like: Look) -> Look | None:
    """Every input by itself: the first look that shows one to be wrong."""
    inputs = looker.point.x
    if len(inputs) < 2:
        return None
    for number, x in enumerate(inputs):
        if not x.size:
            continue
        everywhere = module_of(x).ones(x.shape, bool)
        look = tried(looker, only(number, everywhere, inputs), like, thoroughly=True)
        if look is not None and look.decision is Decision.FAIL:
            return look
    return None


def outputs_alone(looker: Looker, look: Look) -> Look | None:
    """The outputs that counted for less, as they are known less well, by themselves: a look that shows one wrong."""
    derivative = look.derivative
    if not look.by_rows:
        return None
    others = ~known_less(derivative.both, derivative.nearby)
    if not bool(others.any()) or bool(others.all()):
        return None
    alone = twice(lambda: looker.look(whole=True, without=others))
    return alone if alone.decision is Decision.FAIL and not alone.kinked else None


def unsure_by_tape(looker: Looker, look: Look) -> Look | None:
    """The entries that the tape's rounding leaves unsure, by themselves: a look that shows them to be wrong."""
    return None if look.tape is None else shown_wrong(looker, look.tape.unsure, look)


def rejected_by_tape(looker: Looker, look: Look) -> Look | None:
    """The entries that the tape rejects, by themselves, where outputs that they do not move are lost in rounding: a
    look that shows them to be wrong."""
    return shown_wrong(looker, look.rejected, look)


def shown_wrong(looker: Looker, masks: Sequence[Array] | None, like: Look) -> Look | None:
    """A look over some elements, if there are any, that shows the gradient to be wrong."""
    alone = None if masks is None else tried(looker, masks, like)
    return alone if alone is not None and alone.decision is Decision.FAIL else None


def too_small(looker: Looker, look: Look) -> Look | None:
    """Entries of whose share an error of `POWER` is within the bar, by themselves, as long as that shows more: a look
    that shows them to be wrong."""
    for _ in range(MOST_REGROUPED):
        small = [
            None if d is None else (POWER * abs(g * d) <= look.seen.bar) & (d != 0)
            for g, d in zip(look.gradients, look.direction, strict=True)
        ]
        count = sum(int(m.sum()) for m in small if m is not None)
        everything = sum(int((d != 0).sum()) for d in look.direction if d is not None)
        if not count or count == everything:
            return None
        closer = tried(looker, small, look)
        if closer is None or closer.decision is Decision.FAIL:
            return closer
        look = closer
    return None


def tried(looker: Looker, masks: Sequence[Array | None], like: Look, thoroughly: bool = False) -> Look | None:
    """A look over some elements that says PASS, or FAIL and a second one said so too; None where it is neither.

    Where nothing is claimed it looks longer only if it shall do so `thoroughly`, or the function changes farther off.
    """
    known = like.derivative if like.by_rows else None
    look = looker.look(masks, like=known, by_rows=True)
    if look.decision is Decision.PASS:
        return look
    if look.decision is Decision.UNSEEN and not look.claim.size and not thoroughly and not changes(looker, look):
        return None
    look = twice(lambda: looker.look(masks, whole=True, like=known, by_rows=True))
    wrong = look.decision is Decision.FAIL and not look.kinked
    return look if wrong or look.decision is Decision.PASS else None


def changes(looker: Looker, look: Look) -> bool:
    """Whether an output changes by more than its noise, a quarter of the inputs' scale off: between close values it may
    stand still."""
    line = looker.point.line(look.direction, None if look.by_rows else look.cotangent)
    reach = RATIO ** USUAL[-1]
    return any(bool((abs(line.at(t).change) > APART * look.derivative.noise).any()) for t in (reach, -reach))


def twice(look: Callable[[], Look]) -> Look:
    """A look; where it says FAIL another one, along another direction: one may be off by chance."""
    first = look()
    return look() if first.decision is Decision.FAIL else first


def tape_is_wrong(looker: Looker, rejected: Sequence[Array]) -> bool:
    """Whether the differences over the entries that the tape rejects hold what backward gives and exclude the tape.

    The rule of an operation underflows at points at which the gradient does not.
    """
    masks = [m if bool(m.any()) else None for m in rejected]
    look = looker.look(masks, by_rows=True, with_tape=False)
    if look.kinked or not look.seen.bar <= POWER * abs(look.seen.value) < np.inf:
        return False
    if not look.seen.holds(look.claim.value):
        return False
    heard = looker.with_tape(look, masks).heard
    return heard is not None and np.isfinite(heard.value) and look.seen.excludes(heard.value)


def by_themselves(looker: Looker, entries: Sequence[Entry]) -> Look:
    """A look at some entries of a diagonal Jacobian by themselves: FAIL if two whole scans show them to be wrong."""
    point = looker.point
    masks = [module_of(x).zeros(x.shape, dtype=bool) for x in point.x]
    others = module_of(point.outputs.vector).ones(point.outputs.size, bool)
    for entry in entries:
        masks[entry.input].reshape(-1)[entry.index] = True
        others[entry.output] = False
    return twice(lambda: looker.look(masks, whole=True, without=others))
