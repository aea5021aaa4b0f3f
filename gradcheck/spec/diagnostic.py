"""A mistake in a spec file: its position, message and advice, and how it is printed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gradcheck.support.display_paths import count
from gradcheck.support.escape import display_width, escape
from gradcheck.support.suggest import nearest

_EXCERPT_WIDTH = 110
_QUOTE_WIDTH = 60
_LINES_SHOWN = 3
_BOLD, _RED, _CYAN, _RESET = "\x1b[1m", "\x1b[31m", "\x1b[36m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class LineEdit:
    """New lines in place of `removed` lines of a file from `line` on, which counts from 1."""

    line: int
    removed: int
    lines: tuple[str, ...]

    def applied(self, lines: list[str]) -> list[str]:
        """The lines of the file after the edit."""
        return [*lines[: self.line - 1], *self.lines, *lines[self.line - 1 + self.removed :]]

    def render(self) -> list[str]:
        """The new lines with their numbers, for a person; of a long block only the first ones."""
        if not self.lines:
            return [f"remove line {self.line}"]
        if not self.removed:
            return [f"insert line {self.line} │ {escape(self.lines[0])}"]
        shown = [
            f"line {number} │ {escape(line)}"
            for number, line in enumerate(self.lines[:_LINES_SHOWN], self.line)
        ]
        rest = len(self.lines) - len(shown)
        return [*shown, f"… and {count(rest, 'line')} below, moved as far"] if rest else shown


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in one file.

    `line` and `column` count characters from 1; 0 stands for the whole file, for example one that
    cannot be read. `width` is the number of characters to underline, `source_line` the line of the
    file. `fix` is an edit that removes the mistake, if one is known.
    """

    path: str
    line: int
    column: int
    width: int
    message: str
    help: str = ""
    source_line: str = ""
    fix: LineEdit | None = None

    @property
    def position(self) -> tuple[str, int, int]:
        """The sort key: file, line, column."""
        return (self.path, self.line, self.column)

    def render(self, color: bool = False) -> str:
        """Return ``file:line:col: error: message``, the line with a caret under the position, and
        ``help: …``.

        Text of the file is escaped before it reaches the terminal: control and direction
        characters.
        """
        bold, red, cyan, reset = (_BOLD, _RED, _CYAN, _RESET) if color else ("", "", "", "")
        where = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        shown = [f"{bold}{escape(where)}:{reset} {red}error:{reset} {escape(self.message)}"]
        if self.line and self.source_line.strip():
            before, marked, after = self._excerpt()
            number = f"{self.line:>5}"
            shown.append(f"{cyan}{number} |{reset} {before}{marked}{after}")
            underline = "^" * max(1, display_width(marked))
            shown.append(
                f"{cyan}{'':>5} |{reset} {' ' * display_width(before)}{red}{underline}{reset}"
            )
        if self.help:
            shown.append(f"{'':>5} {cyan}help:{reset} {escape(self.help)}")
        if self.fix is not None:
            shown += [f"{'':>5} {cyan}fix:{reset} {line}" for line in self.fix.render()]
        return "\n".join(shown)

    def _excerpt(self) -> tuple[str, str, str]:
        """The text before, under and after the caret, cut to a width that fits a screen."""
        start = self.column - 1
        end = start + max(1, self.width)
        left = max(0, min(start - _EXCERPT_WIDTH // 2, len(self.source_line) - _EXCERPT_WIDTH))
        right = left + _EXCERPT_WIDTH
        before = ("…" if left else "") + escape(self.source_line[left:start])
        after = escape(self.source_line[end:right]) + ("…" if right < len(self.source_line) else "")
        return before, escape(self.source_line[start : min(end, right)]), after


class SpecError(Exception):
    """The error for spec files with mistakes; `diagnostics` has all mistakes, sorted by
    position.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = sorted(diagnostics, key=lambda mistake: mistake.position)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(mistake.render() for mistake in self.diagnostics)


def quote(text: str) -> str:
    """`text` in single quotes for a message, escaped, and shortened if it is long."""
    return f"'{escape(text if len(text) <= _QUOTE_WIDTH else text[:_QUOTE_WIDTH] + '…')}'"


def describe(value: Any) -> str:
    """Describe a value for a message: ``"1e-6"``, ``3``, ``true``, ``null``, ``a list``."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return quote(json.dumps(value, ensure_ascii=False))[1:-1]


def listing(names: Iterable[str], last: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *most, final = names
    return f"{', '.join(most)} {last} {final}" if most else final


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return advice that names the entry of `known` that was likely meant. If none is similar,
    return `otherwise` or, if that is empty, list `known`.
    """
    names = list(known)
    near = nearest(name, names[:500])
    return f"did you mean '{near}'?" if near else otherwise or f"write {listing(names)}"
