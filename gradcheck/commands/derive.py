"""``gradcheck derive``: the right backward of a layer or function, or the change that is needed."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from gradcheck.api import derive as derive_backward
from gradcheck.case.arguments import backend_of
from gradcheck.case.case import Case
from gradcheck.case.input_arrays import make_input
from gradcheck.case.layer_signature import LayerSignature, signature_of
from gradcheck.case.program_check import ProgramCheck
from gradcheck.case.user_code import engine, require_known, run_source
from gradcheck.case.world import WorldArgument
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.permission import permission_of, require_permission
from gradcheck.commands.run_cases import make_executor
from gradcheck.commands.shared_options import SEED, allow_code_option
from gradcheck.commands.specs import parse_target, read_specs
from gradcheck.commands.user_layer import import_layer, signature_in
from gradcheck.config import load_project
from gradcheck.deriving.derived import Derived, derive_checked
from gradcheck.deriving.graph import NotDerived
from gradcheck.deriving.source import SourceText, source_of_file
from gradcheck.report.check_result import CheckResult
from gradcheck.run.plan import plan
from gradcheck.run.select import select_ids
from gradcheck.spec.draft import qualified_reference, reference_in_file
from gradcheck.spec.input_words import FORM, inputs_of_words
from gradcheck.spec.model import Input, Scenario, is_static
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe
from gradcheck.support.foreign import describe_error
from gradcheck.support.pyproject import root_of
from gradcheck.support.user_error import UserError
from pylayer.layer.py_layer import as_releases

LAMBDA_FILE = "<lambda>"


@click.command()
@click.argument("reference", metavar="PACKAGE.MODULE:LAYER")
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar=FORM,
    help="An input: a shape and its options, such as x=2x3 or k=4:int64:below=5; "
         "repeatable.",
)  # fmt: skip
@click.option(
    "--call",
    default="",
    metavar="CODE",
    help="The expression that calls the layer, such as 'Own.apply(x, 3)'.",
)
@click.option(
    "--order",
    type=click.IntRange(1, 2),
    default=1,
    help="2: save only inputs, so that the double backward is right too.",
)
@click.option(
    "--world",
    type=click.IntRange(min=2),
    metavar="RANKS",
    help="Number of ranks, for a layer that communicates with other ranks.",
)
@click.option(
    "--outputs",
    default="split",
    metavar="WORD[,WORD]",
    help="In a world: split (default) or replicated, for all outputs or one for each.",
)
@click.option(
    "--diff", is_flag=True, help="Print the change to your file; a single edit if possible."
)
@click.option(
    "--write",
    is_flag=True,
    help="Make that change; only files inside the project are written.",
)
@click.option("--seed", type=SEED, default=0, help="Seed of the inputs.")
@allow_code_option
def derive(reference: str, diff: bool, write: bool, allow_code: bool, **arguments: Any) -> None:
    """Derive the backward of a layer from its forward, and print the class.

    The forward is traced at the inputs; the printed code has passed the gradient check at these
    sizes and two others, in float64 and float32. The module is imported and run, as by `gradcheck
    check`. In place of a layer, a function of a module gives a class, and so does a text such as
    "lambda x, w: paddle.tanh(x @ w)"; a function of NumPy arrays gives a function of its gradients,
    which --backward of `gradcheck check` takes. With --world, the layer communicates with other
    ranks, and its backward includes the collectives. FILE::ID is a scenario: --diff and --write
    repair its layer; if that is static, its `backward_fn` is printed.

    Exit code 0: a backward was derived or, with --diff or --write, backward is right already.
    1: none was derived, and the reason is on stderr, or, with --diff or --write, there is a change.
    """
    if parse_target(reference).is_place:
        case = permitted_case(reference, allow_code)
        diff |= not is_static(case.scenario.layer)
        derived = repaired_scenario(case) if diff or write else derived_static(case)
    else:
        derived = derived_from(reference, **arguments)
    if diff or write:
        raise SystemExit(show_change(derived, write))
    if not derived:
        raise SystemExit(refuse(derived))
    click.echo(safe(derived.code), nl=False)
    click.echo(safe(checked_at(derived)), err=True)


def derived_from(
    reference: str, inputs: Sequence[str], call: str = "", seed: int = 0, **options: Any
) -> Derived:
    """The derived backward of the layer or function that a word names, at the inputs of the command
    line.

    Args:
        options: of `gradcheck.derive`: order, world and outputs.

    Raises UserError: there is no such layer, or it cannot be called this way.
    """
    random, world = np.random.default_rng(seed), options.get("world")
    specs = inputs_of_words(inputs)
    words = options.get("outputs", "split").split(",")
    if world is None and (words != ["split"] or any(s.ranks != "split" for s in specs.values())):
        raise UserError(
            "--outputs, replicated and partial are for a world of ranks: add --world 4, for example"
        )
    options["outputs"] = words if world else "split"
    arrays = {name: make_argument(spec, random, world) for name, spec in specs.items()}
    with engine(always=True):
        subject, signature = subject_of(reference)
        if not call:
            signature.require_call(specs, others="in --call CODE")
        args, kwargs = called_with(subject, call, arrays)
        name = "Layer" if is_text(reference) else ""
        try:
            return derive_backward(subject, *args, name=name, **options, **kwargs)
        except (TypeError, ValueError) as error:
            raise UserError(str(error)) from None


def make_argument(spec: Input, random: np.random.Generator, world: int | None) -> Any:
    """The array of an input; in a world, it holds the values of all ranks or is marked."""
    make = functools.partial(make_input, spec, spec.dtype, random)
    if world is None or spec.ranks != "split":
        array = make().astype(str(spec.dtype))
        return array if spec.ranks == "split" else WorldArgument(array, spec.ranks)
    return np.stack([make() for _ in range(world)]).astype(str(spec.dtype))


def permitted_case(word: str, allow_code: bool) -> Case:
    """The case of a scenario whose code is permitted to run.

    Raises UserError: there is no such scenario, or its code may not run.
    """
    permission = permission_of(load_project(), allow_code)
    specs, ids = read_specs([word])
    places = chosen_backends((), specs=specs)
    case = select_ids(plan(specs, list(places), places), ids)[0]
    require_permission([case], permission)
    return case


def derived_static(case: Case) -> Derived:
    """The derived `backward_fn` of a scenario's static layer, and the change to its file."""
    with engine(always=True), np.errstate(all="ignore"), as_releases():
        try:
            check = ProgramCheck(case)
        except Exception as error:  # whatever the scenario's code raises
            reason = str(error) if isinstance(error, NotDerived) else describe_error(error)
            return Derived(case.scenario.id, refused=reason)

        def check_backward(backward: Any, *args: Any, **options: Any) -> CheckResult:
            return CheckResult.of(check(backward, *args))

        call, name = check.call, check.backward_fn.__name__
        derived = derive_checked((call.subject, call.args, {}), check_backward, name)
        return replace(derived, name=case.scenario.id)


def repaired_scenario(case: Case) -> Derived:
    """The change that repairs a scenario's layer: a single edit, or a whole `backward_fn`."""
    with make_executor() as runner:
        result = runner.submit(case).result()
    derived = Derived(case.scenario.id)
    fix = result.gradient.fix if result.gradient is not None else None
    if fix is None and result.status.green:
        return derived
    if fix is None and is_static(case.scenario.layer):
        return derived_static(case)
    if fix is None:
        text = f"{no_edit(case.scenario)}: {result.status} {result.message}".strip()
        return replace(derived, refused=text)
    source = source_of_file(fix.path)
    changed = source.with_fix(fix)
    return replace(derived, diff=source.diff(changed), source=source, changed=changed)


def no_edit(scenario: Scenario) -> str:
    """Print that no edit of a scenario's layer was found, or why none was searched for."""
    return "no edit is searched for in a world of ranks" if scenario.world_sizes else "no edit"


def is_text(reference: str) -> bool:
    """Whether a word is the text of a function rather than the name of one."""
    return " " in reference.strip()


def subject_of(reference: str) -> tuple[Any, LayerSignature]:
    """The layer or function that a command-line word refers to, by name or as a lambda, and how it
    is called.

    Raises UserError: there is none.
    """
    if is_text(reference):
        function = function_of_text(reference)
        return function, signature_of(function, "Layer", backend_of(function, (), is_named=True))
    if ".py:" in reference:
        reference = reference_in_file(reference)
    reference = qualified_reference(reference)
    # a function that names no framework is one of arrays, or of the engine's Tensors
    subject, backend = import_layer(reference, named="numpy")
    return subject, signature_in(reference, subject, backend)


def function_of_text(text: str) -> Any:
    """The function from the text of a lambda. Raises UserError: the text is not a lambda."""
    import paddle

    with suppress(SyntaxError):
        if isinstance(ast.parse(text.strip(), mode="eval").body, ast.Lambda):
            scope = {"paddle": paddle, "np": np, "F": paddle.nn.functional, "__name__": "__main__"}
            source = f"function = {text.strip()}\n"
            linecache.cache[LAMBDA_FILE] = (len(source), None, [source], LAMBDA_FILE)
            run_source(source, LAMBDA_FILE, 1, scope)
            return scope["function"]
    raise UserError(
        f'{text}: this is not a Python lambda: write one such as "lambda x: paddle.tanh(x)"'
    )


def called_with(
    subject: Any, call: str, arrays: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call: from the given expression, otherwise the arrays by name.

    Raises UserError: the expression does not call the layer.
    """
    if not call:
        return (), dict(arrays)
    taken: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def take(*args: Any, **kwargs: Any) -> None:
        taken.append((args, kwargs))

    take.apply = take  # type: ignore[attr-defined]
    function = getattr(subject, "forward", subject)
    scope = {**function.__globals__, subject.__name__: take, **arrays}
    try:
        eval(call, scope)
    except NameError as error:
        require_known(error.name or "", call, scope, function.__globals__["__name__"])
    except Exception as error:
        raise UserError(f"--call {call}: {type(error).__name__}: {error}") from None
    if len(taken) != 1:
        raise UserError(f"--call {call}: write the call of {subject.__name__}, once")
    return taken[0]


def refuse(derived: Derived) -> int:
    """Print why no backward was derived, and return the exit code."""
    click.echo(safe(f"no backward of {derived.name} was derived: {derived.refused}"), err=True)
    return 1


def checked_at(derived: Derived) -> str:
    """A comment with the sizes at which the code was checked."""
    sizes = dict.fromkeys(place.rpartition(" in ")[0] for place in derived.checked_at)
    return f"# PASS at {'; '.join(sizes)}, in float64 and float32"


def show_change(derived: Derived, write: bool) -> int:
    """Print or make the change to the user's file, and return the exit code."""
    if not derived.diff or derived.source is None:
        if derived.refused:
            return refuse(derived)
        click.echo(f"backward of {derived.name} is right", err=True)
        return 0
    if write:
        write_change(derived.source, derived.changed)
        click.echo(safe(f"{shown_path(derived.source.path)} is changed:"), err=True)
    click.echo(safe(derived.diff))
    return 1


def write_change(source: SourceText, changed: str) -> None:
    """Change a file of the project. Raises UserError: the file is not in the project."""
    file, root = Path(source.path), root_of(Path.cwd()).resolve()
    if not file.is_file() or not file.resolve().is_relative_to(root):
        raise UserError(f"--write: {source.path} is not in the project, {root}")
    source.write(changed)
