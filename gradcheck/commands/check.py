"""``gradcheck check``: one layer, named on the command line, without a spec file."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.case.case import TIMEOUT
from gradcheck.commands import completion
from gradcheck.commands.choose import chosen_backends
from gradcheck.commands.run_cases import exit_code, make_pool, run_all, write_reports
from gradcheck.commands.run_options import (
    color_option,
    layout_option,
    quiet_option,
    report_file,
    report_option,
    verbose_option,
)
from gradcheck.commands.screen import make_screen
from gradcheck.commands.specs import fail
from gradcheck.commands.world_options import world_options
from gradcheck.config import Config
from gradcheck.run.plan import plan
from gradcheck.run.supervisor import ExecutorError
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.draft import DraftError, InWorld, draft, signature_of
from gradcheck.spec.input_words import FORM, InputWordError, input_words
from gradcheck.spec.read import read_bytes


@click.command()
@click.argument("reference", metavar="PACKAGE.MODULE:LAYER")
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar=FORM,
    help="An input: a shape and what else is said of it, such as x=2x3, x=5:float32~0.1..3 or k=4:below=5; repeatable.",
)  # fmt: skip
@click.option(
    "--call", default="", metavar="CODE", help="The expression that calls the layer, such as 'Own.apply(x, 3)'."
)
@world_options
@click.option(
    "-b", "--backend", "backends", multiple=True, metavar="NAME", shell_complete=completion.complete_backends,
    help=f"{', '.join(BACKENDS)}; repeatable.",
)  # fmt: skip
@click.option("--order", type=click.IntRange(1, 2), default=1, help="2: the derivative of the gradient as well.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "probe", "full"]),
    default="auto",
    show_default=True,
    help="As of `gradcheck run`.",
)
@click.option(
    "--effort",
    type=click.Choice(["usual", "full"]),
    default="usual",
    show_default=True,
    help="As of `gradcheck run`.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of inputs and directions.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True, max=86_400),
    metavar="SECONDS",
    help="Time limit (default: 60).",
)
@report_option
@layout_option
@color_option
@verbose_option
@quiet_option
def check(
    reference: str,
    inputs: tuple[str, ...],
    call: str,
    world: InWorld,
    backends: tuple[str, ...],
    order: int,
    mode: Literal["auto", "probe", "full"],
    effort: Literal["usual", "full"],
    seed: int | None,
    timeout: float | None,
    reports: tuple[str, ...],
    layout: str,
    color: str,
    verbose: bool,
    quiet: bool,
) -> None:
    """Check the gradient of one layer of a module of yours; no spec file is needed.

    The module is looked for from the current folder and from the project's root. It is imported and run: naming it here
    is leave enough. Exit codes are those of `gradcheck run`.
    """
    try:
        signature = signature_of(reference)
        words = input_words(inputs)
        if not call:
            signature.require(words)
        for word in words.values():
            if word.file and not Path(word.file).is_file():
                raise InputWordError(f"--input {word.name}=@{word.file}: there is no such file")
        text = draft(signature, words, call=call, order=order, comments=False, world=world)
        spec = read_bytes(text.encode(), str(Path.cwd() / reference))  # modules are looked for from its folder
    except (DraftError, InputWordError) as error:
        raise fail(str(error)) from None
    except SpecError as error:
        said = "; ".join("; ".join(filter(None, [one.message, one.help])) for one in error.diagnostics)
        raise fail(f"{reference}: {said}") from None
    places = chosen_backends(backends, [], Config.model_construct(), {}, True)
    scenario = spec.scenarios[0].model_copy(update={"line": signature.line, "column": 1})
    spec = spec.model_copy(update={"scenarios": (scenario,)})
    cases = plan(
        [spec], list(places), seed=seed, mode=mode, effort=effort,
        timeout=timeout, default_timeout=TIMEOUT, places=places,
    )  # fmt: skip
    files = [report_file(report) for report in reports]
    again = shlex.join(["gradcheck", *sys.argv[1:]])
    screen, began = make_screen(layout, color, verbose, quiet, again), datetime.now(UTC)
    try:
        results, interrupted = run_all(cases, make_pool("local", 1, True), screen)
    except ExecutorError as error:
        raise fail(str(error)) from None
    write_reports(files, cases, results, began, again)
    raise SystemExit(exit_code(results, interrupted))
