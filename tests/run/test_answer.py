"""The result of a case from its answer and from how its process ended."""

from __future__ import annotations

import pytest

from gradcheck.case.user_code import innermost_place, place_of_frames
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, StepScan
from gradcheck.run.answer import MOST_ALTOGETHER, MOST_TEXT, Outcome, answer_line, cut_trace, result_of

SCAN = StepScan(
    input="x", index=(0,), output="out", output_index=(0,), analytic=2.0, steps=(1e-8, 1e-4), differences=(3.0, 3.0),
    rounding=(1e-7, 1e-11), chosen=1e-4, value=3.0, error_bound=1e-11,
)  # fmt: skip
GRADIENT = GradientSummary(
    verdict=Status.FAIL, wrong_counts={"x": (1, 2)}, scan=SCAN,
    diagnosis=(Diagnosis(code="GC102", text="the sign", line="a.py:3", source_line="y = -x", column=4, end_column=6),),
)  # fmt: skip


def outcome(answer: bytes = b"", exit_code: int = 0, stopped: str = "", printed: str = "") -> Outcome:
    return Outcome(answer, printed, exit_code, stopped, 0.5)


def test_the_answer_is_taken_and_what_was_printed_goes_with_it(case):
    whole = case("pass").result(Status.FAIL, "wrong", gradient=GRADIENT, seconds=0.25)
    result = result_of(case("pass"), outcome(answer_line(whole), printed="said"))
    assert result == whole.model_copy(update={"output": "said"})


def test_numbers_that_json_lacks_come_back(case):
    gradient = GradientSummary(verdict=Status.FAIL, worst_error=float("inf"))
    whole = case("pass").result(Status.FAIL, "wrong", gradient=gradient)
    assert result_of(case("pass"), outcome(answer_line(whole))).gradient.worst_error == float("inf")


@pytest.mark.parametrize("answer", [b"{", b"[]", b'{"status": "GREEN"}'])
def test_what_is_not_a_result_is_a_crash(case, answer):
    result = result_of(case("pass"), outcome(answer))
    assert result.status is Status.CRASH
    assert result.message.startswith("the process sent something that is not a result")


@pytest.mark.parametrize(
    ("became", "status", "message"),
    [
        (outcome(exit_code=3), Status.CRASH, "the process exited with status 3 before the case was done"),
        (outcome(exit_code=-11), Status.CRASH, "the process was killed by SIGSEGV"),
        (outcome(exit_code=-65), Status.CRASH, "the process was killed by signal 65"),
        (outcome(stopped="time", exit_code=-6), Status.TIMEOUT, "ran longer than 2 s and was stopped"),
        (outcome(stopped="memory", exit_code=-9), Status.CRASH, "used more than 4G of memory and was stopped"),
    ],
)
def test_without_an_answer_the_message_says_how_the_process_ended(case, became, status, message):
    result = result_of(case("pass", timeout=2.0), became)
    assert (result.status, result.message, result.seconds) == (status, message, 0.5)


def test_texts_and_lists_are_cut_and_say_so(case):
    long = case("pass").result(Status.FAIL, "m" * 10_000, details=("d" * 5_000,) * 2_000)
    result = Result.model_validate_json(answer_line(long))
    assert len(result.message) <= MOST_TEXT
    assert result.message.endswith(" more characters")
    assert sum(map(len, result.details)) <= MOST_ALTOGETHER
    assert len(result.details) <= 1_000


def test_a_long_traceback_keeps_both_its_ends(case):
    long = "Traceback (most recent call last):\n" + "x" * 100_000 + "\nOverflowError: the end\n"
    result = Result.model_validate_json(answer_line(case("pass").result(Status.ERROR, "bug", internal_error=long)))
    assert result.internal_error.startswith("Traceback (most recent call last):\n")
    assert result.internal_error.endswith("OverflowError: the end\n")
    assert len(result.internal_error) <= MOST_TEXT


TRACE = """before
Fatal Python error: Aborted

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/site-packages/numpy/linalg.py", line 5 in inv
  File "/home/me/layers.py", line 12 in forward
  File "a.grad.yaml", line 9 in <module>
  File "<string>", line 1 in <module>

Extension modules: numpy (total: 1)
"""


def test_a_trace_is_cut_to_the_users_frames_and_gives_their_place():
    printed, frames = cut_trace(TRACE, "a.grad.yaml")
    assert place_of_frames(frames, "a.grad.yaml") == "line 12 of /home/me/layers.py, called from line 9 of the spec"
    assert innermost_place(frames, "a.grad.yaml") == "/home/me/layers.py:12"
    assert "Extension modules" not in printed
    assert "<string>" not in printed
    assert printed.startswith("before\n")


def test_a_line_of_output_that_looks_like_a_trace_is_not_one():
    assert cut_trace('  File "a.grad.yaml", line 9 in <module>\n', "a.grad.yaml")[1] == []
