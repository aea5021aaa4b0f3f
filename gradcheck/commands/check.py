"""``gradcheck check`` and ``new``: check a layer named on the command line, or write a first
scenario for it.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from gradcheck.backends.base import BACKENDS, framework_of_backend
from gradcheck.case.foreign_frameworks import REFUSAL
from gradcheck.case.layer_signature import CANNOT_CHECK
from gradcheck.commands import shared_options as options
from gradcheck.commands.backends import chosen_backends, require_backend, split_names
from gradcheck.commands.errors import USAGE
from gradcheck.commands.init import MODELINE, SCHEMA_FILE
from gradcheck.commands.report_options import report_files, report_option, results_shown
from gradcheck.commands.run_cases import (
    Beginning,
    RunSettings,
    exit_code,
    make_executor,
    make_screen,
    run_all,
    write_reports,
)
from gradcheck.commands.specs import new_spec, write_spec
from gradcheck.commands.user_layer import import_layer, import_signature, signature_in
from gradcheck.result import Result
from gradcheck.run.plan import plan
from gradcheck.spec.draft import (
    InWorld,
    file_of_module,
    qualified_reference,
    read_draft,
    scenario_keys,
    spec_text,
)
from gradcheck.spec.input_words import FORM, inputs_of_words, is_shape
from gradcheck.spec.model import Input
from gradcheck.support.pyproject import roots
from gradcheck.support.user_error import UserError

NO_WORLD = InWorld()


class LayerWords(NamedTuple):
    """A layer that the command line names, and how it is called."""

    reference: str
    inputs: tuple[str, ...] = ()
    call: str = ""
    kwargs: tuple[str, ...] = ()
    backward: str | None = None

    def keywords(self) -> dict[str, Any]:
        """Return the values of ``--kwarg``: Python literals, otherwise text. Raises UserError."""
        keywords: dict[str, Any] = {}
        for text in self.kwargs:
            name, _, value = text.partition("=")
            if not value:
                raise UserError(f"--kwarg {text}: write NAME=VALUE, such as --kwarg axis=-1")
            if re.fullmatch(r"[-+]?\d+,\d+", value):  # Python reads a tuple
                raise UserError(
                    f"--kwarg {text}: {value} is two numbers; write a number as "
                    f"{value.replace(',', '.')}, a tuple as --kwarg '{name}=({value})'"
                )
            try:
                keywords[name] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                if is_shape(value):
                    raise UserError(
                        f"--kwarg {text}: write an input as -i {text}, or text as "
                        f"--kwarg \"{name}='{value}'\""
                    ) from None
                keywords[name] = value
        return keywords


layer_options = options.as_one(
    "named", LayerWords,
    click.argument("reference", metavar="PACKAGE.MODULE:LAYER"),
    click.option(
        "-i", "--input", "inputs", multiple=True, metavar=FORM,
        help="An input: a shape with options, such as x=2x3, x=5:float32~0.1..3, "
        "k=4:below=5 or, for a list, xs=[2x3,2x3]; repeatable.",
    ),
    click.option(
        "--kwarg", "kwargs", multiple=True, metavar="NAME=VALUE",
        help="A plain argument of the layer, such as axis=-1; repeatable.",
    ),
    click.option(
        "--call",
        default="",
        metavar="CODE",
        help="The expression that calls the layer, such as 'Own.apply(x, SCALE)'; it may use the "
        "names of the layer's module.",
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
        help="Run the layer on a number of ranks: 4, or mp=2,dp=2.",
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
    reference: str, inputs: Mapping[str, Input], named: LayerWords, world: InWorld = NO_WORLD
) -> dict[str, Any]:
    """Return the scenario of a named layer, with values as YAML has them.

    Raises DraftError: the ranks of the world are not of the form that is needed.
    """
    keys = scenario_keys(reference, inputs, named.call, named.keywords())
    if named.backward is not None:
        backward = named.backward
        if backward.isidentifier():  # it is in the layer's module
            backward = f"{reference.partition(':')[0]}:{backward}"
        keys["layer"]["backward"] = qualified_reference(backward)
    return keys | world.keys()


FRAMEWORK_NAMES = re.compile(r"\b(torch|jax)\b")


def framework_of_layer(reference: str, named: LayerWords, backends: Sequence[str]) -> str:
    """Return the framework of the first given backend, otherwise that of a layer.

    For this the layer is imported, unless its module is a file of the project whose text names no
    framework other than Paddle.
    """
    for name in split_names(backends):
        require_backend(name)
        return framework_of_backend(name)
    files = (file_of_module(reference.partition(":")[0], root) for root in roots())
    text = "".join(file.read_text("utf-8", "replace") for file in files if file)
    if named.backward is not None or (text and not FRAMEWORK_NAMES.search(text)):
        return "paddle"
    return framework_of_backend(import_layer(reference)[1].name)


def require_layer(result: Result) -> None:
    """Raise UserError: there is no such layer, or it cannot be called with the inputs."""
    if result.message.startswith(CANNOT_CHECK):
        raise UserError(result.message.removeprefix(CANNOT_CHECK))


@click.command()
@layer_options
@world_options
@options.backends_option(f"{', '.join(BACKENDS)}; repeatable.")
@options.order_option
@options.mode_option
@options.effort_option
@click.option(
    "--nondet",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    metavar="SHARE",
    help="How far results of two identical runs may differ, relative to the largest entry.",
)
@click.option("--seed", type=options.SEED, help="Seed of inputs and directions.")
@click.option(
    "--timeout", type=options.TIME_LIMIT, metavar="SECONDS", help="Time limit (default: 60)."
)
@report_option
@options.screen_options
def check(named: LayerWords, world: InWorld, backends: tuple[str, ...], **arguments: Any) -> None:
    """Check the gradient of one layer of your module; no spec file is needed.

    The module is searched for in the current folder and in the project's root. It is imported and
    run: naming it here is permission. Inputs are passed by the names of the layer's arguments; a
    list of Tensors is written xs=[2x3,2x3]. Exit codes are those of `gradcheck run`.
    """
    files = report_files(arguments.pop("reports"))
    reference = qualified_reference(named.reference)
    inputs = inputs_of_words(named.inputs)
    if not inputs and not named.call:
        import_signature(reference, "".join(backends)).require_call({})
    keys = scenario_of_layer(reference, inputs, named, world)
    keys["nondet"] = arguments.pop("nondet")
    if (order := arguments.pop("order")) > 1:
        keys["expect"] = {"order": order}
    screen_options = arguments.pop("screen")
    framework = framework_of_layer(reference, named, backends)
    spec_file = read_draft(spec_text(keys, framework), reference)
    places = chosen_backends(backends, specs=[spec_file])
    cases = plan([spec_file], list(places), places, **arguments)
    again = shlex.join(["gradcheck", *sys.argv[1:]])
    began = Beginning.now()
    settings = RunSettings(require=require_layer)
    with results_shown(files):
        screen = make_screen(screen_options, again)
        results, interrupted = run_all(cases, make_executor(), screen, settings)
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
    help="Where to write it (default: stdout); existing files are never overwritten.",
)
@click.option(
    "--derive",
    is_flag=True,
    help="Derive the backward, and write its class into the scenario.",
)
@options.framework_option("The framework of the layer (default: the one that the layer uses).")
def new(
    named: LayerWords, world: InWorld, output: str | None, derive: bool, framework: str | None
) -> None:
    """Write a commented scenario for a layer of your module, from its signature.

    The module is imported, as by `gradcheck check`.
    """
    reference = qualified_reference(named.reference)
    inputs, note = inputs_of_words(named.inputs), ""
    target, backend = import_layer(reference, framework or "")
    if not named.call:
        signature = signature_in(reference, target, backend)
        inputs = inputs or inputs_of_words(signature.usual_inputs())
        signature.require_names(inputs, named.keywords())
        note = signature.call_to_complete(inputs, named.keywords())
    keys = scenario_of_layer(reference, inputs, named, world)
    framework = framework or framework_of_backend(backend.name)
    if named.backward is not None:
        import_layer(keys["layer"]["backward"])
    text = spec_text(keys, framework, notes=True, call_note=note)
    if derive:
        text = with_derived_layer(text, reference, named.inputs, named.call)
    read_draft(text, reference)
    if output is None:
        click.echo(text, nl=False)
        return
    file = new_spec("-o", output)
    write_spec("-o", file, MODELINE + text if file.with_name(SCHEMA_FILE).is_file() else text)


def with_derived_layer(text: str, reference: str, inputs: tuple[str, ...], call: str) -> str:
    """Return the text of a scenario whose layer is the class of a derived backward.

    Raises UserError: no backward could be derived.
    """
    from gradcheck.commands.derive import derived_from

    derived = derived_from(reference, inputs, call)
    if not derived:
        raise UserError(f"no backward of {derived.name} was derived: {derived.refused}")
    block = textwrap.indent(derived.code, "      ", lambda line: bool(line.strip()))
    lines = text.splitlines(keepends=True)
    number = next(k for k, line in enumerate(lines) if line.startswith("    layer:"))
    lines[number] = f"    layer: |\n{block}"
    if lines[number + 1].startswith("    # call:"):  # the function's call
        del lines[number + 1]
    return "".join(lines)
