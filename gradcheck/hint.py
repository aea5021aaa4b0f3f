"""What was likely meant by a name that is none of those there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import takewhile

BEGIN = 0.2
"""What it is worth to begin alike, where to be the same altogether is worth 1: gelou is gelu before it is elu."""


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean tanh?`` of the nearest of `known`; `otherwise` if none is near."""
    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise


def nearest(name: str, known: Iterable[str]) -> str:
    """The one of `known` that was likely meant; empty if none is near.

    Of those that are about as near, one that begins alike: who mistypes a name mostly has its beginning right.
    """
    matches = difflib.get_close_matches(name, list(known), 5)

    def nearness(other: str) -> float:
        begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
        return difflib.SequenceMatcher(None, name, other).ratio() + BEGIN * begin / max(len(name), 1)

    return max(matches, key=nearness, default="")
