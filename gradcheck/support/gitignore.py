"""What git ignores, by the ``.gitignore`` files of folders. git itself is not asked: a stranger's ``.git`` may name
programs that it starts.

A file that git tracks although a rule ignores it counts as ignored.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from gradcheck.support.bounded import UnfitFileError, read_bounded

GITIGNORE = ".gitignore"
MOST_GITIGNORE_BYTES = 100_000
MOST_RULES = 2_000
"""Of a file; what stands behind them does not count."""

Fits = Callable[[str], object]
"""Whether the name of a file or folder fits a part of a pattern."""


class IgnoreRule(NamedTuple):
    """A line of a ``.gitignore``."""

    parts: tuple[Fits | None, ...]
    """What the names of a path must fit, from the folder of the file down; None: any number of names."""
    folders: bool
    """Whether it is about folders alone."""
    keeps: bool
    """Whether it begins with ``!``: what fits is not ignored."""

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a path, by its names, is what the rule is about. Only the last ``**`` is tried at further places:
        that is enough, and takes no longer than the names times the parts."""
        at = name = 0
        back: tuple[int, int] | None = None
        while name < len(names):
            part = self.parts[at] if at < len(self.parts) else _nothing
            if part is None:
                back, at = (at, name), at + 1
            elif part(names[name]):
                at, name = at + 1, name + 1
            elif back is not None:
                back = back[0], back[1] + 1
                at, name = back[0] + 1, back[1]
            else:
                return False
        return at == len(self.parts)


class Ignored:
    """The rules of the ``.gitignore`` files from some folder down to another: the later a rule, the more it counts."""

    def __init__(self, files: tuple[tuple[int, tuple[IgnoreRule, ...]], ...] = (), depth: int = 0) -> None:
        self._files = files
        """For each file how many folders it lies below the first, and its rules; the lowest first."""
        self._depth = depth

    def entering(self, folder: Path) -> Ignored:
        """The rules in a folder one below."""
        rules = rules_of(folder)
        return Ignored(((self._depth, rules), *self._files) if rules else self._files, self._depth + 1)

    def ignores(self, names: Sequence[str], folder: bool) -> bool:
        """Whether a file or `folder` is ignored; `names` lead to it from the first folder."""
        for depth, rules in self._files:
            for rule in reversed(rules):
                if (folder or not rule.folders) and rule.fits(names[depth:]):
                    return not rule.keeps
        return False


def rules_of(folder: Path) -> tuple[IgnoreRule, ...]:
    """The rules of the ``.gitignore`` in a folder; none where there is none that can be read."""
    try:
        text = read_bounded(folder / GITIGNORE, MOST_GITIGNORE_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, UnfitFileError):
        return ()
    return tuple(filter(None, map(rule_of, text.split("\n")[:MOST_RULES])))


def rule_of(line: str) -> IgnoreRule | None:
    """The rule that a line is; None if it is empty or a comment."""
    line = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    keeps, line = line.startswith("!"), line.removeprefix("!")
    folders, line = line.endswith("/"), line.removesuffix("/")
    names = line.removeprefix("/").split("/")
    if "/" not in line:
        names = ["**", *names]  # in any folder
    if names[-1] == "**":
        names.append("*")  # all that is in a folder, but not the folder
    return IgnoreRule(tuple(None if name == "**" else _fitting(name) for name in names), folders, keeps)


def _fitting(pattern: str) -> Fits:
    """What a name must fit: one without ``*``, ``?`` and ``[`` is compared as it is."""
    plain = re.sub(r"\\(.)", r"\1", pattern)
    if not re.search(r"(?<!\\)[*?[]", pattern):
        return plain.__eq__
    escaped = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)
    return partial(_match, escaped.replace("[^", "[!"))


def _match(pattern: str, name: str) -> bool:
    return _compiled(pattern).match(name) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))  # which tries nothing twice


def _nothing(name: str) -> bool:
    return False


def above(start: Path) -> tuple[Ignored, tuple[str, ...]]:
    """The rules of the folders above `start`, from the one with ``.git`` down, and the names that lead from there to
    `start`; none where no folder has ``.git``.
    """
    top = next((folder for folder in (start, *start.parents) if os.path.lexists(folder / ".git")), start)
    names = start.relative_to(top).parts
    ignored = Ignored()
    for count in range(len(names)):
        ignored = ignored.entering(top.joinpath(*names[:count]))
    return ignored, names
