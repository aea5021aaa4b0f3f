"""``gradcheck explore``: looks for sizes and values at which a layer's gradient is wrong."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import get_args

import click

from gradcheck.case.case import Case
from gradcheck.case.default_limits import TIMEOUT
from gradcheck.commands.choose import chosen_backends
from gradcheck.commands.exits import NOTHING_SELECTED
from gradcheck.commands.run_cases import exit_code, make_pool, run_all
from gradcheck.commands.run_options import color_option
from gradcheck.commands.screen import make_screen
from gradcheck.commands.specs import fail
from gradcheck.config import Config
from gradcheck.exploring.example_search import NOT_INSTALLED, Search, checked_examples, outcome_lines, search
from gradcheck.exploring.examples import Example, plainest_example
from gradcheck.exploring.scenario import scenario_text
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.run.supervisor import ExecutorError
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.draft import DraftError, Signature, identity_of, signature_of
from gradcheck.spec.input_words import FORM, InputWord, InputWordError, input_words
from gradcheck.spec.literals import DType
from gradcheck.spec.read import read_bytes
from gradcheck.support.display_paths import count
from gradcheck.support.escape import safe


@click.command()
@click.argument("reference", metavar="PACKAGE.MODULE:LAYER")
@click.option("-i", "--input", "inputs", multiple=True, metavar=FORM, help="An input, such as x=BxTxC; repeatable.")
@click.option("--call", default="", metavar="CODE", help="As of `gradcheck check`.")
@click.option("-b", "--backend", default="numpy", metavar="NAME", help="Where it runs (default: numpy).")
@click.option("--seconds", type=click.FloatRange(1, 86_400), default=30.0, show_default=True, help="How long to look.")
@click.option("--examples", type=click.IntRange(1), default=10_000, show_default=True, help="How many to try at most.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of what is drawn.")
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    metavar="NAME",
    type=click.Choice(get_args(DType)),
    help="Of inputs (default: float64 and float32).",
)
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
    try:
        signature = signature_of(reference)
        words = input_words(inputs, letters=True)
        if not call:
            signature.require(words)
        for word in words.values():
            if word.dtype.startswith("complex"):
                help = f"check it at one point: gradcheck check {reference} -i …"
                raise InputWordError(f"--input {word.name}: explore draws no complex numbers; {help}")
        if not words:
            raise InputWordError(f"give the inputs: {' '.join(f'-i {name}=BxC' for name in signature.needed)}")
    except (DraftError, InputWordError) as error:
        raise fail(str(error)) from None
    if save is not None and (Path(save).exists() or not save.endswith(".grad.yaml")):
        there = Path(save).exists()
        raise fail(f"--save {save}: {'there is such a file already' if there else 'write a name with .grad.yaml'}")
    places = chosen_backends((backend,), [], Config.model_construct(), {}, True)

    def case_of(example: Example) -> Case:
        spec = read_bytes(example_text(signature, example, call).encode(), str(Path.cwd() / reference))
        scenario = spec.scenarios[0].model_copy(update={"line": signature.line, "column": 1})
        spec = spec.model_copy(update={"scenarios": (scenario,)})
        return plan([spec], [backend], seed=seed, default_timeout=TIMEOUT, places=places)[0]

    try:
        with make_pool("local", 1, True) as pool:
            case_of(plainest_example(words))  # what no example can make right is said at once

            def look(example: Example) -> tuple[Status, str]:
                try:
                    case = case_of(example)
                except SpecError as error:  # all inputs are empty
                    return Status.INCONCLUSIVE, error.diagnostics[0].message
                result = pool.submit(case).result()
                return result.status, result.message

            found = searched(words, look, seconds, examples, seed, dtypes)
        click.echo(safe("\n".join(outcome_lines(found, words))))
        if found.smallest is None:
            raise SystemExit(0 if checked_examples(found) else NOTHING_SELECTED)
        again = shlex.join(["gradcheck", *sys.argv[1:]])
        screen = make_screen("auto", color, False, False, again)
        results, interrupted = run_all([case_of(found.smallest)], make_pool("local", 1, True), screen)
    except ExecutorError as error:
        raise fail(str(error)) from None
    except SpecError as error:
        said = "; ".join("; ".join(filter(None, [one.message, one.help])) for one in error.diagnostics)
        raise fail(f"{reference}: {said}") from None
    text = example_text(signature, found.smallest, call, f"Found by gradcheck explore, seed {seed}: {found.smallest}")
    if save is None:
        click.echo(safe(text), nl=False)
    else:
        try:
            with Path(save).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise fail(f"--save {save}: {error.strerror or error}") from None
        click.echo(f"gradcheck: wrote {save}; next: gradcheck run {save} --allow-code", err=True)
    raise SystemExit(exit_code(results, interrupted))


def searched(
    words: dict[str, InputWord],
    look: object,
    seconds: float,
    examples: int,
    seed: int,
    dtypes: tuple[str, ...],
) -> Search:
    """The search, with a line on how it goes where somebody looks on.

    Raises:
        SystemExit: Hypothesis is not installed.
    """
    shown = sys.stderr.isatty()

    def on_example(search: Search) -> None:
        if shown:
            line = f"\r{progress(search)}"
            click.echo(f"{line:<79}", nl=False, err=True)

    try:
        found = search(
            look,  # type: ignore[arg-type]
            words,
            seconds=seconds,
            examples=examples,
            seed=seed,
            dtypes=dtypes or ("float64", "float32"),
            on_example=on_example,
        )
    except ImportError:
        raise fail(NOT_INSTALLED) from None
    if shown:
        click.echo("\r" + " " * 79 + "\r", nl=False, err=True)
    return found


def progress(search: Search) -> str:
    """Where a search stands, in one line."""
    failing = f"a failure with {count(search.smallest.numbers, 'number')}" if search.smallest else "no failure so far"
    return f"explore: {count(search.tried, 'example')}, {failing}, {max(search.left, 0):.0f} s left"


def example_text(signature: Signature, example: Example, call: str, title: str = "") -> str:
    """An example as a spec file."""
    name = re.sub("-+", "-", f"{identity_of(signature.reference)}-explored")
    return scenario_text(example, signature.reference, name, call, title)
