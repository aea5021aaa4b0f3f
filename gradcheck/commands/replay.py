"""``gradcheck replay``: run a case of the last run again, with its seed and limits, in full
detail.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from gradcheck.case.case import Case
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.permission import Permission, permission_of, require_permission
from gradcheck.commands.run_cases import RunSettings, exit_code, make_screen, run_all
from gradcheck.commands.shared_options import SEED, ScreenOptions, allow_code_option, scenarios
from gradcheck.commands.show import source
from gradcheck.commands.specs import parse_target, read_specs
from gradcheck.config import load_project
from gradcheck.report.wrong_entries import number
from gradcheck.result import Result
from gradcheck.run.journal import Record, read_journal, skipped_message
from gradcheck.run.plan import plan
from gradcheck.run.runner import Runner
from gradcheck.spec.model import SpecFile
from gradcheck.support.display_paths import shown_path, with_heading
from gradcheck.support.escape import safe
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError


@click.command()
@click.argument("name", default="", metavar="[ID]", shell_complete=scenarios)
@click.option("--seed", type=SEED, help="Seed in place of the last run's.")
@allow_code_option
def replay(name: str, seed: int | None, allow_code: bool) -> None:
    """Run a case of the last run again, with the same seed and limits, and show everything about
    it.

    ID is a case (ID@BACKEND), a scenario, or a position in a file (FILE::ID, FILE:LINE); without
    it, or with only a FILE, the last case that failed is run. The record of the last run stays as
    it is.

    Exit code: as `gradcheck run`.
    """
    permission = permission_of(load_project(), allow_code)
    last = read_journal()
    if last.skipped:
        click.echo(f"gradcheck: {skipped_message(last.skipped)}", err=True)
    record = chosen_record(last.records, name)
    spec, case = case_of(record, seed, permission)
    require_permission([case], permission)
    click.echo(f"# {shown_path(record.result.path)}\n{safe(source(case.scenario, spec))}\n")
    again = f"--seed {case.seed}" + " --allow-code" * allow_code
    screen = make_screen(ScreenOptions("plain", verbose=True), again)
    settings = RunSettings(shown=permission.summary())
    results, interrupted = run_all([case], Runner(1), screen, settings)
    for line in uncut_lines(results[0]) if results else []:
        click.echo(safe(line))
    raise SystemExit(exit_code(results, interrupted))


def chosen_record(records: Sequence[Record], name: str) -> Record:
    """Return the record that `name` selects: the last one, or the last failure if there is any."""
    target = parse_target(name)
    id, file = target.id, target.path
    if target.is_place:
        specs, ids = read_specs([name])
        id, file = ids[0], specs[0].path
    fitting = sorted(
        (record for record in records if fits(record.result, id, file)),
        key=lambda candidate: (candidate.result.path, candidate.result.line, candidate.result.name),
    )
    failed = [record for record in fitting if not record.result.status.green]
    if chosen := failed or (fitting if name else []):
        return chosen[-1]
    if name:
        known = [
            each
            for candidate in records
            for each in (candidate.result.name, candidate.result.scenario)
        ]
        near = hint(name, known, f"if there is such a scenario, `gradcheck run {name}` runs it")
        raise UserError(f"the last run has no case {name!r}; {near}")
    raise UserError("nothing failed in the last run; name a case to replay it anyway")


def fits(result: Result, id: str, file: str) -> bool:
    """Whether a result belongs to a case, scenario and file, as far as these are given."""
    if file and os.path.realpath(result.path) != os.path.realpath(file):
        return False
    return id in ("", result.name, result.scenario)


def case_of(record: Record, seed: int | None, permission: Permission) -> tuple[SpecFile, Case]:
    """Return the spec file of a recorded case, and the case as it is in the file now."""
    result = record.result
    specs, _ = read_specs([result.path])
    places = chosen_backends((result.backend,), config=permission.project.config, specs=specs)
    cases = plan(
        specs,
        list(places),
        places,
        seed=record.seed if seed is None else seed,
        timeout=record.timeout,
        memory=record.memory,
    )
    for case in cases:
        if case.name == result.name:
            return specs[0], case
    raise UserError(f"{result.name} is no longer in {result.path}")


def uncut_lines(result: Result) -> list[str]:
    """Return all wrong entries and the whole recorded output; reports shorten both."""
    entries = []
    for wrong in result.checked.wrong:
        entry = f"{wrong.output}{list(wrong.output_index)}, {wrong.input}{list(wrong.index)}"
        values = f"{number(wrong.analytic)}, {number(wrong.numeric)} ± {wrong.error_bound:.0e}"
        entries.append(f"  {entry}: {values}")
    lines = with_heading("all wrong entries (output, input: analytic, numeric ± bound):", entries)
    if result.output.strip():
        lines.append("what it printed:")
        lines += [f"  {line}" for line in result.output.rstrip("\n").split("\n")]
    return lines
