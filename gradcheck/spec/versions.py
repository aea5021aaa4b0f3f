"""Ranges of versions, by PEP 440: ``>=3.0,<3.3``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


@lru_cache(maxsize=256)  # a suite has the same few ranges in hundreds of scenarios
def _set(text: str) -> SpecifierSet:
    """Return the versions of a range. Raises packaging.specifiers.InvalidSpecifier: the text is not
    a range.
    """
    # Imported here: it takes 17 ms, and most files have no range.
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(text)


def is_range(text: str) -> bool:
    """Whether a text is a range of versions that is not empty."""
    from packaging.specifiers import InvalidSpecifier

    try:
        return len(_set(text)) > 0 and "===" not in text
    except InvalidSpecifier:
        return False


def within(version: str, text: str | None) -> bool:
    """Whether a version is in a range; without a range, every version is, even an unknown one.

    Pre-releases count like others.
    """
    if text is None:
        return True
    from packaging.version import InvalidVersion

    try:
        return _set(text).contains(version, prereleases=True)
    except InvalidVersion:
        return False
