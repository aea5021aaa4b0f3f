"""A spec file as decoded lines, with the mistakes found in it."""

from __future__ import annotations

import functools
import re
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from gradcheck.spec.data import Place
from gradcheck.spec.diagnostic import Diagnostic, SpecError, suggest
from gradcheck.spec.folders import path_in_project
from gradcheck.support.suggest import nearest

MAX_BYTES = 10_000_000

# Characters that YAML forbids, and three exotic line breaks on which YAML and Python disagree.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_MAX_SUGGESTIONS = 100


@dataclass
class SpecText:
    """The lines of a file, and the mistakes found in it so far. Places count from 1."""

    path: str
    lines: list[str]
    mistakes: list[Diagnostic] = field(default_factory=list)

    @property
    def content(self) -> str:
        """The whole text."""
        return "\n".join(self.lines)

    def report(self, place: Place, message: str, help: str = "") -> None:
        """Add a diagnostic."""
        line, column, width = place
        source = self.lines[line - 1] if line <= len(self.lines) else ""
        self.mistakes.append(Diagnostic(self.path, line, column, width, message, help, source))

    def suggest(self, name: str, known: Iterable[str], otherwise: str = "") -> str:
        """Return advice that names the entry of `known` that was likely meant; see
        `diagnostic.suggest`.

        A file with very many mistakes gets no suggestions, because each takes time.
        """
        is_sought = len(self.mistakes) < _MAX_SUGGESTIONS
        return suggest(name, known, otherwise) if is_sought else otherwise

    def error(self) -> SpecError:
        """Return the diagnostics as an error; a mistake that several scenarios inherit counts
        once.
        """
        # Messages of one mistake may differ between scenarios, for example in the number of ranks.
        by_message = {(*each.position, each.message): each for each in reversed(self.mistakes)}
        by_help = {(*m.position, m.help or m.message): m for m in by_message.values()}
        return SpecError(by_help.values())


def place_of(mark: Any) -> tuple[int, int]:
    """Return line and column, from 1, of a mark of PyYAML."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def read_text(path: Path, shown: str) -> SpecText:
    """The text of the file `path`, called `shown` in messages; of stdin if that is ``-``.

    Raises SpecError if it is missing, not a file, not readable, larger than 10 MB, not UTF-8
    (including its name), or contains control characters.
    """
    if shown == "-":
        return decode(_read_stream(sys.stdin.buffer), shown)
    try:
        # Opening a pipe or a device could block forever, so the type of the file is checked first.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _unreadable(
                shown, "this is not a file", "name a *.grad.yaml file, or a folder of them"
            )
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        shown.encode()
    except FileNotFoundError:
        raise _unreadable(
            shown, "there is no such file or folder", _file_suggestion(path)
        ) from None
    except UnicodeEncodeError:  # bytes that do not decode; Python uses lone surrogates for them
        help = (
            "rename it or its folder, or refer to it from inside the folder: reports cannot "
            "represent its name"
        )
        raise _unreadable(shown, "the name of this file is not UTF-8", help) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _unreadable(shown, f"the file cannot be read: {reason}") from None
    return decode(raw, shown)


@functools.lru_cache(maxsize=1)
def _read_stream(stream: BinaryIO) -> bytes:
    """The beginning of a stream, which can be read only once."""
    return stream.read(MAX_BYTES + 1)


def decode(raw: bytes, shown: str) -> SpecText:
    """The text of `raw`, UTF-8 with or without a byte order mark.

    Raises SpecError if it is larger than 10 MB, not UTF-8, or contains control characters.
    """
    if len(raw) > MAX_BYTES:
        raise _unreadable(
            shown, f"the file is larger than {MAX_BYTES // 1_000_000} MB", "split it by topic"
        )
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        decoded = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        help = "save the file as UTF-8"
        if b"\0" in raw:
            help = "this is not a text file; name a *.grad.yaml file"
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        before = _lines(raw[: error.start].decode("utf-8"))
        place = len(before), len(before[-1]) + 1, 1
        raise SpecError([Diagnostic(shown, *place, message, help, before[-1] + "�")]) from None
    lines = _lines(decoded)
    text = SpecText(shown, lines)
    if control := _CONTROL.search(decoded):
        before = _lines(decoded[: control.start()])
        message = f"control character U+{ord(control[0]):04X}"
        help = "remove it: specs are plain text"
        text.report((len(before), len(before[-1]) + 1, 1), message, help)
        raise text.error()
    return text


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _unreadable(path: str, message: str, help: str = "") -> SpecError:
    return SpecError([Diagnostic(path, 0, 0, 0, message, help)])


def _file_suggestion(path: Path) -> str:
    otherwise = f"it was looked for in {path.parent.absolute()}"
    before_pattern = re.match("([^*?]*/)?[^/*?]*[*?]", str(path))
    if before_pattern and Path(folder := before_pattern[1] or ".").is_dir():
        return f"patterns are not expanded; write {folder} for all spec files below it"
    try:
        if path.is_symlink():
            return f"it is a link to {path.readlink()}, which does not exist"
        if near := path_in_project(str(path)) or path_in_project(path.name):
            return f"did you mean '{near}'?"
        others = sorted(path.parent.iterdir())[:1000]
        names = [each.name for each in others if each.is_dir() or each.suffix in (".yaml", ".yml")]
    except OSError:
        return otherwise
    near = nearest(path.name, names)
    return f"did you mean '{path.parent / near}'?" if near else otherwise
