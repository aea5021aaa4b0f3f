"""``gradcheck explore``: looks for sizes and values at which a layer's gradient is wrong."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import get_args

import click
from rich.console import Console

from gradcheck.case.case import Case
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.check import layer_named, layer_options
from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.run_cases import drafted_cases, exit_code, make_executor, make_screen, run_all
from gradcheck.commands.shared_options import SEED, ScreenOptions, color_option
from gradcheck.commands.specs import new_spec, write_spec
from gradcheck.exploring.example_search import NOT_INSTALLED, Search, Try, checked_examples, outcome_lines, search
from gradcheck.exploring.examples import Example, plainest_example, scenario_text
from gradcheck.result import Status
from gradcheck.spec.draft import Signature, identity_of
from gradcheck.spec.input_words import InputWord, InputWordError
from gradcheck.spec.literals import DType
from gradcheck.support.display_paths import count
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError


@click.command()
@layer_options
@click.option("-b", "--backend", default="numpy", metavar="NAME", help="Where it runs (default: numpy).")
@click.option("--seconds", type=click.FloatRange(1, 86_400), default=30.0, show_default=True, help="How long to look.")
@click.option("--examples", type=click.IntRange(1), default=10_000, show_default=True, help="How many to try at most.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of what is drawn.")
@click.option(
    "--dtype", "dtypes", multiple=True, metavar="NAME", type=click.Choice(get_args(DType)),
    help="Of inputs (default: float64 and float32).",
)  # fmt: skip
@click.option("--save", metavar="FILE", help="Write what is found as a scenario; never over another file.")
@color_option
def explore(
    reference: str,
    inputs: tuple[str, ...],
    call: str,
    backend: str,
    seconds: float,
    examples: int,
    seed: int,
    dtypes: tuple[str, ...],
    save: str | None,
    color: str,
) -> None:
    """Look for inputs at which the gradient of a layer is wrong, and shrink them to the smallest.

    Capital letters are free sizes, the same for all inputs: ``-i x=BxTxC -i w=C``. Sizes from 0 on are drawn, with
    values of many kinds, dtypes and layouts; every example runs in a process of its own. Exit code 0: nothing was
    found; 1: an example fails, which is shown; 5: no example could be checked.
    """
    signature, words = layer_named(reference, inputs, call, letters=True)
    for word in words.values():
        if word.dtype.startswith("complex"):
            help = f"check it at one point: gradcheck check {reference} -i …"
            raise InputWordError(f"--input {word.name}: explore draws no complex numbers; {help}")
    if not words:
        raise InputWordError(f"give the inputs: {' '.join(f'-i {name}=BxC' for name in signature.needed)}")
    file = None if save is None else new_spec("--save", save)
    places = chosen_backends((backend,))

    def case_of(example: Example) -> Case:
        return drafted_cases(example_text(signature, example, call), signature, places, seed=seed)[0]

    with make_executor() as pool:
        case_of(plainest_example(words))  # what no example can make right is said at once

        def look(example: Example) -> tuple[Status, str]:
            try:
                case = case_of(example)
            except UserError as error:  # all inputs are empty
                return Status.INCONCLUSIVE, str(error)
            result = pool.submit(case).result()
            return result.status, result.message

        found = searched(words, look, seconds, examples, seed, dtypes)
    click.echo(safe("\n".join(outcome_lines(found, words))))
    if found.smallest is None:
        raise SystemExit(0 if checked_examples(found) else NOTHING_SELECTED)
    screen = make_screen(ScreenOptions(color=color), shlex.join(["gradcheck", *sys.argv[1:]]))
    results, interrupted = run_all([case_of(found.smallest)], make_executor(), screen)
    text = example_text(signature, found.smallest, call, f"Found by gradcheck explore, seed {seed}: {found.smallest}")
    if file is None:
        click.echo(safe(text), nl=False)
    else:
        write_spec("--save", file, text)
    raise SystemExit(exit_code(results, interrupted))


def searched(
    words: Mapping[str, InputWord], look: Try, seconds: float, examples: int, seed: int, dtypes: Sequence[str]
) -> Search:
    """The search, with a line on how it goes where somebody looks on."""
    with Console(stderr=True).status("explore", spinner="line") as line:
        try:
            return search(
                look, words, seconds=seconds, examples=examples, seed=seed, dtypes=dtypes or ("float64", "float32"),
                on_example=lambda found: line.update(progress(found)),
            )  # fmt: skip
        except ImportError:
            raise UserError(NOT_INSTALLED) from None


def progress(search: Search) -> str:
    """Where a search stands, in one line."""
    failing = f"a failure with {count(search.smallest.numbers, 'number')}" if search.smallest else "no failure so far"
    return f"explore: {count(search.tried, 'example')}, {failing}, {max(search.left, 0):.0f} s left"


def example_text(signature: Signature, example: Example, call: str, title: str = "") -> str:
    """An example as a spec file."""
    name = re.sub("-+", "-", f"{identity_of(signature.reference)}-explored")
    return scenario_text(example, signature.reference, name, call, title)
