"""``gradcheck run``: its options. Loads little, so that the first worker is started before the rest is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.case.naming import MEMORY, TIMEOUT
from gradcheck.commands import completion
from gradcheck.commands.run_options import (
    SEED,
    TIME_LIMIT,
    allow_code_option,
    backends_option,
    check_executor,
    effort_option,
    mode_option,
    order_option,
    report_option,
    screen_options,
)
from gradcheck.commands.specs import bundled_option, fail, selection_options
from gradcheck.run.interpreter import EXECUTE
from gradcheck.run.limits import shown_size
from gradcheck.run.worker_process import started_ahead
from gradcheck.support import gc_pause as garbage
from gradcheck.support.pyproject import ConfigError, table_of


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...", shell_complete=completion.scenarios)
@backends_option(f"{', '.join(BACKENDS)}, or a release such as paddle@3.0.0 (see `gradcheck backends`); repeatable.")
@bundled_option
@selection_options
@click.option("-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@mode_option
@order_option
@effort_option
@click.option("--seed", type=SEED, help="Seed of all cases, in place of the scenarios' own.")
@click.option(
    "--timeout", type=TIME_LIMIT, metavar="SECONDS",
    help=f"Time limit of a case, in place of the scenarios' own (default: {TIMEOUT:g}).",
)  # fmt: skip
@click.option(
    "--memory", metavar="SIZE", help=f"Memory limit of a case, such as 512M or 2G (default: {shown_size(MEMORY)})."
)
@click.option("--lf", is_flag=True, help="Only the cases that failed in the last run.")
@click.option("--watch", is_flag=True, help="Run again whenever a spec file or a Python file changes, until Ctrl-C.")
@click.option("--resume", is_flag=True, help="Go on with the last run: only cases that have no result yet are run.")
@click.option("--shard", "part", metavar="I/N", help="Only part I of N; a case is always in the same one.")
@click.option(
    "--executor",
    default="local",
    metavar="local|dask:ADDRESS",
    help="Where cases run: on this machine, or on a Dask cluster.",
)
@allow_code_option
@click.option(
    "--baseline", metavar="FILE", help="Known failures, which count as expected as long as they stay the same."
)
@click.option("--baseline-update", is_flag=True, help="Write the failures of this run into FILE as well.")
@click.option("--baseline-prune", is_flag=True, help="Remove from FILE what no longer fails.")
@click.option("--require-backend", is_flag=True, help="A backend that cannot be used is an error, not a SKIP.")
@report_option
@screen_options
@click.option(
    "--durations", type=click.IntRange(0), default=0, metavar="N", help="Show the N slowest cases at the end."
)
def run(watch: bool, **options: Any) -> None:
    """Run scenarios and check their gradients.

    A PATH is a spec file or a folder of them, or one scenario of a file (FILE::ID, FILE:LINE); an ID is a scenario or
    a case (ID@BACKEND) in those files. Without a PATH,
    the files of the project are run: what [tool.gradcheck] names, or else all *.grad.yaml files below its root; an ID
    that these have not may be one of gradcheck's own.

    Exit code: 0 all as expected, 1 something failed, 2 usage or an invalid spec, 3 a bug in gradcheck, 5 nothing
    selected, 130 interrupted.
    """
    if (options["baseline_update"] or options["baseline_prune"]) and not options["baseline"]:
        raise fail("--baseline-update and --baseline-prune need --baseline FILE")
    check_executor(options["executor"])
    if watch:
        from gradcheck.commands.watch import run_at_changes

        raise SystemExit(run_at_changes(options["names"]))
    if options["lf"] and options["resume"]:
        raise fail("--lf runs failed cases again, and --resume takes them over: use one of them")
    first = first_backend(options["backends"]) if options["executor"] == "local" else ""
    with started_ahead(EXECUTE, first) as ahead:
        with garbage.kept():
            from gradcheck.commands.run_scenarios import run_scenarios  # here: while the worker gets ready
        run_scenarios(ahead, **options)


def first_backend(named: Sequence[str]) -> str:
    """The backend that the first case is likely on: of those named, else of the project's, else numpy."""
    with suppress(ConfigError):  # which is told in its turn
        found = None if named else table_of(Path.cwd())
        match named or (found and found[1].get("backends")) or ["numpy"]:
            case [str(first), *_]:
                return first
    return ""
