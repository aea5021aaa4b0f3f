"""Sentences of PyTorch's documents: specs/torch holds the installed torch to them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.model import Scenario
from gradcheck.spec.read import load

SPECS = load([Path(__file__).parents[3] / "specs/torch"])
SCENARIOS = [scenario for spec in SPECS for scenario in spec.scenarios]
CASES = plan(SPECS, ["torch"])
BROKEN = {
    # the second derivative is left out without a word
    "torch-once-differentiable-of-constant-gradients": "nothing was raised",
    # an input that is kept on ctx has its history in backward
    "torch-no-gradient-through-the-context": "kept: expected None, got 2.0",
}
"""Scenarios of sentences that torch 2.13 breaks, with what it does."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_torch_does_what_its_documents_say(case: Case) -> None:
    result = execute(case)
    expected = Status.FAIL if case.scenario.id in BROKEN else Status.PASS
    assert result.status is expected, result.message
    assert BROKEN.get(case.scenario.id, "") in result.message


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
