"""Find the spec files that paths name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gradcheck.spec.diagnostic import Diagnostic
from gradcheck.support.pyproject import root_of
from gradcheck.support.resources import bundled_specs

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIX = ".grad.yaml"
LEFT_OUT = frozenset({"node_modules", "site-packages", "build", "dist"})
"""Folders of packages and of builds, which are skipped; so are hidden folders, virtual environments
and files that git ignores.
"""
ENVIRONMENT = "pyvenv.cfg"
"""A file that every virtual environment contains."""

IgnoreFile = tuple[Path, "GitIgnoreSpec"]
"""A folder, and the rules of its ``.gitignore``."""


def find(
    paths: Iterable[str | os.PathLike[str]], *, whole_project: bool = False
) -> tuple[list[Path], list[Diagnostic]]:
    """Return the files that `paths` name, each once; for a folder, all ``*.grad.yaml`` files below
    it.

    The diagnostics name the folders without any file, unless `whole_project`: then the user named
    none. `read` reports a missing file.
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
    """Return the spec files below a folder, in order, without skipped ones.

    The ``.gitignore`` files of the folders above also apply if the user did not name the folder
    (`whole_project`).
    """
    return sorted(walk(folder, ignore_files_above(folder.absolute()) if whole_project else []))


def path_in_project(name: str) -> str:
    """Return the path from here of the project's spec file or folder whose path ends with `name`;
    empty unless there is exactly one.
    """
    root = root_of(Path(os.path.realpath(Path.cwd())))
    parts = tuple(part for part in Path(name).parts if part not in ("/", ".."))
    files = spec_files(root, whole_project=True)
    places = {place for file in files for place in (file, *file.parents) if root in place.parents}
    fitting = [place for place in places if parts and place.parts[-len(parts) :] == parts]
    return os.path.relpath(fitting[0]) if len(fitting) == 1 else ""


def walk(folder: Path, ignore_files: Sequence[IgnoreFile]) -> Iterator[Path]:
    """Yield the spec files below a folder."""
    rules = {folder.parent: [*ignore_files]}
    for name, folders, files in os.walk(folder):
        path = Path(name)
        folder_rules = rules[path] = [*rules[path.parent], *ignore_file_in(path)]
        is_apart = ENVIRONMENT in files or path.absolute() == bundled_specs()
        if is_apart and path != folder:
            folders.clear()
            continue
        entered = [sub for sub in folders if not sub.startswith(".") and sub not in LEFT_OUT]
        folders[:] = [sub for sub in entered if not is_ignored(path / sub, True, folder_rules)]
        for file in files:
            if file.endswith(SUFFIX) and not is_ignored(path / file, False, folder_rules):
                yield path / file


def ignore_file_in(folder: Path) -> list[IgnoreFile]:
    """Return the rules of the ``.gitignore`` in a folder; empty if it cannot be read."""
    with suppress(OSError):
        if (file := folder / ".gitignore").is_file():
            from pathspec import GitIgnoreSpec  # slow to import, and one file needs no rules

            lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            return [(folder.absolute(), GitIgnoreSpec.from_lines(lines))]
    return []


def ignore_files_above(folder: Path) -> list[IgnoreFile]:
    """Return the rules of the folders above a folder, from the one with ``.git`` down; empty if no
    folder has ``.git``.
    """
    for top in folder.parents:
        if os.path.lexists(top / ".git"):
            between = [path for path in reversed(folder.parents) if path.is_relative_to(top)]
            return [rules for path in between for rules in ignore_file_in(path)]
    return []


def is_ignored(path: Path, is_folder: bool, ignore_files: Sequence[IgnoreFile]) -> bool:
    """Whether git ignores a file or folder, by the rules of the nearest folder that mention it."""
    for folder, rules in reversed(ignore_files):
        name = path.absolute().relative_to(folder).as_posix() + ("/" if is_folder else "")
        included = rules.check_file(name).include
        if included is not None:
            return included
    return False
