"""Mistakes that rules of the format find in values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from pydantic_core import PydanticCustomError

from gradcheck.spec.data import DataPath
from gradcheck.spec.text import Place

MISTAKES = "gradcheck_mistakes"
"""The type of the pydantic errors that carry mistakes."""


Underlined = Literal["value", "key", "start"]
"""What a message points at: a value, its key, or the first character of the value."""


class Violation(NamedTuple):
    """A mistake in a value, or in a part of it.

    In message and help, ``{text}`` stands for the value as it is written, ``{here}`` for its
    description, and ``{number}`` for advice on how to write a number.
    """

    path: DataPath
    """Leads from the value whose rule is broken to the part."""
    message: str
    help: str = ""
    mark: Underlined = "value"
    inside: Place | None = None
    """Line, column and width in code, if the mistake is in code."""


class Exclusion(NamedTuple):
    """A key that some others exclude."""

    key: str
    others: tuple[str, ...]
    message: str
    """With ``{key}`` and ``{other}``, the key that excludes it."""
    help: str


def below(path: DataPath, mistakes: Iterable[Violation]) -> Iterator[Violation]:
    """Yield the mistakes of a part as those of the value that has the part at `path`."""
    for mistake in mistakes:
        yield mistake._replace(path=(*path, *mistake.path))


def raise_mistakes(mistakes: Iterable[Violation]) -> None:
    """Raise one pydantic error with all mistakes, if there are any."""
    found = list(mistakes)
    if found:
        summary = "; ".join(mistake.message for mistake in found)
        raise PydanticCustomError(MISTAKES, "{summary}", {"summary": summary, "mistakes": found})


def find_broken(*rules: tuple[bool, Violation]) -> Iterator[Violation]:
    """Yield the mistakes whose condition holds."""
    for is_broken, mistake in rules:
        if is_broken:
            yield mistake


def as_validator(find_mistakes: Callable[[Any], Iterator[Violation]]) -> Callable[[Any], Any]:
    """Return a validator of pydantic that raises the mistakes that a function finds in a value."""

    def validate(value: Any) -> Any:
        raise_mistakes(find_mistakes(value))
        return value

    return validate


def find_excluded(
    exclusions: Iterable[Exclusion], written: Collection[str], **names: str
) -> Iterator[Violation]:
    """Yield a mistake for each key among the `written` ones that another excludes."""
    for key, others, message, help in exclusions:
        present = [other for other in others if other in written]
        if key in written and present:
            words = {"key": key, "other": present[0], **names}
            yield Violation((key,), message.format(**words), help.format(**words), "key")
