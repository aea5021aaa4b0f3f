"""The releases of Paddle that the user has environments of, from before each test gets a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from gradcheck.backends import environments
from gradcheck.support.resources import release_paths

RELEASES = tuple(release_paths())
"""Those that have a release file."""
FOLDER = environments.folder()


def variables() -> dict[str, str]:
    """Of a process that finds what this one imports, and the user's environments."""
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    return {**os.environ, "PYTHONPATH": path, environments.FOLDER: str(FOLDER)}


def lacking(release: str) -> str:
    """Why a release cannot be run; empty if it can."""
    there = (FOLDER / f"paddle@{release}" / environments.COMPLETE).is_file()
    return "" if there else f"no environment: `gradcheck backends add paddle@{release}` makes it"


def gradcheck(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``gradcheck`` with those arguments, run in a folder."""
    command = [sys.executable, "-m", "gradcheck", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables(), cwd=folder, check=False)
