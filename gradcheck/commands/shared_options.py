"""Options that several commands have, what a shell completes of them, and what their values mean. Loads no model."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from gradcheck.report.files import FORMATS, list_formats
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


# ----------------------------------------------------------------------------------------- what a shell completes
def begun(words: Iterable[str], typed: str) -> list[CompletionItem]:
    """Those of `words` that begin as what is typed does."""
    return [CompletionItem(word) for word in words if word.startswith(typed)]


ID = re.compile(r"^\s*- (?:id: |\{id: )([\w.-]+)", re.MULTILINE)


def scenarios(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Ids of the project's scenarios and of gradcheck's own; and files, which the shell completes by itself."""
    from gradcheck.commands.specs import find_specs
    from gradcheck.support.pyproject import ConfigError
    from gradcheck.support.resources import bundled_files

    ids: dict[str, None] = {}
    try:
        files = find_specs(())[0]
    except ConfigError:
        files = []
    for file in [*files, *bundled_files()]:
        with suppress(OSError, ValueError):  # `gradcheck validate` says what is wrong with it
            ids |= dict.fromkeys(ID.findall(file.read_text(encoding="utf-8")))
    return [*begun(ids, typed), CompletionItem(typed, type="file")]


def codes_and_scenarios(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Codes of diagnoses, in small letters or capitals, and ids of scenarios."""
    from gradcheck.codes import CODES

    return begun(CODES, typed.upper()) or scenarios(context, parameter, typed)


def complete_backends(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Backends, and releases that have an environment; the last of those that commas separate."""
    from gradcheck.backends.base import BACKENDS
    from gradcheck.backends.environments import made_environments

    before = typed[: typed.rfind(",") + 1]
    return begun((before + name for name in [*BACKENDS, *made_environments()]), typed)


def complete_reports(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Formats of reports, each with its colon."""
    return begun((f"{name}:" for name in list_formats()), typed)


# ----------------------------------------------------------------------------------------------- the options
def as_one(argument: str, made: Any, *options: Decorator) -> Decorator:
    """Options that a command gets as one argument: a named tuple `made` of their values."""

    def given(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_one(**values: Any) -> Any:
            one = made(**{name: values.pop(name) for name in made._fields})
            return command(**{argument: one}, **values)

        return all_of(*options)(with_one)

    return given


def all_of(*options: Decorator) -> Decorator:
    """Several options, in the order in which help shows them."""

    def given(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return given


def backends_option(help: str) -> Decorator:
    """The option ``-b``, which `help` explains."""
    return click.option(
        "-b",
        "--backend",
        "backends",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_backends,
        help=help,
    )


bundled_option = click.option(
    "--bundled", is_flag=True, help="The specs that come with gradcheck, in place of the project's."
)
selection_options = all_of(
    click.option(
        "-k",
        "keywords",
        metavar="EXPR",
        help="Only cases whose names fit, as in 'tanh and not float32'.",
    ),
    click.option(
        "-t",
        "--tag",
        "tags",
        metavar="EXPR",
        help="Only scenarios whose tags fit, as in 'apply and not slow'.",
    ),
)
mode_option = click.option(
    "--mode", type=click.Choice(["auto", "probe", "full"]), default="auto", show_default=True,
    help="How much of every Jacobian is compared: projections, also the entries of a diagonal one, or all entries.",
)  # fmt: skip
order_option = click.option(
    "--order",
    type=click.IntRange(1, 2),
    default=1,
    help="2: the derivative of every gradient that is checked as well.",
)
effort_option = click.option(
    "--effort", type=click.Choice(["usual", "full"]), default="usual", show_default=True,
    help="How much is spent on naming what is wrong: about ten times the check itself, or what every entry takes.",
)  # fmt: skip
SEED = click.IntRange(0, 2**32 - 1)
TIME_LIMIT = click.FloatRange(0, min_open=True, max=86_400)

report_option = click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH", shell_complete=complete_reports,
    help=f"Write {', '.join(FORMATS)}, or a format of an installed package; repeatable.",
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
    "--allow-code", is_flag=True, envvar=VARIABLE, show_envvar=True,
    help="Run code in spec files that are not bundled with gradcheck.",
)  # fmt: skip


# ---------------------------------------------------------- what values mean, or a UserError that says what to write
def check_executor(executor: str) -> None:
    """See that there is such an executor."""
    if executor != "local" and not re.fullmatch("dask:.+", executor):
        raise UserError(
            f"--executor {executor}: write local, or dask:ADDRESS such as dask:tcp://10.0.0.1:8786"
        )


def report_files(
    texts: Sequence[str], formats: Collection[str] = (), in_folder: str = ""
) -> list[tuple[str, Path]]:
    """Return `report_file` of each text; no two may be written to one place.

    `formats` are the formats that there are; by default those of the reports of a run.
    """
    if texts and not formats:
        formats = list_formats()
    files = [report_file(text, formats, in_folder) for text in texts]
    for text, (_, path) in zip(texts, files, strict=True):
        if [other for _, other in files].count(path) > 1:
            raise UserError(f"--report {text}: another report is written to {path}, too")
    return files


def report_file(text: str, formats: Collection[str], in_folder: str = "") -> tuple[str, Path]:
    """The format and the path in ``FORMAT:PATH``; of the format `in_folder` the path is a folder."""
    name, _, path = text.partition(":")
    if name not in formats or not path:
        otherwise = (
            f"write FORMAT:PATH, such as json:results.json; the formats are {', '.join(formats)}"
        )
        suffix = Path(text).suffix.removeprefix(".") if not path else ""
        near = hint(name, formats if path else (), otherwise)
        meant = f"did you mean {suffix}:{text}?" if suffix in formats else near
        raise UserError(f"--report {text}: {meant}")
    file = Path(path)
    if path == "-":
        raise UserError(f"--report {text}: name a file; stdout is /dev/stdout")
    if file.is_dir() and name != in_folder:
        raise UserError(f"--report {text}: {path} is a folder: name a file in it")
    folder = file if name == in_folder else file.parent
    if not folder.absolute().is_dir():
        raise UserError(f"--report {text}: there is no folder {folder}: make it first")
    return name, file


def number_of_jobs(jobs: str | int) -> int:
    """How many cases run at a time: `jobs` is ``auto``, or a number from 1 on."""
    if jobs == "auto":
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not re.fullmatch("[0-9]{1,9}", str(jobs)) or int(jobs) < 1:
        raise UserError(f"-j {jobs}: write a number from 1 on, or auto")
    return int(jobs)


def shard_numbers(text: str) -> tuple[int, int]:
    """The two numbers of ``I/N``, the first from 1 to the second."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"--shard {text}: write I/N, such as 1/4 to 4/4")
    return int(match[1]), int(match[2])
