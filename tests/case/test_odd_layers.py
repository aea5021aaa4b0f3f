"""Layers that are odd, but honest: each gets the verdict that is right for it, and none is called a bug of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warm import python

from gradcheck.spec.read import read

ROOT = Path(__file__).parents[2]
SPEC = Path(__file__).parent / "odd_layers.grad.yaml"
SCENARIOS = {one.id: one.tags[0] for one in read(SPEC).scenarios}


@pytest.fixture(scope="module")
def results(made_once: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The exit code of one run of them all, and each one's result."""

    def run() -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("odd")
        done = python(ROOT / "cli.py", "run", SPEC, "--allow-code", "--report", "json:r.json", folder=folder)
        found = json.loads((folder / "r.json").read_text())["results"]
        return {"code": done.returncode, **{one["scenario"]: one for one in found}}

    return dict(made_once("odd", run))


def test_the_run_exits_with_1(results: dict[str, Any]) -> None:
    assert results["code"] == 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_odd_layer_gets_the_verdict_that_is_right_for_it(results: dict[str, Any], name: str) -> None:
    result = results[name]
    assert (result["status"].lower(), result["internal_error"]) == (SCENARIOS[name], ""), result["message"]


def test_what_is_raised_by_a_later_evaluation_says_by_which(results: dict[str, Any]) -> None:
    (mark,) = results["raises-late"]["gradient"]["marks"]
    assert mark.startswith("diagnosis stopped: RuntimeError: too late · raised by evaluation ")


def test_of_subnormal_inputs_the_entry_that_is_doubled_is_found(results: dict[str, Any]) -> None:
    (wrong,) = results["subnormal"]["gradient"]["wrong"]
    assert (wrong["index"], wrong["analytic"]) == ([1], 4.0)
