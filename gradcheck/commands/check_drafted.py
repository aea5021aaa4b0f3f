"""The check of a layer that `gradcheck check` has drafted a scenario for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gradcheck.case.default_limits import TIMEOUT
from gradcheck.commands.choose import chosen_backends
from gradcheck.commands.run_cases import exit_code, make_pool, run_all, write_reports
from gradcheck.commands.run_options import report_file
from gradcheck.commands.screen import make_screen
from gradcheck.commands.specs import fail
from gradcheck.config import Config
from gradcheck.run.plan import plan
from gradcheck.run.supervisor import ExecutorError
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
    mode: Literal["auto", "probe", "full"],
    effort: Literal["usual", "full"],
    seed: int | None,
    timeout: float | None,
    reports: Sequence[str],
    screen: tuple[str, str, bool, bool],
) -> int:
    """Run the scenario of a spec file's `text`, show and report it; the exit code. `screen` is as `make_screen` has it.

    Raises:
        SystemExit: it cannot be run.
    """
    path = str(Path.cwd() / signature.reference)  # modules are looked for from its folder
    try:
        spec = read_bytes(text.encode(), path)
    except SpecError as error:
        said = "; ".join("; ".join(filter(None, [one.message, one.help])) for one in error.diagnostics)
        raise fail(f"{signature.reference}: {said}") from None
    places = chosen_backends(backends, [], Config.model_construct(), {}, True)
    scenario = spec.scenarios[0].model_copy(update={"line": signature.line, "column": 1})
    spec = spec.model_copy(update={"scenarios": (scenario,)})
    cases = plan(
        [spec], list(places), seed=seed, mode=mode, effort=effort,
        timeout=timeout, default_timeout=TIMEOUT, places=places,
    )  # fmt: skip
    files = [report_file(report) for report in reports]
    again = shlex.join(["gradcheck", *sys.argv[1:]])
    shown, began = make_screen(*screen, again), datetime.now(UTC)
    try:
        results, interrupted = run_all(cases, make_pool("local", 1, True, ahead), shown)
    except ExecutorError as error:
        raise fail(str(error)) from None
    write_reports(files, cases, results, began, again)
    return exit_code(results, interrupted)
