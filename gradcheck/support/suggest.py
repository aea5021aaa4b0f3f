"""What was likely meant by a name that is none of those there are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

BEGIN = 0.2
"""What it is worth to begin alike, where to be the same altogether is worth 1: gelou is gelu before it is elu."""

LONGEST_SOUGHT = 60
"""Characters of a name that is looked for: no longer one is a slip of the pen."""


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean tanh?`` of the nearest of `known`; `otherwise` if none is near."""
    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise


def nearest(name: str, known: Iterable[str]) -> str:
    """The one of `known` that was likely meant, in small letters or capitals; empty if none is near.

    That is one of the same letters (tahn is tanh, not tan), or the only one that goes on where `name` ends, or, of
    those that are about as near, one that begins alike: who mistypes a name mostly has its beginning right.
    """
    import difflib

    if len(name) > LONGEST_SOUGHT:
        return ""
    name, folded = name.lower(), {one.lower(): one for one in known}
    swapped = [one for one in folded if sorted(one) == sorted(name)]
    longer = [one for one in folded if len(name) > 2 and one.startswith(name)]
    if swapped or len(longer) == 1:
        return folded[(swapped or longer)[0]]

    def nearness(other: str) -> float:
        begin = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False))
        )
        return difflib.SequenceMatcher(None, name, other).ratio() + BEGIN * begin / max(
            len(name), 1
        )

    near = max(difflib.get_close_matches(name, folded, 5), key=nearness, default="")
    return folded[near] if near else ""
