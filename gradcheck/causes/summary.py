"""The gradient check: the verdict, the wrong entries and their causes, as one summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from gradcheck.causes.every_entry import all_wrong_entries
from gradcheck.causes.wrong_entries import Named, name_wrong
from gradcheck.checking.point import Entry
from gradcheck.checking.problem import Problem
from gradcheck.checking.verdict import Check, Found, Precision
from gradcheck.result import UNFINISHED, GradientSummary, Status

Mode = Literal["auto", "probe", "full"]
Effort = Literal["usual", "full"]
"""How much is spent on naming what is wrong."""

MOST_LISTED = 20
"""Wrong entries that a summary lists of an input; all are counted."""


def check_gradient(
    problem: Problem,
    *,
    seed: int = 0,
    rtol: float | None = None,
    mode: Mode = "auto",
    listed: int = MOST_LISTED,
    effort: Effort = "usual",
    precision: Precision = "strict",
    seconds: float = np.inf,
) -> GradientSummary:
    """Hold the vjp that `problem` claims against the differences and the tape, its behaviour against the contracts.

    Args:
        seed: of the directions and cotangents.
        rtol: widens the error bounds, relative to the derivative; never narrows them.
        mode: ``probe`` compares projections alone where there is no tape; ``auto`` also every entry of the gradient
            where there is one; ``full`` every entry of every Jacobian.
        listed: wrong entries that the summary lists of an input at most; all that are found are counted.
        effort: ``usual`` spends about ten times the check itself on naming what is wrong; ``full`` names every entry.
        precision: ``loose`` lets a backward pass that is right but loses digits in its own dtypes.
        seconds: how long the check may take before naming ends. The verdict stands before that and is never lost.

    Raises:
        Exception: whatever the layer raises.
    """
    deadline = time.monotonic() + seconds
    with np.errstate(all="ignore"):  # steps lead out of the domain, weights of what is not seen overflow
        check, found = checked(problem, seed, rtol or 0.0, mode != "probe", precision)
        if mode == "full" and found.verdict in (Status.PASS, Status.KINK) and not check.point.held:
            found = entry_by_entry(check, found)
        return summarised(check, found, listed, effort, deadline)


def checked(problem: Problem, *options: Any) -> tuple[Check, Found]:
    """A check, and what it finds; with casts if backward does not work without."""
    check = Check(problem, *options)
    try:
        return check, check.run()
    except Exception:
        if not check.point.casts_left_out:
            raise
    check = Check(replace(problem, reruns=None), *options)
    return check, check.run()


def entry_by_entry(check: Check, found: Found) -> Found:
    """FAIL if some entry of some Jacobian is wrong."""
    if found.verdict is Status.KINK:
        return found
    wrong = all_wrong_entries(check.prober)
    if wrong is None:
        return found
    check.certified = not wrong
    return Found(Status.FAIL, wrong=wrong) if wrong else found


def summarised(check: Check, found: Found, listed: int, effort: Effort, deadline: float) -> GradientSummary:
    """The summary of a verdict; after FAIL with the wrong entries and why, and, where differences gave their values,
    with these."""
    probe = found.probe
    if probe is None or found.verdict is not Status.FAIL:
        return summary_of(check, found, listed, Named(exhaustive=found.exhaustive))
    prober = found.prober or check.prober
    prober.point.spent.deadline = deadline
    named = name_wrong(prober, probe, listed, effort == "full")
    named.exhaustive &= found.prober is None
    if named.unfinished:
        found = replace(found, marks=(*found.marks, f"{UNFINISHED}: {named.unfinished}"))
    found = replace(found, wrong=named.entries, diagnosis=(*found.diagnosis, *named.causes))
    return summary_of(check, found, listed, named)


def summary_of(check: Check, found: Found, listed: int, named: Named) -> GradientSummary:
    """The result, with everything that was counted so far."""
    point, wrong = check.point, found.wrong
    elements = Counter(number for number, _ in {(entry.input, entry.index) for entry in wrong})
    counts: dict[str, tuple[int, int]] = {}
    for number, name in enumerate(check.problem.names[k] for k in point.moved):
        known = int(named.wrong[number].sum()) if number in named.wrong else 0
        count = max(elements[number], known)
        if count or number in named.wrong or found.verdict is not Status.FAIL:
            counts[name] = (count, point.x[number].size)
    shown = [e for k in range(len(point.x)) for e in of_input(wrong, k)[:listed]]
    worst = [abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in wrong]
    return GradientSummary(
        verdict=found.verdict,
        why=found.why,
        wrong=tuple(point.named(entry) for entry in shown),
        scan=named.scan,
        wrong_counts=counts,
        exhaustive=named.exhaustive,
        worst_error=max(worst, default=check.worst),
        diagnosis=found.diagnosis,
        certified=check.certified and found.verdict in (Status.PASS, Status.KINK),
        marks=found.marks,
        patterns=named.patterns,
        seed=check.seed,
        evaluations=point.spent.evaluations,
    )


def of_input(wrong: Sequence[Entry], number: int) -> list[Entry]:
    """The entries that belong to one input."""
    return [entry for entry in wrong if entry.input == number]
