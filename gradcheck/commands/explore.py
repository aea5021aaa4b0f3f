"""``gradcheck explore``: search for sizes and values at which a layer's gradient is wrong."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from typing import Any, get_args

import click
from rich.console import Console

from gradcheck.backends.base import framework_of_backend
from gradcheck.case.case import Case
from gradcheck.case.naming import LAYER_REFERENCE
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.check import (
    LayerWords,
    framework_of_layer,
    layer_options,
    scenario_of_layer,
)
from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.permission import permission_of, require_permission
from gradcheck.commands.run_cases import exit_code, make_executor, make_screen, run_all
from gradcheck.commands.shared_options import SEED, ScreenOptions, allow_code_option, color_option
from gradcheck.commands.specs import new_spec, parse_target, read_specs, write_spec
from gradcheck.commands.user_layer import import_signature
from gradcheck.config import load_project
from gradcheck.exploring.example_search import (
    NOT_INSTALLED,
    Search,
    SearchSettings,
    outcome_lines,
    search,
)
from gradcheck.exploring.examples import (
    Example,
    case_of_example,
    inputs_of,
    is_drawn,
    letters_of,
)
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.run.select import select_ids
from gradcheck.spec.containers import in_variables
from gradcheck.spec.draft import (
    flow_yaml,
    qualified_reference,
    read_draft,
    spec_text,
    written_input,
)
from gradcheck.spec.input_words import InputWordError, inputs_of_words
from gradcheck.spec.literals import DType, layouts_of
from gradcheck.spec.model import Scenario
from gradcheck.support.display_paths import count
from gradcheck.support.escape import one_line, safe
from gradcheck.support.user_error import UserError

HOLDS_AT_INPUTS = {"grads", "values", "calls", "warns", "raises", "differs", "cotangent"}
"""Keys of an expectation that hold only at the scenario's own inputs."""


@dataclass(frozen=True)
class ExploreOptions:
    """The options of `gradcheck explore`."""

    named: LayerWords
    scenario: str | None
    backend: str
    seconds: float
    examples: int
    seed: int
    dtypes: tuple[str, ...]
    save: str | None
    allow_code: bool
    color: str


@click.command()
@layer_options
@click.argument("scenario", required=False, metavar="[ID]")
@click.option(
    "-b",
    "--backend",
    default="",
    metavar="NAME",
    help="Where it runs (default: the framework of the layer's code, or numpy).",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    default=30.0,
    show_default=True,
    help="How long to search.",
)
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="The most examples to try.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the random draws.")
@click.option(
    "--dtype", "dtypes", multiple=True, metavar="NAME", type=click.Choice(get_args(DType)),
    help="The dtype of inputs (default: float64 and float32).",
)  # fmt: skip
@click.option(
    "--save",
    metavar="FILE",
    help="Write the example found as a scenario; never over another file.",
)
@allow_code_option
@color_option
def explore(**arguments: Any) -> None:
    """Search for inputs at which the gradient of a layer is wrong, and shrink them to the smallest.

    Capital letters are free sizes, the same for all inputs: ``-i x=BxTxC -i w=C``. Sizes from 0 on
    are drawn, with values of many kinds, dtypes and layouts; every example runs in its own process.
    Exit code 0: nothing was found; 1: an example fails, which is shown; 5: no example could be
    checked.

    With a FILE and the ID of a scenario in place of the layer, that scenario is explored: its
    ``sizes`` whose names are capital letters are drawn, and values, dtypes and layouts of inputs
    that do not specify them.
    """
    options = ExploreOptions(**arguments)
    require_order(options.named.reference, options.scenario)
    if options.scenario is not None or parse_target(options.named.reference).is_place:
        case = case_in_file(options)
        smallest = explored_case(options, case)
        example = case_of_example(case, smallest)
        for name, spec in smallest.inputs.items():
            if is_drawn(spec):
                written = flow_yaml(written_input(example.scenario.inputs[name]))
                click.echo(safe(f"  {name}: {written}"))
        raise SystemExit(show_case(options, example))
    reference = qualified_reference(options.named.reference)
    file = None if options.save is None else new_spec("--save", options.save)
    keys = scenario_to_explore(options.named, reference, options.backend)
    framework = framework_of_layer(reference, options.named, [options.backend])
    spec_file = read_draft(spec_text(keys, framework), reference)
    places = chosen_backends([options.backend], specs=[spec_file])
    case = plan([spec_file], list(places), places, seed=options.seed)[0]
    smallest = explored_case(options, case)
    example = case_of_example(case, smallest)
    status = show_case(options, example)
    del keys["sizes"]
    inputs = {name: written_input(spec) for name, spec in example.scenario.inputs.items()}
    title = f"Found by gradcheck explore, seed {options.seed}: {smallest}"
    keys = {"id": keys["id"], "title": title, **keys, "inputs": in_variables(inputs)}
    text = spec_text(keys, framework)
    if file is None:
        click.echo(safe(text), nl=False)
    else:
        write_spec("--save", file, text)
    raise SystemExit(status)


def require_order(reference: str, scenario: str | None) -> None:
    """Raise UserError if a scenario does not follow its file."""
    if scenario is None:
        return
    reference, scenario = one_line(reference), one_line(scenario)
    if parse_target(scenario).path:
        raise UserError(f"the file comes first: write {scenario} {reference}")
    if LAYER_REFERENCE.fullmatch(reference):
        raise UserError(
            f"{reference} is a layer, and {scenario} follows it: a scenario follows its file, as "
            f"in `gradcheck explore FILE {scenario}`; remove one of the two"
        )


def scenario_to_explore(named: LayerWords, reference: str, backend: str) -> dict[str, Any]:
    """Return the scenario of a named layer, with 2 for the free sizes.

    Raises UserError: the layer cannot be called with the inputs, or these cannot be drawn.
    """
    inputs = inputs_of_words(named.inputs, letters=True)
    if not named.call:
        signature = import_signature(reference, backend)
        if not inputs:
            wanted = " ".join(f"--input {name}=BxC" for name in signature.needed)
            raise InputWordError(f"give the inputs: {wanted}")
        signature.require_call(inputs, named.keywords())
    for name, spec in inputs.items():
        if spec.dtype.startswith("complex"):
            command = f"gradcheck check {named.reference} -i …"
            raise InputWordError(
                f"--input {name}: explore draws no complex numbers; check it at one point: "
                f"{command}"
            )
        if spec.from_ is not None:
            raise InputWordError(f"--input {name}: explore draws its values: write a shape")
    keys = scenario_of_layer(reference, inputs, named)
    keys["id"] += "-explored"
    keys["sizes"] = dict.fromkeys(letters_of(inputs), 2)
    return keys


def case_in_file(options: ExploreOptions) -> Case:
    """Return the first case of a scenario in a file.

    Raises UserError: there is no such scenario, it cannot be explored, or its code may not run.
    """
    if any(options.named[1:]) or options.save or options.dtypes:
        raise UserError(
            "-i, --kwarg, --call, --backward, --dtype and --save are for a layer: the scenario has "
            "its own inputs"
        )
    name = options.named.reference
    if options.scenario is not None:
        name = f"{name}::{options.scenario}"
    permission = permission_of(load_project(), options.allow_code)
    specs, ids = read_specs([name])
    places = chosen_backends([options.backend], ids, permission.project.config, specs=specs)
    case = select_ids(plan(specs, list(places), places, seed=options.seed), ids)[0]
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
    if fixed := sorted(scenario.expect.written & HOLDS_AT_INPUTS):
        return f"'{fixed[0]}' holds only at certain inputs, but explore draws them"
    if scenario.expect.gradient in ("unchecked", "differs"):
        return f"'gradient: {scenario.expect.gradient}' leaves nothing to search for"
    return ""


def explored_case(options: ExploreOptions, case: Case) -> Example:
    """Explore a case, print what was tried, and return the smallest example that is wrong.

    Raises SystemExit: there is none.
    """
    with make_executor() as runner, Console(stderr=True).status("explore", spinner="line") as line:

        def check(example: Example) -> tuple[Status, str]:
            result = runner.submit(case_of_example(case, example)).result()
            return result.status, result.message

        settings = SearchSettings(
            options.seconds,
            options.examples,
            options.seed,
            options.dtypes or ("float64", "float32"),
            layouts_of(framework_of_backend(case.backend)),
            on_example=lambda outcome: line.update(progress(outcome)),
        )
        try:
            outcome = search(check, inputs_of(case), settings)
        except ImportError:
            raise UserError(NOT_INSTALLED) from None
    click.echo(safe("\n".join(outcome_lines(outcome))))
    if outcome.smallest is None:
        raise SystemExit(0 if outcome.checked else NOTHING_SELECTED)
    return outcome.smallest


def show_case(options: ExploreOptions, case: Case) -> int:
    """Run a case once more and show it; return the exit code."""
    screen = make_screen(
        ScreenOptions(color=options.color), shlex.join(["gradcheck", *sys.argv[1:]])
    )
    results, interrupted = run_all([case], make_executor(), screen)
    return exit_code(results, interrupted)


def progress(search: Search) -> str:
    """Return the progress of a search, in one line."""
    failing = "no failure so far"
    if search.smallest is not None:
        failing = f"a failure with {count(search.smallest.numbers, 'number')}"
    seconds = max(search.seconds_left, 0)
    return f"explore: {count(search.tried, 'example')}, {failing}, {seconds:.0f} s left"
