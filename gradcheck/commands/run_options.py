"""Options that ``gradcheck run`` shares with others, and what the values of its own mean."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from gradcheck.commands import completion
from gradcheck.commands.specs import fail
from gradcheck.report.files import FORMATS
from gradcheck.support.suggest import hint

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def as_one(argument: str, made: Any, *options: Decorator) -> Decorator:
    """Options that a command gets as one argument: a named tuple `made` of their values."""

    def given(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_one(**values: Any) -> Any:
            one = made(**{name: values.pop(name) for name in made._fields})
            return command(**{argument: one}, **values)

        decorated: Callable[..., Any] = with_one
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return given


def backends_option(help: str) -> Decorator:
    """The option ``-b``, which `help` explains."""
    return click.option(
        "-b", "--backend", "backends", multiple=True, metavar="NAME", shell_complete=completion.complete_backends,
        help=help,
    )  # fmt: skip


mode_option = click.option(
    "--mode", type=click.Choice(["auto", "probe", "full"]), default="auto", show_default=True,
    help="How much of every Jacobian is compared: projections, also the entries of a diagonal one, or all entries.",
)  # fmt: skip
order_option = click.option(
    "--order", type=click.IntRange(1, 2), default=1, help="2: the derivative of every gradient that is checked as well."
)
effort_option = click.option(
    "--effort", type=click.Choice(["usual", "full"]), default="usual", show_default=True,
    help="How much is spent on naming what is wrong: about ten times the check itself, or what every entry takes.",
)  # fmt: skip
SEED = click.IntRange(0, 2**32 - 1)
TIME_LIMIT = click.FloatRange(0, min_open=True, max=86_400)

report_option = click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH", shell_complete=completion.reports,
    help=f"Write {', '.join(FORMATS)}; repeatable.",
)  # fmt: skip
color_option = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto",
    help="Whether to use colours; auto: on a terminal, unless NO_COLOR is set.",
)  # fmt: skip


class ScreenOptions(NamedTuple):
    """How a run is shown."""

    layout: str = "auto"
    color: str = "auto"
    verbose: bool = False
    quiet: bool = False


screen_options = as_one(
    "screen", ScreenOptions,
    click.option(
        "--format", "layout", type=click.Choice(["auto", "rich", "plain"]), default="auto",
        help="What is shown: a table and panels (rich), or a line for each result (plain); auto: rich on a terminal.",
    ),
    color_option,
    click.option("-v", "--verbose", is_flag=True, help="Show every result, and the details of those that passed."),
    click.option("-q", "--quiet", is_flag=True, help="Show only failures and the summary."),
)  # fmt: skip
VARIABLE = "GRADCHECK_ALLOW_CODE"
allow_code_option = click.option(
    "--allow-code",
    is_flag=True,
    envvar=VARIABLE,
    show_envvar=True,
    help="Run code in spec files that are not bundled with gradcheck.",
)


def check_executor(executor: str) -> None:
    """See that there is such an executor. Raises SystemExit: there is none."""
    if executor != "local" and not re.fullmatch("dask:.+", executor):
        raise fail(f"--executor {executor}: write local, or dask:ADDRESS such as dask:tcp://10.0.0.1:8786")


def report_file(text: str) -> tuple[str, Path]:
    """The format and the path in ``FORMAT:PATH``. Raises SystemExit: there is no such format, or no such folder."""
    name, _, path = text.partition(":")
    if name not in FORMATS or not path:
        otherwise = f"write FORMAT:PATH, such as json:results.json; the formats are {', '.join(FORMATS)}"
        suffix = Path(text).suffix.removeprefix(".") if not path else ""
        near = hint(name, FORMATS if path else (), otherwise)
        meant = f"did you mean {suffix}:{text}?" if suffix in FORMATS else near
        raise fail(f"--report {text}: {meant}")
    if Path(path).is_dir():
        raise fail(f"--report {text}: {path} is a folder: name a file in it")
    if not Path(path).absolute().parent.is_dir():
        raise fail(f"--report {text}: there is no folder {Path(path).parent}: make it first")
    return name, Path(path)


def number_of_jobs(jobs: str | int) -> int:
    """How many cases run at a time. Raises SystemExit: `jobs` is neither ``auto`` nor a number from 1 on."""
    if jobs == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not re.fullmatch("[0-9]{1,9}", str(jobs)) or int(jobs) < 1:
        raise fail(f"-j {jobs}: write a number from 1 on, or auto")
    return int(jobs)


def shard_numbers(text: str) -> tuple[int, int]:
    """The two numbers of ``I/N``. Raises SystemExit: it is not that, or I is not from 1 to N."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise fail(f"--shard {text}: write I/N, such as 1/4 to 4/4")
    return int(match[1]), int(match[2])
