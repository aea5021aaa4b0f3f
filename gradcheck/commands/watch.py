"""``gradcheck run --watch``: the same run again whenever a file that it may depend on changes."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from gradcheck.commands.exits import INTERRUPTED
from gradcheck.commands.specs import fail, is_path, project_root
from gradcheck.config import load_project
from gradcheck.run.interpreter import python
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe

SUFFIXES = (".py", ".grad.yaml", "pyproject.toml")
"""Ends of the names of files that a run may depend on."""


def run_at_changes(names: Sequence[str]) -> int:
    """Run now and after every change, each time in a process of its own, which sees files as they are then.

    Watched are the paths among `names`, the paths of the configuration, and the project's root.

    Returns:
        The exit code, once Ctrl-C has been pressed.

    Raises:
        SystemExit: the package watchfiles is missing.
    """
    try:
        import watchfiles  # optional: nothing else needs it
    except ImportError:
        raise fail('--watch needs the package watchfiles: pip install "gradcheck[watch]"') from None
    project = load_project()
    folder = project_root()
    named = [Path(name) for name in (*filter(is_path, names), *project.config.paths)]
    places = [path for path in {folder, *named} if path.exists()]
    quiet = watchfiles.DefaultFilter()  # leaves .git, .venv, __pycache__ and the like out
    changed: queue.SimpleQueue[set[str]] = queue.SimpleQueue()

    def look() -> None:  # in a thread of its own, so that nothing that changes during a run is missed
        for changes in watchfiles.watch(
            *places, watch_filter=lambda kind, path: path.endswith(SUFFIXES) and quiet(kind, path)
        ):
            changed.put({path for _, path in changes})

    threading.Thread(target=look, daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_once()
        while True:
            paths = changed.get()
            click.echo(f"gradcheck: {', '.join(sorted(safe(shown_path(path)) for path in paths))} changed", err=True)
            run_once()
    except KeyboardInterrupt:
        return INTERRUPTED


def run_once() -> None:
    """The command of this process without ``--watch``, to its end.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed meanwhile; the run has ended in order.
    """
    rest = [argument for argument in sys.argv[1:] if argument != "--watch"]
    pressed = False

    def note(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True

    before = signal.signal(signal.SIGINT, note)
    try:
        subprocess.run([*python("gradcheck.__main__"), *rest], check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
