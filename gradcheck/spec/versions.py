"""Ranges of versions, by PEP 440: ``>=3.0,<3.3``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


@lru_cache(maxsize=256)  # a suite says the same few things of hundreds of scenarios
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


@lru_cache(maxsize=256)
def shared(one: str | None, other: str | None) -> str:
    """A release that two ranges have in common; empty if there is none."""
    named = [*_named(one), *_named(other)]
    # Between two versions that the ranges name, all are in or all are out: one next to each is
    # enough.
    candidates = ["0", *(f"{version}{after}" for version in named for after in ("", ".0.0.1"))]
    return next(
        (version for version in candidates if within(version, one) and within(version, other)), ""
    )


def _named(text: str | None) -> Iterator[str]:
    """The releases at which a range may begin or end."""
    for specifier in _set(text or ""):
        version = specifier.version.removesuffix(".*")
        yield version
        release = version.split(".")
        # ==3.2.* and ~=3.2.1 end where the next such release begins.
        for length in range(1, len(release) + 1):
            if release[length - 1].isdecimal():
                yield ".".join([*release[: length - 1], str(int(release[length - 1]) + 1)])
