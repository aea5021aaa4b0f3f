"""``gradcheck check`` and ``new``: a layer named on the command line is checked, or gets a scenario to begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.commands import shared_options as options
from gradcheck.commands.init import MODELINE, SCHEMA_FILE
from gradcheck.commands.run_cases import check_drafted
from gradcheck.commands.specs import new_spec, write_spec
from gradcheck.spec.draft import InWorld, Signature, draft, signature_of
from gradcheck.spec.input_words import FORM, InputWord, InputWordError, input_words

layer_options = options.all_of(
    click.argument("reference", metavar="PACKAGE.MODULE:LAYER"),
    click.option(
        "-i", "--input", "inputs", multiple=True, metavar=FORM,
        help="An input: a shape and what else is said of it, such as x=2x3, x=5:float32~0.1..3 or k=4:below=5; "
        "repeatable.",
    ),
    click.option(
        "--call", default="", metavar="CODE", help="The expression that calls the layer, such as 'Own.apply(x, 3)'."
    ),
)  # fmt: skip
world_options = options.as_one(
    "world", InWorld,
    click.option("--world", default="", metavar="RANKS", help="Run the layer on so many ranks: 4, or mp=2,dp=2."),
    click.option(
        "--outputs", default="", metavar="WORD[,WORD]",
        help="In a world: split (default) or replicated, for all outputs or one for each.",
    ),
    click.option(
        "--random", type=click.Choice(["by-rank", "same"]),
        help="In a world: whether each rank draws its own random numbers.",
    ),
)  # fmt: skip


def layer_named(
    reference: str, inputs: Sequence[str], call: str, letters: bool = False
) -> tuple[Signature, Mapping[str, InputWord]]:
    """The signature of a layer, and its inputs: without a `call` all those that it needs.

    `letters` says whether sizes may be letters. Raises DraftError, InputWordError: there is no such layer, or it has no
    such inputs.
    """
    signature, words = signature_of(reference), input_words(inputs, letters)
    if not call:
        signature.require(words)
    return signature, words


@click.command()
@layer_options
@world_options
@options.backends_option(f"{', '.join(BACKENDS)}; repeatable.")
@options.order_option
@options.mode_option
@options.effort_option
@click.option("--seed", type=options.SEED, help="Seed of inputs and directions.")
@click.option(
    "--timeout", type=options.TIME_LIMIT, metavar="SECONDS", help="Time limit (default: 60)."
)
@options.report_option
@options.screen_options
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
    raise SystemExit(check_drafted(text, signature, backends=backends, **how))


@click.command()
@layer_options
@world_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write it (default: stdout); never over another file.",
)
def new(
    reference: str, inputs: tuple[str, ...], call: str, world: InWorld, output: str | None
) -> None:
    """Write a commented scenario for a layer of a module of yours, from its signature. Nothing is imported."""
    text = draft(signature_of(reference), input_words(inputs), call=call, world=world)
    if output is None:
        click.echo(text, nl=False)
        return
    file = new_spec("-o", output)
    write_spec("-o", file, MODELINE + text if file.with_name(SCHEMA_FILE).is_file() else text)
