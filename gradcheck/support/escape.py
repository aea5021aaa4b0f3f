r"""Escaping of text from specs, layers and file names, so that it is safe on a terminal and in a
log.

Characters that control the terminal, hide text or overprint it are shown as escapes (``\x1b``):
control and direction characters, invisible letters, and marks stacked so high that they cover other
lines.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, TextIO

MOST_MARKS = 4
"""The most combining marks on one character that are shown: a Hebrew letter in print has up to four
(its own dot, dagesh, vowel, accent).
"""

# Unicode's Default_Ignorable_Code_Point where `str.isprintable` is true, and three
# symbols without ink (Braille blank, null notehead, Khitan filler).
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159"
    "\U000e0100-\U000e01ef]"
)
# A runner of GitHub acts upon '::' where a line begins, spaces aside, and upon '##[' anywhere.
_COMMAND = re.compile(r"((?:^|[\r\n])\s*:):|(##)\[")


def escape(text: str) -> str:
    r"""`text` with a tab as →, and every other control, invisible or overprinting character as
    ``\x1b``.
    """
    if text.isascii() and text.isprintable():
        return text
    shown, marks = "", MOST_MARKS  # a mark may not attach to text before ours
    for character in text.replace("\t", "→"):
        marks = marks + 1 if is_mark(character) else 0
        is_shown = character.isprintable() and not _BLANK.match(character)
        if not is_shown or marks > MOST_MARKS:
            character = character.encode("unicode_escape").decode("ascii")
        shown += character
    return shown


def safe(text: str) -> str:
    """`text`, of one or more lines, escaped like `escape`."""
    return "\n".join(escape(line) for line in text.split("\n"))


def one_line(text: str) -> str:
    """`text` on one line, escaped like `escape`."""
    return escape(" ".join(text.split()))


def is_mark(character: str) -> bool:
    """Whether a character is drawn over the one before it."""
    return unicodedata.category(character) in ("Mn", "Me")


def display_width(text: str) -> int:
    """Return the columns that `text` takes on a terminal: two for a wide character, none for a
    combining one.
    """
    base = [character for character in text if not is_mark(character)]
    return len(base) + sum(unicodedata.east_asian_width(character) in "WF" for character in base)


class WithoutCommands:
    r"""A text stream without GitHub workflow commands: those that a layer or a spec contains are
    escaped.

    The character that starts a command is written as its escape: ``:\x3aerror::``,
    ``##\x5bgroup]``.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write `text`, which may continue a line: only the last character of a command's mark is
        changed, so that no command is missed.
        """
        begun, line = self._line, self._line + text
        self._stream.write(without_commands(line)[len(without_commands(begun)) :])
        self._line = line[max(line.rfind("\n"), line.rfind("\r")) + 1 :]
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)


def without_commands(text: str) -> str:
    """`text` with the character that makes a GitHub workflow command written as its escape."""
    return _COMMAND.sub(lambda found: f"{found[1]}\\x3a" if found[1] else f"{found[2]}\\x5b", text)
