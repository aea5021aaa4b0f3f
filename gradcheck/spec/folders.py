"""The spec files below a folder: no links of folders are followed, and what others have put there is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gradcheck.gitignore import Ignored, above
from gradcheck.resources import bundled_specs

SUFFIX = ".grad.yaml"
LEFT_OUT = frozenset({"node_modules", "site-packages", "build", "dist"})
"""Folders of packages and of what is made, beside hidden ones, environments of Python, and what git ignores."""
ENVIRONMENT = "pyvenv.cfg"
"""The file that a virtual environment has."""


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
