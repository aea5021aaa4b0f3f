"""The decision: a pure function of what is claimed, what the differences see, and what the tape says.

| the differences | the tape (complete, independent) | decision |
|---|---|---|
| the claim inside, with power | agrees, or not heard | PASS |
| the tape inside, or no power | rejects the claim | FAIL |
| the claim outside, with power or far | rejects, is not heard, or is inside itself | FAIL |
| the claim outside, with power or far | agrees with the claim, and is outside too | CONTRADICTION |
| no power | agrees | BY_TAPE: PASS, marked |
| no power | not heard | UNSEEN |

Far is off by `FAR_BARS` bars: without power that shows as well. A tape that the differences exclude is no witness
against a claim that they hold: at a kink an operation's rule is one of many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

POWER = 1e-2
"""The differences have power if an error of 1 % of the claim would have shown."""
FAR_BARS = 4.0
"""Bars are estimates: by so many nothing is off that is right. Without power a claim that is off by more is excluded
all the same, as what it is off by has shown; one-sided slopes that are farther apart are a kink."""


class Ruling(Enum):
    """What follows for one look; see the module."""

    PASS = auto()
    BY_TAPE = auto()
    FAIL = auto()
    CONTRADICTION = auto()
    UNSEEN = auto()


@dataclass(frozen=True)
class Seen:
    """uᵀJ d by the differences, and how far the truth may be from it."""

    value: float
    bar: float
    scale: float
    """How large a derivative nearby is: |uᵀJ d| within a thousandth of the inputs' scale. Beside it a stationary point
    is seen to be one."""
    gap: float = math.inf
    """How far apart both sides may be: the size of a kink that would not have shown."""
    allowed: float = 0.0
    """What a claim may be off beside: by its own rounding, and what the user allows. It is no lack of power."""

    def holds(self, derivative: float, bar: float = 0.0) -> bool:
        """Whether a derivative, with a bar of its own, lies within the bar."""
        return abs(derivative - self.value) <= self.bar + self.allowed + bar

    def excludes(self, derivative: float) -> bool:
        """Whether it lies outside of the bar, and outside of what either side allows."""
        return not abs(derivative - self.value) <= self.bar + self.gap + self.allowed


@dataclass(frozen=True)
class Claim:
    """What backward says of uᵀJ d."""

    value: float
    size: float
    """The sum of the absolute shares that it is made of."""
    root: float = math.inf
    """The root of the sum of their squares, where it is known: how large it is expected to be if their signs are
    random."""


@dataclass(frozen=True)
class Heard:
    """What the tape says of uᵀJ d, and whether it rejects the claim in some entry beyond the rounding of both."""

    value: float
    rejects: bool
    bar: float = 0.0
    """How far its value may be off by rounding."""
    of_claim: float = 0.0
    """The same of the claim's value."""


def decide(claim: Claim, seen: Seen, heard: Heard | None) -> Ruling:
    """The decision on one look, by the table of the module."""
    size = max(abs(seen.value), seen.scale, min(claim.size, claim.root))
    known = math.isfinite(seen.bar) and math.isfinite(seen.value)
    power = known and seen.bar <= POWER * size
    if heard is not None and not math.isfinite(heard.value):
        heard = None
    if heard is not None and heard.rejects and not (power and not seen.holds(heard.value)):
        return Ruling.FAIL
    apart = abs(claim.value - seen.value)
    if known and seen.excludes(claim.value) and (power or not apart <= FAR_BARS * seen.bar + seen.allowed):
        agrees = heard is not None and not heard.rejects and not seen.holds(heard.value, heard.bar)
        return Ruling.CONTRADICTION if agrees else Ruling.FAIL
    if power and seen.holds(claim.value):
        return Ruling.PASS
    return Ruling.BY_TAPE if heard is not None and not heard.rejects else Ruling.UNSEEN
