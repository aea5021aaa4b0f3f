"""Plain programs that show which sentences releases break: they need only Paddle.

``specs/programs/RULE.py`` shows the rule of that name. Comments at its end contain its output, by
release: ``# 3.3.1: None``. ``tests/specs/test_programs.py`` runs them. The findings of
``docs/examples/paddle_programs`` are such programs too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from gradcheck.support.resources import bundled_specs

MOST_LINES = 12
"""The most lines of code of a program, so that it can be read at a glance and pasted into a
report.
"""
_PRINTED = re.compile(r"^# (documents|right|\d[\d.]*(?:, \d[\d.]*)*): (.*)$")


class PlainProgram(NamedTuple):
    """A program and its output."""

    path: Path
    code: str
    """The program without the comments that hold its output."""
    expected: str
    """The output that the documents require, or the right one if they are silent."""
    prints: dict[str, str]
    """Release → the output there; the name of the signal if the process dies."""


def read_programs() -> dict[str, PlainProgram]:
    """Return the programs by rule."""
    paths = sorted((bundled_specs() / "programs").glob("*.py"))
    return {path.stem: read_program(path) for path in paths}


def read_program(path: Path) -> PlainProgram:
    """Read one program."""
    code, prints, expected = [], {}, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        printed = _PRINTED.match(line)
        if printed is None:
            code.append(line)
        elif printed[1] in ("documents", "right"):
            expected = printed[2]
        else:
            prints.update(dict.fromkeys(printed[1].split(", "), printed[2]))
    return PlainProgram(path, "\n".join(code).strip("\n"), expected, prints)
