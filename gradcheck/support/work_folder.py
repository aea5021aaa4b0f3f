"""``.gradcheck``, the folder in the current folder to which runs write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

FOLDER_PATH = Path(".gradcheck")
"""Its path relative to the current folder."""


def make_folder(path: Path = FOLDER_PATH) -> Path:
    """Make the folder if it does not exist, with a file that makes git ignore it. Raises
    OSError.
    """
    path.mkdir(exist_ok=True)
    with suppress(FileExistsError), (path / ".gitignore").open("x") as file:
        file.write("*\n")
    return path
