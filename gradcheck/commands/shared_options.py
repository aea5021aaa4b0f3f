"""Options that several commands share, their completion in a shell, and the parsing of their
values.

Loads no model.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, get_args

import click
from click.shell_completion import CompletionItem

from gradcheck.spec.literals import FrameworkName
from gradcheck.support.user_error import UserError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


# -------------------------------------------------------------------------- completion in a shell
def begun(words: Iterable[str], typed: str) -> list[CompletionItem]:
    """Return the words that start with the typed text."""
    return [CompletionItem(word) for word in words if word.startswith(typed)]


ID = re.compile(r"^\s*- (?:id: |\{id: )([\w.-]+)", re.MULTILINE)


def scenarios(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Ids of scenarios, both the project's and gradcheck's own; the shell itself completes
    files.
    """
    from gradcheck.commands.specs import find_specs
    from gradcheck.support.pyproject import ConfigError
    from gradcheck.support.resources import bundled_files

    files = bundled_files()
    with suppress(ConfigError):
        files = [*find_specs(())[0], *files]
    ids: dict[str, None] = {}
    for file in files:
        with suppress(OSError, ValueError):  # `gradcheck validate` reports what is wrong with it
            ids |= dict.fromkeys(ID.findall(file.read_text(encoding="utf-8")))
    return [*begun(ids, typed), CompletionItem(typed, type="file")]


def codes_and_scenarios(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Diagnosis codes, in lower or upper case, and ids of scenarios."""
    from gradcheck.codes import CODES

    return begun(CODES, typed.upper()) or scenarios(context, parameter, typed)


def complete_backends(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Completions for the last of several comma-separated names: backends, and releases that have
    an environment.
    """
    from gradcheck.backends.base import BACKENDS
    from gradcheck.backends.environments import made_environments

    before = typed[: typed.rfind(",") + 1]
    return begun((before + name for name in [*BACKENDS, *made_environments()]), typed)


# ------------------------------------------------------------------------------------- the options
def as_one(argument: str, kind: Any, *options: Decorator) -> Decorator:
    """Options that a command gets as one argument: a named tuple of type `kind` with their
    values.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_one(**values: Any) -> Any:
            group = kind(**{name: values.pop(name) for name in kind._fields})
            if getattr(group, "verbose", False) and getattr(group, "quiet", False):
                raise UserError("-v and -q exclude each other: remove one of the two")
            return command(**{argument: group}, **values)

        return all_of(*options)(with_one)

    return decorate


def all_of(*options: Decorator) -> Decorator:
    """Several options, in the order in which help shows them."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


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


def read_expression(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> str | None:
    """Return the expression of ``-k`` or ``-t``. Raises UserError: it is given twice."""
    if len(texts) > 1:
        option, one = parameter.opts[0], shlex.quote(" or ".join(texts))
        raise UserError(f"{option} is given {len(texts)} times: write one, as in {option} {one}")
    return texts[0] if texts else None


selection_options = all_of(
    click.option(
        "-k",
        "keywords",
        multiple=True,
        callback=read_expression,
        metavar="EXPR",
        help="Only cases whose names match, such as 'tanh and not float32'.",
    ),
    click.option(
        "-t",
        "--tag",
        "tags",
        multiple=True,
        callback=read_expression,
        metavar="EXPR",
        help="Only scenarios whose tags match, such as 'apply and not slow'.",
    ),
)


def framework_option(help: str) -> Decorator:
    """The option ``--framework``, which `help` explains."""
    return click.option("--framework", type=click.Choice(get_args(FrameworkName)), help=help)


mode_option = click.option(
    "--mode", type=click.Choice(["auto", "probe", "full"]), default="auto", show_default=True,
    help="How much of every Jacobian is compared: projections, also the entries of a diagonal "
         "one, or all entries.",
)  # fmt: skip
order_option = click.option(
    "--order",
    type=click.IntRange(1, 2),
    default=1,
    help="2: also check the derivative of every gradient.",
)
effort_option = click.option(
    "--effort", type=click.Choice(["least", "usual", "full"]), default="usual", show_default=True,
    help="Effort for diagnosing a failure: about ten times the check and the search for a fix; "
         "without that search; or every entry.",
)  # fmt: skip
SEED = click.IntRange(0, 2**32 - 1)
TIME_LIMIT = click.FloatRange(0, min_open=True, max=86_400)

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
        help="Output: a table and panels (rich), or a line per result (plain); auto: "
             "rich on a terminal.",
    ),
    color_option,
    click.option("-v", "--verbose", is_flag=True, help="Show every result, and the details of "
                                                       "those that passed."),
    click.option("-q", "--quiet", is_flag=True, help="Show only failures and the summary."),
)  # fmt: skip
VARIABLE = "GRADCHECK_ALLOW_CODE"
allow_code_option = click.option(
    "--allow-code", is_flag=True, envvar=VARIABLE, show_envvar=True,
    help="Run code in spec files that are not bundled with gradcheck.",
)  # fmt: skip


# ------------------------------------------ values, or a UserError that says what to write
def number_of_jobs(jobs: str | int) -> int:
    """Return how many cases run at a time: `jobs` is ``auto``, or a number from 1 on."""
    if jobs == "auto":
        return cores()
    if not re.fullmatch("0*[1-9][0-9]{0,8}", str(jobs)):
        raise UserError(f"-j {jobs}: write a number from 1 on, or auto")
    return int(jobs)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
