"""``gradcheck check`` and ``new``: a layer named on the command line is checked, or gets a scenario
to begin with.
"""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from gradcheck.backends.base import BACKENDS, backend_of_packages
from gradcheck.backends.environments import BackendPlace
from gradcheck.case.case import Case
from gradcheck.case.foreign_frameworks import REFUSAL
from gradcheck.commands import shared_options as options
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.errors import USAGE
from gradcheck.commands.init import MODELINE, SCHEMA_FILE
from gradcheck.commands.report_options import report_files, report_option
from gradcheck.commands.run_cases import (
    Beginning,
    exit_code,
    make_executor,
    make_screen,
    run_all,
    write_reports,
)
from gradcheck.commands.specs import new_spec, write_spec
from gradcheck.exploring.input_parsing import inputs_of_words
from gradcheck.run.plan import plan
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.draft import InWorld, Signature, draft, identity_of, layer_of, signature_of
from gradcheck.spec.input_words import FORM, InputWordError, input_words
from gradcheck.spec.model import READER_FIELDS, Input
from gradcheck.spec.read import read_bytes
from gradcheck.support.user_error import UserError

layer_options = options.all_of(
    click.argument("reference", metavar="PACKAGE.MODULE:LAYER"),
    click.option(
        "-i", "--input", "inputs", multiple=True, metavar=FORM,
        help="An input: a shape and what else is said of it, such as x=2x3, x=5:float32~0.1..3 "
        "or k=4:below=5; repeatable.",
    ),
    click.option(
        "--call",
        default="",
        metavar="CODE",
        help="The expression that calls the layer, such as 'Own.apply(x, 3)'.",
    ),
    click.option(
        "--backward", metavar="PACKAGE.MODULE:FUNCTION",
        help="The backward of a function of NumPy arrays: it takes the arguments, then the "
        "gradients of the outputs, and returns a gradient per array.",
    ),
)  # fmt: skip
world_options = options.as_one(
    "world", InWorld,
    click.option(
        "--world", default="", metavar="RANKS",
        help="Run the layer on so many ranks: 4, or mp=2,dp=2.",
    ),
    click.option(
        "--outputs", default="", metavar="WORD[,WORD]",
        help="In a world: split (default) or replicated, for all outputs or one for each.",
    ),
    click.option(
        "--random", type=click.Choice(["by-rank", "same"]),
        help="In a world: whether each rank draws its own random numbers.",
    ),
)  # fmt: skip


def scenario_of_layer(
    signature: Signature,
    inputs: Mapping[str, Input],
    *,
    backward: str | None = None,
    call: str = "",
    world: InWorld = InWorld(),  # noqa: B008 - it does not change
    order: int = 1,
) -> dict[str, Any]:
    """Return the scenario of a named layer as a spec file has it.

    Raises:
        DraftError: `backward` names no function, or the layer is not a function.
    """
    return {
        "id": identity_of(signature.reference),
        "layer": layer_of(signature, backward),
        "inputs": {name: written_input(spec) for name, spec in inputs.items()},
        **({"call": call} if call else {}),
        **({"expect": {"order": order}} if order > 1 else {}),
        **(yaml.safe_load("\n".join(world.lines())) or {}),
    }


def written_input(spec: Input) -> dict[str, Any]:
    """Return an input as a spec file has it."""
    return spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=set(READER_FIELDS)
    )


def cases_of_layer(
    signature: Signature,
    scenario: Mapping[str, Any],
    places: Mapping[str, BackendPlace],
    **settings: Any,
) -> list[Case]:
    """Return the cases of a named layer, in the place of the layer; `settings` are those of `plan`.

    Raises UserError: the layer cannot be checked with what is given.
    """
    text = json.dumps({"schema": "gradcheck/v1", "scenarios": [scenario]}, ensure_ascii=False)
    path = str(Path.cwd() / signature.reference)  # modules are looked for from there
    try:
        spec = read_bytes(text.encode(), path)
    except SpecError as error:
        mistakes = [part for one in error.diagnostics for part in (one.message, one.help) if part]
        raise UserError(f"{signature.reference}: {'; '.join(mistakes)}") from None
    place = {"line": signature.line, "column": 1, "begins": signature.line, "positions": {}}
    scenarios = (spec.scenarios[0].model_copy(update=place),)
    spec = spec.model_copy(update={"scenarios": scenarios})
    return plan([spec], list(places), places, **settings)


def own_backend(signature: Signature) -> tuple[str, ...]:
    """Return the backend of the framework that a layer's code uses; none for the usual one."""
    name = backend_of_packages(signature.packages)
    return (name,) if name else ()


def require_world(inputs: Mapping[str, Input], world: InWorld) -> None:
    """Raise UserError: an input is for a world of ranks that is not given."""
    for name, spec in inputs.items():
        if spec.ranks != "split" and not world.world:
            raise UserError(
                f"--input {name}=…:{spec.ranks} is for a world of ranks: say how many there are, "
                "such as --world 4"
            )


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
@report_option
@options.screen_options
def check(reference: str, world: InWorld, backends: tuple[str, ...], **asked: Any) -> None:
    """Check the gradient of one layer of a module of yours; no spec file is needed.

    The module is looked for from the current folder and from the project's root. It is imported and
    run: naming it here is leave enough. Exit codes are those of `gradcheck run`.
    """
    signature, inputs = signature_of(reference), inputs_of_words(asked.pop("inputs"))
    backward, call, order = asked.pop("backward"), asked.pop("call"), asked.pop("order")
    reports, screen_options = asked.pop("reports"), asked.pop("screen")
    if not call:
        signature.require(inputs)
    for name, spec in inputs.items():
        if spec.from_ is not None and not Path(spec.from_).is_file():
            raise InputWordError(f"--input {name}=@{spec.from_}: there is no such file")
    require_world(inputs, world)
    scenario = scenario_of_layer(
        signature, inputs, backward=backward, call=call, world=world, order=order
    )
    usual = () if backward else own_backend(signature)
    places = chosen_backends(backends or usual)
    cases = cases_of_layer(signature, scenario, places, **asked)
    files = report_files(reports)
    again = shlex.join(["gradcheck", *sys.argv[1:]])
    began = Beginning.now()
    results, interrupted = run_all(cases, make_executor(), make_screen(screen_options, again))
    write_reports(files, cases, results, began, again)
    if any(result.message.startswith(REFUSAL) for result in results):
        raise SystemExit(USAGE)
    raise SystemExit(exit_code(results, interrupted))


@click.command()
@layer_options
@world_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write it (default: stdout); never over another file.",
)
@click.option(
    "--derive", is_flag=True, help="Derive the backward; the scenario has the code of the class."
)
def new(
    reference: str,
    inputs: tuple[str, ...],
    call: str,
    backward: str | None,
    world: InWorld,
    output: str | None,
    derive: bool,
) -> None:
    """Write a commented scenario for a layer of a module of yours, from its signature.

    Nothing is imported, unless a backward is derived.
    """
    words = input_words(inputs)
    text = draft(signature_of(reference), words, backward=backward, call=call, world=world)
    if derive:
        text = with_derived_layer(text, reference, inputs, call)
    if output is None:
        click.echo(text, nl=False)
        return
    file = new_spec("-o", output)
    write_spec("-o", file, MODELINE + text if file.with_name(SCHEMA_FILE).is_file() else text)


def with_derived_layer(text: str, reference: str, inputs: tuple[str, ...], call: str) -> str:
    """The text of a scenario with the class of a derived backward as its layer.

    Raises UserError: there is no such backward.
    """
    from gradcheck.commands.derive import derived_from

    derived = derived_from(reference, inputs, call)
    if not derived:
        raise UserError(f"no backward of {derived.name} was derived: {derived.refused}")
    block = textwrap.indent(derived.code, "      ", lambda line: bool(line.strip()))
    lines = text.splitlines(keepends=True)
    number = next(k for k, line in enumerate(lines) if line.startswith("    layer:"))
    lines[number] = f"    layer: |\n{block}"
    if lines[number + 1].startswith("    # call:"):  # of the function
        del lines[number + 1]
    return "".join(lines)
