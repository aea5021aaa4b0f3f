"""The type of mistakes that rules of the format find in values, and its use in pydantic
validators.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import AfterValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from gradcheck.spec.data import DataPath, Place
from gradcheck.spec.diagnostic import quote

MISTAKES = "gradcheck_mistakes"
"""The type of the pydantic errors that carry mistakes."""


class Violation(NamedTuple):
    """A mistake in a value, or in a part of it."""

    path: DataPath
    """The path from the value whose rule is broken to the part."""
    message: str
    """``{label}`` in it is replaced by the value's name."""
    help: str = ""
    at_key: bool = False
    """Whether the message points at the key of the value."""
    inside: Place | None = None
    """Line, column and width in code, if the mistake is in code."""


def below(path: DataPath, mistakes: Iterable[Violation]) -> Iterator[Violation]:
    """Yield the mistakes of a part as mistakes of the value that contains it at `path`."""
    for mistake in mistakes:
        yield mistake._replace(path=(*path, *mistake.path))


def raise_mistakes(mistakes: Iterable[Violation]) -> None:
    """Raise one pydantic error with all mistakes, if there are any."""
    mistakes = list(mistakes)
    if mistakes:
        summary = "; ".join(mistake.message for mistake in mistakes)
        raise PydanticCustomError(MISTAKES, "{summary}", {"summary": summary, "mistakes": mistakes})


def forbid(find_mistakes: Callable[[Any], Iterable[Violation]]) -> AfterValidator:
    """Return a validator that raises the mistakes of a value when a file is read."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        if info.context is not None:
            raise_mistakes(find_mistakes(value))
        return value

    return AfterValidator(validate)


def find_conflicts(
    written: Collection[str],
    excluded: Mapping[str, Collection[str]],
    needed: Mapping[str, str],
) -> Iterator[Violation]:
    """Yield a mistake for each of the `written` keys that another one excludes, or that needs a
    missing one.
    """
    for key, excluded_keys in excluded.items():
        present = [other for other in excluded_keys if other in written]
        if key in written and present:
            message = f"{quote(present[0])} and {quote(key)} exclude each other"
            yield Violation((key,), message, "remove one of the two", at_key=True)
    for key, other in needed.items():
        if key in written and other not in written:
            message = f"{quote(key)} has no effect without {quote(other)}"
            yield Violation((key,), message, f"remove it, or add '{other}'", at_key=True)
