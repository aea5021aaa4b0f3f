"""``gradcheck list rules``: the statements of the documents, what asserts them, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import gradcheck.commands.listing as command
from gradcheck.commands import main
from gradcheck.conformance.catalogue import Document, Rule


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
    text = show("backward-returns-list").stdout
    assert "“Output of backward function can only be Tensor or tuple/list of Tensor.”" in text
    assert "decided: taken as the documents say" in text
    assert "backward-rules-list-return" in text


def test_a_rule_that_is_not_there_brings_up_the_nearest() -> None:
    done = show("save-return-none")
    assert done.exit_code == 2
    assert "there is no scenario, rule or code 'save-return-none'; did you mean save-returns-none?" in done.stderr


def test_nothing_is_uncovered() -> None:
    done = rules("--uncovered")
    assert (done.exit_code, done.stdout) == (0, "")


def test_what_is_uncovered_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    new = Rule(id="new-rule", says="something new", section="1", quote="Something new.")
    monkeypatch.setattr(command, "load_catalogue", lambda: [Document(document="A page", verified="", rules=(new,))])
    done = rules("--uncovered")
    assert done.exit_code == 1
    assert "new-rule: no scenario cites it" in done.stdout
    assert "context-save-roundtrip: cites no rule" in done.stdout
