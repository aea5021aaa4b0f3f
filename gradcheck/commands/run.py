"""``gradcheck run``: its options, and ``--watch``."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.case.naming import MEMORY, TIMEOUT
from gradcheck.commands import shared_options as options
from gradcheck.commands.errors import INTERRUPTED
from gradcheck.commands.run_cases import run_scenarios
from gradcheck.commands.specs import is_path, project_root
from gradcheck.run.interpreter import python
from gradcheck.run.limits import shown_size
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...", shell_complete=options.scenarios)
@options.backends_option(
    f"{', '.join(BACKENDS)}, or a release such as paddle@3.0.0 (see `gradcheck backends`); repeatable."
)
@options.bundled_option
@options.selection_options
@click.option(
    "-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core."
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@options.mode_option
@options.order_option
@options.effort_option
@click.option(
    "--seed", type=options.SEED, help="Seed of all cases, in place of the scenarios' own."
)
@click.option(
    "--timeout", type=options.TIME_LIMIT, metavar="SECONDS",
    help=f"Time limit of a case, in place of the scenarios' own (default: {TIMEOUT:g}).",
)  # fmt: skip
@click.option(
    "--memory",
    metavar="SIZE",
    help=f"Memory limit of a case, such as 512M or 2G (default: {shown_size(MEMORY)}).",
)
@click.option("--lf", is_flag=True, help="Only the cases that failed in the last run.")
@click.option(
    "--watch",
    is_flag=True,
    help="Run again whenever a spec file or a Python file changes, until Ctrl-C.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the last run: only cases that have no result yet are run.",
)
@click.option(
    "--shard", "part", metavar="I/N", help="Only part I of N; a case is always in the same one."
)
@click.option(
    "--executor",
    default="local",
    metavar="local|dask:ADDRESS",
    help="Where cases run: on this machine, or on a Dask cluster.",
)
@options.allow_code_option
@click.option(
    "--baseline",
    metavar="FILE",
    help="Known failures, which count as expected while nothing new is wrong in them.",
)
@click.option(
    "--baseline-update", is_flag=True, help="Write the failures of this run into FILE as well."
)
@click.option("--baseline-prune", is_flag=True, help="Remove from FILE what no longer fails.")
@click.option(
    "--require-backend", is_flag=True, help="A backend that cannot be used is an error, not a SKIP."
)
@options.report_option
@options.screen_options
@click.option(
    "--durations",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Show the N slowest cases at the end.",
)
def run(watch: bool, **asked: Any) -> None:
    """Run scenarios and check their gradients.

    A PATH is a spec file or a folder of them, or one scenario of a file (FILE::ID, FILE:LINE); an ID is a scenario or
    a case (ID@BACKEND) in those files. Without a PATH,
    the files of the project are run: what [tool.gradcheck] names, or else all *.grad.yaml files below its root; an ID
    that these have not may be one of gradcheck's own.

    Exit code: 0 all as expected, 1 something failed, 2 usage or an invalid spec, 3 a bug in gradcheck, 5 nothing
    selected, 130 interrupted.
    """
    if (asked["baseline_update"] or asked["baseline_prune"]) and not asked["baseline"]:
        raise UserError("--baseline-update and --baseline-prune need --baseline FILE")
    options.check_executor(asked["executor"])
    if watch:
        raise SystemExit(run_at_changes(asked["names"]))
    if asked["lf"] and asked["resume"]:
        raise UserError(
            "--lf runs failed cases again, and --resume takes them over: use one of them"
        )
    run_scenarios(**asked)


SUFFIXES = (".py", ".grad.yaml", "pyproject.toml")
"""Ends of the names of files that a run may depend on."""


def run_at_changes(names: Sequence[str]) -> int:
    """Run now and after every change, each time in a process of its own, which sees files as they are then.

    Watched are the paths among `names`, the paths of the configuration, and the project's root.

    Returns:
        The exit code, once Ctrl-C has been pressed.
    """
    from gradcheck.config import load_project

    try:
        import watchfiles  # optional: nothing else needs it
    except ImportError:
        raise UserError(
            '--watch needs the package watchfiles: pip install "gradcheck[watch]"'
        ) from None
    project = load_project()
    folder = project_root()
    named = [Path(name) for name in (*filter(is_path, names), *project.config.paths)]
    places = [path for path in {folder, *named} if path.exists()]
    quiet = watchfiles.DefaultFilter()  # leaves .git, .venv, __pycache__ and the like out
    changed: queue.SimpleQueue[set[str]] = queue.SimpleQueue()

    def look() -> (
        None
    ):  # in a thread of its own, so that nothing that changes during a run is missed
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
            click.echo(
                f"gradcheck: {', '.join(sorted(safe(shown_path(path)) for path in paths))} changed",
                err=True,
            )
            run_once()
    except KeyboardInterrupt:
        return INTERRUPTED


def run_once() -> None:
    """The command of this process without ``--watch``, to its end.

    Raises KeyboardInterrupt: Ctrl-C was pressed meanwhile; the run has ended in order.
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
