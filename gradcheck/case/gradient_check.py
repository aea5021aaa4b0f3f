"""The gradient check: verdict, wrong entries and causes, as one summary.

It covers both orders, several points, and backwards that are declared to differ from the
derivative.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gradcheck.backends.base import is_differentiable
from gradcheck.case.broken_contracts import refusal_summary
from gradcheck.case.function import TensorFunction
from gradcheck.case.layer_calls import LayerCalls
from gradcheck.case.never_ran import CODE as NEVER_RAN
from gradcheck.case.never_ran import refuse_foreign_layers, with_backwards_that_ran
from gradcheck.case.observe import GAVE_LESS, GAVE_OTHER_SHAPES
from gradcheck.causes.entries import (
    WrongEntries,
    all_wrong_entries,
    entries_by_columns,
    entries_by_tape,
    patterns,
    steps_of,
)
from gradcheck.causes.hypotheses import likely_causes
from gradcheck.causes.search import Backward
from gradcheck.causes.words import in_step_with
from gradcheck.checking.declared_backwards import AGREES, not_straight_through, not_zero
from gradcheck.checking.point import Entry, OutOfTimeError
from gradcheck.checking.precision import EPS, distance, finite, largest, wide
from gradcheck.checking.probe import POWER, CheckOutcome, Probe, Prober
from gradcheck.checking.problem import FixSearch, Problem, no_fix
from gradcheck.checking.verdict import Check, Precision
from gradcheck.codes import CODES, is_contract
from gradcheck.result import (
    GREEN,
    MOST_LISTED,
    UNFINISHED,
    Diagnosis,
    Fix,
    GradientSummary,
    Status,
    absolute_error,
)
from gradcheck.support.foreign import describe_error

if TYPE_CHECKING:
    from gradcheck.spec.model import Expect

Mode = Literal["auto", "probe", "full"]
Effort = Literal["least", "usual", "full"]
"""The effort for diagnosing a failure: `least` does not search for a fix."""

SAME_DRAWS = "the same random numbers in each evaluation"
"""The mark of a function that draws random numbers, such as a dropout."""

LEAST_BUDGET = 300
"""Evaluations and vjps that a diagnosis may always take: a few hundredths of a second."""
BUDGET = 10
"""A diagnosis takes at most this many times the evaluations and vjps of the check itself."""


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
    """Compare the vjp of `problem` with the differences and the tape, and its behaviour with the
    contracts.

    Args:
        seed: of the directions and cotangents.
        rtol: widens the error bounds, relative to the largest entry of a gradient; never narrows
            them.
        mode: ``probe`` compares only projections without a tape; ``auto`` also every entry of
            the gradient if there is one; ``full`` every entry of every Jacobian.
        listed: the most wrong entries that the summary lists for an input; all that are found are
            counted.
        effort: ``usual`` spends up to ten times the cost of the check on diagnosing a failure, and
            so does ``least``; ``full`` diagnoses every entry.
        precision: ``loose`` accepts a backward that is right but loses digits in its own dtypes.
        seconds: how long the check may take before the diagnosis ends; the verdict comes first and
            is never lost.

    Raises:
        Exception: whatever the layer raises.
    """
    deadline = time.monotonic() + seconds
    # steps may leave the domain, and weights of unobserved values may overflow
    with np.errstate(all="ignore"):
        bound = (rtol or 0.0) + problem.nondet
        check, outcome = run_check(problem, seed, bound, mode != "probe", precision)
        if (
            mode == "full"
            and outcome.verdict is Status.PASS
            and not any(m.any() for m in check.point.infinite)
        ):
            wrong = all_wrong_entries(check.prober)
            check.certified |= wrong == []
            outcome = CheckOutcome(Status.FAIL, wrong=wrong) if wrong else outcome
        if outcome.probe is None or outcome.verdict is not Status.FAIL:
            return summary_of(
                check, outcome, WrongEntries(outcome.wrong, exhaustive=outcome.exhaustive), listed
            )
        prober = outcome.prober or check.prober
        prober.point.spent.deadline = deadline
        # a guess, such as a complex value in place of a real one, may warn
        with warnings.catch_warnings(action="ignore"):
            named, details = name_wrong(prober, outcome.probe, listed, effort == "full")
        named.exhaustive &= outcome.prober is None
        return summary_of(check, outcome, named, listed, **details)


def run_check(problem: Problem, *options: Any) -> tuple[Check, CheckOutcome]:
    """Make a check and return it with its outcome; casts are kept if backward does not work without
    them.
    """
    check = Check(problem, *options)
    try:
        return check, check.run()
    except Exception:
        if not check.point.casts_left_out:
            raise
    check = Check(replace(problem, reruns=None), *options)
    return check, check.run()


def name_wrong(
    prober: Prober, probe: Probe, listed: int, thorough: bool
) -> tuple[WrongEntries, dict[str, Any]]:
    """Wrong entries of a gradient that a probe shows to be wrong, and fields of its summary: the
    reason, and the differences of the worst entry if they gave its value.
    """
    point, named, details = prober.point, WrongEntries(), dict[str, Any]()
    spent = point.spent.runs
    backward: Backward = point.vjp
    budget = np.inf if thorough else max(LEAST_BUDGET, BUDGET * spent)
    with marked_as_unfinished(details):
        named = (
            WrongEntries.of(probe)
            if probe.wrong is not None
            else entries_by_columns(prober, budget)
        )
        details["patterns"] = tuple(patterns(point, named))
        diagnoses: Sequence[Diagnosis] = point.problem.causes() if point.problem.causes else ()
        # a mistake in a formula is never this small
        diagnoses = diagnoses or approximation(probe, EPS**0.5)
        if not diagnoses:
            remaining = budget - (point.spent.runs - spent)
            diagnoses, backward = likely_causes(
                prober, named.inputs, probe, named.jacobians, remaining
            )
        diagnoses = diagnoses or approximation(probe, POWER)
        details["diagnosis"] = tuple(diagnoses)
    with marked_as_unfinished(details):
        if probe.wrong is not None:
            named.entries = entries_by_tape(prober, probe, listed, backward)
        named.entries = sorted(named.entries, key=lambda e: -absolute_error(e.analytic, e.numeric))
        if named.entries and probe.wrong is None:
            details["scan"] = steps_of(prober, named.entries[0])
    return named, details


def approximation(probe: Probe, most: float) -> list[Diagnosis]:
    """The diagnosis of a gradient whose error is above rounding but below a share `most`.

    It says how large the error is, and which option accepts it.
    """
    comparison = probe.comparison
    if comparison is None or comparison.wrong is None:
        return []
    share = 0.0
    for claimed, taped in zip(comparison.claimed, comparison.taped, strict=True):
        difference = float(distance(claimed, taped).max(initial=0.0))
        if difference:
            if not difference < most * largest(taped):
                return []
            share = max(share, difference / largest(taped))
    rtol = 10.0 ** np.ceil(np.log10(4 * share))  # other cotangents weight the errors differently
    text = (
        f"backward is right to {share:.1g} of the largest entry: an iteration that stops early, or "
        f"a constant of few digits? rtol={rtol:.0e} lets it pass"
    )
    return [Diagnosis.of("GC126", text)]


@contextmanager
def marked_as_unfinished(details: dict[str, Any]) -> Iterator[None]:
    """Note in the summary if the search for the cause ends early. The verdict stands in any
    case.
    """
    try:
        yield
    except OutOfTimeError:
        details["marks"] = (f"{UNFINISHED}: no time is left",)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        details["marks"] = (f"{UNFINISHED}: {describe_error(error)} ({place})",)


def summary_of(
    check: Check, outcome: CheckOutcome, named: WrongEntries, listed: int, **details: Any
) -> GradientSummary:
    """The result, with everything that was counted so far, and further `details`."""
    point, entries = check.point, list[Entry]()
    counts: dict[str, tuple[int, int]] = {}
    for number, k in enumerate(point.moved):
        of_input = [entry for entry in named.entries if entry.input == number]
        entries += of_input[:listed]
        count = len({entry.index for entry in of_input})
        if number in named.wrong:
            count = max(count, int(named.wrong[number].sum()))
        if count or number in named.wrong or outcome.verdict is not Status.FAIL:
            counts[check.problem.names[k]] = count, point.x[number].size
    worst = [abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in named.entries]
    return GradientSummary(
        verdict=outcome.verdict,
        why=outcome.why,
        wrong=tuple(map(point.name_entry, entries)),
        wrong_counts=counts,
        exhaustive=named.exhaustive,
        worst_error=max(worst, default=check.worst),
        diagnosis=(*outcome.diagnosis, *details.pop("diagnosis", ())),
        certified=check.certified and outcome.verdict in GREEN,
        marks=(*outcome.marks, *details.pop("marks", ())),
        seed=check.seed,
        evaluations=point.spent.evaluations,
        **details,
    )


# ------------------------------ a function of Tensors
SEVERITY = (Status.ERROR, Status.FAIL, Status.INCONCLUSIVE, Status.KINK, Status.PASS)
"""Statuses by severity: a case with several findings, or several points, gets the one that comes
first here.
"""
Expectation = Literal["matches", "differs", "straight-through", "zero"]
"""Kinds of a backward: the derivative; not the derivative; the cotangent unchanged, for a step
function; zero.
"""


class Settings(NamedTuple):
    """How a gradient is checked; see `check_gradient`.

    `order` 2: the derivative of the gradient as well, if the gradient itself is right.
    """

    seed: int = 0
    rtol: float | None = None
    mode: Mode = "auto"
    order: int = 1
    listed: int = MOST_LISTED
    effort: Effort = "usual"
    precision: Precision = "strict"
    nondet: float = 0.0
    seconds: float = inf


def gradient_summary(
    function: TensorFunction, settings: Settings, find_fix: FixSearch = no_fix
) -> GradientSummary:
    """The summary of the gradient check.

    It is INCONCLUSIVE where nothing is claimed, FAIL where backward returns no gradients.

    Raises:
        Exception: whatever else the function raises.
    """
    options = settings._asdict()
    order, nondet = options.pop("order"), options.pop("nondet")
    try:
        problem = replace(function.problem(), find_fix=find_fix, nondet=nondet)
        if unchecked := function.first_call.unchecked:
            why = f"nothing was checked: {unchecked}"
            nothing = GradientSummary(verdict=Status.INCONCLUSIVE, why=why)
            return with_backwards_that_ran(function, nothing)
        summary = check_gradient(problem, **options)
        if differs_by_call(summary) and not function.draws:
            function.repeat_draws()
            again = gradient_summary(function, settings, find_fix)
            return summary if differs_by_call(again) else with_marks(again, SAME_DRAWS)
        if order == 2 and summary.verdict in GREEN:
            summary = check_gradient(function.second_order(problem), **options).of_second_order()
    except Exception as error:
        return refusal_of(function, error)
    summary = with_marks(summary, *function.marks)
    return with_backwards_that_ran(function, function.in_words(summary))


def differs_by_call(summary: GradientSummary) -> bool:
    """Whether two calls of forward at the same inputs gave different values."""
    return any(diagnosis.code == "GC131" for diagnosis in summary.diagnosis)


def refusal_of(
    function: TensorFunction, error: Exception, calls: LayerCalls | None = None
) -> GradientSummary:
    """A FAIL if an error of the function means that backward returned values that are not
    gradients. It was raised in `calls`, by default those of the function.

    Raises:
        Exception: it is any other error; if the function's code names a layer of another framework
            and no backward ran, ForeignFrameworkError.
    """
    summary = refusal_summary(calls or function.calls, error, function.generated_call)
    if summary is None:
        refuse_foreign_layers(function)
        raise error
    return summary


def with_marks(summary: GradientSummary, *marks: str) -> GradientSummary:
    """A summary with further marks."""
    return summary.model_copy(update={"marks": (*summary.marks, *marks)})


# --------------------------- expectations of a scenario
class Finding(NamedTuple):
    """A finding: something unexpected, or, for a KINK, worth marking."""

    status: Status
    message: str


def judge(gradient: GradientSummary, expect: Expect) -> list[Finding]:
    """The findings of the gradient check, given what the scenario declares backward to be."""
    if expect.gradient == "differs" and gradient.verdict is not Status.INCONCLUSIVE:
        return judge_difference(gradient, expect)
    if gradient.verdict is Status.PASS:
        return []
    is_wrong = gradient.verdict is Status.FAIL
    return [Finding(gradient.verdict, gradient.headline() if is_wrong else gradient.why)]


def judge_difference(gradient: GradientSummary, expect: Expect) -> list[Finding]:
    """The findings for a backward that is expected to be wrong, possibly in a specific way."""
    if gradient.verdict is not Status.FAIL:
        text = "expected a backward that is not the derivative, but it is (gradient: differs)"
        return [Finding(Status.FAIL, text)]
    wanted, findings = expect.differs, list[Finding]()
    codes = [d.code for d in gradient.diagnosis]
    if wanted.code is not None and wanted.code not in codes:
        named = ", ".join(codes) or "no known cause"
        text = f"expected {wanted.code} ({CODES[wanted.code].title}), but the check names {named}"
        findings.append(Finding(Status.FAIL, text))
    wrong = {name for name, (count, _) in gradient.wrong_counts.items() if count}
    wrong |= {name for d in gradient.diagnosis for name in d.inputs}
    if wanted.inputs and wrong != set(wanted.inputs):
        names = ", ".join(sorted(wrong)) or "none"
        text = f"expected wrong gradients of {', '.join(wanted.inputs)}, but those of {names} are"
        findings.append(Finding(Status.FAIL, text))
    return findings


# ------------------------------------------- declared backwards
FIND_DEVIATION = {"zero": not_zero, "straight-through": not_straight_through}
"""The functions that report where a backward breaks its declaration; none for a backward declared
to match.
"""
MUST_BE = {"differs": "differ", "zero": "be zero", "straight-through": "be straight-through"}


def as_expected(
    function: TensorFunction, settings: Settings, expect: Expectation
) -> GradientSummary:
    """The summary of the gradient check; the verdict says whether backward is as expected.

    Where it is declared not to be the derivative and passes, `wrong` still lists where backward and
    derivative differ.

    Raises:
        Exception: whatever the function raises.
    """
    find_fix = fix_search(function, settings, expect)
    summary = gradient_summary(function, settings, find_fix)
    if summary.verdict is Status.FAIL and (fix := find_fix()) is not None:
        summary = with_fix(summary, fix)
    # contracts hold, and backward has to run, whatever it is declared to be
    is_broken = any(is_contract(d.code) or d.code == NEVER_RAN for d in summary.diagnosis)
    if expect == "matches" or is_broken or function.first_call.unchecked:
        return summary
    if expect == "differs":
        if summary.verdict is Status.INCONCLUSIVE:
            return summary
        why = f"{AGREES} (expect='differs')" if summary.verdict in GREEN else ""
    else:
        try:
            why = FIND_DEVIATION[expect](function.problem(), np.random.default_rng(settings.seed))
        except Exception as error:
            return refusal_of(function, error)
    # The comparison with the derivative is not reported, but a comparison that was cut short is.
    reported_marks = (GAVE_LESS, GAVE_OTHER_SHAPES, UNFINISHED)
    changed: dict[str, Any] = {
        "verdict": Status.FAIL if why else Status.PASS,
        "why": why,
        "marks": tuple(mark for mark in summary.marks if mark.startswith(reported_marks)),
    }
    if why:
        return GradientSummary(seed=summary.seed, evaluations=summary.evaluations, **changed)
    changed |= {"diagnosis": (), "worst_error": 0.0}
    return with_marks(summary.model_copy(update=changed), f"expected to {MUST_BE[expect]}")


def fix_search(
    function: TensorFunction, settings: Settings, expect: Expectation = "matches"
) -> FixSearch:
    """The search for the single edit that repairs a function. It finds none for a backward that is
    not meant to match, or with the least effort.
    """
    if expect != "matches" or settings.effort == "least":
        return no_fix
    started = time.monotonic()

    @cache
    def find_fix() -> Fix | None:
        now = time.monotonic()
        deadline = started + settings.seconds - (now - started)  # the check of an edit fits as well
        return find_edit(function, settings, deadline) if now < deadline else None

    return find_fix


def find_edit(function: TensorFunction, settings: Settings, deadline: float) -> Fix | None:
    """The single edit of a backward that repairs a function, if one is found before a deadline, by
    `time.monotonic`.
    """
    # Most backwards are right, and the search is slow to import.
    from gradcheck.case.fixes import fix_of

    least = settings._replace(effort="least")

    def passes(changed: TensorFunction) -> bool:
        return gradient_summary(changed, least).verdict in GREEN

    return fix_of(function, passes, deadline)


def with_fix(summary: GradientSummary, fix: Fix) -> GradientSummary:
    """The summary of a failure with the edit that repairs it."""
    wrong = [name for name, (count, _) in summary.wrong_counts.items() if count]
    diagnosis = tuple(in_step_with(fix, wrong, summary.diagnosis))
    return summary.model_copy(update={"fix": fix, "diagnosis": diagnosis})


def agrees(summary: GradientSummary) -> bool:
    """Whether the only failure is that backward and derivative agree at this point."""
    return summary.verdict is Status.FAIL and summary.why.startswith(AGREES)


# ------------------------------ several points and dtypes
DTYPES = {
    "float64": "complex128",
    "float32": "complex64",
    "float16": "complex64",
    "bfloat16": "complex64",
}
"""The dtypes that floating inputs can be checked in, and those of complex inputs then."""
SPREADS = (1.0, 2.0**-2, 2.0**-4, 2.0**-6)
"""Powers of two by which elements are multiplied at most; the smaller ones where the function is
not defined there.
"""


def evaluation_points(
    function: TensorFunction, points: int, dtypes: Sequence[str], seed: int
) -> Iterator[tuple[str, TensorFunction]]:
    """The function at `points` points in each of `dtypes` (none: its own), with a description of
    each.

    The first point is the given one. At the others every element of a floating input is multiplied
    by a random factor between 1/2 and 2: it keeps its sign and its magnitude; integers and booleans
    stay. Points nearer to the given one are taken if the function raises there or is not finite.
    """
    function.know_leaves()
    random = np.random.default_rng(seed)
    for number in range(1, points + 1):
        where = f"point {number} of {points}" if points > 1 else ""
        evaluated = function if number == 1 else nearby(function, random)
        for dtype in dtypes:
            yield f"{where}, {dtype}".removeprefix(", "), in_dtype(evaluated, dtype)
        if not dtypes:
            yield where, evaluated


def nearby(function: TensorFunction, random: np.random.Generator) -> TensorFunction:
    """The function at another point."""
    floating = {name: x for name, x in function.arrays.items() if is_differentiable(x)}
    signs = {name: random.uniform(-1, 1, x.shape) for name, x in function.arrays.items()}
    shifted = function
    for spread in SPREADS:
        moved = {
            name: np.asarray((x * 2 ** (spread * signs[name])).astype(x.dtype))
            for name, x in floating.items()
        }
        shifted = function.at({**function.arrays, **moved})
        with suppress(Exception):  # it may not be defined there
            returned = shifted.backend.call(shifted.call, shifted.tensors())
            outputs = [shifted.backend.array(t) for t in shifted.outputs(returned)]
            if finite(wide(a) for a in outputs if is_differentiable(a)):
                break
    return shifted


def in_dtype(function: TensorFunction, dtype: str) -> TensorFunction:
    """The function with its floating inputs in `dtype`, complex ones of the same precision."""
    dtypes = dict(function.dtypes)
    for name, x in function.arrays.items():
        if is_differentiable(x):
            dtypes[name] = DTYPES[dtype] if x.dtype.kind == "c" else dtype
    tensors = function.at(function.arrays, dtypes).tensors()
    return function.at({name: function.backend.array(t) for name, t in tensors.items()}, dtypes)


def in_float32_if_it_must(
    function: TensorFunction, check: Callable[[TensorFunction], GradientSummary]
) -> GradientSummary:
    """A check, in float32 and marked so where the framework lacks an operation for the inputs'
    dtypes.
    """
    try:
        return check(function)
    except (RuntimeError, OSError) as error:
        dtypes = {x.dtype.name for x in function.arrays.values()} & {"float16", "bfloat16"}
        if not dtypes or not function.backend.lacks_kernel.search(str(error)):
            raise
    summary = check(in_dtype(function, "float32"))
    lacking = " and ".join(sorted(dtypes))
    framework = function.backend.words.framework
    return with_marks(summary, f"in float32, as {framework} lacks an operation in {lacking} here")


def worst(
    points: Iterator[tuple[str, TensorFunction]], check: Callable[[TensorFunction], GradientSummary]
) -> GradientSummary:
    """The worst summary, with its point and dtype; the search ends with the first FAIL.

    A backward that is declared to differ fails only if it agrees with the derivative at every
    point.
    """
    summaries, places = list[GradientSummary](), list[str]()
    for where, function in points:
        places.append(where)
        summaries.append(check(function))
        if summaries[-1].verdict is Status.FAIL and not agrees(summaries[-1]):
            break
    differing = [summary for summary in summaries if not agrees(summary)] or summaries
    chosen = min(differing, key=lambda summary: SEVERITY.index(summary.verdict))
    changed: dict[str, Any] = {
        "evaluations": sum(summary.evaluations for summary in summaries),
        "where": places[summaries.index(chosen)],
    }
    if chosen.verdict is Status.PASS:
        changed["certified"] = all(summary.certified for summary in summaries)
        changed |= {
            "where": "",
            "marks": tuple(dict.fromkeys(m for s in summaries for m in s.marks)),
        }
    return chosen.model_copy(update=changed)
