"""``gradcheck list rules``: the statements of the documents, what asserts them, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import gradcheck.commands.listing as command
from gradcheck.commands import main
from gradcheck.conformance.catalogue import Document


def rules(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["list", "rules", *arguments])


def show(rule: str) -> Result:
    return CliRunner().invoke(main, ["show", rule])


def test_a_line_for_each_rule_says_what_it_demands_and_how_often_that_is_asserted() -> None:
    lines = rules().stdout.splitlines()
    line = next(line for line in lines if line.startswith("save-returns-none "))
    assert "save_for_backward returns None" in line
    assert line.endswith("[paddle.autograd.PyLayerContext]  1 scenario")


def test_a_rule_is_shown_with_its_quote_its_decision_and_its_scenarios() -> None:
    text = show("static-methods").stdout
    assert "“Both forward and backward are @staticmethod.”" in text
    assert "class: decided" in text
    assert "against it: no page says that others are refused" in text
    assert "decided: plain functions and class methods work as well" in text
    assert "apply-plain-functions" in text


def test_a_chinese_quote_is_shown_in_english_too() -> None:
    assert "in English: “This returned value must be a Tensor.”" in show("gradient-needed-is-tensor").stdout


def test_a_rule_that_is_not_there_brings_up_the_nearest() -> None:
    done = show("save-return-none")
    assert done.exit_code == 2
    assert "there is no scenario, rule or code 'save-return-none'; did you mean save-returns-none?" in done.stderr


def test_nothing_is_uncovered() -> None:
    done = rules("--uncovered")
    assert (done.exit_code, done.stdout) == (0, "")


def test_what_is_uncovered_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    new = {"id": "new-rule", "says": "something new"}
    page = Document.model_validate({"document": "A page", "class": "design", "rules": [new]})
    monkeypatch.setattr(command, "load_catalogue", lambda: [page])
    done = rules("--uncovered")
    assert done.exit_code == 1
    assert "new-rule: no scenario cites it" in done.stdout
    assert "context-save-roundtrip: cites no rule" in done.stdout
