"""What is run: names and order of cases, seeds and limits, and why one is not run."""

from __future__ import annotations

import pytest

from gradcheck.case.case import Case
from gradcheck.result import Status
from gradcheck.run.plan import plan


def names(cases):
    return [case.name for case in cases]


def test_cases_come_by_scenario_then_matrix_point_then_backend(specs):
    assert names(plan(specs, ["numpy", "cupy"])) == [
        "tanh/dtype=float32,flag=True@numpy",
        "tanh/dtype=float32,flag=True@cupy",
        "tanh/dtype=float32,flag=False@numpy",
        "tanh/dtype=float32,flag=False@cupy",
        "tanh/dtype=float64,flag=True@numpy",
        "tanh/dtype=float64,flag=True@cupy",
        "tanh/dtype=float64,flag=False@numpy",
        "tanh/dtype=float64,flag=False@cupy",
        "skipped@numpy",
        "skipped@cupy",
    ]


@pytest.mark.parametrize(
    ("options", "seeds", "timeouts"),
    [
        ({}, [7, 0], [5, 60]),
        ({"seed": 0}, [0, 0], [5, 60]),
        ({"default_timeout": 9.0}, [7, 0], [5, 9]),
        ({"timeout": 2.0, "default_timeout": 9.0}, [7, 0], [2, 2]),
    ],
)
def test_seed_and_timeout_are_the_scenario_s_unless_the_command_line_gives_one(specs, options, seeds, timeouts):
    cases = {case.scenario.id: case for case in plan(specs, ["numpy"], **options)}
    assert [case.seed for case in cases.values()] == seeds
    assert [case.timeout for case in cases.values()] == timeouts


def test_a_case_survives_the_way_to_a_worker(specs):
    for case in plan(specs, ["numpy"]):
        again = Case.model_validate_json(case.model_dump_json())
        assert repr(again) == repr(case)
        assert again.scenario.line_of("inputs.x") == case.scenario.line_of("inputs.x")


def test_a_skip_carries_its_reason(specs):
    tanh, *_, skipped = plan(specs, ["numpy"])
    assert tanh.not_run() is None
    result = skipped.not_run()
    assert (result.status, result.message, result.line) == (Status.SKIP, "not yet", 14)


def test_a_backend_that_cannot_be_used_is_never_a_pass(specs, monkeypatch):
    monkeypatch.setattr("gradcheck.backends.base.is_installed", lambda module: False)
    result = plan(specs, ["paddle"])[0].not_run()
    message = "not installed: paddle; pip install paddlepaddle"
    assert (result.status, result.message) == (Status.SKIP, message)
