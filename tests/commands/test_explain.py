"""``gradcheck explain``: codes, scenarios and rules."""

from __future__ import annotations

import pytest


def test_a_code_has_its_cause_and_its_fix(gradcheck):
    done = gradcheck("explain", "gc104")
    assert done.code == 0
    assert done.out.startswith("GC104: permuted, rolled or flipped\n")


def test_a_rule_has_its_quote_and_the_scenarios_that_assert_it(gradcheck):
    rule = "save-at-most-once"
    done = gradcheck("explain", rule, "GC101")
    assert done.code == 0
    assert done.out.startswith("GC101: constant factor\n")
    assert f"\n\n{rule}: " in done.out
    assert "“" in done.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("document-guide-tahn", "did you mean document-guide-tanh?"),
        ("xyzzy", "`gradcheck list`, `gradcheck list rules` and `gradcheck list codes` list them all"),
    ],
)
def test_what_is_none_of_them_brings_up_the_nearest(gradcheck, name, said):
    assert gradcheck("explain", name) == (
        2,
        "",
        f"gradcheck: there is no scenario, rule or code {name!r}; {said}\n",
    )


@pytest.mark.parametrize("name", ["own", "own@numpy", "a.grad.yaml::own", "a.grad.yaml:3"])
def test_a_scenario_is_explained_by_each_of_its_names(spec, gradcheck, name):
    spec("  - id: own\n    layer: {op: tanh}\n    inputs: {x: [2]}\n")
    done = gradcheck("explain", name)
    assert (done.code, done.out.splitlines()[:2]) == (0, ["# a.grad.yaml:3:5", "  - id: own"])
