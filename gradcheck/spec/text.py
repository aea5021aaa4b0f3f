"""A spec file as text: decoding, its lines, and the repairs after which reading can go on."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.python import PythonCode
from gradcheck.support.suggest import nearest

Place = tuple[int, int, int]
"""Line, column, and the number of characters to underline."""


class Placed(Protocol):
    """What stands somewhere in the file."""

    @property
    def place(self) -> Place: ...


Remark = tuple[Placed | Place, str, str]
"""Where, what is wrong, and what to do."""

MAX_BYTES = 10_000_000
MAX_CONTROL_CHARACTERS = 1_000

# What YAML forbids, and the three exotic line breaks on which YAML and Python do not agree.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_OPENS_BLOCK = re.compile(r"(:|-|[:-] +[|>][-+1-9]{0,2})$")
_IS_CODE = re.compile(r"\s*[^\s#]")
_LIST_DASHES = re.compile(r"\s*(?:- +)*")
_MAX_SUGGESTIONS = 100


@dataclass
class SpecText:
    """A file's lines, repaired where they had to be, and the diagnostics found so far.

    Positions handed in count in the repaired lines, 1-based; diagnostics count in the file as it stands.
    """

    path: str
    original: list[str]
    lines: list[str]
    found: list[Diagnostic] = field(default_factory=list)
    edits: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Per 1-based line: (column from which on, characters to add) leads from repaired to original columns."""
    nodes: int = 0
    """How many values the file holds, set when it has been parsed."""
    compiled: dict[int, PythonCode | None] = field(default_factory=dict)
    """Identity of a node of code -> that code, None if it is no Python: what many inherit is compiled once."""
    code: int = 0
    """How many characters of code have been compiled."""
    patterns: dict[int, int] = field(default_factory=dict)
    """Identity of a node that holds a regular expression -> its length: these, too, are compiled once."""

    @property
    def content(self) -> str:
        """The repaired text."""
        return "\n".join(self.lines)

    def report(self, at: Placed | Place, message: str, help: str = "") -> None:
        """Add a diagnostic; the same mistake met twice (through ``extends``) counts once."""
        line, column, width = at if isinstance(at, tuple) else at.place
        for start, shift in reversed(self.edits.get(line, ())):
            column += shift if column >= start else 0
        source = self.original[line - 1] if line <= len(self.original) else ""
        self.found.append(Diagnostic(self.path, line, column, width, message, help, source))

    def report_all(self, remarks: Iterable[Remark]) -> None:
        """Add a diagnostic for each."""
        for remark in remarks:
            self.report(*remark)

    def near(self, name: str, known: list[str]) -> str:
        """The one of `known` that was likely meant, or "" (also in a file so wrong that to look would take long)."""
        return nearest(name, known[:500]) if len(self.found) < _MAX_SUGGESTIONS else ""

    def suggest(self, name: str, known: list[str]) -> str:
        """``did you mean 'x'?`` or "", likewise."""
        close = self.near(name, known)
        return f"did you mean '{close}'?" if close else ""

    def edited(self, first: int, last: int) -> bool:
        """Whether a repair touched any of the lines `first` to `last`."""
        return any(line in self.edits for line in range(first, last + 1))

    def error(self) -> SpecError:
        """The diagnostics, each once."""
        return SpecError({(*one.position, one.message): one for one in self.found}.values())

    def repair_tab(self, line: int, column: int) -> bool:
        """If a tab is what stops the parser at `line`:`column`, report it and put spaces in its place.

        A tab in the indentation becomes the indentation that fits the lines above it best, on all directly
        following lines that begin alike, so that one habit gives one diagnostic.
        """
        if line > len(self.lines):
            return False
        text = self.lines[line - 1]
        indentation = text[: len(text) - len(text.lstrip(" \t"))]
        if "\t" in indentation:
            spaces, last = self._indentation_for(line, indentation), line
            while last < len(self.lines) and self.lines[last].startswith(indentation):
                last += 1
            message = "a tab in the indentation" + (f" (as in the lines to {last})" if last > line else "")
            place = line, indentation.index("\t") + 1, 1
            self.report(place, message, "indent with spaces: set the editor to expand tabs")
            for number in range(line, last + 1):
                rest = self.lines[number - 1][len(indentation) :]
                self.lines[number - 1] = " " * spaces + rest if rest.strip() else ""
                self.edits.setdefault(number, []).append((spaces + 1, len(indentation) - spaces))
        elif text[column - 1 : column] == "\t":
            self.report((line, column, 1), "a tab where YAML allows only spaces", "put a space in its place")
            self.lines[line - 1] = text[: column - 1] + " " + text[column:]
        else:
            return False
        return True

    def _indentation_for(self, line: int, indentation: str) -> int:
        """The number of spaces that the tabbed `indentation` of `line` most likely stands for."""
        above = [text for text in self.lines[max(0, line - 1000) : line - 1] if _IS_CODE.match(text)]
        is_entry = self.lines[line - 1].lstrip().startswith("- ")
        columns: list[int] = []  # where keys (for an entry: dashes) of the blocks still open stand
        outermost = 1 << 30
        for text in reversed(above):
            found = _LIST_DASHES.match(text)
            assert found is not None
            here = found.end()
            if text is above[-1] and _OPENS_BLOCK.search(text.rstrip()):
                return here + 2
            dashes = [at for at, sign in enumerate(found[0]) if sign == "-"]
            columns += [at for at in (dashes if is_entry else [here]) if at < outermost]
            outermost = min([outermost, here, *dashes])
            if outermost == 0:
                break
        meant = len(indentation.expandtabs(4))
        return min(columns or [0], key=lambda at: (abs(at - meant), -at))


def read_text(path: Path, shown: str) -> SpecText:
    """The text of the file `path`, called `shown` in messages.

    Control characters are reported and taken out, so that reading can go on.

    Raises SpecError if it is missing, not a file, not readable, larger than 10 MB, or not UTF-8, its name included.
    """
    try:
        # Opening a pipe or a device could block for ever, hence the look at what it is first.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _unreadable(shown, "this is not a file", "name a *.grad.yaml file, or a folder of them")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        shown.encode()
    except FileNotFoundError:
        if path.is_symlink():
            raise _unreadable(shown, f"this is a link to {os.readlink(path)}, which is not there") from None
        raise _unreadable(shown, "there is no such file or folder", _file_suggestion(path)) from None
    except UnicodeEncodeError:  # bytes that are no text, for which Python has halves of characters
        help = "rename it, or the folder, or name it from within that: reports could not hold its name"
        raise _unreadable(shown, "the name of this file is not UTF-8", help) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _unreadable(shown, f"the file cannot be read: {reason}") from None
    return decode(raw, shown)


def decode(raw: bytes, shown: str) -> SpecText:
    """The text of `raw`, UTF-8 with or without a byte order mark.

    Raises SpecError if it is larger than 10 MB or not UTF-8.
    """
    if len(raw) > MAX_BYTES:
        raise _unreadable(shown, f"the file is larger than {MAX_BYTES // 1_000_000} MB", "split it by topic")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        decoded = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        help = "save the file as UTF-8"
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise _unreadable(shown, "the file is UTF-16, not UTF-8", help) from None
        message, before = f"byte 0x{raw[error.start]:02x} is not UTF-8", _lines(raw[: error.start].decode("utf-8"))
        place = len(before), len(before[-1]) + 1, 1
        raise SpecError([Diagnostic(shown, *place, message, help, before[-1] + "�")]) from None
    if len(list(islice(_CONTROL.finditer(decoded), MAX_CONTROL_CHARACTERS + 1))) > MAX_CONTROL_CHARACTERS:
        message = f"more than {MAX_CONTROL_CHARACTERS:,} control characters: the file is no text"
        raise _unreadable(shown, message, "specs are plain text in UTF-8")
    lines = _lines(decoded)
    text = SpecText(shown, lines, list(lines))
    for number, line in enumerate(lines, start=1) if _CONTROL.search(decoded) else ():
        if places := [match.start() + 1 for match in _CONTROL.finditer(line)]:
            more = f", and {len(places) - 1} more in this line" if len(places) > 1 else ""
            message = f"control character U+{ord(line[places[0] - 1]):04X}{more}"
            text.report((number, places[0], 1), message, "remove it: specs are plain text")
            text.lines[number - 1] = _CONTROL.sub("", line)
            # Column of the repaired line from which on one more removed character counts.
            text.edits[number] = [(column - removed, 1) for removed, column in enumerate(places)]
    return text


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _unreadable(path: str, message: str, help: str = "") -> SpecError:
    return SpecError([Diagnostic(path, 0, 0, 0, message, help)])


def _file_suggestion(path: Path) -> str:
    try:
        close = nearest(path.name, sorted(one.name for one in path.parent.iterdir())[:1000])
    except OSError:
        return ""
    return f"did you mean '{path.with_name(close)}'?" if close else f"it was looked for in {path.parent.absolute()}"
