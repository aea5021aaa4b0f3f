"""What becomes of a process that ran a case: its answer under the case's name, or how it ended and where."""

from __future__ import annotations

import pytest

from gradcheck.result import Status
from gradcheck.run.answer import cut_trace, result_of
from gradcheck.run.child import Outcome


def outcome(answer: str = "", exit_code: int | None = 0, stopped: str = "", printed: str = "") -> Outcome:
    return Outcome(answer, printed, exit_code, stopped, 0.5)


def test_the_answer_is_taken_and_what_was_printed_goes_with_it(case):
    one = case("pass")
    answer = one.result(Status.PASS, "fine").model_dump_json()
    result = result_of(one, outcome(answer, printed="said"))
    assert (result.status, result.message, result.output) == (Status.PASS, "fine", "said")


def test_an_answer_under_another_name_is_none(case):
    forged = case("pass", "other").result(Status.PASS, "fine").model_dump_json()
    result = result_of(case("pass"), outcome(forged))
    assert (result.name, result.status) == ("one@numpy", Status.CRASH)
    assert result.message == "the process sent something that is no result: name: this is not the case that was run"


@pytest.mark.parametrize(
    ("became", "status", "message"),
    [
        (outcome(exit_code=3), Status.CRASH, "the process exited with status 3 before the case was done"),
        (outcome(exit_code=-11), Status.CRASH, "the process was killed by SIGSEGV"),
        (outcome(exit_code=-65), Status.CRASH, "the process was killed by signal 65"),
        (outcome(stopped="time", exit_code=-6), Status.TIMEOUT, "ran longer than 2 s and was stopped"),
        (outcome(stopped="memory", exit_code=-9), Status.CRASH, "used more than 4G of memory and was stopped"),
        (
            outcome(answer="[]"),
            Status.CRASH,
            "the process sent something that is no result: it is no object of JSON",
        ),
    ],
)
def test_without_an_answer_it_is_told_how_it_ended(case, became, status, message):
    result = result_of(case("pass", timeout=2.0), became)
    assert (result.status, result.message, result.seconds) == (status, message, 0.5)


TRACE = """before
Fatal Python error: Aborted

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/site-packages/numpy/linalg.py", line 5 in inv
  File "/home/me/layers.py", line 12 in forward
  File "a.grad.yaml", line 9 in <module>
  File "<string>", line 1 in <module>

Extension modules: numpy (total: 1)
"""


def test_a_trace_is_cut_to_the_user_s_frames_and_tells_where_they_were():
    printed, place = cut_trace(TRACE, "a.grad.yaml")
    assert place == "line 12 of /home/me/layers.py, called from line 9 of the spec"
    assert "Extension modules" not in printed
    assert "<string>" not in printed
    assert printed.startswith("before\n")


def test_a_line_of_output_that_looks_like_a_trace_is_none():
    assert cut_trace('  File "a.grad.yaml", line 9 in <module>\n', "a.grad.yaml")[1] == ""
