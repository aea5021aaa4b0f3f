"""``gradcheck new``: a scenario for a layer, to begin with."""

from __future__ import annotations

import click

from gradcheck.commands.init import MODELINE, SCHEMA_FILE
from gradcheck.commands.layer_options import call_option, inputs_option, reference_argument, world_options
from gradcheck.commands.specs import new_spec, write_spec
from gradcheck.spec.draft import InWorld, draft, signature_of
from gradcheck.spec.input_words import input_words


@click.command()
@reference_argument
@inputs_option
@call_option
@world_options
@click.option("-o", "--output", metavar="FILE", help="Where to write it (default: stdout); never over another file.")
def new(reference: str, inputs: tuple[str, ...], call: str, world: InWorld, output: str | None) -> None:
    """Write a commented scenario for a layer of a module of yours, from its signature. Nothing is imported."""
    text = draft(signature_of(reference), input_words(inputs), call=call, world=world)
    if output is None:
        click.echo(text, nl=False)
        return
    file = new_spec("-o", output)
    write_spec("-o", file, MODELINE + text if file.with_name(SCHEMA_FILE).is_file() else text)
