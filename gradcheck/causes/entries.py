"""Which entries of the Jacobian are wrong: by rows from the tape and vjps alone, else by columns from differences."""

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
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry, Point, array_and_element, flat, only
from gradcheck.checking.precision import EPS
from gradcheck.checking.probe import (
    POWER,
    ROUNDING,
    Comparison,
    Probe,
    Prober,
    Ruling,
    granted,
    some,
    tape_diff,
)
from gradcheck.result import StepScan

MOST_LOCATED = 5
"""Wrong elements whose output is searched for by halving: as many as reports show."""
MOST_ROWS_BY_TAPE = 32
"""Outputs up to which all rows of the Jacobian are compared to list every wrong entry."""
MOST_COLUMNS = 8
"""Wrong columns that a whole scan confirms; then the quick derivative has proved itself for this function."""
MOST_JACOBIAN_ENTRIES = 2**25
"""Entries of a Jacobian that mode ``full`` computes at most."""
FAR_OFF = 2.0**-20
"""An entry that is off by this share of the largest of its row is listed as it is, as its element is known to be wrong:
rounding is as much only where 32 bits of the row cancel. What is a smaller share of the element's error is measured."""
TAPED = 2.0**-48
"""The rounding of an entry of the tape that is a product of few numbers, relative to itself."""


@dataclass
class Named:
    """Wrong entries, those that carry most of the error first, and which elements of which input are wrong."""

    entries: Sequence[Entry] = ()
    wrong: dict[int, Array] = field(default_factory=dict)
    """By input, a mask of its elements that are known to be wrong; none of one that is right."""
    exhaustive: bool = True
    """Whether there are no more."""
    jacobians: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    """By input, the Jacobian or its diagonal, and its bounds, as far as differences gave it."""

    @classmethod
    def of(cls, probe: Probe) -> Named:
        """The elements that the tape rejects for a random cotangent, which are counted exactly."""
        assert probe.comparison is not None
        return cls(
            wrong=dict(enumerate(probe.wrong or ())), exhaustive=probe.comparison.unsure is None
        )

    @property
    def inputs(self) -> list[int]:
        """Those in which something is wrong."""
        return [number for number, mask in self.wrong.items() if bool(mask.any())]


# --------------------------------------------------------------------------- with the tape
def by_tape(prober: Prober, probe: Probe, listed: int, claimed: Backward) -> list[Entry]:
    """Some of the entries of the elements that the tape rejected, of each input at most so many; where there are few
    outputs in their order, else those that carry most of the error. `claimed` is backward, or a tape that gives the
    same."""
    point, said = prober.point, probe.comparison
    assert said is not None
    assert said.wrong is not None
    diagonal = (
        claimed_diagonal(prober, probe.cotangent, probe.gradients, 0) if len(point.x) == 1 else None
    )
    if diagonal is not None:
        true = said.taped[0].reshape(-1) / probe.cotangent
        pairs = ((i, float(diagonal[i]), float(true[i])) for i in places(said.wrong[0]))
        return [Entry(0, i, i, claim, value, TAPED * abs(value)) for i, claim, value in pairs]
    few = point.outputs.vector.size <= MOST_ROWS_BY_TAPE
    entries = list(entries_by_rows(point, said, listed, claimed)) if few else []
    return entries or list(entries_by_halving(point, probe, said, claimed))


def places(mask: Array) -> list[int]:
    """The flat elements that are in a mask."""
    return np.flatnonzero(mask).tolist()


def entries_by_rows(
    point: Point, said: Comparison, listed: int, claimed: Backward
) -> Iterator[Entry]:
    """Those that are far off, row by row: what rounding does is measured where it may be all of what is off."""
    wrong, errors = (
        said.wrong or (),
        [abs(c - t) for c, t in zip(said.claimed, said.taped, strict=True)],
    )
    left = {number: listed for number, mask in enumerate(wrong) if bool(mask.any())}
    for output in range(point.outputs.vector.size):
        if not any(left.values()):
            return
        one = point.outputs.unit(output)
        rows = claimed(one), point.by_tape(one)
        far = [
            mask & far_off(claim, taped) for claim, taped, mask in zip(*rows, wrong, strict=True)
        ]
        little = (
            f & (abs(c - t) <= FAR_OFF * error)
            for f, c, t, error in zip(far, *rows, errors, strict=True)
        )
        if some(little):
            far = list(tape_diff(point, one, rows[0], far, 0.0).wrong or [])
        for number, mask in enumerate(far):
            found = places(mask)[: left.get(number, 0)]
            left |= {number: left[number] - len(found)} if found else {}
            yield from (entry_of(point, number, i, output, *rows) for i in found)


def far_off(claimed: Array, taped: Array) -> Array:
    """The elements that differ by more than `FAR_OFF` of the largest one."""
    size = np.where(np.isfinite(taped), abs(taped), 0.0)
    return ~(abs(claimed - taped) <= FAR_OFF * float(size.max(initial=0.0)))  # so is NaN


def entry_of(
    point: Point,
    number: int,
    index: int,
    output: int,
    claimed: Sequence[Array],
    taped: Sequence[Array],
) -> Entry:
    """An entry from both rows."""
    a, t = (complex(rows[number].reshape(-1)[index]) for rows in (claimed, taped))
    value = (a.real, t.real) if abs(a.real - t.real) >= abs(a.imag - t.imag) else (a.imag, t.imag)
    return Entry(number, index, point.outputs.element(output), *value, TAPED * abs(t))


def entries_by_halving(
    point: Point, probe: Probe, said: Comparison, claimed: Backward
) -> Iterator[Entry]:
    """Of the elements with the largest errors the entries that carry most of them, by halving the outputs."""
    errors, wrong = flat(said.claimed) - flat(said.taped), flat(said.wrong or ())

    @functools.cache
    def errors_of(start: int, stop: int) -> Array:
        """What is wrong of the gradients for some of the outputs: the halves are the same for many elements."""
        part = probe.cotangent * 0
        part[start:stop] = probe.cotangent[start:stop]
        return flat(claimed(part)) - flat(point.by_tape(part))

    for place in sorted(places(wrong), key=lambda i: -abs(complex(errors[i])))[:MOST_LOCATED]:
        start, stop, error = 0, point.outputs.vector.size, complex(errors[place])
        while stop - start > 1:
            middle = (start + stop) // 2
            half = complex(errors_of(start, middle)[place])
            if 2 * abs(half) >= abs(error):
                stop, error = middle, half
            else:
                start, error = middle, error - half
        one = point.outputs.unit(start)
        entry = entry_of(
            point, *array_and_element(point.x, place), start, claimed(one), point.by_tape(one)
        )
        if not abs(entry.analytic - entry.numeric) <= FAR_OFF * abs(
            error
        ):  # else backward is not linear
            yield entry


# --------------------------------------------------------------------------- a diagonal Jacobian
def claimed_diagonal(
    prober: Prober, u: Array, gradients: Sequence[Array], number: int
) -> Array | None:
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
        bar = np.where(seen.kinked, np.inf, seen.both.bar)
        found.append((seen.both.value / d.reshape(-1), bar / abs(d.reshape(-1))))
    (value, bar), (again, bar_again) = found
    if not bool((abs(value - again) <= bar + bar_again).all()):
        return None
    return value, np.maximum(bar, abs(value - again) + bar_again)  # what it excludes, both do


# --------------------------------------------------------------------------- without the tape
def by_columns(prober: Prober, budget: float) -> Named:
    """The wrong entries as differences find them: by columns where the budget allows, else by halving."""
    point, entries, named = prober.point, list[Entry](), Named()
    for number, x in enumerate(point.x):
        everywhere = np.ones_like(x, bool)
        masks = only(number, everywhere, point.x)
        alone = prober.probe(masks, whole=True) if x.size else None
        named.wrong[number] = ~everywhere
        if alone is None or alone.decision is Ruling.PASS:
            continue
        found, known, before = list[Entry](), None, point.spent.runs
        claimed = (
            claimed_diagonal(prober, alone.cotangent, alone.gradients, number)
            if x.size > 1
            else None
        )
        if claimed is not None:
            known = diagonal_by(alone, prober.probe(masks, whole=True), number)
        if known is None and point.by_rows and 4 * x.size <= budget:
            by_rows = not point.complex and point.outputs.size + 4 * x.size <= budget
            claimed = claimed_jacobians(point)[number] if by_rows else None
            known = columns(prober, number, alone, everywhere, claimed)
        if known is not None:
            named.jacobians[number] = known
            found = [] if claimed is None else beyond_bound(prober, number, claimed, *known)
        budget -= point.spent.runs - before
        if not found:
            found = list(entries_by_search(prober, alone, number))
            named.exhaustive = False
        entries += found
        named.wrong[number].reshape(-1)[[e.index for e in found]] = True
    named.entries = entries
    return named


def column_line(
    point: Point, number: int, index: int, weights: Array | None = None, part: complex = 1.0
) -> Line:
    """The line along one element of an input, as long as its scale."""
    scale = float(point.scales[number].reshape(-1)[index])
    return point.line(point.along_element(number, index, part * scale), weights)


def columns(
    prober: Prober, number: int, like: Probe, mask: Array, claimed: Array | None = None
) -> tuple[Array, Array]:
    """The columns in a mask of the Jacobian of one input by differences, and their bounds, which are inf elsewhere. The
    first ones in which it is not as claimed are taken from whole scans."""
    point, x, step = prober.point, prober.point.x[number], like.derivative.step
    step = max(QUICK, sorted(step.tolist())[step.size // 2])
    parts, dtype = ([1.0, 1j], x.dtype) if x.dtype.kind == "c" else ([1.0], "float64")
    shape, scales = (point.outputs.vector.size, x.size), point.scales[number].reshape(-1)
    value, bar = np.zeros(shape, dtype), np.zeros(shape) + np.where(mask.reshape(-1), 0.0, np.inf)
    for index, part in itertools.product(places(mask), parts):
        found = quick(column_line(point, number, index, part=part), like.derivative.noise, step)
        value[:, index] += part * found.value / scales[index]
        bar[:, index] += found.bar / scales[index]
    wrong = [] if claimed is None else beyond_bound(prober, number, claimed, value, bar)
    for index in sorted({e.index for e in wrong})[:MOST_COLUMNS]:
        found = prober.scanned(column_line(point, number, index), like.derivative.noise, True).both
        value[:, index], bar[:, index] = found.value / scales[index], found.bar / scales[index]
    return value, bar


def claimed_jacobians(point: Point) -> list[Array]:
    """The Jacobian of every input that backward claims."""
    rows = [point.vjp(point.outputs.unit(k)) for k in range(point.outputs.vector.size)]
    return [np.stack([g.reshape(-1) for g in of_input]) for of_input in zip(*rows, strict=True)]


def beyond_bound(
    prober: Prober, number: int, claimed: Array, value: Array, bar: Array
) -> list[Entry]:
    """The entries of a Jacobian, or of its diagonal, in which backward and the differences differ beyond the bound."""
    bound = bar + (ROUNDING + prober.rtol) * np.maximum(abs(value), abs(claimed))
    at = np.nonzero(~(abs(claimed - value) <= bound) & (bound < np.inf))
    numbers = (values[at].tolist() for values in (claimed, value, bound))
    return [
        Entry(number, i, k, *three)
        for k, i, *three in zip(at[0].tolist(), at[-1].tolist(), *numbers, strict=True)
    ]


def entries_by_search(prober: Prober, probe: Probe, number: int) -> Iterator[Entry]:
    """Some wrong elements of one input, by halving it: the derivative of the weighted outputs along each is wrong."""
    point, d = prober.point, probe.direction[number]
    assert d is not None
    whole = d.reshape(-1)

    def along(some: range) -> Probe:
        part = 0 * whole
        part[some.start : some.stop] = whole[some.start : some.stop]
        return prober.along(
            only(number, part.reshape(d.shape), point.x), probe, whole=len(some) == 1
        )

    wrong = halved(range(whole.size), lambda some: along(some).decision is Ruling.FAIL)
    for index in itertools.islice(wrong, MOST_LOCATED):
        there, step = (
            along(range(index, index + 1)),
            math.copysign(abs(whole[index]), whole[index].real),
        )
        value, claim = there.seen.value / step, there.claim.value / step
        yield Entry(number, index, SUM_OF_OUTPUTS, claim, value, there.seen.bar / abs(step))


def halved(some: range, shows: Callable[[range], bool]) -> Iterator[int]:
    """The single places for which `shows` holds, found by halving."""
    if not shows(some):
        return
    if len(some) == 1:
        yield some[0]
        return
    middle = len(some) // 2
    yield from halved(some[:middle], shows)
    yield from halved(some[middle:], shows)


def steps_of(prober: Prober, entry: Entry) -> StepScan | None:
    """The differences of an entry at all steps; None where it is none of the real Jacobian, or nothing is seen."""
    point = prober.point
    if entry.output == SUM_OF_OUTPUTS or point.complex:
        return None
    scale = float(point.scales[entry.input].reshape(-1)[entry.index])
    line = column_line(point, entry.input, entry.index, point.outputs.unit(entry.output))
    noise = prober.noise(line, whole=True)
    line.extend(USUAL)
    found = derivative_of(line, noise)
    value, bar = float(found.both.value[0]), float(found.both.bar[0])
    if not bar < float("inf") or bool(found.kinked[0]):
        return None
    rows = [(RATIO**k, *(float(sample.change[0]) for sample in line.samples[k])) for k in USUAL]
    return StepScan(
        **point.named(entry).model_dump(
            include={"input", "index", "output", "output_index", "analytic"}
        ),
        steps=tuple(h * scale for h, _, _ in rows),
        differences=tuple((ahead - behind) / (2 * h * scale) for h, ahead, behind in rows),
        rounding=tuple(float(noise.reshape(-1)[0]) / (h * scale) for h, _, _ in rows),
        chosen=RATIO ** int(found.step[0]) * scale,
        value=value / scale,
        bar=bar / scale,
    )


# --------------------------------------------------------------------------- every entry
def all_wrong_entries(prober: Prober) -> list[Entry] | None:
    """Every wrong entry of every Jacobian, for mode ``full``; None where it is too large or complex."""
    point = prober.point
    if point.complex or sum(x.size for x in point.x) * point.outputs.size > MOST_JACOBIAN_ENTRIES:
        return None
    if point.witnessed:
        return [
            entry for output in rows_in_doubt(prober) for entry in rejected_in_row(prober, output)
        ]
    if not point.by_rows:
        return None
    probe, jacobians = prober.probe(by_rows=True, whole=True), claimed_jacobians(point)
    doubted = columns_in_doubt(prober, probe, jacobians)
    return [
        entry
        for number, (claimed, mask) in enumerate(zip(jacobians, doubted, strict=True))
        for entry in beyond_bound(
            prober, number, claimed, *columns(prober, number, probe, mask, claimed)
        )
    ]


def rejected_in_row(prober: Prober, output: int) -> Iterator[Entry]:
    """The entries of one row of the Jacobian that the tape rejects."""
    point, one = prober.point, prober.point.outputs.unit(output)
    found = tape_diff(point, one, point.vjp(one), None, prober.rtol)
    for number, mask in enumerate(found.wrong or ()):
        yield from (
            entry_of(point, number, i, output, found.claimed, found.taped) for i in places(mask)
        )


def rows_in_doubt(prober: Prober) -> Sequence[int]:
    """The rows of the Jacobian that have to be compared by themselves: all if backward differs from the tape for a
    random cotangent, else those with an entry so small beside others of its column that an error of half of its
    digits would not have shown there."""
    point = prober.point
    u, gradients = prober.claimed()
    found = tape_diff(point, u, gradients, None, prober.rtol)
    rows = range(u.size)
    if found.wrong is not None:
        return rows
    if all(
        claimed_diagonal(prober, u, gradients, number) is not None for number in range(len(point.x))
    ):
        return []  # each column is one entry
    bounds = flat(
        [granted(point, c, t, prober.rtol) for c, t in zip(found.claimed, found.taped, strict=True)]
    )
    bounds = np.fmax(bounds, flat(found.bounds)) if found.bounds else bounds
    terms = (u[k] * flat(point.by_tape(point.outputs.unit(k))) for k in rows)
    return [k for k, row in enumerate(terms) if bool(hidden_terms(row, bounds, EPS**0.5).any())]


def hidden_terms(terms: Array, bounds: Array, share: float) -> Array:
    """The terms of sums that are so small that an error of such a share of one is within the bound of its sum."""
    return (share * abs(terms) < bounds) & (terms != 0)


def columns_in_doubt(prober: Prober, probe: Probe, jacobians: Sequence[Array]) -> list[Array]:
    """The same without a tape, as a mask over the columns of each input: all if the differences along a direction are
    not those of backward, else those with an entry of which an error of `POWER` would not have shown in its row."""
    both = probe.derivative.both
    terms = [
        j * d.reshape(-1) for j, d in zip(jacobians, probe.direction, strict=True) if d is not None
    ]
    bars = np.where(probe.derivative.kinked, np.inf, both.bar)
    bars = bars + (ROUNDING + prober.rtol) * sum(abs(t).sum(axis=1) for t in terms)
    agree = bool((abs(sum(t.sum(axis=1) for t in terms) - both.value) <= bars).all())
    return [hidden_terms(t, bars[:, None], POWER).any(axis=0) | (not agree) for t in terms]


# --------------------------------------------------------------------------- whole slices
def patterns(point: Point, named: Named) -> Iterator[str]:
    """Per input whose wrong elements, all known, are whole slices along one axis, but not all: ``all of x[:, 3]``."""
    for number in named.inputs if named.exhaustive else ():
        wrong, name = (
            np.asarray(named.wrong[number].tolist()),
            point.problem.names[point.moved[number]],
        )
        for axis in range(wrong.ndim):
            at = np.flatnonzero(
                wrong.all(axis=tuple(k for k in range(wrong.ndim) if k != axis))
            ).tolist()
            if 1 < len(at) * (wrong.size // wrong.shape[axis]) == int(wrong.sum()) < wrong.size:
                run = at == list(range(at[0], at[-1] + 1)) and len(at) > 1
                shown = f"{at[0]}:{at[-1] + 1}" if run else ", ".join(map(str, at))
                shown = shown if run or len(at) == 1 else f"[{shown}]"
                yield f"all of {name}[{', '.join(shown if k == axis else ':' for k in range(wrong.ndim))}]"
                break
