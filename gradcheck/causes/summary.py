"""The gradient check: the verdict, the wrong entries and their causes, as one summary."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gradcheck.causes.entries import Named, all_wrong_entries, by_columns, by_tape, patterns, steps_of
from gradcheck.causes.hypotheses import likely_causes
from gradcheck.checking.point import OutOfTimeError
from gradcheck.checking.probe import Probe, Prober
from gradcheck.checking.problem import Problem
from gradcheck.checking.verdict import Check, Found, Precision
from gradcheck.result import UNFINISHED, GradientSummary, Status, absolute_error
from gradcheck.support.foreign import described

Mode = Literal["auto", "probe", "full"]
Effort = Literal["usual", "full"]
"""How much is spent on naming what is wrong."""

MOST_LISTED = 20
"""Wrong entries that a summary lists of an input; all are counted."""
LEAST_BUDGET = 300
"""Evaluations and vjps that naming may take in any case: some hundredths of a second."""
BUDGET = 10
"""Naming costs at most so many times the evaluations and vjps of the check itself."""


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
        if mode == "full" and found.verdict is Status.PASS and not check.point.held:
            wrong = all_wrong_entries(check.prober)
            check.certified |= wrong == []
            found = Found(Status.FAIL, wrong=wrong) if wrong else found
        if found.probe is None or found.verdict is not Status.FAIL:
            return summary_of(check, found, Named(found.wrong, exhaustive=found.exhaustive), listed)
        prober = found.prober or check.prober
        prober.point.spent.deadline = deadline
        named, said = name_wrong(prober, found.probe, listed, effort == "full")
        named.exhaustive &= found.prober is None
        return summary_of(check, found, named, listed, **said)


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


def name_wrong(prober: Prober, probe: Probe, listed: int, thorough: bool) -> tuple[Named, dict[str, Any]]:
    """What is wrong about a gradient that a probe shows to be wrong, and what a summary says of it: why, and the
    differences of the worst entry where these gave its value."""
    point, named, said = prober.point, Named(), dict[str, Any]()
    spent = point.spent.runs
    budget = np.inf if thorough else max(LEAST_BUDGET, BUDGET * spent)
    try:
        named = by_tape(prober, probe, listed) if probe.wrong is not None else by_columns(prober, budget)
        named.entries = sorted(named.entries, key=lambda e: -absolute_error(e.analytic, e.numeric))
        said["patterns"] = tuple(patterns(point, named))
        own = point.problem.causes() if point.problem.causes else ()
        left = budget - (point.spent.runs - spent)
        said["diagnosis"] = tuple(own or likely_causes(prober, named.inputs, probe, named.jacobians, left))
        if named.entries and probe.wrong is None:
            said["scan"] = steps_of(prober, named.entries[0])
    except OutOfTimeError:
        said["marks"] = (f"{UNFINISHED}: no time is left",)
    except Exception as error:  # the verdict stands, whatever happens to the search for its cause
        last = traceback.extract_tb(error.__traceback__)[-1]
        said["marks"] = (f"{UNFINISHED}: {described(error)} ({Path(last.filename).name}:{last.lineno})",)
    return named, said


def summary_of(check: Check, found: Found, named: Named, listed: int, **said: Any) -> GradientSummary:
    """The result, with everything that was counted so far, and what else is said."""
    point, wrong = check.point, named.entries
    elements = Counter(number for number, _ in {(entry.input, entry.index) for entry in wrong})
    counts: dict[str, tuple[int, int]] = {}
    for number, name in enumerate(check.problem.names[k] for k in point.moved):
        known = int(named.wrong[number].sum()) if number in named.wrong else 0
        count = max(elements[number], known)
        if count or number in named.wrong or found.verdict is not Status.FAIL:
            counts[name] = (count, point.x[number].size)
    by_input = ([entry for entry in wrong if entry.input == number] for number in range(len(point.x)))
    worst = [abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in wrong]
    return GradientSummary(
        verdict=found.verdict,
        why=found.why,
        wrong=tuple(point.named(entry) for entries in by_input for entry in entries[:listed]),
        wrong_counts=counts,
        exhaustive=named.exhaustive,
        worst_error=max(worst, default=check.worst),
        diagnosis=(*found.diagnosis, *said.pop("diagnosis", ())),
        certified=check.certified and found.verdict in (Status.PASS, Status.KINK),
        marks=(*found.marks, *said.pop("marks", ())),
        seed=check.seed,
        evaluations=point.spent.evaluations,
        **said,
    )
