"""``gradcheck run --watch``: run again whenever a file changes."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from gradcheck.commands.errors import INTERRUPTED
from gradcheck.commands.specs import parse_target, project_root
from gradcheck.config import load_project
from gradcheck.run.interpreter import python
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError

SUFFIXES = (".py", ".grad.yaml", "pyproject.toml")
"""Suffixes of files that a run may depend on."""


def run_at_changes(names: Sequence[str]) -> int:
    """Run now and after every change, each time in a new process, which reads the current files.

    The paths among `names`, the paths of the configuration, and the project's root are watched.

    Returns:
        The exit code after Ctrl-C.
    """
    try:
        import watchfiles  # optional: nothing else needs it
    except ImportError:
        raise UserError("--watch needs the package watchfiles: pip install watchfiles") from None
    paths = {project_root(), *map(Path, load_project().config.paths)}
    paths |= {Path(target.path) for target in map(parse_target, names) if target.path}
    existing = [path for path in paths if path.exists()]
    is_relevant = watchfiles.DefaultFilter()  # leaves .git, .venv, __pycache__ and the like out
    changed: queue.SimpleQueue[set[str]] = queue.SimpleQueue()

    def watch() -> None:
        # In another thread, so that no change during a run is missed.
        for changes in watchfiles.watch(*existing, watch_filter=is_relevant):
            files = {path for _, path in changes if path.endswith(SUFFIXES)}
            if files:
                changed.put(files)

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_once()
        while True:
            files = ", ".join(sorted(safe(shown_path(path)) for path in changed.get()))
            click.echo(f"gradcheck: {files} changed", err=True)
            run_once()
    except KeyboardInterrupt:
        return INTERRUPTED


def run_once() -> None:
    """Run the command of this process without ``--watch``.

    Raises KeyboardInterrupt: Ctrl-C was pressed meanwhile; the run has ended cleanly.
    """
    rest = [argument for argument in sys.argv[1:] if argument != "--watch"]
    pressed: list[int] = []
    # Not ignored, because the new process would inherit that; and recorded, because that process
    # may not have started yet.
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        done = subprocess.run([*python("gradcheck.__main__"), *rest], check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed or done.returncode in (INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
