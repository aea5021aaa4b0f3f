"""``.gradcheck``, the folder that a run leaves in the current folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

FOLDER_PATH = Path(".gradcheck")
"""Its place below the current folder."""


def make_folder(path: Path = FOLDER_PATH) -> Path:
    """Make the folder if it is not there, with a file that has git ignore it. Raises OSError."""
    path.mkdir(exist_ok=True)
    with suppress(FileExistsError), (path / ".gitignore").open("x") as file:
        file.write("*\n")
    return path
