"""Sentences of PyTorch's documents: specs/torch holds the installed torch to them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.commands import main
from gradcheck.conformance.pins import run_with_pin
from gradcheck.conformance.releases import with_recorded_deviations
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.model import Scenario
from gradcheck.spec.read import load
from gradcheck.support.resources import bundled_specs

SPECS = load([bundled_specs() / "torch"])
SCENARIOS = [scenario for spec in SPECS for scenario in spec.scenarios]
CASES = with_recorded_deviations(plan(SPECS, ["torch"]))
CONTEXT = "torch-no-gradient-through-the-context"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_torch_does_what_its_documents_say_or_what_is_recorded(case: Case) -> None:
    result = run_with_pin(case, execute)
    assert result.status is (Status.XFAIL if case.entry.observed else Status.PASS), result.message


def test_what_the_documents_ask_and_torch_does_not_is_shown_next_to_the_reason(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = CliRunner().invoke(main, ["run", str(SPECS[0].path), "-k", "context", f"--report=json:{report}"])
    assert done.exit_code == 0, done.output
    results = {result["name"]: result for result in json.loads(report.read_text())["results"]}
    recorded = results[f"{CONTEXT}@torch"]
    assert recorded["status"] == "XFAIL"
    assert recorded["message"].startswith("an input that is kept on ctx has its history in backward")
    (detail,) = recorded["details"]
    assert detail.startswith("as documented: kept: expected None, got 2.0 (line ")


@pytest.mark.parametrize(
    ("script", "status"),
    [("saved, kept = 2.0, None", Status.XPASS), ("saved, kept = 2.0, 3.0", Status.FAIL)],
    ids=["what the documents ask", "anything else"],
)
def test_another_result_than_the_recorded_one_fails(script: str, status: Status) -> None:
    [case] = [case for case in CASES if case.scenario.id == CONTEXT]
    result = run_with_pin(
        case.model_copy(update={"scenario": case.scenario.model_copy(update={"script": script})}), execute
    )
    assert result.status is status
    assert not status.green


def words(text: str) -> str:
    """A text without its markup, as it is printed."""
    text = re.sub(r":\w+:`[~.]?(?:[\w.]*\.)?(\w+)`", r"\1()", text)
    return re.sub(r"[`\s]+|\(\)", " ", text.replace("torch.autograd.Function.", "")).replace(" .", ".").strip()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_every_scenario_quotes_a_sentence_word_for_word(scenario: Scenario) -> None:
    source = scenario.source
    assert scenario.class_ == "sentence"
    assert source is not None
    assert source.quote
    assert source.url
    if source.document.startswith("torch."):  # a docstring, which the installed torch has
        place: object = torch
        for name in source.document.split(".")[1:]:
            place = getattr(place, name)
        quote, text = re.sub(r"\W+", " ", words(source.quote)), re.sub(r"\W+", " ", words(place.__doc__ or ""))
        assert quote in text
