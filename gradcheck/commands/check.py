"""``gradcheck check``: one layer, named on the command line, without a spec file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.commands import completion
from gradcheck.commands.run_options import (
    color_option,
    layout_option,
    quiet_option,
    report_option,
    verbose_option,
)
from gradcheck.commands.specs import fail
from gradcheck.commands.world_options import world_options
from gradcheck.run.interpreter import EXECUTE
from gradcheck.run.worker_process import started_ahead
from gradcheck.spec.draft import DraftError, InWorld, draft, signature_of
from gradcheck.spec.input_words import FORM, InputWordError, input_words
from gradcheck.support import gc_pause as garbage


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
    except (DraftError, InputWordError) as error:
        raise fail(str(error)) from None
    with started_ahead(EXECUTE, backends[0] if backends else "numpy") as ahead:
        with garbage.kept():
            from gradcheck.commands.check_drafted import check_drafted  # here: while the worker gets ready
        code = check_drafted(
            text, signature, ahead, backends=backends, mode=mode, effort=effort, seed=seed, timeout=timeout,
            reports=reports, screen=(layout, color, verbose, quiet),
        )  # fmt: skip
    raise SystemExit(code)
