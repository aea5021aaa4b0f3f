"""The user's own folders for gradcheck, in which no project has a say, and whether a file is the user's.

The folders are where the XDG Base Directory Specification puts them, which says of the variables: a path that is not
absolute is to be ignored. Else ``XDG_CONFIG_HOME=`` would make a folder of the project the user's own.
"""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """What the user has decided: ``$XDG_CONFIG_HOME/gradcheck``, or ``~/.config/gradcheck``.

    Raises:
        OSError: there is no home folder.
    """
    return _folder("XDG_CONFIG_HOME", ".config")


def state_folder() -> Path:
    """What gradcheck keeps for itself: ``$XDG_STATE_HOME/gradcheck``, or ``~/.local/state/gradcheck``.

    Raises:
        OSError: there is no home folder.
    """
    return _folder("XDG_STATE_HOME", ".local/state")


def cache_folder() -> Path:
    """What can be made anew at any time: ``$XDG_CACHE_HOME/gradcheck``, or ``~/.cache/gradcheck``.

    Raises:
        OSError: there is no home folder.
    """
    return _folder("XDG_CACHE_HOME", ".cache")


def is_this_users(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process, as far as the system can tell."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _folder(variable: str, usual: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named / "gradcheck"
    home = Path(os.path.expanduser("~"))
    if not home.is_absolute():
        raise FileNotFoundError(f"this user has no home folder; set {variable} to an absolute path")
    return home / usual / "gradcheck"
