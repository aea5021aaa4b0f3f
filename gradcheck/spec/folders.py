"""Which spec files paths mean. No link leads out of a project, and what others have put below a folder is left out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradcheck.spec.diagnostic import Diagnostic
from gradcheck.support.gitignore import Ignored, above
from gradcheck.support.pyproject import root_of
from gradcheck.support.resources import bundled_specs

SUFFIX = ".grad.yaml"
LEFT_OUT = frozenset({"node_modules", "site-packages", "build", "dist"})
"""Folders of packages and of what is made, beside hidden ones, environments of Python, and what git ignores."""
ENVIRONMENT = "pyvenv.cfg"
"""The file that a virtual environment has."""


def find(
    paths: Iterable[str | os.PathLike[str]], *, whole_project: bool = False
) -> tuple[list[Path], list[Diagnostic]]:
    """The files that `paths` name, each once: files as they are, folders with all ``*.grad.yaml`` below them.

    The diagnostics tell of links that lead out of their project, which are not followed, and of folders without any
    file, unless the folder is a `whole_project` that nobody has named. A file that is missing is left for `read` to
    report.
    """
    files: dict[str, Path] = {}
    mistakes: list[Diagnostic] = []
    for path in map(Path, paths):
        is_folder = os.path.isdir(path)
        below = spec_files(path, whole_project=whole_project) if is_folder else [path]
        if not below and not whole_project:
            message, help = f"there is no *{SUFFIX} file in this folder", f"spec files are named <topic>{SUFFIX}"
            mistakes.append(Diagnostic(str(path), 0, 0, 0, message, help))
        # A mistake is shown with its line: a stranger's link would have the user's own files printed, or written.
        named = Path(os.path.abspath(path if is_folder else path.parent))
        root = Path(os.path.realpath(root_of(named)))
        for file in below:
            real = os.path.realpath(file)
            if Path(real).is_relative_to(root) or named.is_relative_to(bundled_specs()):
                files.setdefault(real, file)
            else:
                message = f"this is a link that leads out of the project, to {real}"
                mistakes.append(Diagnostic(str(file), 0, 0, 0, message, "name the file itself"))
    return list(files.values()), mistakes


def spec_files(folder: Path, *, whole_project: bool = False) -> list[Path]:
    """The spec files below a folder, in order, without those that are left out.

    What the ``.gitignore`` files of the folders above say counts where nobody has named the folder (`whole_project`).
    """
    ignored, names = above(Path(os.path.abspath(folder))) if whole_project else (Ignored(), ())
    return sorted(_below(folder, ignored, names))


def _below(start: Path, ignored: Ignored, names: tuple[str, ...]) -> Iterator[Path]:
    todo = [(start, ignored, names)]
    while todo:
        folder, rules, names = todo.pop()
        rules = rules.entering(folder)
        try:
            with os.scandir(folder) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        except OSError:  # nobody may look into it, or it is gone
            continue
        if folder != start and ((ENVIRONMENT, False) in entries or folder.absolute() == bundled_specs()):
            continue
        for name, is_folder in entries:
            if is_folder:
                wanted = not name.startswith(".") and name not in LEFT_OUT
            else:
                wanted = name.endswith(SUFFIX) and not os.path.isdir(folder / name)
            if wanted and not rules.ignores((*names, name), is_folder):
                if is_folder:
                    todo.append((folder / name, rules, (*names, name)))
                else:
                    yield folder / name
