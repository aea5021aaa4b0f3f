"""``gradcheck new``: a scenario for a layer, to begin with."""

from __future__ import annotations

import re
from pathlib import Path

import click

from gradcheck.commands.init import MODELINE, SCHEMA_FILE
from gradcheck.commands.specs import fail
from gradcheck.commands.world_options import world_options
from gradcheck.spec.draft import DraftError, InWorld, draft, signature_of
from gradcheck.spec.input_words import FORM, InputWordError, input_words


@click.command()
@click.argument("reference", metavar="PACKAGE.MODULE:LAYER")
@click.option("-i", "--input", "inputs", multiple=True, metavar=FORM, help="As of `gradcheck check`.")
@click.option("--call", default="", metavar="CODE", help="As of `gradcheck check`.")
@world_options
@click.option("-o", "--output", metavar="FILE", help="Where to write it (default: stdout); never over another file.")
def new(reference: str, inputs: tuple[str, ...], call: str, world: InWorld, output: str | None) -> None:
    """Write a commented scenario for a layer of a module of yours, from its signature. Nothing is imported."""
    try:
        signature = signature_of(reference)
        text = draft(signature, input_words(inputs), call=call, world=world)
    except (DraftError, InputWordError) as error:
        raise fail(str(error)) from None
    if output is None:
        click.echo(text, nl=False)
        return
    if not output.endswith(".grad.yaml"):
        stem = re.sub(r"(\.grad)?\.ya?ml$", "", output)
        raise fail(f"-o {output}: spec files are named <topic>.grad.yaml: write {stem}.grad.yaml")
    if not Path(output).absolute().parent.is_dir():
        raise fail(f"-o {output}: there is no folder {Path(output).parent}: make it first")
    if Path(output).with_name(SCHEMA_FILE).is_file():
        text = MODELINE + text
    try:
        with Path(output).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise fail(f"-o {output}: there is such a file already; it stays as it is") from None
    except OSError as error:
        raise fail(f"-o {output}: {error.strerror or error}") from None
    click.echo(f"gradcheck: wrote {output}; next: gradcheck run {output} --allow-code", err=True)
