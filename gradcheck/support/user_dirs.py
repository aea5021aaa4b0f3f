"""The user's own folders for gradcheck, in which no project has a say, and whether a file is the user's.

The folders are where the XDG Base Directory Specification puts them, which says of the variables: a path that is not
absolute is to be ignored. Else ``XDG_CONFIG_HOME=`` would make a folder of the project the user's own.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path


def is_this_users(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process, as far as the system can tell."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _folder(variable: str, usual: str) -> Path:
    """The folder for gradcheck in the one that a variable names, or in the `usual` one of the user's home.

    Raises:
        OSError: there is no home folder.
    """
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named / "gradcheck"
    home = Path(os.path.expanduser("~"))
    if not home.is_absolute():
        raise FileNotFoundError(f"this user has no home folder; set {variable} to an absolute path")
    return home / usual / "gradcheck"


config_folder = partial(_folder, "XDG_CONFIG_HOME", ".config")
"""What the user has decided."""
state_folder = partial(_folder, "XDG_STATE_HOME", ".local/state")
"""What gradcheck keeps for itself."""
cache_folder = partial(_folder, "XDG_CACHE_HOME", ".cache")
"""What can be made anew at any time."""
