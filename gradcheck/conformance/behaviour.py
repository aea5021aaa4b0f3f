"""Words for a backend's behaviour compared with the expected one, such as ``crash``."""

from __future__ import annotations

from enum import StrEnum

from gradcheck.case.case import Case
from gradcheck.conformance.releases import ReleaseFile
from gradcheck.result import NOT_RUN, Result, Status
from gradcheck.spec.model import NO_DEVIATION, BackendExpectation, Expect


class Behaviour(StrEnum):
    """Words for a backend's behaviour under a rule, the worst first."""

    UNEXPECTED = "unexpected"
    CRASH = "crash"
    HANG = "hang"
    OTHER_GRADIENT = "gradient"
    SILENT = "silent"
    OTHER_VALUE = "value"
    RAISES = "raises"
    OTHER_ERROR = "error"
    DECIDED = "decided"
    HOLDS = "✓"
    NOT_RUN = "–"


MEANING = {
    Behaviour.UNEXPECTED: "neither what is expected nor what is recorded",
    Behaviour.CRASH: "the process dies",
    Behaviour.HANG: "it does not end",
    Behaviour.OTHER_GRADIENT: "another gradient, or none, without an error",
    Behaviour.SILENT: "no exception or warning where one is expected",
    Behaviour.OTHER_VALUE: "another value, without an error",
    Behaviour.RAISES: "an exception where none is expected",
    Behaviour.OTHER_ERROR: "another exception, or another message",
    Behaviour.DECIDED: "as decided, where documents contradict one another",
    Behaviour.HOLDS: "as expected",
    Behaviour.NOT_RUN: "not run",
}
"""The meaning of each word, for readers of the matrix."""
ORDER = [*Behaviour]
NOT_DEVIATING = (Behaviour.DECIDED, Behaviour.HOLDS, Behaviour.NOT_RUN)
GRAVE = (Behaviour.UNEXPECTED, Behaviour.CRASH, Behaviour.HANG, Behaviour.OTHER_GRADIENT)
"""The behaviours that users of a release need to know first."""


def behaviour_of(case: Case, result: Result) -> tuple[Behaviour, str]:
    """Return the behaviour of a case's backend, judged by the result, and the reason in words."""
    if result.status in NOT_RUN:
        return Behaviour.NOT_RUN, result.message
    if not result.status.green:
        return Behaviour.UNEXPECTED, result.message
    if result.status is not Status.XFAIL:
        return Behaviour.HOLDS, ""
    return classify_deviation(case.scenario.expect, case.entry), result.message


def classify_deviation(documented: Expect, entry: BackendExpectation) -> Behaviour:
    """Return the kind of deviation that an entry with `observed` records."""
    observed = entry.observed
    assert observed is not None

    # How the process or the call ends.
    if observed.crash:
        return Behaviour.CRASH
    if observed.hang:
        return Behaviour.HANG
    if observed.raises:
        return Behaviour.OTHER_ERROR if documented.raises else Behaviour.RAISES
    if documented.raises or documented.warns:
        return Behaviour.SILENT

    # The values it computes. A lower order recorded means that the second derivative raises.
    if observed.gradient == "matches" and observed.order < documented.order:
        return Behaviour.RAISES
    reads_gradient = any(".grad" in expression for expression in observed.values)
    if observed.grads or observed.gradient != "unchecked" or reads_gradient:
        return Behaviour.OTHER_GRADIENT
    return Behaviour.OTHER_VALUE


def result_as_recorded(case: Case, release: ReleaseFile) -> Result:
    """Return the result of a case according to a release file; SKIP if it was not run."""
    scenario = case.scenario.id
    entry = release.deviates.get(scenario, NO_DEVIATION)
    if entry.observed is not None:
        return case.result(Status.XFAIL, entry.why)
    if scenario in release.holds_set:
        return case.result(Status.PASS, "")
    reason = entry.skip.reason if entry.skip is not None else "not run"
    return case.result(Status.SKIP, reason)
