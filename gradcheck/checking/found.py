"""What came out of some probes: a verdict, and what it hangs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradcheck.checking.point import Entry
from gradcheck.checking.probe import Probe, Prober
from gradcheck.result import Diagnosis, Status

MOST_NAMED = 3
"""Places that a sentence names."""


@dataclass
class Found:
    """A verdict, and what it hangs on."""

    verdict: Status
    why: str = ""
    probe: Probe | None = None
    """One that shows the gradient wrong."""
    prober: Prober | None = None
    """Whose probe that is, if it is from another point."""
    wrong: Sequence[Entry] = ()
    exhaustive: bool = True
    """Whether `wrong` is all that is wrong."""
    diagnosis: tuple[Diagnosis, ...] = ()
    marks: tuple[str, ...] = ()


def undecided(why: str) -> Found:
    """INCONCLUSIVE, and why."""
    return Found(Status.INCONCLUSIVE, why, diagnosis=(Diagnosis.of("GC121", why),))


def listed(names: Sequence[str], count: int) -> str:
    """The first of some names, and how many more of all there are."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {count - MOST_NAMED} more" if count > MOST_NAMED else "")


def with_kink(found: Found, why: str) -> Found:
    """What was found of a function that has a kink as well, at which nothing is wrong."""
    if found.verdict not in (Status.PASS, Status.KINK):
        return found
    whole = f"{found.why}; {why}" if found.why else why
    return replace(found, verdict=Status.KINK, why=whole, diagnosis=(*found.diagnosis, Diagnosis.of("GC120", why)))
