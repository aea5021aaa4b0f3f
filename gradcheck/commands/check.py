"""``gradcheck check``: one layer, named on the command line, without a spec file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.commands.layer_options import call_option, inputs_option, layer_named, reference_argument, world_options
from gradcheck.commands.run_options import (
    SEED,
    TIME_LIMIT,
    backends_option,
    effort_option,
    mode_option,
    order_option,
    report_option,
    screen_options,
)
from gradcheck.run.interpreter import EXECUTE
from gradcheck.run.worker_process import started_ahead
from gradcheck.spec.draft import InWorld, draft
from gradcheck.spec.input_words import InputWordError
from gradcheck.support import gc_pause as garbage


@click.command()
@reference_argument
@inputs_option
@call_option
@world_options
@backends_option(f"{', '.join(BACKENDS)}; repeatable.")
@order_option
@mode_option
@effort_option
@click.option("--seed", type=SEED, help="Seed of inputs and directions.")
@click.option("--timeout", type=TIME_LIMIT, metavar="SECONDS", help="Time limit (default: 60).")
@report_option
@screen_options
def check(
    reference: str,
    inputs: tuple[str, ...],
    call: str,
    world: InWorld,
    order: int,
    backends: tuple[str, ...],
    **how: Any,
) -> None:
    """Check the gradient of one layer of a module of yours; no spec file is needed.

    The module is looked for from the current folder and from the project's root. It is imported and run: naming it here
    is leave enough. Exit codes are those of `gradcheck run`.
    """
    signature, words = layer_named(reference, inputs, call)
    for word in words.values():
        if word.file and not Path(word.file).is_file():
            raise InputWordError(f"--input {word.name}=@{word.file}: there is no such file")
    text = draft(signature, words, call=call, order=order, comments=False, world=world)
    with started_ahead(EXECUTE, backends[0] if backends else "numpy") as ahead:
        with garbage.kept():
            from gradcheck.commands.check_drafted import check_drafted  # here: while the worker gets ready
        raise SystemExit(check_drafted(text, signature, ahead, backends=backends, **how))
