"""The behaviour of a backend compared with the documents, in one word."""

from __future__ import annotations

from enum import StrEnum

from gradcheck.case.case import Case
from gradcheck.result import NOT_RUN, Result, Status
from gradcheck.spec.model import BackendExpectation, Expect


class Behaviour(StrEnum):
    """Behaviours of a backend where a rule applies, the worst first."""

    UNEXPECTED = "unexpected"
    CRASH = "crash"
    HANG = "hang"
    OTHER_GRADIENT = "gradient"
    SILENT = "silent"
    OTHER_VALUE = "value"
    RAISES = "raises"
    OTHER_ERROR = "error"
    POLICY = "policy"
    HOLDS = "✓"
    NOT_RUN = "–"


MEANING = {
    Behaviour.UNEXPECTED: "neither what is documented nor what is pinned",
    Behaviour.CRASH: "the process dies",
    Behaviour.HANG: "it does not end",
    Behaviour.OTHER_GRADIENT: "it gives another gradient, or none, without a word",
    Behaviour.SILENT: "it raises nothing, or does not warn, where it should",
    Behaviour.OTHER_VALUE: "it gives something else, without a word",
    Behaviour.RAISES: "it raises where it should not",
    Behaviour.OTHER_ERROR: "it raises something else, or says something else",
    Behaviour.POLICY: "it does something else on purpose, which is no mistake",
    Behaviour.HOLDS: "as documented",
    Behaviour.NOT_RUN: "not run there",
}
"""The meaning of each word, for readers of the matrix."""
ORDER = [*Behaviour]
NOT_DEVIATING = (Behaviour.HOLDS, Behaviour.NOT_RUN)
NO_FAILURE = (Behaviour.POLICY, *NOT_DEVIATING)
GRAVE = (Behaviour.UNEXPECTED, Behaviour.CRASH, Behaviour.HANG, Behaviour.OTHER_GRADIENT)
"""The behaviours that users of a release need to know first."""


def behaviour_of(case: Case, result: Result) -> tuple[Behaviour, str]:
    """Return what the backend of a case did, by its result, and the reason in words."""
    if result.status in NOT_RUN:
        return Behaviour.NOT_RUN, result.message
    if not result.status.green:
        return Behaviour.UNEXPECTED, result.message
    if result.status is not Status.XFAIL:
        return Behaviour.HOLDS, ""
    assert case.entry is not None
    return classify_deviation(case.scenario.expect, case.entry), result.message


def classify_deviation(documented: Expect, entry: BackendExpectation) -> Behaviour:
    """Return the kind of deviation that an entry with `observed` records."""
    observed = entry.observed
    assert observed is not None
    if entry.policy is not None:
        return Behaviour.POLICY

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


def result_as_pinned(case: Case) -> Result:
    """Return the result of a case whose backend does what is documented, or what is pinned."""
    entry = case.entry
    if entry is not None:
        if entry.skip is not None:
            return case.result(Status.SKIP, entry.skip.reason)
        if entry.observed is not None:
            return case.result(Status.XFAIL, entry.why)
    return case.result(Status.PASS, "")
