"""Runs of cases with a recorded deviation (pin), whose `observed` is the backend's actual
behaviour.
"""

from __future__ import annotations

from collections.abc import Callable

from gradcheck.case.case import Case
from gradcheck.result import AS_DOCUMENTED, Result, Status
from gradcheck.spec.model import Observed

_UNDECIDED = (Status.SKIP, Status.UNSUPPORTED, Status.INCONCLUSIVE)
"""Statuses that do not tell whether the documents hold."""

NO_END = "no end"


def run_with_pin(case: Case, run: Callable[[Case], Result]) -> Result:
    """Run `case` as documented and, if the backend deviates, once more as pinned.

    The result is XFAIL if the backend deviates exactly as pinned, XPASS if it behaves as
    documented. Without a pin it is the result of the first run. Each run has a separate process.
    """
    documented, entry = run(case), case.entry
    is_decided = not documented.internal_error and documented.status not in _UNDECIDED
    if entry.observed is None or not is_decided:
        return documented
    reason = f"{entry.why} ({entry.issue})" if entry.issue else entry.why
    if documented.status in AS_DOCUMENTED:
        message = "behaves as documented, but a deviation is recorded: "
        update = {"status": Status.XPASS, "message": f"{message}{reason}. Remove the entry."}
        return documented.model_copy(update=update)
    if entry.observed.crash or entry.observed.hang:
        return _compare_end(documented, entry.observed, reason)
    return _compare_run(case, documented, entry.observed, reason, run)


def _compare_end(documented: Result, observed: Observed, reason: str) -> Result:
    """Compare the end of the process with the pinned endings."""
    pinned_ends = observed.crash or (NO_END,)
    end = NO_END if documented.status is Status.TIMEOUT else documented.signal
    if end in pinned_ends:
        return _expected_failure(documented, reason)
    return _neither(documented, documented, reason, f"expected {' or '.join(pinned_ends)}, but ")


def _compare_run(
    case: Case, documented: Result, observed: Observed, reason: str, run: Callable[[Case], Result]
) -> Result:
    """Run the case with the recorded deviation in place of the documented behaviour."""
    pinned = run(case.expecting(observed))
    if pinned.status in AS_DOCUMENTED:
        return _expected_failure(documented, reason)
    if pinned.internal_error or pinned.status in _UNDECIDED:
        return pinned
    return _neither(documented, pinned, reason, "")


def _expected_failure(documented: Result, reason: str) -> Result:
    """Return XFAIL with the reason, and with the outcome of the documented run."""
    update = {"status": Status.XFAIL, "message": reason, "details": _details(documented)}
    return documented.model_copy(update=update)


def _neither(documented: Result, last: Result, reason: str, expected: str) -> Result:
    """Return the failure of a backend whose behaviour is neither the documented nor the recorded
    one.
    """
    neither = f"behaves neither as documented nor as recorded ({reason})"
    update = {
        "status": last.status if last.status in (Status.CRASH, Status.TIMEOUT) else Status.FAIL,
        "message": f"{neither}: {expected}{last.message}",
        "details": (*last.details, *_details(documented)),
        "signal": documented.signal,
        "instead": documented.instead,
    }
    return last.model_copy(update=update)


def _details(documented: Result) -> tuple[str, ...]:
    return (f"as documented: {documented.message}", *documented.details)
