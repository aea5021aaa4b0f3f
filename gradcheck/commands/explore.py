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
from gradcheck.commands.permission import permission_of, require_permission
from gradcheck.commands.run_cases import (
    drafted_cases,
    exit_code,
    make_executor,
    make_screen,
    run_all,
)
from gradcheck.commands.shared_options import SEED, ScreenOptions, allow_code_option, color_option
from gradcheck.commands.specs import new_spec, place_in_file, read_specs, write_spec
from gradcheck.config import load_project
from gradcheck.exploring.example_search import (
    NOT_INSTALLED,
    Search,
    Try,
    case_of_example,
    checked_examples,
    input_words_of,
    is_drawn,
    outcome_lines,
    search,
)
from gradcheck.exploring.examples import Example, input_text, plainest_example, scenario_text
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.run.select import select_ids
from gradcheck.spec.draft import Signature, identity_of
from gradcheck.spec.input_words import InputWord, InputWordError
from gradcheck.spec.literals import DType
from gradcheck.spec.model import Scenario
from gradcheck.support.display_paths import count
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError

HOLDS_AT_INPUTS = {"grads", "values", "calls", "warns", "raises", "differs", "cotangent"}
"""Keys of an expectation that hold at the inputs that a scenario gives."""


@click.command()
@layer_options
@click.argument("scenario", required=False, metavar="[ID]")
@click.option(
    "-b", "--backend", default="numpy", metavar="NAME", help="Where it runs (default: numpy)."
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    default=30.0,
    show_default=True,
    help="How long to look.",
)
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="How many to try at most.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of what is drawn.")
@click.option(
    "--dtype", "dtypes", multiple=True, metavar="NAME", type=click.Choice(get_args(DType)),
    help="Of inputs (default: float64 and float32).",
)  # fmt: skip
@click.option(
    "--save", metavar="FILE", help="Write what is found as a scenario; never over another file."
)
@allow_code_option
@color_option
def explore(
    reference: str,
    scenario: str | None,
    inputs: tuple[str, ...],
    call: str,
    backend: str,
    seconds: float,
    examples: int,
    seed: int,
    dtypes: tuple[str, ...],
    save: str | None,
    allow_code: bool,
    color: str,
) -> None:
    """Look for inputs at which the gradient of a layer is wrong, and shrink them to the smallest.

    Capital letters are free sizes, the same for all inputs: ``-i x=BxTxC -i w=C``. Sizes from 0 on are drawn, with
    values of many kinds, dtypes and layouts; every example runs in a process of its own. Exit code 0: nothing was
    found; 1: an example fails, which is shown; 5: no example could be checked.

    With a FILE and the ID of a scenario in place of the layer, that scenario is explored: its ``sizes`` whose names are
    capital letters are drawn, and values, dtypes and layouts of inputs that do not say what they are.
    """
    if scenario is not None or place_in_file(reference) is not None:
        if inputs or call or save or dtypes:
            raise UserError(
                "-i, --call, --dtype and --save are for a layer: the scenario has its own inputs"
            )
        name = reference if scenario is None else f"{reference}::{scenario}"
        case = case_to_explore(name, backend, seed, allow_code)
        explore_scenario(case, seconds, examples, seed, color)
        return
    signature, words = layer_named(reference, inputs, call, letters=True)
    for word in words.values():
        if word.dtype.startswith("complex"):
            help = f"check it at one point: gradcheck check {reference} -i …"
            raise InputWordError(f"--input {word.name}: explore draws no complex numbers; {help}")
    if not words:
        raise InputWordError(
            f"give the inputs: {' '.join(f'-i {name}=BxC' for name in signature.needed)}"
        )
    file = None if save is None else new_spec("--save", save)
    places = chosen_backends((backend,))

    def case_of(example: Example) -> Case:
        return drafted_cases(example_text(signature, example, call), signature, places, seed=seed)[
            0
        ]

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
    text = example_text(
        signature,
        found.smallest,
        call,
        f"Found by gradcheck explore, seed {seed}: {found.smallest}",
    )
    if file is None:
        click.echo(safe(text), nl=False)
    else:
        write_spec("--save", file, text)
    raise SystemExit(exit_code(results, interrupted))


def case_to_explore(name: str, backend: str, seed: int, allow_code: bool) -> Case:
    """Return the case of a scenario of a file, the first of several.

    Raises UserError: there is no such scenario, it cannot be explored, or its code may not run.
    """
    permission = permission_of(load_project(), allow_code)
    specs, ids = read_specs([name])
    places = chosen_backends((backend,), config=permission.project.config)
    case = select_ids(plan(specs, list(places), seed=seed, places=places), ids)[0]
    if problem := why_not_explored(case.scenario):
        raise UserError(f"{case.scenario.id} cannot be explored: {problem}")
    require_permission([case], permission)
    return case


def why_not_explored(scenario: Scenario) -> str:
    """Return why the inputs of a scenario cannot be drawn; empty if they can."""
    if scenario.layer is None or scenario.script is not None:
        return "it is a script; write the code as 'layer', with 'inputs'"
    if scenario.world_sizes:
        return "it has a world"
    if held := sorted(scenario.expect.written & HOLDS_AT_INPUTS):
        return f"'{held[0]}' holds at certain inputs, and explore draws them"
    if scenario.expect.gradient in ("unchecked", "differs"):
        return f"'gradient: {scenario.expect.gradient}' leaves nothing to look for"
    return ""


def explore_scenario(case: Case, seconds: float, examples: int, seed: int, color: str) -> None:
    """Look for inputs of a case at which the gradient is wrong. Raises SystemExit: with the exit code."""
    words = input_words_of(case)
    with make_executor() as pool:

        def look(example: Example) -> tuple[Status, str]:
            result = pool.submit(case_of_example(case, example)).result()
            return result.status, result.message

        found = searched(words, look, seconds, examples, seed, ())
    click.echo(safe("\n".join(outcome_lines(found, words))))
    if found.smallest is None:
        raise SystemExit(0 if checked_examples(found) else NOTHING_SELECTED)
    for name, one in found.smallest.inputs.items():
        if is_drawn(case.scenario.inputs[name]):
            click.echo(safe(f"  {name}: {input_text(one)}"))
    screen = make_screen(ScreenOptions(color=color), shlex.join(["gradcheck", *sys.argv[1:]]))
    results, interrupted = run_all([case_of_example(case, found.smallest)], make_executor(), screen)
    raise SystemExit(exit_code(results, interrupted))


def searched(
    words: Mapping[str, InputWord],
    look: Try,
    seconds: float,
    examples: int,
    seed: int,
    dtypes: Sequence[str],
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
    failing = (
        f"a failure with {count(search.smallest.numbers, 'number')}"
        if search.smallest
        else "no failure so far"
    )
    return f"explore: {count(search.tried, 'example')}, {failing}, {max(search.left, 0):.0f} s left"


def example_text(signature: Signature, example: Example, call: str, title: str = "") -> str:
    """An example as a spec file."""
    name = re.sub("-+", "-", f"{identity_of(signature.reference)}-explored")
    return scenario_text(example, signature.reference, name, call, title)
