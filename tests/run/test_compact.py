"""Results that are kept small are the same results."""

from __future__ import annotations

from gradcheck.result import GradientSummary, Status, WrongEntry
from gradcheck.run.results import Results

WRONG = WrongEntry(
    input="x", index=(0,), output="out", output_index=(1,), analytic=float("nan"), numeric=float("-inf"), bar=1e-300
)
GRADIENT = GradientSummary(verdict=Status.FAIL, wrong=(WRONG,), wrong_counts={"x": (1, 2)}, exhaustive=False)


def test_they_are_a_sequence_of_what_was_added(case):
    results, added = Results(), []
    for k in range(4):
        one = case("pass", f"c{k}")
        added.append(one.result(Status.FAIL, "ü\n\x1b", details=("a", "b"), gradient=GRADIENT, seconds=k, output="o"))
        results.append(added[-1])
    assert len(results) == 4
    assert repr(list(results)) == repr(added)
    assert repr(results[-1]) == repr(added[-1])
    assert repr(results[1:3]) == repr(added[1:3])
