"""What is pinned of a backend holds, has changed, or is gone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradcheck.conformance.pins import run_with_pin
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import read_bytes

SPEC = """
    schema: gradcheck/v1
    scenarios:
      - id: one
        title: t
        source: {{document: d}}
        script: answer = 42
        expect: {{values: {{answer: 42}}}}
        backends: {{numpy: {{observed: {observed}, reason: it cannot count{issue}}}}}
    """


def case_with(observed: str, issue: str = ""):
    text = dedent(SPEC.format(observed=observed, issue=issue))
    return plan([read_bytes(text.encode(), "a.grad.yaml")], ["numpy"])[0]


def answers(*outcomes):
    """Run a case: the outcomes in turn, the first for the case as documented."""
    waiting = list(outcomes)

    def run(case):
        pinned = case.expect.values.get("answer") == 41
        assert pinned == (len(waiting) < len(outcomes)), "first as documented, then as pinned"
        status, fields = waiting.pop(0)
        return case.result(status, f"it is {status}", **fields)

    return run


PASS, KINK, FAIL, ERROR = ((status, {}) for status in (Status.PASS, Status.KINK, Status.FAIL, Status.ERROR))
INCONCLUSIVE, TIMEOUT = (Status.INCONCLUSIVE, {}), (Status.TIMEOUT, {})
SEGFAULT, ABORT = ((Status.CRASH, {"signal": name}) for name in ("SIGSEGV", "SIGABRT"))
VALUES, CRASH, CRASHES, HANG = (
    "{values: {answer: 41}}", "{crash: [SIGSEGV]}", "{crash: [SIGSEGV, SIGABRT]}", "{hang: true}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("observed", "outcomes", "status"),
    [
        (VALUES, [FAIL, PASS], Status.XFAIL),
        (VALUES, [ERROR, KINK], Status.XFAIL),
        (
            VALUES,
            [SEGFAULT, PASS],
            Status.XFAIL,
        ),  # as documented it crashes where the pin does not look
        (VALUES, [PASS], Status.XPASS),
        (VALUES, [FAIL, FAIL], Status.FAIL),
        (VALUES, [FAIL, ERROR], Status.FAIL),
        (VALUES, [FAIL, SEGFAULT], Status.CRASH),
        (VALUES, [INCONCLUSIVE], Status.INCONCLUSIVE),
        (VALUES, [FAIL, INCONCLUSIVE], Status.INCONCLUSIVE),
        (CRASH, [SEGFAULT], Status.XFAIL),
        (CRASH, [ABORT], Status.CRASH),
        (CRASH, [TIMEOUT], Status.TIMEOUT),
        (CRASH, [FAIL], Status.FAIL),
        (CRASH, [PASS], Status.XPASS),
        (CRASHES, [ABORT], Status.XFAIL),
        (HANG, [TIMEOUT], Status.XFAIL),
        (HANG, [SEGFAULT], Status.CRASH),
    ],
)
def test_only_exactly_what_was_observed_is_expected(observed, outcomes, status):
    assert run_with_pin(case_with(observed), answers(*outcomes)).status is status


def test_an_xfail_tells_the_reason_and_what_is_documented():
    result = run_with_pin(case_with(VALUES, ", issue: 'https://x.org/1'"), answers(FAIL, PASS))
    assert (result.message, result.details) == (
        "it cannot count (https://x.org/1)",
        ("as documented: it is FAIL",),
    )


def test_a_change_is_told_with_both():
    result = run_with_pin(case_with(VALUES), answers(FAIL, FAIL))
    assert result.message == (
        "behaves neither as documented nor as recorded (it cannot count): it is FAIL"
    )  # fmt: skip
    assert result.details == ("as documented: it is FAIL",)
    crash = run_with_pin(case_with(CRASHES), answers(FAIL)).message
    assert crash.endswith("(it cannot count): expected SIGSEGV or SIGABRT, but it is FAIL")


def test_a_bug_of_ours_is_no_divergence():
    broken = (Status.ERROR, {"internal_error": "Traceback"})
    assert run_with_pin(case_with(VALUES), answers(broken)).internal_error
    assert run_with_pin(case_with(VALUES), answers(FAIL, broken)).internal_error


def test_of_a_case_without_a_pin_the_result_stands():
    unpinned = case_with(VALUES).model_copy(update={"backend": "paddle"})
    assert run_with_pin(unpinned, lambda one: one.result(Status.FAIL, "no")).status is Status.FAIL
