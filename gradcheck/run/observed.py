"""A case of which it is pinned what a backend does in place of what is documented."""

from __future__ import annotations

from collections.abc import Callable

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.spec.model import Observed

_HOLDS = (Status.PASS, Status.KINK)
_NO_ANSWER = (Status.SKIP, Status.UNSUPPORTED, Status.INCONCLUSIVE)
"""Statuses that say neither that the documents hold nor that they do not."""

NO_END = "no end"


def settled(case: Case, run: Callable[[Case], Result]) -> Result:
    """The result of `case`: where something is `observed`, after it was run as documented and, if need be, once more.

    XFAIL where it does not do what is documented, and does exactly what was observed; XPASS where it does what is
    documented. Each run is in a process of its own.
    """
    documented = run(case)
    entry = case.entry
    if entry is None or entry.observed is None or documented.status in _NO_ANSWER or documented.internal_error:
        return documented
    reason = f"{entry.why} ({entry.issue})" if entry.issue else entry.why
    if documented.status in _HOLDS:
        message = f"does what is documented, but something else was observed: {reason}. Remove the entry."
        return documented.model_copy(update={"status": Status.XPASS, "message": message})
    if wanted := _end(entry.observed):
        again, holds, expected = documented, _ended(documented) in wanted, f"expected {' or '.join(wanted)}, but "
    else:
        again = run(case.expecting(entry.observed))
        holds, expected = again.status in _HOLDS, ""
    details = (f"as documented: {documented.message}", *documented.details)
    if holds:
        return documented.model_copy(update={"status": Status.XFAIL, "message": reason, "details": details})
    if again.internal_error or again.status in _NO_ANSWER:
        return again
    message = f"does neither what is documented nor what was observed ({reason}): {expected}{again.message}"
    status = again.status if again.status in (Status.CRASH, Status.TIMEOUT) else Status.FAIL
    return again.model_copy(update={"status": status, "message": message, "details": (*again.details, *details)})


def _end(observed: Observed) -> tuple[str, ...]:
    """How a process ends that does what was observed; empty if in no special way."""
    return observed.crash or (NO_END,) * observed.hang


def _ended(result: Result) -> str:
    """How the process of a case ended."""
    return NO_END if result.status is Status.TIMEOUT else result.signal
