""" "Did you mean": suggestions for an unknown name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from gradcheck.support.user_error import UserError

BEGIN = 0.2
"""Weight of a common prefix, relative to equality: gelou means gelu rather than elu."""

LEAST_ALIKE = 0.7
"""The similarity, as measured by difflib, above which a name may be a misspelling of another one
that begins with the same letter. Among the keys of spec files, inits means inputs (0.73), but label
does not mean layer (0.6), imports not inputs (0.62), and sharded not shape (0.67). Among options,
baseline-file means baseline (0.76); unrelated ones reach 0.62 (float32, format).
"""

LEAST_LIKENESS = 0.75
"""The similarity, by difflib's measure, from which names that begin with different letters may be
misspellings of each other. Unrelated words reach 0.71 (description, script) and 0.67 (repeat,
expect).
"""

LONGEST_SOUGHT = 60
"""The most characters of a name for which a suggestion is searched for: a longer one is not a
typo.
"""


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return ``did you mean tanh?`` for the name in `known` that is most similar; `otherwise` if
    none is.
    """
    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise


def is_opposite(name: str, other: str) -> bool:
    """Whether a word is the negation of another: noncontiguous."""
    return name.endswith(other) and name.removesuffix(other).strip("-_") in ("no", "non", "not")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name in `known` that was likely meant, ignoring case; empty if none is similar.

    Candidates are a name with the same letters (tahn is tanh, not tan), the only name that
    continues `name`, and similar names, preferably with the same prefix, which is usually typed
    correctly; a name with another prefix must be more similar.
    """
    import difflib  # slow to import

    if len(name) > LONGEST_SOUGHT:
        return ""
    name = name.lower()
    by_lower = {other.lower(): other for other in known if not is_opposite(name, other.lower())}
    for other in by_lower:
        if sorted(other) == sorted(name):
            return by_lower[other]
    longer = [other for other in by_lower if len(name) > 2 and other.startswith(name)]
    if len(longer) == 1:
        return by_lower[longer[0]]

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(None, name, other).ratio()

    def nearness(other: str) -> float:
        begin = len(os.path.commonprefix([name, other])) / len(name)  # noqa: RUF071 - of letters
        return likeness(other) + BEGIN * begin

    similar = difflib.get_close_matches(name, by_lower, 5, LEAST_ALIKE)
    near = [other for other in similar if other[0] == name[0] or likeness(other) >= LEAST_LIKENESS]
    return by_lower[max(near, key=nearness)] if near else ""


def require_one_name(word: str, is_known: Callable[[str], bool]) -> None:
    """Raise UserError if a word is several known names joined by spaces or commas."""
    names = [name for name in re.split(r"[\s,;]+", word) if name]
    if len(names) > 1 and all(map(is_known, names)):
        raise UserError(f"{word!r} is not one name; write them separately: {' '.join(names)}")
