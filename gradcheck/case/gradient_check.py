"""The gradient check: the verdict, the wrong entries and their causes, as one summary; of a function of Tensors of both
orders, as its backward is declared to be, at several points."""

from __future__ import annotations

import copy
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, is_differentiable
from gradcheck.case.function import TensorFunction, refused
from gradcheck.case.never_ran import CODE as NEVER_RAN
from gradcheck.case.never_ran import refuse_foreign_layers, with_backwards_that_ran
from gradcheck.causes.entries import WrongEntries, all_wrong_entries, by_columns, by_tape, patterns, steps_of
from gradcheck.causes.hypotheses import likely_causes
from gradcheck.causes.search import Backward
from gradcheck.checking.point import OutOfTimeError
from gradcheck.checking.precision import EPS, distance, largest, wide
from gradcheck.checking.probe import POWER, Found, Probe, Prober
from gradcheck.checking.problem import Problem
from gradcheck.checking.verdict import Check, Precision
from gradcheck.codes import CODES, is_contract
from gradcheck.result import MOST_LISTED, UNFINISHED, Diagnosis, GradientSummary, Status, absolute_error
from gradcheck.support.foreign import described

if TYPE_CHECKING:
    from gradcheck.spec.model import Expect

Mode = Literal["auto", "probe", "full"]
Effort = Literal["usual", "full"]
"""How much is spent on naming what is wrong."""

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
        rtol: widens the error bounds, relative to the largest entry of a gradient; never narrows them.
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
            return summary_of(check, found, WrongEntries(found.wrong, exhaustive=found.exhaustive), listed)
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


def name_wrong(prober: Prober, probe: Probe, listed: int, thorough: bool) -> tuple[WrongEntries, dict[str, Any]]:
    """What is wrong about a gradient that a probe shows to be wrong, and what a summary says of it: why, and the
    differences of the worst entry where these gave its value."""
    point, named, said = prober.point, WrongEntries(), dict[str, Any]()
    spent = point.spent.runs
    backward: Backward = point.vjp
    budget = np.inf if thorough else max(LEAST_BUDGET, BUDGET * spent)
    with marked_as_unfinished(said):
        named = WrongEntries.of(probe) if probe.wrong is not None else by_columns(prober, budget)
        said["patterns"] = tuple(patterns(point, named))
        found: Sequence[Diagnosis] = point.problem.causes() if point.problem.causes else ()
        found = found or approximation(probe, EPS**0.5)  # no mistake of a formula is so small
        if not found:
            left = budget - (point.spent.runs - spent)
            found, backward = likely_causes(prober, named.inputs, probe, named.jacobians, left)
        found = found or approximation(probe, POWER)
        said["diagnosis"] = tuple(found)
    with marked_as_unfinished(said):
        if probe.wrong is not None:
            named.entries = by_tape(prober, probe, listed, backward)
        named.entries = sorted(named.entries, key=lambda e: -absolute_error(e.analytic, e.numeric))
        if named.entries and probe.wrong is None:
            said["scan"] = steps_of(prober, named.entries[0])
    return named, said


def approximation(probe: Probe, most: float) -> list[Diagnosis]:
    """What is said of a gradient that is off by more than rounding, but by less than the share `most`: by how much, and
    what lets it pass."""
    found = probe.comparison
    if found is None or found.wrong is None:
        return []
    off = 0.0
    for claimed, taped in zip(found.claimed, found.taped, strict=True):
        apart = float(distance(claimed, taped).max(initial=0.0))
        if apart and not apart < most * largest(taped):
            return []
        off = max(off, apart / largest(taped) if apart else 0.0)
    widened = 10.0 ** np.ceil(np.log10(4 * off))  # another cotangent may weigh the errors otherwise
    text = (
        f"backward is right to {off:.1g} of the largest entry: an iteration that stops early, or a constant of few "
        f"digits? rtol={widened:.0e} lets it pass"
    )
    return [Diagnosis.of("GC126", text)]


@contextmanager
def marked_as_unfinished(said: dict[str, Any]) -> Iterator[None]:
    """Note it if naming what is wrong ends early. The verdict stands, whatever happens."""
    try:
        yield
    except OutOfTimeError:
        said["marks"] = (f"{UNFINISHED}: no time is left",)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said["marks"] = (f"{UNFINISHED}: {described(error)} ({Path(last.filename).name}:{last.lineno})",)


def summary_of(check: Check, found: Found, named: WrongEntries, listed: int, **said: Any) -> GradientSummary:
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


# --------------------------------------------------------------------------- of a function of Tensors
SEVERITY = (Status.ERROR, Status.FAIL, Status.INCONCLUSIVE, Status.KINK, Status.PASS)
"""What a case with several findings, or several points, is reported as: the first of these among them."""
GAVE_LESS = "the documents ask for one gradient per Tensor input"
"""Marks a verdict on a backward that left gradients out, or returned None for one: it was read as releases read it."""
GAVE_OTHER_SHAPES = "a gradient between two layers has another shape than the input"
"""Marks a verdict on layers that hand a gradient of another shape on, which releases do not look at."""
Expectation = Literal["matches", "differs", "straight-through", "zero"]
"""What a backward is: the derivative; not the derivative; the cotangent unchanged, of a function in steps; zero."""


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
    seconds: float = inf


def gradient_summary(function: TensorFunction, settings: Settings) -> GradientSummary:
    """What the gradient check finds: INCONCLUSIVE where nothing is claimed, FAIL where backward returns no gradients.

    Raises:
        Exception: whatever else the function raises.
    """
    options = settings._asdict()
    order = options.pop("order")
    try:
        problem = function.problem()
        if function.unchecked:
            why = f"nothing was checked: {function.unchecked}"
            nothing = GradientSummary(verdict=Status.INCONCLUSIVE, why=why)
            return with_backwards_that_ran(function, nothing)
        summary = check_gradient(problem, **options)
        if order == 2 and summary.verdict in (Status.PASS, Status.KINK):
            summary = check_gradient(function.second_order(problem), **options).second()
    except Exception as error:
        found = refused(error)
        if found is None:
            refuse_foreign_layers(function)
            raise
        return found
    seen = ((GAVE_LESS, function.gave_less), (GAVE_OTHER_SHAPES, function.gave_other_shapes))
    if noted := [mark for mark, holds in seen if holds]:
        summary = summary.model_copy(update={"marks": (*summary.marks, *noted)})
    return with_backwards_that_ran(function, function.told(summary))


# --------------------------------------------------------------------------- what a scenario says of its gradient
class Finding(NamedTuple):
    """Something that was not as expected (or, a KINK, worth marking)."""

    status: Status
    message: str


def judge(gradient: GradientSummary, expect: Expect) -> list[Finding]:
    """What the gradient check means for a scenario that says what backward is."""
    verdict, wanted = gradient.verdict, expect.differs
    if verdict is Status.INCONCLUSIVE:
        return [Finding(verdict, gradient.why)]
    if expect.gradient != "differs":
        if verdict is Status.KINK:
            return [Finding(verdict, gradient.why)]
        return [Finding(verdict, gradient.headline())] if verdict is Status.FAIL else []
    if verdict is not Status.FAIL:
        return [Finding(Status.FAIL, "expected a backward that is not the derivative, but it is (gradient: differs)")]
    if wanted is None:
        return []
    found: list[Finding] = []
    codes = [d.code for d in gradient.diagnosis]
    if wanted.code is not None and wanted.code not in codes:
        given = ", ".join(codes) or "no cause that it knows"
        text = f"expected {wanted.code} ({CODES[wanted.code].title}), but the check names {given}"
        found.append(Finding(Status.FAIL, text))
    wrong = {name for name, (count, _) in gradient.wrong_counts.items() if count}
    wrong |= {name for d in gradient.diagnosis for name in d.inputs}
    if wanted.inputs and wrong != set(wanted.inputs):
        others = ", ".join(sorted(wrong)) or "none"
        text = f"expected wrong gradients of {', '.join(wanted.inputs)}, but those of {others} are"
        found.append(Finding(Status.FAIL, text))
    return found


# --------------------------------------------------------------------------- backwards that are not the derivative
AGREES = "expected a backward that is not the derivative, but here it is"
"""Begins the reason of a failure that another point may put right: there the two may differ."""
LARGER = 64
"""How much larger the second cotangent is that is passed through: a backward that clips shows at some size."""
SMALL_MOVE, LARGE_MOVE = 2.0**-20, 2.0**-14
"""Two small moves, relative to an input's element, by which steps are told from slopes."""
FLAT = 2.0**-36
"""A change of an output, relative to the largest, between what rounding (2⁻⁵²) and a slope of 1 (`SMALL_MOVE`) make."""


def as_expected(function: TensorFunction, settings: Settings, expect: Expectation) -> GradientSummary:
    """The summary of the gradient check, its verdict being whether backward is what it is expected to be.

    Where it is declared not to be the derivative and passes, `wrong` still lists where the two were seen to differ.

    Raises:
        Exception: whatever the function raises.
    """
    summary = gradient_summary(function, settings)
    # contracts hold, and backward has to run, whatever it is declared to be
    broken = any(is_contract(d.code) or d.code == NEVER_RAN for d in summary.diagnosis)
    if expect == "matches" or broken or (summary.why and function.unchecked):
        return summary
    why = ""
    try:
        if expect != "differs":
            deviation = not_zero if expect == "zero" else not_straight_through
            why = deviation(function.problem(), np.random.default_rng(settings.seed))
    except Exception as error:
        found = refused(error)
        if found is None:
            raise
        return found
    if expect == "differs" and summary.verdict is Status.INCONCLUSIVE:
        return summary
    if expect == "differs" and summary.verdict in (Status.PASS, Status.KINK):
        why = f"{AGREES} (expect='differs')"
    # how backward was held against the derivative is not what is told; that it was cut short is
    marks = tuple(
        mark for mark in summary.marks if mark in (GAVE_LESS, GAVE_OTHER_SHAPES) or mark.startswith(UNFINISHED)
    )
    if why:
        spent = summary.evaluations
        return GradientSummary(verdict=Status.FAIL, why=why, seed=summary.seed, evaluations=spent, marks=marks)
    marks = (*marks, "expected to differ" if expect == "differs" else f"expected to be {expect}")
    passed = {"verdict": Status.PASS, "why": "", "diagnosis": (), "worst_error": 0.0, "marks": marks}
    return summary.model_copy(update=passed)


def agrees(summary: GradientSummary) -> bool:
    """Whether a failure is only that backward and derivative agree at this point."""
    return summary.verdict is Status.FAIL and summary.why.startswith(AGREES)


def not_zero(problem: Problem, random: np.random.Generator) -> str:
    """The first element of a gradient that is not zero, in words; empty if there is none."""
    for size in (1, LARGER):
        for name, gradient, _ in gradients(problem, [cotangent(a, size, random) for a in outputs_of(problem)]):
            place = None if gradient is None else first(wide(gradient) != 0)
            if gradient is not None and place is not None:
                value = f"the gradient of {problem.element(name, place)} is {gradient[place]:.8g}"
                return f"expected a gradient of zeros (expect='zero'), but {value}"
    return ""


def not_straight_through(problem: Problem, random: np.random.Generator) -> str:
    """The first element of a gradient that is not the cotangent's, or of the output that follows its input, in words;
    empty if there is none."""
    expected = "expected backward to pass the cotangent on unchanged (expect='straight-through'), but"
    outputs = outputs_of(problem)
    if len(outputs) != 1 or not is_differentiable(outputs[0]):
        return f"{expected} the function has {len(outputs)} outputs that claim a gradient, not one floating one"
    for size in (1, LARGER):
        given = cotangent(outputs[0], size, random)
        assert given is not None
        for name, gradient, x in gradients(problem, [given]):
            if gradient is None or given.shape != x.shape:
                got = "none" if gradient is None else f"one of shape {list(x.shape)}"
                return f"{expected} {name} gets {got}, where the cotangent has shape {list(given.shape)}"
            place = first(wide(gradient) != wide(given))
            if place is not None:
                got = f"the gradient of {problem.element(name, place)} is {gradient[place]:.8g}"
                return f"{expected} {got}, the cotangent {given[place]:g}"
    place, steps = sloping_element(problem, random)
    if place is not None:
        where = problem.element(problem.output_names[0], place)
        return (
            f"expected a function in steps (expect='straight-through'), but {where} "
            f"follows its inputs with a slope: what backward passes on is not its derivative"
        )
    return "" if steps else f"{AGREES} (expect='straight-through')"


def outputs_of(problem: Problem) -> Sequence[Array]:
    """The outputs at the inputs."""
    return problem.forward(list(problem.inputs)) if problem.outputs is None else problem.outputs


def cotangent(output: Array, size: int, random: np.random.Generator) -> Array | None:
    """Multiples of 1/8 up to 2 in size, times `size`: every floating dtype holds them exactly."""
    if not is_differentiable(output):
        return None
    eighths = random.integers(1, 17, output.shape) * random.choice([-1, 1], output.shape)
    return (wide(output) * 0 + size * eighths / 8).astype(output.dtype)


def gradients(problem: Problem, cotangents: list[Array | None]) -> list[tuple[str, Array | None, Array]]:
    """The names of the inputs that need a gradient, what backward gives them, and the inputs."""
    found = problem.vjp(list(problem.inputs), cotangents)
    rows = zip(problem.names, found, problem.inputs, problem.differentiable, strict=True)
    return [(name, gradient, x) for name, gradient, x, needed in rows if needed]


def sloping_element(problem: Problem, random: np.random.Generator) -> tuple[tuple[int, ...] | None, bool]:
    """The first element of the output that follows its inputs other than one to one, and whether any is in steps.

    The outputs at two small moves, one 64 times the other, are held against those at the point. In steps they do not
    change, or jump by as much for both; along a slope they change in proportion. Where a function that is in steps
    elsewhere is the identity, as a threshold that lets large values through, the cotangent is passed on rightly.
    """
    inputs, needed = [wide(x) for x in problem.inputs], problem.differentiable
    moves = []
    for x, need in zip(inputs, needed, strict=True):  # every element with a random sign, zeros as far as the largest
        size = np.where(x == 0, abs(x).max(initial=0.0) or 1.0, abs(x))
        moves.append(size * random.choice([-1.0, 1.0], x.shape) if need else x * 0)

    def change(t: float) -> Array:
        there = [x + t * d if need else x for x, d, need in zip(inputs, moves, needed, strict=True)]
        return wide(problem.forward(there)[0]) - start

    try:
        start = wide(problem.forward(inputs)[0])
        near, far = change(SMALL_MOVE), change(LARGE_MOVE)
    except Exception:  # it takes its own dtype alone, in which a move so small may be none
        return None, True
    same = sum(SMALL_MOVE * d for d, need in zip(moves, needed, strict=True) if need)
    one_to_one = abs(near - same) <= SMALL_MOVE * abs(same)
    sloping = (abs(near * (LARGE_MOVE / SMALL_MOVE) - far) <= abs(far) / 2) & (abs(near) > FLAT * abs(start).max())
    return first(sloping & ~one_to_one), not bool(one_to_one.all())


def first(chosen: Array) -> tuple[int, ...] | None:
    """The index of the first element that is chosen."""
    found = np.argwhere(np.asarray(chosen))
    return tuple(int(i) for i in found[0]) if len(found) else None


# --------------------------------------------------------------------------- several points and dtypes
DTYPES = {"float64": "complex128", "float32": "complex64", "float16": "complex64", "bfloat16": "complex64"}
"""The dtypes that floating inputs can be looked at in, and what complex inputs are then."""
LACKS_KERNEL = re.compile("kernel .* is not registered")
"""What Paddle says of most operations in float16 and bfloat16 on a CPU."""
SPREADS = (1.0, 2.0**-2, 2.0**-4, 2.0**-6)
"""Powers of two by which elements are multiplied at most; the smaller ones where the function is not defined there."""


def looks(
    function: TensorFunction, points: int, dtypes: Sequence[str], seed: int
) -> Iterator[tuple[str, TensorFunction]]:
    """The function at `points` points in each of `dtypes` (none: the inputs' own), with the words for where that is.

    The first point is the given one. At the others every element of a floating input is multiplied by a random factor
    between 1/2 and 2: it keeps its sign and its magnitude; integers and booleans stay. Nearer ones are taken if the
    function raises there or is not finite.
    """
    random = np.random.default_rng(seed)
    if function.closed_over is None:  # what it closes over moves with the inputs
        function.first_call = function.call_first()
    for number in range(points):
        at = function if number == 0 else nearby(function, random)
        where = f"point {number + 1} of {points}" if points > 1 else ""
        for dtype in dtypes or [""]:
            yield ", ".join(filter(None, [where, dtype])), in_dtype(at, dtype) if dtype else at


def nearby(function: TensorFunction, random: np.random.Generator) -> TensorFunction:
    """The function at another point."""
    at = copy.copy(function)
    at.first_call = None
    signs = {name: random.uniform(-1, 1, x.shape) for name, x in function.arrays.items()}
    for spread in SPREADS:
        at.arrays = {
            name: np.asarray((x * 2 ** (spread * signs[name])).astype(x.dtype)) if is_differentiable(x) else x
            for name, x in function.arrays.items()
        }
        try:
            outputs = [at.backend.array(t) for t in at.outputs(at.call(at.tensors()))]
        except Exception:  # it is not defined there
            continue
        if all(bool(np.isfinite(abs(wide(a))).all()) for a in outputs if is_differentiable(a)):
            break
    return at


def in_dtype(function: TensorFunction, dtype: str) -> TensorFunction:
    """The function with its floating inputs in `dtype`, complex ones in that of the same precision."""
    at = copy.copy(function)
    at.first_call = None
    at.dtypes = {
        name: {"c": DTYPES[dtype]}.get(x.dtype.kind, dtype) if is_differentiable(x) else function.dtypes[name]
        for name, x in function.arrays.items()
    }
    at.arrays = {name: at.backend.array(tensor) for name, tensor in at.tensors().items()}
    return at


def in_float32_if_it_must(
    function: TensorFunction, check: Callable[[TensorFunction], GradientSummary]
) -> GradientSummary:
    """A check, in float32 and marked so where an operation is not there for the dtypes of the inputs on this device."""
    try:
        return check(function)
    except Exception as error:
        lacking = sorted({x.dtype.name for x in function.arrays.values() if x.dtype.name in ("float16", "bfloat16")})
        paddles = isinstance(error, (RuntimeError, OSError)) and LACKS_KERNEL.search(str(error))
        if not lacking or not paddles:
            raise
    summary = check(in_dtype(function, "float32"))
    mark = f"in float32, as Paddle lacks an operation in {' and '.join(lacking)} here"
    return summary.model_copy(update={"marks": (*summary.marks, mark)})


def worst(
    looked: Iterator[tuple[str, TensorFunction]], check: Callable[[TensorFunction], GradientSummary]
) -> GradientSummary:
    """The worst summary, with where it was found; the search ends with the first FAIL.

    That a backward agrees with the derivative although it is declared to differ counts only if it does at every point.
    """
    found: list[GradientSummary] = []
    for where, function in looked:
        summary = check(function)
        found.append(summary.model_copy(update={"where": where}) if where else summary)
        if summary.verdict is Status.FAIL and not agrees(summary):
            break
    if len(found) == 1 and not found[0].where:
        return found[0]
    differing = [summary for summary in found if not agrees(summary)] or found
    chosen = min(differing, key=lambda summary: SEVERITY.index(summary.verdict))
    together: dict[str, Any] = {"evaluations": sum(summary.evaluations for summary in found)}
    if chosen.verdict is Status.PASS:
        together["certified"] = all(summary.certified for summary in found)
        together |= {"where": "", "marks": tuple(dict.fromkeys(m for s in found for m in s.marks))}
    return chosen.model_copy(update=together)
