"""The check of a layer for which a scenario has been drafted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gradcheck.backends.environments import BackendPlace
from gradcheck.case.case import Case
from gradcheck.commands.choose import chosen_backends
from gradcheck.commands.run_cases import exit_code, make_pool, run_all, write_reports
from gradcheck.commands.run_options import ScreenOptions, report_file
from gradcheck.commands.screen import make_screen
from gradcheck.commands.specs import fail
from gradcheck.config import Config
from gradcheck.run.plan import plan
from gradcheck.run.worker_process import WorkerProcess
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.draft import Signature
from gradcheck.spec.read import read_bytes


def check_drafted(
    text: str,
    signature: Signature,
    ahead: WorkerProcess | None,
    *,
    backends: Sequence[str],
    reports: Sequence[str],
    screen: ScreenOptions,
    **options: Any,
) -> int:
    """Run the scenario of a spec file's `text`, show and report it; the exit code. `options` are those of `plan`.

    Raises:
        SystemExit: it cannot be run.
    """
    places = chosen_backends(backends, [], Config.model_construct(), {}, True)
    try:
        cases = drafted_cases(text, signature, places, **options)
    except SpecError as error:
        raise not_drafted(signature, error) from None
    files = [report_file(report) for report in reports]
    again = shlex.join(["gradcheck", *sys.argv[1:]])
    shown, began = make_screen(screen, again), datetime.now(UTC)
    results, interrupted = run_all(cases, make_pool("local", 1, True, ahead), shown)
    write_reports(files, cases, results, began, again)
    return exit_code(results, interrupted)


def drafted_cases(
    text: str, signature: Signature, places: Mapping[str, BackendPlace], **options: Any
) -> Sequence[Case]:
    """The cases of the one scenario of a spec file's `text`, which stands where the layer does.

    Raises:
        SpecError: the file has mistakes.
    """
    spec = read_bytes(text.encode(), str(Path.cwd() / signature.reference))  # modules are looked for from its folder
    scenario = spec.scenarios[0].model_copy(update={"line": signature.line, "column": 1})
    spec = spec.model_copy(update={"scenarios": (scenario,)})
    return plan([spec], list(places), places=places, **options)


def not_drafted(signature: Signature, error: SpecError) -> SystemExit:
    """Say why a layer cannot be checked with what is given: the mistakes, which are in no file of the user's."""
    said = "; ".join("; ".join(filter(None, [one.message, one.help])) for one in error.diagnostics)
    return fail(f"{signature.reference}: {said}")
