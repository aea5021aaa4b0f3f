"""Cases of one scenario on several backends: what differs comes as a result of its own, behind theirs."""

from __future__ import annotations

import numpy as np
import pytest

from gradcheck.case.values import value_of
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.run.results import SideBySide
from gradcheck.spec.read import read_bytes

SPEC = b"""
schema: gradcheck/v1
scenarios:
  - id: one
    title: t
    source: {document: d}
    layer: {op: tanh}
    inputs: {x: {shape: []}}
    matrix: {dtype: [float32, float64]}
  - {id: two, extends: one, title: t, matrix: {dtype: [float64]}}
"""


@pytest.fixture
def cases():
    return plan([read_bytes(SPEC, "a.grad.yaml")], ["numpy", "paddle@3.0.0", "paddle"])


def seen(cases, answers, side_by_side=None):
    """Names and statuses of what comes, where each case answers with a status and a number, or none."""
    results = [
        case.result(status, "", values=() if number is None else (value_of("out", np.float64(number)),))
        for case, (status, number) in zip(cases, answers, strict=True)
    ]
    return list((side_by_side or SideBySide()).with_comparisons(results))


P, X = Status.PASS, Status.XFAIL


def test_what_agrees_comes_as_it_is_without_its_values(cases):
    side_by_side = SideBySide()
    found = seen(cases, [(P, 1.0)] * 9, side_by_side)
    assert [one.name for one in found] == [case.name for case in cases]
    assert not any(one.values for one in found)
    assert side_by_side.compared == 6


def test_a_difference_comes_behind_the_cases_of_its_scenario(cases):
    found = seen(cases, [(P, 1.0)] * 4 + [(P, 2.0)] + [(P, 1.0)] * 4)
    assert [one.name for one in found if one.compared_with] == ["one/dtype=float64@numpy,paddle@3.0.0"]
    at = next(k for k, one in enumerate(found) if one.compared_with)
    assert [one.name for one in found[at - 3 : at]] == [case.name for case in cases[3:6]]
    assert found[at].status is Status.FAIL
    assert found[at].message == (
        "both behave as documented, but out: 1 on numpy, 2 on paddle@3.0.0 "
        "(1 of 1 elements differ, by up to 5.0e-01 of the largest, tolerance 1e-12)"
    )
    assert found[at].cases == ("one/dtype=float64@numpy", "one/dtype=float64@paddle@3.0.0")


def test_what_does_otherwise_and_is_pinned_is_not_told_twice(cases):
    assert not any(one.compared_with for one in seen(cases, [(P, 1.0), (X, 2.0), (P, 1.0)] + [(P, 1.0)] * 6))


def test_the_first_that_does_as_documented_is_what_others_are_held_against(cases):
    found = seen(cases, [(X, 1.0), (P, 2.0), (P, 3.0)] + [(P, None)] * 6)
    assert [one.name for one in found if one.compared_with] == ["one/dtype=float32@paddle@3.0.0,paddle"]


def test_a_run_that_is_stopped_compares_what_is_there(cases):
    """Also where results are missing between others: each is held against those of its own scenario and point."""
    there = [cases[0], cases[2], cases[4]]
    results = [case.result(P, "", values=(value_of("out", np.float64(k)),)) for k, case in enumerate(there)]
    found = [one.name for one in SideBySide().with_comparisons(results)]
    assert found == [cases[0].name, cases[2].name, f"{cases[0].name},paddle", cases[4].name]
