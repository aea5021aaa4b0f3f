"""The search for the wrong entries of a Jacobian: by rows if there is a tape, otherwise by columns.

Rows come only from the tape and vjps, columns from differences.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.causes.search import Backward
from gradcheck.checking.differences import QUICK, RATIO, USUAL, Line, derivative_of, quick
from gradcheck.checking.point import (
    SUM_OF_OUTPUTS,
    Entry,
    Point,
    array_and_element,
    one_input_only,
)
from gradcheck.checking.precision import EPS, flat, largest
from gradcheck.checking.probe import (
    POWER,
    ROUNDING,
    Comparison,
    Probe,
    Prober,
    Ruling,
    tape_diff,
    unmeasured_tolerance,
)
from gradcheck.result import StepScan

MOST_LOCATED = 5
"""The most wrong elements whose output is searched for by halving: as many as reports show."""
MOST_ROWS_BY_TAPE = 32
"""The most outputs for which all rows of the Jacobian are compared to list every wrong entry."""
MOST_COLUMNS = 8
"""Wrong columns that a complete scan of steps confirms before the quick derivative is trusted."""
MOST_JACOBIAN_ENTRIES = 2**25
"""The most entries of a Jacobian that mode ``full`` computes."""
FAR_OFF = 2.0**-20
"""An entry that is off by this share of the largest entry of its row is listed without a
measurement, as its element is known to be wrong: rounding reaches that size only if 32 bits of the
row cancel. An entry that is off by less than this share of the element's error is measured, as that
may be rounding.
"""
TAPED = 2.0**-48
"""The relative rounding error of an entry of the tape that is a product of few numbers."""


@dataclass
class WrongEntries:
    """Wrong entries, largest errors first, and the wrong elements of each input."""

    entries: Sequence[Entry] = ()
    wrong: dict[int, Array] = field(default_factory=dict)
    """A mask of the elements known to be wrong, by input; all False for an input that is right."""
    exhaustive: bool = True
    """Whether the list is complete."""
    jacobians: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    """The Jacobian or its diagonal, with bounds, by input, as far as differences determined it."""

    @classmethod
    def of(cls, probe: Probe) -> WrongEntries:
        """The elements whose gradient the tape rejects for a random cotangent; their count is
        exact.
        """
        assert probe.comparison is not None
        assert probe.comparison.wrong is not None
        wrong = dict(enumerate(probe.comparison.wrong))
        return cls(wrong=wrong, exhaustive=probe.comparison.unsure is None)

    @property
    def inputs(self) -> list[int]:
        """The inputs with a wrong element."""
        return [number for number, mask in self.wrong.items() if mask.any()]


# --------------------------------------------------------------------------- with the tape
def entries_by_tape(prober: Prober, probe: Probe, listed: int, backward: Backward) -> list[Entry]:
    """Wrong entries of the elements that the tape rejected, at most `listed` of each input.

    With few outputs they come in the order of the outputs; otherwise those with the largest errors
    are chosen. `backward` may be a tape that gives the same gradients.
    """
    point, comparison, masks = prober.point, probe.comparison, probe.wrong
    assert comparison is not None
    assert masks is not None
    if len(point.x) == 1:
        diagonal = claimed_diagonal(prober, probe.cotangent, probe.gradients, 0)
        if diagonal is not None:
            true = comparison.taped[0].reshape(-1) / probe.cotangent
            wrong = np.flatnonzero(masks[0])
            worst = wrong[worst_places(diagonal[wrong], true[wrong], listed)].tolist()
            rows = zip(worst, diagonal[worst].tolist(), true[worst].tolist(), strict=True)
            return [Entry(0, i, i, claim, t, TAPED * abs(t)) for i, claim, t in rows]
    entries: list[Entry] = []
    if point.outputs.vector.size <= MOST_ROWS_BY_TAPE:
        entries = list(entries_by_rows(point, comparison, masks, listed, backward))
    return entries or list(entries_by_halving(point, probe, comparison, masks, backward))


def worst_places(claimed: Array, true: Array, count: int) -> Array:
    """At most `count` indices at which two vectors differ most: in absolute terms, and relative to
    `true`, which shows how wrong the worst entry is.
    """
    errors = abs(claimed - true)
    errors[np.isnan(errors)] = np.inf
    least = np.partition(errors, -count)[-count] if count < errors.size else 0.0
    large = np.flatnonzero(errors >= least)  # without sorting all
    first = large[np.argsort(-errors[large], kind="stable")[:count]]
    with np.errstate(all="ignore"):
        return np.unique(np.append(first, np.argmax(errors / abs(true))))


def places(mask: Array) -> list[int]:
    """The flat indices of the elements in a mask."""
    return np.flatnonzero(mask).tolist()


def entries_by_rows(
    point: Point, comparison: Comparison, wrong: Sequence[Array], listed: int, backward: Backward
) -> Iterator[Entry]:
    """Entries that are far off, row by row."""
    remaining = {k: listed for k, mask in enumerate(wrong) if mask.any()}
    for output in range(point.outputs.vector.size):
        if not any(remaining.values()):
            return
        unit = point.outputs.unit(output)
        claimed, taped = backward(unit), point.by_tape(unit)
        for k in remaining:
            far = wrong[k] & far_off(claimed[k], taped[k])
            error = abs(comparison.claimed[k] - comparison.taped[k])
            # Measure whether it is rounding.
            if (far & (abs(claimed[k] - taped[k]) <= FAR_OFF * error)).any():
                masks = one_input_only(k, far, point.x)
                measured = tape_diff(point, unit, claimed, masks, 0.0).wrong
                far = measured[k] if measured is not None else far & False
            indices = places(far)[: remaining[k]]
            remaining[k] -= len(indices)
            yield from (entry_of(point, k, i, output, claimed, taped) for i in indices)


def far_off(claimed: Array, taped: Array) -> Array:
    """The elements that differ by more than `FAR_OFF` of the largest one."""
    size = np.where(np.isfinite(taped), abs(taped), 0.0)
    return ~(abs(claimed - taped) <= FAR_OFF * float(size.max(initial=0.0)))  # NaN is far off, too


def entry_of(
    point: Point,
    number: int,
    index: int,
    output: int,
    claimed: Sequence[Array],
    taped: Sequence[Array],
) -> Entry:
    """The wrong entry at an element, from the rows of backward and of the tape."""
    a, t = (complex(rows[number].reshape(-1)[index]) for rows in (claimed, taped))
    value = (a.real, t.real) if abs(a.real - t.real) >= abs(a.imag - t.imag) else (a.imag, t.imag)
    bar = TAPED * abs(t) + point.problem.nondet * largest(taped[number])
    return Entry(number, index, point.outputs.element(output), *value, bar)


def entries_by_halving(
    point: Point, probe: Probe, comparison: Comparison, masks: Sequence[Array], backward: Backward
) -> Iterator[Entry]:
    """For the worst elements, the entries with the largest errors, found by halving the outputs."""
    errors = flat(comparison.claimed) - flat(comparison.taped)

    @functools.cache
    def errors_of(start: int, stop: int) -> Array:
        """The error of the gradients for some outputs; cached, because many elements share the same
        halves.
        """
        cotangent = probe.cotangent * 0
        cotangent[start:stop] = probe.cotangent[start:stop]
        return flat(backward(cotangent)) - flat(point.by_tape(cotangent))

    wrong = places(flat(masks))
    for place in sorted(wrong, key=lambda i: -abs(complex(errors[i])))[:MOST_LOCATED]:
        start, stop, error = 0, point.outputs.vector.size, complex(errors[place])
        while stop - start > 1:
            middle = (start + stop) // 2
            half = complex(errors_of(start, middle)[place])
            if 2 * abs(half) >= abs(error):
                stop, error = middle, half
            else:
                start, error = middle, error - half
        unit, element = point.outputs.unit(start), array_and_element(point.x, place)
        entry = entry_of(point, *element, start, backward(unit), point.by_tape(unit))
        # Otherwise backward is not linear.
        if not abs(entry.analytic - entry.numeric) <= FAR_OFF * abs(error):
            yield entry


# --------------------------------------------------------------------------- a diagonal Jacobian
def claimed_diagonal(
    prober: Prober, u: Array, gradients: Sequence[Array], number: int
) -> Array | None:
    """The diagonal of the Jacobian that backward claims for one input, flat; None if it has entries
    off the diagonal.

    With a diagonal, gradient and cotangent have the same ratio for every cotangent. The tape, if
    there is one, must agree.
    """
    point = prober.point
    if point.x[number].size != u.size or point.complex:
        return None
    other, again = prober.draw_claim()
    pairs: list[tuple[Sequence[Array], Sequence[Array]]] = [(gradients, again)]
    if point.witnessed:
        pairs.append((point.by_tape(u), point.by_tape(other)))
    for first, second in pairs:
        wanted = u * (second[number].reshape(-1) / other)
        if not (abs(first[number].reshape(-1) - wanted) <= ROUNDING * abs(wanted)).all():
            return None
    return again[number].reshape(-1) / other


def diagonal_by(first: Probe, second: Probe, number: int) -> tuple[Array, Array] | None:
    """The diagonal of the Jacobian of one input, and its bounds, by differences.

    None if the differences along two directions disagree, or do not cover every output.
    """
    diagonals = []
    for probe in (first, second):
        d, derivative = probe.direction[number], probe.derivative
        if d is None or not probe.by_rows or not (d != 0).all():
            return None
        bar = np.where(derivative.kinked, np.inf, derivative.bar)
        diagonals.append((derivative.value / d.reshape(-1), bar / abs(d.reshape(-1))))
    (value, bar), (again, bar_again) = diagonals
    if not (abs(value - again) <= bar + bar_again).all():
        return None
    return value, np.maximum(bar, abs(value - again) + bar_again)  # covers both intervals


# --------------------------------------------------------------------------- without the tape
def entries_by_columns(prober: Prober, budget: float) -> WrongEntries:
    """The wrong entries as differences find them: by columns where the budget allows."""
    point, wrong_entries = prober.point, WrongEntries(entries=[])
    for number, x in enumerate(point.x):
        wrong_entries.wrong[number] = np.zeros_like(x, bool)
        masks = one_input_only(number, point.everywhere[number], point.x)
        alone = prober.probe(masks, all_steps=True) if x.size else None
        if alone is None or alone.decision is Ruling.PASS:
            continue
        before = point.spent.runs
        jacobian, entries = input_by_columns(prober, alone, number, budget)
        if jacobian is not None:
            wrong_entries.jacobians[number] = jacobian
        budget -= point.spent.runs - before
        if not entries:
            entries = list(entries_by_search(prober, alone, number))
            wrong_entries.exhaustive = False
        wrong_entries.entries = [*wrong_entries.entries, *entries]
        wrong_entries.wrong[number].reshape(-1)[[e.index for e in entries]] = True
    return wrong_entries


def input_by_columns(
    prober: Prober, alone: Probe, number: int, budget: float
) -> tuple[tuple[Array, Array] | None, list[Entry]]:
    """The Jacobian of one input or its diagonal, if the budget allows, and the wrong entries.

    `alone` is a probe of only this input.
    """
    point, x, known = prober.point, prober.point.x[number], None
    claimed = None
    if x.size > 1:
        claimed = claimed_diagonal(prober, alone.cotangent, alone.gradients, number)
    if claimed is not None:
        again = prober.probe(
            one_input_only(number, point.everywhere[number], point.x), all_steps=True
        )
        known = diagonal_by(alone, again, number)
    if known is None and point.by_rows and 4 * x.size <= budget:
        claimed = None
        if not point.complex and point.outputs.size + 4 * x.size <= budget:
            claimed = claimed_jacobians(point)[number]
        known = columns(prober, number, alone, point.everywhere[number], claimed)
    if known is None or claimed is None:
        return known, []
    return known, beyond_bound(prober, number, claimed, *known)


def column_line(
    point: Point, number: int, index: int, weights: Array | None = None, unit: complex = 1.0
) -> Line:
    """The line along one element of an input, with the element's scale as its length."""
    scale = float(point.scales[number].reshape(-1)[index])
    return point.line(point.along_element(number, index, unit * scale), weights)


def columns(
    prober: Prober, number: int, like: Probe, mask: Array, claimed: Array | None = None
) -> tuple[Array, Array]:
    """The columns in a mask of the Jacobian of one input by differences, and their bounds.

    The bounds of other columns are inf. The first columns that are not as claimed are computed by
    complete scans of steps.
    """
    point, x, step = prober.point, prober.point.x[number], like.derivative.step
    step = max(QUICK, sorted(step.tolist())[step.size // 2])
    units, dtype = ([1.0, 1j], x.dtype) if x.dtype.kind == "c" else ([1.0], "float64")
    shape, scales = (point.outputs.vector.size, x.size), point.scales[number].reshape(-1)
    value, bar = np.zeros(shape, dtype), np.zeros(shape) + np.where(mask.reshape(-1), 0.0, np.inf)
    for index, unit in itertools.product(places(mask), units):
        interval = quick(column_line(point, number, index, unit=unit), like.derivative.noise, step)
        value[:, index] += unit * interval.value / scales[index]
        bar[:, index] += interval.bar / scales[index]
    wrong = [] if claimed is None else beyond_bound(prober, number, claimed, value, bar)
    for index in sorted({e.index for e in wrong})[:MOST_COLUMNS]:
        interval = prober.scan_line(column_line(point, number, index), like.derivative.noise, True)
        value[:, index], bar[:, index] = (
            interval.value / scales[index],
            interval.bar / scales[index],
        )
    return value, bar


def claimed_jacobians(point: Point) -> list[Array]:
    """The Jacobian that backward claims for every input."""
    rows = [point.vjp(point.outputs.unit(k)) for k in range(point.outputs.vector.size)]
    return [np.stack([g.reshape(-1) for g in of_input]) for of_input in zip(*rows, strict=True)]


def beyond_bound(
    prober: Prober, number: int, claimed: Array, value: Array, bar: Array
) -> list[Entry]:
    """The entries of a Jacobian, or of its diagonal, that differ from backward's by more than the
    bounds.
    """
    bound = bar + (ROUNDING + prober.rtol) * np.maximum(abs(value), abs(claimed))
    indices = np.nonzero(~(abs(claimed - value) <= bound) & (bound < np.inf))
    numbers = (values[indices].tolist() for values in (claimed, value, bound))
    return [
        Entry(number, i, k, *three)
        for k, i, *three in zip(indices[0].tolist(), indices[-1].tolist(), *numbers, strict=True)
    ]


def entries_by_search(prober: Prober, probe: Probe, number: int) -> Iterator[Entry]:
    """Some wrong elements of one input, found by halving it: along each, the derivative of the
    weighted outputs is wrong.
    """
    point, d = prober.point, probe.direction[number]
    assert d is not None
    flat_direction = d.reshape(-1)

    def probe_range(indices: range) -> Probe:
        flat_part = 0 * flat_direction
        flat_part[indices.start : indices.stop] = flat_direction[indices.start : indices.stop]
        return prober.probe_along(
            one_input_only(number, flat_part.reshape(d.shape), point.x),
            probe,
            all_steps=len(indices) == 1,
        )

    wrong = find_by_halving(
        range(flat_direction.size), lambda indices: probe_range(indices).decision is Ruling.FAIL
    )
    for index in itertools.islice(wrong, MOST_LOCATED):
        alone, step = (
            probe_range(range(index, index + 1)),
            math.copysign(abs(flat_direction[index]), flat_direction[index].real),
        )
        value, claim = alone.differences.value / step, alone.claim.value / step
        yield Entry(number, index, SUM_OF_OUTPUTS, claim, value, alone.differences.bar / abs(step))


def find_by_halving(indices: range, shows: Callable[[range], bool]) -> Iterator[int]:
    """The single indices for which `shows` holds, found by halving."""
    if not shows(indices):
        return
    if len(indices) == 1:
        yield indices[0]
        return
    middle = len(indices) // 2
    yield from find_by_halving(indices[:middle], shows)
    yield from find_by_halving(indices[middle:], shows)


def steps_of(prober: Prober, entry: Entry) -> StepScan | None:
    """The differences of an entry of a real Jacobian at all steps; None if they show nothing."""
    point = prober.point
    if entry.output == SUM_OF_OUTPUTS or point.complex:
        return None
    scale = float(point.scales[entry.input].reshape(-1)[entry.index])
    line = column_line(point, entry.input, entry.index, point.outputs.unit(entry.output))
    noise = prober.noise(line, all_steps=True)
    line.extend(USUAL)
    derivative = derivative_of(line, noise)
    value, bar = float(derivative.value[0]), float(derivative.bar[0])
    if not bar < math.inf or derivative.kinked[0]:
        return None
    steps = np.array([RATIO**k for k in USUAL]) * scale
    changes = [[sample.change[0] for sample in line.samples[k]] for k in USUAL]
    ahead, behind = np.array(changes).T
    names = {"input", "index", "output", "output_index", "analytic"}
    return StepScan(
        **point.name_entry(entry).model_dump(include=names),
        steps=tuple(steps.tolist()),
        differences=tuple(((ahead - behind) / (2 * steps)).tolist()),
        rounding=tuple((noise.reshape(-1)[0] / steps).tolist()),
        chosen=RATIO ** int(derivative.step[0]) * scale,
        value=value / scale,
        error_bound=bar / scale,
    )


# --------------------------------------------------------------------------- every entry
def all_wrong_entries(prober: Prober) -> list[Entry] | None:
    """Every wrong entry of every Jacobian, for mode ``full``; None if the Jacobian is too large, or
    complex.
    """
    point = prober.point
    if point.complex or point.size * point.outputs.size > MOST_JACOBIAN_ENTRIES:
        return None
    if point.witnessed:
        return [
            entry for output in rows_in_doubt(prober) for entry in rejected_in_row(prober, output)
        ]
    if not point.by_rows:
        return None
    probe, jacobians = prober.probe(by_rows=True, all_steps=True), claimed_jacobians(point)
    entries: list[Entry] = []
    for number, mask in enumerate(columns_in_doubt(prober, probe, jacobians)):
        known = columns(prober, number, probe, mask, jacobians[number])
        entries += beyond_bound(prober, number, jacobians[number], *known)
    return entries


def rejected_in_row(prober: Prober, output: int) -> Iterator[Entry]:
    """The entries of one row of the Jacobian that the tape rejects."""
    point, unit = prober.point, prober.point.outputs.unit(output)
    comparison = tape_diff(point, unit, point.vjp(unit), None, prober.rtol)
    for number, mask in enumerate(comparison.wrong or ()):
        yield from (
            entry_of(point, number, i, output, comparison.claimed, comparison.taped)
            for i in places(mask)
        )


def rows_in_doubt(prober: Prober) -> Sequence[int]:
    """The rows of the Jacobian that must be compared one by one.

    All of them, if backward differs from the tape for a random cotangent. Otherwise those with an
    entry so small, compared with its column, that an error in half of its digits would not have
    been noticed.
    """
    point = prober.point
    u, gradients = prober.draw_claim()
    comparison = tape_diff(point, u, gradients, None, prober.rtol)
    rows = range(u.size)
    if comparison.wrong is not None:
        return rows
    if all(
        claimed_diagonal(prober, u, gradients, number) is not None for number in range(len(point.x))
    ):
        return []  # each column is one entry
    bounds = flat(
        [
            unmeasured_tolerance(point, c, t, prober.rtol)
            for c, t in zip(comparison.claimed, comparison.taped, strict=True)
        ]
    )
    bounds = np.fmax(bounds, flat(comparison.bounds))
    terms = (u[k] * flat(point.by_tape(point.outputs.unit(k))) for k in rows)
    return [k for k, row in enumerate(terms) if hidden_terms(row, bounds, EPS**0.5).any()]


def hidden_terms(terms: Array, bounds: Array, share: float) -> Array:
    """A mask of the terms in which a relative error of `share` would stay within the error bound of
    their sum.
    """
    return (share * abs(terms) < bounds) & (terms != 0)


def columns_in_doubt(prober: Prober, probe: Probe, jacobians: Sequence[Array]) -> list[Array]:
    """Masks, one per input, of the columns that must be compared one by one.

    All columns if the differences along a direction disagree with backward. Otherwise those with an
    entry in which a relative error of `POWER` would not have been noticed.
    """
    derivative = probe.derivative
    terms = [
        j * d.reshape(-1) for j, d in zip(jacobians, probe.direction, strict=True) if d is not None
    ]
    bars = np.where(derivative.kinked, np.inf, derivative.bar)
    bars = bars + (ROUNDING + prober.rtol) * sum(abs(t).sum(axis=1) for t in terms)
    agree = bool((abs(sum(t.sum(axis=1) for t in terms) - derivative.value) <= bars).all())
    return [hidden_terms(t, bars[:, None], POWER).any(axis=0) | (not agree) for t in terms]


# --------------------------------------------------------------------------- whole slices
def patterns(point: Point, wrong_entries: WrongEntries) -> Iterator[str]:
    """The inputs whose wrong elements are whole slices along one axis: ``all of x[:, 3]``."""
    for number in wrong_entries.inputs if wrong_entries.exhaustive else ():
        wrong, name = wrong_entries.wrong[number], point.problem.names[point.moved[number]]
        for axis in range(wrong.ndim):
            slices = np.moveaxis(wrong, axis, 0).reshape(wrong.shape[axis], -1)
            indices = places(slices.all(axis=1))
            if 1 < slices[indices].size == int(wrong.sum()) < wrong.size:
                index = [":"] * wrong.ndim
                index[axis] = indices_text(indices)
                yield f"all of {name}[{', '.join(index)}]"
                break


def indices_text(indices: list[int]) -> str:
    """Some indices of an axis, written as NumPy takes them: ``3``, ``0:2`` or ``[0, 2]``."""
    first, last = indices[0], indices[-1]
    if first == last:
        return str(first)
    contiguous = indices == [*range(first, last + 1)]
    return f"{first}:{last + 1}" if contiguous else str(indices)
