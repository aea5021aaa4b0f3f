"""Which entries are wrong, once the verdict is FAIL: from the tape by vjps alone, else by columns; within a budget."""

from __future__ import annotations

import functools
import itertools
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gradcheck.causes.likely import likely_causes
from gradcheck.causes.step_scan import steps_of
from gradcheck.checking.arrays import Array, flat, module_of, only
from gradcheck.checking.decide import Ruling
from gradcheck.checking.differences import QUICK, quick
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry, OutOfTimeError, Point
from gradcheck.checking.probe import ROUNDING, Probe, Prober, tape_diff
from gradcheck.result import Diagnosis, StepScan, absolute_error
from gradcheck.support.foreign import described

LEAST_BUDGET = 300
"""Evaluations and vjps that naming may take in any case: some hundredths of a second."""
BUDGET = 10
"""Naming costs at most so many times the evaluations and vjps of the check itself."""
MOST_LOCATED = 5
"""Wrong elements whose output is searched for by halving: as many as reports show."""
MOST_ROWS_BY_TAPE = 32
"""Outputs up to which all rows of the Jacobian are compared to list every wrong entry."""
MOST_COLUMNS = 8
"""Wrong columns that a whole scan confirms; then the quick derivative has proved itself for this function."""
FAR_OFF = 2.0**-20
"""An entry that is off by this share of the largest of its row is listed as it is, as its element is known to be wrong:
rounding is as much only where 32 bits of the row cancel."""
TAPED = 2.0**-48
"""The rounding of an entry of the tape that is a product of few numbers, relative to itself."""


@dataclass
class Named:
    """Wrong entries, those that carry most of the error first; which elements of which input are wrong; and why."""

    entries: list[Entry] = field(default_factory=list)
    wrong: dict[int, Array] = field(default_factory=dict)
    """By input, a mask of its elements that are known to be wrong; none of one that is right."""
    exhaustive: bool = True
    """Whether there are no more."""
    jacobians: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    """By input, the Jacobian or its diagonal, and its bounds, as far as differences gave it."""
    causes: tuple[Diagnosis, ...] = ()
    patterns: tuple[str, ...] = ()
    scan: StepScan | None = None
    """The differences of the worst entry at all steps, where these gave its value."""
    unfinished: str = ""
    """Why not all was looked at, if so."""

    @property
    def inputs(self) -> list[int]:
        """Those in which something is wrong."""
        return [number for number, mask in self.wrong.items() if bool(mask.any())]


def name_wrong(prober: Prober, probe: Probe, listed: int, thorough: bool) -> Named:
    """What is wrong about a gradient that a probe shows to be wrong, and why."""
    point = prober.point
    spent = point.spent.runs
    budget = np.inf if thorough else max(LEAST_BUDGET, BUDGET * spent)
    named = Named()
    try:
        named = by_tape(prober, probe, listed) if probe.wrong is not None else by_columns(prober, probe, budget)
        named.entries.sort(key=lambda e: -absolute_error(e.analytic, e.numeric))
        named.patterns = tuple(patterns(point, named))
        own = point.problem.causes() if point.problem.causes else ()
        named.causes = tuple(
            own or likely_causes(prober, named.inputs, probe, named.jacobians, budget - (point.spent.runs - spent))
        )
        if named.entries and probe.wrong is None:
            named.scan = steps_of(prober, named.entries[0])
    except OutOfTimeError:
        named.unfinished = "no time is left"
    except Exception as error:  # the verdict stands, whatever happens to the search for its cause
        last = traceback.extract_tb(error.__traceback__)[-1]
        named.unfinished = f"{described(error)} ({Path(last.filename).name}:{last.lineno})"
    return named


# --------------------------------------------------------------------------- with the tape
def by_tape(prober: Prober, probe: Probe, listed: int) -> Named:
    """The wrong entries as the tape tells them: counted exactly for a random cotangent, located by vjps."""
    point, named, said = prober.point, Named(), probe.comparison
    assert said is not None
    assert said.wrong is not None
    named.exhaustive = said.unsure is None
    worst = []

    @functools.cache
    def error_of(start: int, stop: int) -> list[Array]:
        """What is wrong of the gradients for some of the outputs: the halves are the same for many elements."""
        part = probe.cotangent * 0
        part[start:stop] = probe.cotangent[start:stop]
        return [c - t for c, t in zip(point.vjp(part), point.by_tape(part), strict=True)]

    for number, (g, t, mask) in enumerate(zip(said.claimed, said.taped, said.wrong, strict=True)):
        named.wrong[number] = mask
        errors, places = (g - t)[mask], module_of(mask).flatnonzero(mask)
        first = module_of(mask).argsort(-abs(errors))[:MOST_LOCATED].tolist()
        worst += [(complex(errors[i]), number, int(places[i])) for i in first]
    diagonal = claimed_diagonal(prober, probe.cotangent, probe.gradients, 0) if len(point.x) == 1 else None
    if diagonal is not None:
        true = said.taped[0].reshape(-1) / probe.cotangent
        wrong = module_of(true).flatnonzero(said.wrong[0].reshape(-1)).tolist()
        named.entries = [Entry(0, i, i, float(diagonal[i]), float(true[i]), TAPED * abs(float(true[i]))) for i in wrong]
    elif point.outputs.vector.size <= MOST_ROWS_BY_TAPE:
        rows = range(point.outputs.vector.size)
        named.entries = list(rows_by_tape(prober, said.wrong, listed, rows, rows_at_once(point, probe)))
    if not named.entries:
        worst.sort(key=lambda wrong: -abs(wrong[0]))
        entries = [entry_by_halving(point, error_of, *wrong) for wrong in worst[:MOST_LOCATED]]
        named.entries = [entry for entry in entries if entry.analytic != entry.numeric]
    return named


def rows_at_once(point: Point, probe: Probe) -> dict[int, list[Array]]:
    """The rows that backward claims, all of which no two share a column at once (Curtis, Powell and Reid 1974).

    None where every two share some, or where backward has others than the tape, as the rows then do not add up to what
    it gives for the probe's cotangent.
    """
    rows = [[t != 0 for t in point.by_tape(point.outputs.unit(k))] for k in range(point.outputs.vector.size)]
    groups = disjoint([flat(row) for row in rows])
    found, total = dict[int, list[Array]](), [0 * g for g in probe.gradients]
    for group in groups if len(groups) < len(rows) else ():
        gradients = point.vjp(sum(point.outputs.unit(k) for k in group))
        for k in group:
            found[k] = [g * mask for g, mask in zip(gradients, rows[k], strict=True)]
            total = [a + probe.cotangent[k] * g for a, g in zip(total, found[k], strict=True)]
    differ = any(bool(far_off(a, g).any()) for a, g in zip(total, probe.gradients, strict=True))
    return {} if differ else found


def disjoint(masks: Sequence[Array]) -> list[list[int]]:
    """Masks in groups of which no two have an element in common: each joins the first group that it can."""
    groups, taken = list[list[int]](), list[Array]()
    for k, mask in enumerate(masks):
        first = next((i for i, one in enumerate(taken) if not bool((one & mask).any())), len(groups))
        if first == len(groups):
            groups.append([])
            taken.append(mask)
        groups[first].append(k)
        taken[first] = taken[first] | mask
    return groups


def rows_by_tape(
    prober: Prober,
    masks: Sequence[Array] | None,
    listed: float,
    rows: Sequence[int],
    known: Mapping[int, list[Array]] | None = None,
) -> Iterator[Entry]:
    """Of some rows of the Jacobian the entries that the tape rejects; of each input at most so many. In `masks` of what
    is known to be wrong those that are far off: this needs no measuring of what rounding does. Rows that are `known`
    are not asked for."""
    point = prober.point
    left = {number: listed for number in range(len(point.x)) if masks is None or bool(masks[number].any())}
    for output in rows:
        if not any(left.values()):
            return
        one = point.outputs.unit(output)
        claimed = known[output] if known else point.vjp(one)
        if masks is not None:
            taped = point.by_tape(one)
            rejected = [m & far_off(c, t) for c, t, m in zip(claimed, taped, masks, strict=True)]
        else:
            found = tape_diff(point, one, claimed, None, prober.rtol)
            taped, rejected = list(found.taped), list(found.wrong or ())
        for number, mask in enumerate(rejected):
            for i in module_of(one).flatnonzero(mask.reshape(-1)).tolist():
                if left.get(number):
                    left[number] -= 1
                    yield entry_of(point, number, i, output, claimed, taped)


def far_off(claimed: Array, taped: Array) -> Array:
    """The elements that differ by more than `FAR_OFF` of the largest one."""
    size = module_of(taped).where(np.isfinite(taped), abs(taped), 0.0)
    return ~(abs(claimed - taped) <= FAR_OFF * float(size.max(initial=0.0)))  # so is NaN


def entry_of(
    point: Point, number: int, index: int, output: int, claimed: Sequence[Array], taped: Sequence[Array]
) -> Entry:
    """An entry from both rows."""
    a, t = (complex(rows[number].reshape(-1)[index]) for rows in (claimed, taped))
    value = (a.real, t.real) if abs(a.real - t.real) >= abs(a.imag - t.imag) else (a.imag, t.imag)
    return Entry(number, index, point.outputs.element(output), *value, TAPED * abs(t))


def entry_by_halving(
    point: Point, error_of: Callable[[int, int], list[Array]], error: complex, number: int, index: int
) -> Entry:
    """For an element of an input, with its error for a cotangent, the entry that carries most of it, by halving the
    outputs: `error_of` gives what is wrong of the gradients for those from one to another."""
    start, stop = 0, point.outputs.vector.size
    while stop - start > 1:
        middle = (start + stop) // 2
        half = complex(error_of(start, middle)[number].reshape(-1)[index])
        if 2 * abs(half) >= abs(error):
            stop, error = middle, half
        else:
            start, error = middle, error - half
    one = point.outputs.unit(start)
    return entry_of(point, number, index, start, point.vjp(one), point.by_tape(one))


# --------------------------------------------------------------------------- a diagonal Jacobian
def claimed_diagonal(prober: Prober, u: Array, gradients: Sequence[Array], number: int) -> Array | None:
    """The diagonal of the Jacobian that backward claims for one input, flat; None if it claims another Jacobian.

    Of a diagonal one gradient and cotangent have the same ratio for every cotangent. So has the tape, if there is one.
    """
    point = prober.point
    if point.x[number].size != u.size or point.complex:
        return None
    other, again = prober.claimed()
    pairs: list[tuple[Sequence[Array], Sequence[Array]]] = [(gradients, again)]
    if point.witnessed:
        pairs.append((point.by_tape(u), point.by_tape(other)))
    for first, second in pairs:
        wanted = u * (second[number].reshape(-1) / other)
        if not bool((abs(first[number].reshape(-1) - wanted) <= ROUNDING * abs(wanted)).all()):
            return None
    return again[number].reshape(-1) / other


def diagonal_by(first: Probe, second: Probe, number: int) -> tuple[Array, Array] | None:
    """The diagonal of the Jacobian of one input, and its bounds, by the differences along two directions.

    None if they tell of another Jacobian, or were not taken of every output.
    """
    found = []
    for probe in (first, second):
        d, seen = probe.direction[number], probe.derivative
        if d is None or not probe.by_rows or not bool((d != 0).all()):
            return None
        bar = module_of(d).where(seen.kinked, np.inf, seen.both.bar)
        found.append((seen.both.value / d.reshape(-1), bar / abs(d.reshape(-1))))
    (value, bar), (again, bar_again) = found
    if not bool((abs(value - again) <= bar + bar_again).all()):
        return None
    return value, np.maximum(bar, abs(value - again) + bar_again)  # what it excludes, both do


# --------------------------------------------------------------------------- without the tape
def by_columns(prober: Prober, probe: Probe, budget: float) -> Named:
    """The wrong entries as differences find them: by columns where the budget allows, else by halving."""
    point, named = prober.point, Named()
    for number, x in enumerate(point.x):
        everywhere = module_of(probe.cotangent).ones(x.shape, bool)
        alone = prober.probe(only(number, everywhere, point.x), whole=True) if x.size else None
        if alone is None or alone.decision is Ruling.PASS:
            named.wrong[number] = ~everywhere
            continue
        found, before = list[Entry](), point.spent.runs
        known = claimed = None
        if 1 < x.size == point.outputs.vector.size:
            claimed = claimed_diagonal(prober, alone.cotangent, alone.gradients, number)
        if claimed is not None:
            known = diagonal_by(alone, prober.probe(only(number, everywhere, point.x), whole=True), number)
        if known is not None:
            found = beyond_bound(prober, number, claimed, *known)
        elif point.by_rows and 4 * x.size <= budget:
            known = columns(prober, number, alone, everywhere.reshape(-1))
            if not point.complex and point.outputs.size + 4 * x.size <= budget:
                found = of_columns(prober, number, alone, claimed_jacobians(point)[number], *known)
        if known is not None:
            named.jacobians[number] = known
        budget -= point.spent.runs - before
        if not found:
            found = list(entries_by_search(prober, alone, number))
            named.exhaustive = False
        named.entries += found
        if found:
            wrong = ~everywhere
            wrong.reshape(-1)[sorted({e.index for e in found})] = True
            named.wrong[number] = wrong
    return named


def columns(prober: Prober, number: int, like: Probe, mask: Array) -> tuple[Array, Array]:
    """The Jacobian of one input by differences, both parts of complex elements in one column, and its bounds: inf but
    for the columns in a mask."""
    point, x, step = prober.point, prober.point.x[number], like.derivative.step
    xp, step = module_of(x), max(QUICK, sorted(step.tolist())[step.size // 2])
    parts, dtype = ([1.0, 1j], x.dtype) if x.dtype.kind == "c" else ([1.0], "float64")
    shape, scales = (point.outputs.vector.size, x.size), point.scales[number].reshape(-1)
    value, bar = xp.zeros(shape, dtype), xp.zeros(shape) + xp.where(mask, 0.0, np.inf)
    for index in xp.flatnonzero(mask).tolist():
        size = float(scales[index])
        for part in parts:
            found = quick(point.line(point.along_element(number, index, part * size)), like.derivative.noise, step)
            value[:, index] += part * found.value / size
            bar[:, index] += found.bar / size
    return value, bar


def claimed_jacobians(point: Point) -> list[Array]:
    """The Jacobian of every input that backward claims."""
    rows = [point.vjp(point.outputs.unit(k)) for k in range(point.outputs.vector.size)]
    return [module_of(of_input[0]).stack([g.reshape(-1) for g in of_input]) for of_input in zip(*rows, strict=True)]


def of_columns(prober: Prober, number: int, like: Probe, claimed: Array, value: Array, bar: Array) -> list[Entry]:
    """The wrong entries of the Jacobian of one input. The first columns that are wrong are held against whole scans."""
    point, scales = prober.point, prober.point.scales[number].reshape(-1)
    for index in sorted({e.index for e in beyond_bound(prober, number, claimed, value, bar)})[:MOST_COLUMNS]:
        size = float(scales[index])
        line = point.line(point.along_element(number, index, size))
        found = prober.scanned(line, like.derivative.noise, True).both
        value[:, index], bar[:, index] = found.value / size, found.bar / size
    return beyond_bound(prober, number, claimed, value, bar)


def beyond_bound(prober: Prober, number: int, claimed: Array, value: Array, bar: Array) -> list[Entry]:
    """The entries of a Jacobian, or of its diagonal, in which backward and the differences differ by more than the
    bound."""
    xp = module_of(value)
    bound = bar + (ROUNDING + prober.rtol) * np.maximum(abs(value), abs(claimed))
    at = xp.nonzero(~(abs(claimed - value) <= bound) & (bound < np.inf))
    numbers = (values[at].tolist() for values in (claimed, value, bound))
    return [Entry(number, i, k, *three) for k, i, *three in zip(at[0].tolist(), at[-1].tolist(), *numbers, strict=True)]


def entries_by_search(prober: Prober, probe: Probe, number: int) -> Iterator[Entry]:
    """Some wrong elements of one input, by halving it: the derivative of the weighted outputs along each is wrong."""
    point, d = prober.point, probe.direction[number]
    assert d is not None
    whole = d.reshape(-1)

    def along(places: range) -> Probe:
        part = 0 * whole
        part[places.start : places.stop] = whole[places.start : places.stop]
        return prober.along(only(number, part.reshape(d.shape), point.x), probe, whole=len(places) == 1)

    wrong = halved(range(whole.size), lambda places: along(places).decision is Ruling.FAIL)
    for index in itertools.islice(wrong, MOST_LOCATED):
        there, step = along(range(index, index + 1)), math.copysign(abs(whole[index]), whole[index].real)
        value, claim = there.seen.value / step, there.claim.value / step
        yield Entry(number, index, SUM_OF_OUTPUTS, claim, value, there.seen.bar / abs(step))


def halved(places: range, shows: Callable[[range], bool]) -> Iterator[int]:
    """The single places for which `shows` holds, found by halving."""
    if not shows(places):
        return
    if len(places) == 1:
        yield places[0]
        return
    middle = len(places) // 2
    yield from halved(places[:middle], shows)
    yield from halved(places[middle:], shows)


# --------------------------------------------------------------------------- whole slices
def patterns(point: Point, named: Named) -> Iterator[str]:
    """Per input whose wrong elements make up whole slices along one axis, and not all of it: ``all of x[:, 3]``. Only
    where all of them are known."""
    for number in named.inputs if named.exhaustive else ():
        wrong, name = np.asarray(named.wrong[number].tolist()), point.problem.names[point.moved[number]]
        found = (whole_slices(wrong, axis) for axis in range(wrong.ndim))
        yield from itertools.islice((f"all of {name}[{place}]" for place in found if place), 1)


def whole_slices(wrong: np.ndarray[Any, Any], axis: int) -> str:
    """The slices along an axis that are wrong throughout, if they are all that is wrong, and not everything."""
    places = np.flatnonzero(wrong.all(axis=tuple(k for k in range(wrong.ndim) if k != axis))).tolist()
    if not 0 < len(places) * (wrong.size // wrong.shape[axis]) == int(wrong.sum()) < wrong.size or wrong.sum() == 1:
        return ""
    run = places == list(range(places[0], places[-1] + 1)) and len(places) > 1
    shown = f"{places[0]}:{places[-1] + 1}" if run else ", ".join(map(str, places))
    shown = shown if run or len(places) == 1 else f"[{shown}]"
    return ", ".join(shown if k == axis else ":" for k in range(wrong.ndim))
