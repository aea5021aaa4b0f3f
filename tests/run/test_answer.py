"""What a case's process says of it: its own part is taken, within bounds; what is known is not taken from it."""

from __future__ import annotations

import json

import pytest

from gradcheck.case.values import value_of
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, StepScan
from gradcheck.run.answer import MOST_ALTOGETHER, MOST_TEXT, AnswerError, answer_line, answer_of, bounded, relayed

SCAN = StepScan(
    input="x", index=(0,), output="out", output_index=(0,), analytic=2.0, steps=(1e-8, 1e-4), differences=(3.0, 3.0),
    rounding=(1e-7, 1e-11), chosen=1e-4, value=3.0, bar=1e-11,
)  # fmt: skip
GRADIENT = GradientSummary(
    verdict=Status.FAIL, wrong_counts={"x": (1, 2)}, scan=SCAN,
    diagnosis=(Diagnosis(code="GC102", text="the sign", line="a.py:3", source_line="y = -x", column=4, end_column=6),),
)  # fmt: skip
TRACEBACK = 'Traceback (most recent call last):\n  File "/lib/gradcheck/run/in_child.py", line 80, in run_here\n'


def told(case, **fields) -> Result:
    """What the case's process says, with some fields of its own."""
    whole = case.result(Status.FAIL, "said", gradient=GRADIENT).model_dump(mode="json")
    return answer_of(case, json.dumps({**whole, **fields}), 0.5)


def test_what_is_known_is_not_taken_from_an_answer(case):
    one = case("pass")
    known = told(one)
    forged = {
        "path": "/etc/passwd", "line": 9, "column": 9, "backend": "paddle", "scenario": "two", "beside": "cupy",
        "signal": "SIGSEGV", "output": "other",
    }  # fmt: skip
    assert told(one, **forged) == known
    assert (known.path, known.line, known.status, known.message) == ("t.grad.yaml", 3, Status.FAIL, "said")
    assert told(one, seconds=1e9).seconds == 0.5


def with_gradient(**fields):
    return {"gradient": {**GRADIENT.model_dump(mode="json"), **fields}}


def with_scan(**fields):
    return with_gradient(scan={**SCAN.model_dump(mode="json"), **fields})


@pytest.mark.parametrize(
    ("forged", "malformed"),
    [
        ({"name": "other@numpy"}, "name: this is not the case that was run"),
        ({"status": "CRASH"}, "status: CRASH is not for a case to say of itself"),
        ({"status": "GREEN"}, "status: Input should be 'PASS', 'FAIL'"),
        ({"seconds": float("nan")}, "seconds: "),
        ({"seconds": -1.0}, "seconds: "),
        ({"line": -(10**9)}, ""),
        ({"internal_error": "it was you"}, "internal_error: this is no traceback of gradcheck's"),
        ({"internal_error": TRACEBACK}, "internal_error: this is no traceback of gradcheck's"),
        (with_gradient(verdict="CRASH"), "gradient.verdict: CRASH is none of a gradient"),
        (with_gradient(wrong_counts={"x": [3, 2]}), "gradient.wrong_counts: more elements are wrong than there are"),
        (with_gradient(wrong_counts={"x": [-1, 2]}), "gradient.wrong_counts.x.0: "),
        (with_gradient(evaluations=10**4000), "gradient.evaluations: "),
        (with_gradient(worst_error=-1.0), "gradient.worst_error: it is below 0"),
        (with_gradient(diagnosis=[{"code": "GC999", "text": ""}]), "gradient.diagnosis: there is no such code"),
        (with_gradient(diagnosis=[{"code": "GC102", "text": "", "column": -(10**9)}]), "gradient.diagnosis.0.column: "),
        (with_scan(steps=[]), "gradient.scan.steps: "),
        (with_scan(steps=[1e-8]), "gradient.scan: steps, differences and rounding are not equally many"),
        (with_scan(steps=[0.0, 1.0]), "gradient.scan.steps.0: "),
        (with_scan(chosen=float("inf")), "gradient.scan.chosen: "),
    ],
)
def test_an_answer_that_does_not_fit_is_none_and_says_what_does_not(case, forged, malformed):
    if "line" in forged:
        assert told(case("pass"), **forged).line == 3
        return
    with pytest.raises(AnswerError) as caught:
        told(case("pass"), **forged)
    assert str(caught.value).startswith(malformed)


@pytest.mark.parametrize("line", ["", "[]", "1", "{", "[" * 100_000, "9" * 100_000, '"\\ud800"'])
def test_a_line_that_is_no_object_is_no_answer(case, line):
    with pytest.raises(AnswerError, match="it is no"):
        answer_of(case("pass"), line, 0.5)


def test_a_bug_of_ours_is_believed_with_the_traceback_that_shows_it(case):
    one = case("pass")
    long = TRACEBACK + "x" * 100_000 + "\nOverflowError: the end\n"
    result = answer_of(one, answer_line(one.result(Status.ERROR, "bug", internal_error=long)).decode(), 0.5)
    assert result.internal_error.startswith(TRACEBACK)
    assert result.internal_error.endswith("OverflowError: the end\n")
    assert len(result.internal_error) <= MOST_TEXT


def test_texts_and_lists_are_cut_and_say_so(case):
    result = told(case("pass"), message="m" * 10_000, details=["d" * 5_000] * 2_000)
    assert len(result.message) <= MOST_TEXT
    assert result.message.endswith(" more characters")
    assert sum(map(len, result.details)) <= MOST_ALTOGETHER
    assert len(result.details) <= 1_000


def test_what_is_cut_already_stays_as_it_is(case):
    whole = case("pass").result(Status.FAIL, "é" * 9_000, details=("d" * 3_000,) * 50, gradient=GRADIENT)
    once = bounded(whole.model_dump())
    assert bounded(once) == once
    assert answer_of(case("pass"), answer_line(whole).decode(), 0.5).message == once["message"]


def test_values_are_taken_where_they_are_compared_and_whole(case):
    one = case("pass")
    fields = {"values": [value_of("y", [1.0, 2.0]).model_dump(mode="json")]}
    assert told(one, **fields).values == ()
    compared = one.model_copy(update={"compared": True})
    assert len(told(compared, **fields).values) == 1
    for forged in ({"data": "AAAA"}, {"dtype": "object"}, {"dtype": "f8,f8"}, {"shape": [3]}, {"data": "é"}):
        with pytest.raises(AnswerError, match="these are not the bytes of an array"):
            told(compared, values=[{**fields["values"][0], **forged}])


def test_a_supervisor_elsewhere_may_say_that_a_case_crashed(case):
    crash = case("pass").result(Status.CRASH, "gone", signal="SIGSEGV", output="last words")
    assert relayed(case("pass"), crash.model_dump_json()) == crash
    assert relayed(case("pass"), "{}").message.startswith("what came back is no result: name: ")
