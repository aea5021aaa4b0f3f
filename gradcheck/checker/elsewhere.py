"""Where the point itself does not tell: the gradient is looked at where the function responds, or beside the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from gradcheck.checker.decide import Decision
from gradcheck.checker.look import Look, Looker
from gradcheck.numeric.arrays import Array
from gradcheck.numeric.jacobian import Entry
from gradcheck.result import Diagnosis, Status

MULTIPLES = [2.0**-k for k in (1, 2, 3, 4, 6, 8, 10)] + [2.0**k for k in (1, 4, 8, 16, 24, 40)]
"""Of the inputs, at which a function that is flat here is looked at: saturated functions respond nearer to 0,
underflown ones beyond."""
BESIDE = 2.0**-7
"""How far off, relative to the inputs' scale, a gradient is looked at once more: at kinks, and where witnesses
contradict each other."""
MOST_NAMED = 3
"""Places that a sentence names."""

UNSEEN_TEXT = (
    "the derivative is too small to be seen beside the rounding errors of the forward here (saturated, flat or noisy), "
    "so nothing could be verified{}. Choose inputs at which the outputs respond, or a forward that keeps more digits "
    "(expm1, log1p, float64)"
)

EDGE = (
    "the outputs are not finite at points beside the inputs: these lie at the edge of the function's domain, with no "
    "derivative to compare with. Choose inputs inside of it"
)


@dataclass
class Found:
    """What came out of some looks: a verdict, and what it hangs on."""

    verdict: Status
    why: str = ""
    look: Look | None = None
    """A look that shows the gradient wrong."""
    looker: Looker | None = None
    """Whose look that is, if it is from another point."""
    wrong: Sequence[Entry] = ()
    exhaustive: bool = True
    """Whether `wrong` is all that is wrong."""
    diagnosis: tuple[Diagnosis, ...] = ()
    marks: tuple[str, ...] = ()
    doubted: bool = False
    """Nothing is certain, but something speaks against the gradient."""


def undecided(why: str, doubted: bool = False) -> Found:
    """INCONCLUSIVE, and why."""
    return Found(Status.INCONCLUSIVE, why, diagnosis=(Diagnosis.of("GC121", why),), doubted=doubted)


def listed(names: Sequence[str], count: int) -> str:
    """The first of some names, and how many more of all there are."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {count - MOST_NAMED} more" if count > MOST_NAMED else "")


def with_kink(found: Found, why: str) -> Found:
    """What was found of a function that has a kink as well, at which nothing is wrong."""
    if found.verdict not in (Status.PASS, Status.KINK):
        return found
    whole = f"{found.why}; {why}" if found.why else why
    return replace(found, verdict=Status.KINK, why=whole, diagnosis=(*found.diagnosis, Diagnosis.of("GC120", why)))


class Said(Enum):
    """What a look at other inputs says of the gradient there."""

    NOTHING = auto()
    RIGHT = auto()
    WRONG = auto()
    CONTESTED = auto()
    """Wrong by one reading of the finest structure alone."""


def elsewhere(looker: Looker, look: Look, anyway: bool = False) -> Found:
    """What the gradient is worth where nothing is seen: it is looked at where the function responds.

    `anyway` also if the claim is not within the bar here.
    """
    held, contested = look.seen.holds(look.claim.value), False
    for multiple in MULTIPLES if anyway or (held and not look.seen.noisy) else ():
        try:
            said = said_at(looker, look, multiple)
        except Exception:  # it is not asked to work elsewhere
            continue
        if said is Said.RIGHT:
            seen = "partly lost in rounding" if anyway else "flat"
            return Found(Status.PASS, marks=(f"{seen} here, right at {multiple:g} times the inputs",))
        if said is Said.WRONG and (anyway or look.rejected is not None):
            return Found(Status.FAIL, look=look)  # the tape rejects it here, and both where something is seen
        if said is Said.WRONG:
            why = UNSEEN_TEXT.format(f": at {multiple:g} times the inputs, where it responds, the gradient is wrong")
            return undecided(why, doubted=True)
        contested |= said is Said.CONTESTED
    silent = held and not contested and not look.derivative.responds and not look.seen.noisy
    if silent and look.claim.size <= look.seen.bar < float("inf"):  # what backward gives is no more than rounding
        return Found(Status.PASS, marks=("nothing changes here",))
    unknown = look.derivative.both.bar[~look.derivative.blind]
    at_edge = not looker.point.raised and not bool((unknown < float("inf")).all())
    return undecided(EDGE if at_edge else UNSEEN_TEXT.format(looker.point.raised), doubted=contested or not held)


def said_at(looker: Looker, look: Look, multiple: float) -> Said:
    """What the gradient is worth at a multiple of the inputs."""
    there = looker.at([x * multiple for x in looker.point.x], fine=True)
    if there.point.outputs.not_finite() is not None:
        return Said.NOTHING
    found = there.look()
    # no slope there tells little of a claim of 0 if the function is flat there too: nearer to 0 it may respond
    further = found.decision is Decision.UNSEEN and (found.claim.size > 0 or multiple > 1)
    whole = (found.decision is Decision.FAIL or further) and not found.kinked
    if whole:
        found = there.look(whole=True)
    # a gradient of 0 there tells nothing of another here, nor of a function that changes here and not there
    idle = not found.claim.size and (look.claim.size > 0 or look.derivative.responds > found.derivative.responds)
    if found.kinked or idle:
        return Said.NOTHING
    if found.decision is Decision.PASS:  # once more: a projection that is small by chance hides a wrong factor
        return Said.RIGHT if there.look(whole=whole).decision is Decision.PASS else Said.NOTHING
    if found.decision is not Decision.FAIL:
        return Said.NOTHING
    if found.rejected is None:  # by both readings of the finest structure
        there.fine = False
        coarse = there.look(whole=True)
        if coarse.claim.size > 0 and coarse.decision is not Decision.FAIL:  # of size 0: nothing was asked
            return Said.NOTHING if coarse.claim.size <= coarse.seen.bar < float("inf") else Said.CONTESTED
    return Said.WRONG


def beside(looker: Looker, masks: Sequence[Array | None] | None = None) -> Looker:
    """A look from a random point `BESIDE` off, the elements in `masks` moved."""
    direction = looker.point.direction(looker.random, masks)
    moved = [x if d is None else x + BESIDE * d for x, d in zip(looker.point.x, direction, strict=True)]
    return looker.at(moved)


def contradicted(looker: Looker, look: Look) -> Found:
    """The differences exclude what both backward and the tape say: they are heard again beside the point."""
    try:
        there = beside(looker).look(whole=True).decision
    except Exception:  # it is not asked to work elsewhere
        there = Decision.UNSEEN
    assert looker.point.tape is not None
    kinks = looker.point.tape.kinks
    if kinks and there in (Decision.PASS, Decision.BY_TAPE):
        return Found(Status.FAIL, look=look)
    names = sorted({kink.name for kink in kinks})
    blamed = f" ({', '.join(names)} at a kink)" if names else ""
    why = (
        f"the differences give {look.seen.value:.6g} ± {look.seen.bar:.1g} where backward gives "
        f"{look.claim.value:.6g}, and the operations' own derivatives agree with backward{blamed}: "
        "the forward is noisier than its operations tell, or one has a wrong rule"
    )
    return undecided(why)


def disputed(look: Look) -> Found:
    """The claim is outside of the bar, but not by more than a kink that would not have shown."""
    why = (
        f"backward gives {look.claim.value:.6g} where the differences give {look.seen.value:.6g} ± "
        f"{look.seen.bar:.1g}, and a kink of {look.seen.gap:.1g} would not have shown there: choose other inputs"
    )
    return undecided(why, doubted=True)


def no_entry(found: Found) -> Found:
    """A gradient that is wrong along random directions, though each entry of it agrees with what its element alone
    shows."""
    why = (
        "the gradient disagrees along random directions, but each entry agrees with the differences along its own "
        "element: parts of the function stand still between close values, so that rounding hides more than it shows"
    )
    return replace(undecided(why), marks=found.marks)


def of_lost_outputs(looker: Looker, brief: Look, found: Found) -> Found:
    """Where outputs are so small that rounding on the way may be all there is of them, and a look without it
    disagreed: what it is worth where they respond."""
    assert found.look is not None
    before, after = brief.derivative, found.look.derivative
    if not brief.by_rows or not found.look.by_rows:
        return found
    lost = before.resolved & ~after.resolved & (after.nearby == 0)
    if not bool(lost.any()):
        return found
    there = elsewhere(looker, brief, anyway=True)
    if there.verdict is Status.FAIL:
        return there
    if there.verdict is Status.PASS:
        return replace(found, marks=(*found.marks, *there.marks))
    # rounding that was seen explains the disagreement; what was only granted does not
    granted = lost & (after.noise <= 2 * looker.floor)
    return there if bool(granted.any()) else found
