"""What names a layer on the command line: the reference, its inputs, how it is called, and the world it runs in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from gradcheck.commands.run_options import as_one
from gradcheck.spec.draft import InWorld, Signature, signature_of
from gradcheck.spec.input_words import FORM, InputWord, input_words

reference_argument = click.argument("reference", metavar="PACKAGE.MODULE:LAYER")
inputs_option = click.option(
    "-i", "--input", "inputs", multiple=True, metavar=FORM,
    help="An input: a shape and what else is said of it, such as x=2x3, x=5:float32~0.1..3 or k=4:below=5; repeatable.",
)  # fmt: skip
call_option = click.option(
    "--call", default="", metavar="CODE", help="The expression that calls the layer, such as 'Own.apply(x, 3)'."
)
world_options = as_one(
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

    Args:
        letters: whether sizes may be letters.

    Raises:
        DraftError, InputWordError: there is no such layer, or it has no such inputs.
    """
    signature, words = signature_of(reference), input_words(inputs, letters)
    if not call:
        signature.require(words)
    return signature, words
