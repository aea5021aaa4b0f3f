"""Which spec files paths mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pathspec import GitIgnoreSpec

from gradcheck.spec.diagnostic import Diagnostic
from gradcheck.support.resources import bundled_specs

SUFFIX = ".grad.yaml"
LEFT_OUT = frozenset({"node_modules", "site-packages", "build", "dist"})
"""Folders of packages and of builds; hidden folders, virtual environments and what git ignores are
left out as well.
"""
ENVIRONMENT = "pyvenv.cfg"
"""The file that a virtual environment has."""

IgnoreFile = tuple[Path, GitIgnoreSpec]
"""A folder, and the rules of its ``.gitignore``."""


def find(
    paths: Iterable[str | os.PathLike[str]], *, whole_project: bool = False
) -> tuple[list[Path], list[Diagnostic]]:
    """Return the files that `paths` name, each once: files as they are, folders with all
    ``*.grad.yaml`` below them.

    The diagnostics name the folders without any file, unless it is a `whole_project` that nobody
    has named. A file that is missing is left for `read` to report.
    """
    files: dict[str, Path] = {}
    mistakes: list[Diagnostic] = []
    for path in map(Path, paths):
        below = spec_files(path, whole_project=whole_project) if path.is_dir() else [path]
        if not below and not whole_project:
            message, help = (
                f"there is no *{SUFFIX} file in this folder",
                f"spec files are named <topic>{SUFFIX}",
            )
            mistakes.append(Diagnostic(str(path), 0, 0, 0, message, help))
        for file in below:
            files.setdefault(os.path.realpath(file), file)
    return list(files.values()), mistakes


def spec_files(folder: Path, *, whole_project: bool = False) -> list[Path]:
    """Return the spec files below a folder, in order, without those that are left out.

    The ``.gitignore`` files of the folders above count where nobody has named the folder
    (`whole_project`).
    """
    return sorted(walk(folder, ignore_files_above(folder.absolute()) if whole_project else []))


def walk(folder: Path, ignore_files: Sequence[IgnoreFile], start: bool = True) -> Iterator[Path]:
    """Yield the spec files below a folder."""
    ignore_files = [*ignore_files, *ignore_file_in(folder)]
    try:
        with os.scandir(folder) as found:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    except OSError:  # nobody may look into it, or it is gone
        return
    if not start and ((ENVIRONMENT, False) in entries or folder.absolute() == bundled_specs()):
        return
    for name, is_folder in entries:
        path = folder / name
        is_entered = is_folder and not name.startswith(".") and name not in LEFT_OUT
        is_spec = name.endswith(SUFFIX) and not path.is_dir()
        if not (is_entered or is_spec) or is_ignored(path, is_folder, ignore_files):
            continue
        if is_entered:
            yield from walk(path, ignore_files, start=False)
        else:
            yield path


def ignore_file_in(folder: Path) -> list[IgnoreFile]:
    """Return the rules of the ``.gitignore`` in a folder; none where it cannot be read."""
    with suppress(OSError):
        if (file := folder / ".gitignore").is_file():
            lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            return [(folder.absolute(), GitIgnoreSpec.from_lines(lines))]
    return []


def ignore_files_above(folder: Path) -> list[IgnoreFile]:
    """Return the rules of the folders above one, from that with ``.git`` down; none where no folder
    has it.
    """
    for top in folder.parents:
        if os.path.lexists(top / ".git"):
            between = [one for one in reversed(folder.parents) if one.is_relative_to(top)]
            return [rules for one in between for rules in ignore_file_in(one)]
    return []


def is_ignored(path: Path, is_folder: bool, ignore_files: Sequence[IgnoreFile]) -> bool:
    """Whether git ignores a file or folder, by the rules of the nearest folder that mention it."""
    for folder, rules in reversed(ignore_files):
        name = path.absolute().relative_to(folder).as_posix() + ("/" if is_folder else "")
        included = rules.check_file(name).include
        if included is not None:
            return included
    return False
