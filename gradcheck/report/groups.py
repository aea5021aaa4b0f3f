"""Failures of one cause: reports tell the first, and name the others."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from gradcheck.result import Diagnosis, Result, Status
from gradcheck.support.escape import one_line

LONGEST_LINE = 1_000
"""Characters of the line that names them where no screen sets its width: GitHub takes 65,536 for all of a page."""


def cause_with_line(result: Result) -> Diagnosis | None:
    """The first cause that names a line of a file, if one does."""
    found = result.gradient.diagnosis if result.gradient is not None else ()
    return next((one for one in found if re.fullmatch(r".+:[0-9]{1,9}", one.line)), None)


def by_cause(results: Iterable[Result]) -> list[list[Result]]:
    """The failures among `results`, those of one cause together, in the order of the first of each.

    One cause is one diagnosis at one line of a layer, or one error in the same words from one file. What has neither
    stands alone.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for one in results:
        if not one.status.green:
            groups.setdefault(key_of(one), []).append(one)
    return list(groups.values())


def key_of(result: Result) -> tuple[str, ...]:
    """What failures of one cause have in common, and no others."""
    if (cause := cause_with_line(result)) is not None:
        return cause.code, cause.line
    if result.status is Status.ERROR:
        return "", result.path, result.message, *result.details
    return (result.name,)


def others_line(others: Sequence[Result], width: int | None = None) -> str:
    """``and 29 more with this cause: id, id, …``, cut between names to `width`; empty if there are none."""
    names = ", ".join(one_line(one.name) for one in others)
    said = f"and {len(others)} more with this cause: {names}"
    return textwrap.shorten(said, width or LONGEST_LINE, placeholder=" …", break_on_hyphens=False) if others else ""
