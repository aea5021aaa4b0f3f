"""``gradcheck replay``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from gradcheck.case.case import Case
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.permission import Permission, permission_of, require_permission
from gradcheck.commands.run_cases import exit_code, make_screen, run_all
from gradcheck.commands.shared_options import SEED, ScreenOptions, allow_code_option, scenarios
from gradcheck.commands.show import source
from gradcheck.commands.specs import place_in_file, read_specs
from gradcheck.config import load_project
from gradcheck.report.result_text import number
from gradcheck.result import Result
from gradcheck.run import journal
from gradcheck.run.plan import plan
from gradcheck.run.runner import Runner
from gradcheck.spec.model import SpecFile
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError


@click.command()
@click.argument("name", required=False, metavar="[ID]", shell_complete=scenarios)
@click.option("--seed", type=SEED, help="Seed in place of that of the last run.")
@allow_code_option
def replay(name: str | None, seed: int | None, allow_code: bool) -> None:
    """Run a case of the last run again, with the same seed and limits, and show everything about it.

    ID is a case (ID@BACKEND), a scenario, or a place in a file (FILE::ID, FILE:LINE); without it, or with a FILE alone,
    the last one that failed is meant. The record of the last run stays as it is.

    Exit code: as `gradcheck run`.
    """
    permission = permission_of(load_project(), allow_code)
    last = journal.read_journal()
    if last.skipped:
        click.echo(f"gradcheck: {journal.skipped_message(last.skipped)}", err=True)
    record = chosen_record(last.records, name)
    spec, case = case_of(record, seed, permission)
    require_permission([case], permission)
    click.echo(f"# {shown_path(record.result.path)}\n{safe(source(case.scenario, spec))}\n")
    screen = make_screen(
        ScreenOptions("plain", verbose=True), f"--seed {case.seed}" + " --allow-code" * allow_code
    )
    results, interrupted = run_all([case], Runner(1), screen, settings=permission.summary())
    for result in results:
        for line in uncut_lines(result):
            click.echo(line)
    raise SystemExit(exit_code(results, interrupted))


def chosen_record(records: Sequence[journal.Record], name: str | None) -> journal.Record:
    """The record that `name` means: of that case or scenario, the last in the files, and one that failed if any did."""
    in_order = sorted(records, key=lambda one: (one.result.path, one.result.line, one.result.name))
    id, file = name, ""
    if name is not None and place_in_file(name) is not None:
        specs, ids = read_specs([name])
        id, file = ids[0], specs[0].path
    elif name is not None and Path(name).is_file():
        id, file = None, name
    in_file = [
        one
        for one in in_order
        if not file or os.path.realpath(one.result.path) == os.path.realpath(file)
    ]
    fitting = [one for one in in_file if id in (None, one.result.name, one.result.scenario)]
    failed = [one for one in fitting if not one.result.status.green]
    if failed or (name and fitting):
        return (failed or fitting)[-1]
    if name:
        known = [known for one in records for known in (one.result.name, one.result.scenario)]
        raise UserError(
            f"the last run has no case {name!r}; {hint(name, known, f'`gradcheck run {name}` runs it')}"
        )
    raise UserError("nothing failed in the last run; name a case to replay it all the same")


def case_of(
    record: journal.Record, seed: int | None, permission: Permission
) -> tuple[SpecFile, Case]:
    """The recorded case and its spec file, read as that is now."""
    result = record.result
    if not Path(result.path).is_file():  # and a folder is not searched, whatever the record names
        raise UserError(f"{result.path} is no longer there")
    specs, _ = read_specs([result.path])
    used = record.seed if seed is None else seed
    at = chosen_backends((result.backend,), config=permission.project.config)
    cases = plan(
        specs, list(at), seed=used, timeout=record.timeout, memory=record.memory, places=at
    )
    found = next((case for case in cases if case.name == result.name), None)
    if found is None:
        raise UserError(f"{result.name} is no longer in {result.path}")
    return specs[0], found


def uncut_lines(result: Result) -> list[str]:
    """All wrong entries and all that is kept of what the case printed: reports cut both short."""
    lines = []
    if result.gradient is not None and result.gradient.wrong:
        lines.append("all wrong entries (output, input: analytic, numeric ± bar):")
        lines += [
            f"  {one.output}{list(one.output_index)}, {one.input}{list(one.index)}: "
            f"{number(one.analytic)}, {number(one.numeric)} ± {one.bar:.0e}"
            for one in result.gradient.wrong
        ]
    if result.output.strip():
        lines += [
            "what it printed:",
            *(f"  {line}" for line in result.output.rstrip("\n").split("\n")),
        ]
    return [part for line in lines for part in safe(line).split("\n")]
