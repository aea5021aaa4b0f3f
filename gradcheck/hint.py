"""What was likely meant by a name that is none of those there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean tanh?`` of the nearest of `known`; `otherwise` if none is near."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]}?" if near else otherwise
