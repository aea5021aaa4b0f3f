"""A case that writes its own answer costs itself alone, whatever it writes, and every report shows the run."""

from __future__ import annotations

import io
import json
import random
import time
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gradcheck.case.case import Case
from gradcheck.commands.run_cases import exit_code, make_screen, run_all, write_reports
from gradcheck.commands.shared_options import ScreenOptions
from gradcheck.report.files import FORMATS
from gradcheck.result import Result, Status
from gradcheck.run.answer import result_of
from gradcheck.run.child import Outcome
from gradcheck.run.plan import plan
from gradcheck.spec.read import read_bytes
from tests.hostile.answers import answer

AT_A_TIME = 50
MOST_SECONDS = 2.0
"""Of processor time that no answer may take, its part in all reports included: `AT_A_TIME` together take less."""
GOOD = "fine, as it is"


class Forged:
    """An executor in which every second case answers as it should, and the others with what they like."""

    slots = 1

    def __init__(self, random: random.Random) -> None:
        self.random, self.number = random, 0
        self.drawing = 0.0
        """Processor time that the drawing of the answers took."""

    def __enter__(self) -> Forged:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, case: Case) -> Future[Result]:
        """The result that a supervisor makes of an answer."""
        good = case.scenario.id.startswith("good")
        started = time.process_time()
        text = case.result(Status.PASS, GOOD).model_dump_json() if good else answer(self.random, case)
        self.drawing += time.process_time() - started
        result = result_of(case, Outcome(text, "printed\n", 0, "", 0.5))
        future: Future[Result] = Future()
        future.set_result(result)
        return future


def cases_of(count: int, folder: Path) -> list[Case]:
    """Well-behaved cases and others, on two backends."""
    common = "title: t, source: {document: d}, layer: {op: tanh}, inputs: {x: {shape: [2]}}"
    text = "".join(f"  - {{id: {kind}-{k}, {common}}}\n" for k in range(count) for kind in ("good", "forged"))
    spec = read_bytes(f"schema: gradcheck/v1\nscenarios:\n{text}".encode(), str(folder / "a.grad.yaml"))
    return plan([spec], ["numpy", "paddle"])


def reported(random: random.Random, folder: Path, layout: str) -> float:
    """A run of forged answers with all its reports; the most processor time that one of its answers took.

    Raises:
        AssertionError: a well-behaved case has another result, or the run is said to have found a bug.
    """
    cases, pool, files = cases_of(AT_A_TIME // 2, folder), Forged(random), [(one, folder / one) for one in FORMATS]
    began, started = datetime.now(UTC), time.process_time()
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        screen = make_screen(ScreenOptions(layout, "never", verbose=True), "--allow-code")
        results, interrupted = run_all(cases, pool, screen)  # type: ignore[arg-type]
        write_reports(files, cases, results, began, "--allow-code")
        assert exit_code(results, interrupted) in (0, 1)
    spent = time.process_time() - started
    assert "bug in gradcheck" not in err.getvalue()
    assert "good-0@numpy" in out.getvalue()
    own = [result for result in results if not result.beside]
    for case, result in zip(cases, own, strict=True):
        known = (case.name, case.scenario.path, case.scenario.line, case.scenario.column, case.backend)
        assert (result.name, result.path, result.line, result.column, result.backend) == known
        if case.scenario.id.startswith("good"):
            assert (result.status, result.message, result.internal_error) == (Status.PASS, GOOD, "")
    told = json.loads((folder / "json").read_text(encoding="utf-8"))["results"]
    assert [one["name"] for one in told] == [result.name for result in results]
    assert all((folder / name).stat().st_size for name in FORMATS)
    return spent - pool.drawing


@pytest.mark.parametrize("layout", ["plain", "rich"])
@pytest.mark.parametrize("answers", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_whatever_a_case_answers_costs_it_alone(tmp_path: Path, answers: int, layout: str) -> None:
    slowest = 0.0
    for seed in range(0, answers, AT_A_TIME // 2):
        spent = reported(random.Random(f"{layout}{seed}"), tmp_path, layout)
        assert spent < MOST_SECONDS, f"{layout}, seed {seed}"
        slowest = max(slowest, spent)
    print(f"{answers} forged answers, {layout}: at most {slowest:.2f} s for {AT_A_TIME} of them")
