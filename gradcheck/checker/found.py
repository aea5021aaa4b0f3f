"""What checks hand to each other: a verdict with what it hangs on, and what is wrong about a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gradcheck.checker.look import Look
from gradcheck.checker.point import Entry
from gradcheck.result import Diagnosis, Status


@dataclass
class Found:
    """What came out of some looks: a verdict, and what it hangs on."""

    verdict: Status
    why: str = ""
    look: Look | None = None
    """A look that shows the gradient wrong."""
    wrong: Sequence[Entry] = ()
    diagnosis: tuple[Diagnosis, ...] = ()
    marks: tuple[str, ...] = ()
    wrong_elsewhere: bool = False
    """Nothing is seen here, but where the function responds the gradient is wrong."""
    doubted: bool = False
    """Nothing is certain, but something speaks against the gradient."""


@dataclass
class Named:
    """Wrong entries, those that carry most of the error first; how many elements of which input are wrong; and why."""

    entries: list[Entry] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    right: set[int] = field(default_factory=set)
    exhaustive: bool = True
    causes: tuple[Diagnosis, ...] = ()
    patterns: tuple[str, ...] = ()
    unfinished: bool = False
    """Whether time was up before all was looked at."""
