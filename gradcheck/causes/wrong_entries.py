"""Which entries are wrong, once the verdict is FAIL: from the tape by vjps alone, else by columns; within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcheck.checking.arrays import Array, module_of, only
from gradcheck.checking.decide import Decision
from gradcheck.checking.derivative import quick
from gradcheck.checking.line import Scan
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry, OutOfTimeError, Point
from gradcheck.checking.probe import ROUNDING, Probe, Prober
from gradcheck.checking.tape_comparison import compare
from gradcheck.result import Diagnosis, distance

LEAST_BUDGET = 300
"""Evaluations and vjps that naming may take in any case: some hundredths of a second."""
BUDGET = 10
"""Naming costs at most so many times the evaluations and vjps of the check itself."""
MOST_LOCATED = 5
"""Wrong elements whose output is searched for by halving: as many as reports show."""
MOST_ROWS_BY_TAPE = 32
"""Outputs up to which all rows of the Jacobian are compared to list every wrong entry."""
MOST_CONFIRMED = 8
"""Wrong columns that a whole scan confirms; then the quick derivative has proved itself for this function."""
TAPED = 2.0**-48
"""The rounding of an entry of the tape that is a product of few numbers, relative to itself."""
MOST_ENTRIES = 2**25
"""Entries of a Jacobian that mode ``full`` computes at most."""


@dataclass
class Named:
    """Wrong entries, those that carry most of the error first; which elements of which input are wrong; and why."""

    entries: list[Entry] = field(default_factory=list)
    wrong: dict[int, Array] = field(default_factory=dict)
    """By input, a mask of its elements that are known to be wrong."""
    right: set[int] = field(default_factory=set)
    exhaustive: bool = True
    """Whether there are no more."""
    causes: tuple[Diagnosis, ...] = ()
    patterns: tuple[str, ...] = ()
    unfinished: bool = False
    """Whether time was up before all was looked at."""


def name_wrong(
    prober: Prober,
    probe: Probe,
    listed: int,
    thorough: bool,
    causes: Callable[[Prober, Sequence[int], Probe, float], Iterator[Diagnosis]],
) -> Named:
    """What is wrong about a gradient that a probe shows to be wrong, and what `causes` says of it."""
    point = prober.point
    spent = point.spent.runs
    budget = np.inf if thorough else max(LEAST_BUDGET, BUDGET * spent)
    named = Named()
    try:
        named = by_tape(prober, probe, listed) if probe.wrong is not None else by_columns(prober, probe, budget)
        named.entries.sort(key=lambda e: -distance(e.analytic, e.numeric))
        named.patterns = tuple(patterns(point, named))
        named.causes = tuple(causes(prober, list(named.wrong), probe, budget - (point.spent.runs - spent)))
    except OutOfTimeError:
        named.unfinished = True
    return named


# --------------------------------------------------------------------------- with the tape
def by_tape(prober: Prober, probe: Probe, listed: int) -> Named:
    """The wrong entries as the tape tells them: counted exactly for a random cotangent, located by vjps."""
    point, named, said = prober.point, Named(), probe.comparison
    assert said is not None
    assert said.wrong is not None
    named.exhaustive = said.unsure is None
    worst = []
    for number, (g, t, mask) in enumerate(zip(said.claimed, said.taped, said.wrong, strict=True)):
        if not bool(mask.any()):
            named.right.add(number)
            continue
        named.wrong[number] = mask
        errors, places = (g - t)[mask], module_of(mask).flatnonzero(mask)
        first = module_of(mask).argsort(-abs(errors))[:MOST_LOCATED].tolist()
        worst += [(complex(errors[i]), number, int(places[i])) for i in first]
    diagonal = claimed_diagonal(prober, probe, 0) if len(point.x) == 1 else None
    if diagonal is not None:
        true = said.taped[0].reshape(-1) / probe.cotangent
        wrong = module_of(true).flatnonzero(said.wrong[0].reshape(-1)).tolist()
        named.entries = [Entry(0, i, i, float(diagonal[i]), float(true[i]), TAPED * abs(float(true[i]))) for i in wrong]
    elif point.outputs.vector.size <= MOST_ROWS_BY_TAPE:
        named.entries = list(rows_by_tape(prober, said.wrong, listed))
    if not named.entries:
        worst.sort(key=lambda wrong: -abs(wrong[0]))
        entries = [located(point, probe.cotangent, *wrong) for wrong in worst[:MOST_LOCATED]]
        named.entries = [entry for entry in entries if entry.analytic != entry.numeric]
    return named


def rows_by_tape(prober: Prober, masks: Sequence[Array] | None, listed: float) -> Iterator[Entry]:
    """Of every row of the Jacobian the entries in `masks` that the tape rejects; of each input at most so many."""
    point = prober.point
    left = dict.fromkeys(range(len(point.x)), listed)
    for output in range(point.outputs.vector.size):
        one = point.outputs.unit(output)
        claimed = point.vjp(one)
        found = compare(point, one, claimed, masks, prober.rtol)
        for number, mask in enumerate(found.wrong or ()):
            for i in module_of(one).flatnonzero(mask.reshape(-1)).tolist():
                if left[number] > 0:
                    left[number] -= 1
                    yield entry_of(point, number, i, output, claimed, found.taped)


def entry_of(
    point: Point, number: int, index: int, output: int, claimed: Sequence[Array], taped: Sequence[Array]
) -> Entry:
    """An entry from both rows."""
    a, t = (complex(rows[number].reshape(-1)[index]) for rows in (claimed, taped))
    value = (a.real, t.real) if abs(a.real - t.real) >= abs(a.imag - t.imag) else (a.imag, t.imag)
    return Entry(number, index, point.outputs.element(output), *value, TAPED * abs(t))


def located(point: Point, cotangent: Array, error: complex, number: int, index: int) -> Entry:
    """For an element of an input, with its error for a cotangent, the entry that carries most of it, by halving the
    outputs."""
    start, stop = 0, cotangent.size
    while stop - start > 1:
        middle, part = (start + stop) // 2, cotangent * 0
        part[start:middle] = cotangent[start:middle]
        half = complex((point.vjp(part)[number] - point.by_tape(part)[number]).reshape(-1)[index])
        if 2 * abs(half) >= abs(error):
            stop, error = middle, half
        else:
            start, error = middle, error - half
    one = point.outputs.unit(start)
    return entry_of(point, number, index, start, point.vjp(one), point.by_tape(one))


def everything(prober: Prober) -> list[Entry] | None:
    """Every wrong entry of every Jacobian, for mode ``full``; None where it is too large or complex."""
    point = prober.point
    if point.complex or sum(x.size for x in point.x) * point.outputs.size > MOST_ENTRIES:
        return None
    if point.witnessed:
        return list(rows_by_tape(prober, None, np.inf))
    if not point.by_rows:
        return None
    probe = prober.probe(by_rows=True, whole=True)
    return [entry for number in range(len(point.x)) for entry in wrong_columns(prober, number, probe)]


# --------------------------------------------------------------------------- a diagonal Jacobian
def claimed_diagonal(prober: Prober, probe: Probe, number: int) -> Array | None:
    """The diagonal of the Jacobian that backward claims for one input, flat; None if it claims another Jacobian.

    Of a diagonal one gradient and cotangent have the same ratio for every cotangent. So has the tape, if there is one.
    """
    point, u = prober.point, probe.cotangent
    if point.x[number].size != u.size or point.complex:
        return None
    other, again = prober.claimed()
    pairs: list[tuple[Sequence[Array], Sequence[Array]]] = [(probe.gradients, again)]
    if point.witnessed:
        pairs.append((point.by_tape(u), point.by_tape(other)))
    for first, second in pairs:
        wanted = u * (second[number].reshape(-1) / other)
        if not bool((abs(first[number].reshape(-1) - wanted) <= ROUNDING * abs(wanted)).all()):
            return None
    return again[number].reshape(-1) / other


def wrong_on_diagonal(prober: Prober, first: Probe, second: Probe, number: int) -> list[Entry] | None:
    """The wrong entries of one input if its Jacobian is diagonal, by the differences along two directions.

    None if backward, or the differences, tell of another Jacobian, or if these were not taken of every output.
    """
    claimed = claimed_diagonal(prober, first, number) if first.by_rows and second.by_rows else None
    if claimed is None:
        return None
    xp = module_of(claimed)
    kinked, wrong, seen = xp.zeros(claimed.shape, bool), xp.ones(claimed.shape, bool), []
    for probe in (first, second):
        d, found = probe.direction[number], probe.derivative
        if d is None or not bool((d != 0).all()):
            return None
        value, bar = found.both.value / d.reshape(-1), found.both.bar / abs(d.reshape(-1))
        kinked |= found.kinked
        wrong &= ~(abs(claimed - value) <= bar + (ROUNDING + prober.rtol) * xp.maximum(abs(claimed), abs(value)))
        seen.append((value, bar))
    (value, bar), (again, again_bar) = seen
    if not bool(((abs(value - again) <= bar + again_bar) | kinked).all()):
        return None
    return [
        Entry(number, i, i, float(claimed[i]), float(value[i]), float(bar[i]))
        for i in xp.flatnonzero(wrong & ~kinked).tolist()
    ]


# --------------------------------------------------------------------------- without the tape
def by_columns(prober: Prober, probe: Probe, budget: float) -> Named:
    """The wrong entries as differences find them: by columns where the budget allows, else by halving."""
    point, named = prober.point, Named()
    for number, x in enumerate(point.x):
        if not x.size:
            named.right.add(number)
            continue
        everywhere = module_of(probe.cotangent).ones(x.shape, bool)
        alone = prober.probe(only(number, everywhere, point.x), whole=True)
        if alone.decision is Decision.PASS:
            named.right.add(number)
            continue
        found = None
        if 1 < x.size == point.outputs.vector.size:
            again = prober.probe(only(number, everywhere, point.x), whole=True)
            found = wrong_on_diagonal(prober, alone, again, number)
        if found is None and not point.complex and point.by_rows and point.outputs.size + 4 * x.size <= budget:
            before = point.spent.runs
            found = list(wrong_columns(prober, number, alone))
            budget -= point.spent.runs - before
        if not found:
            found = searched(prober, alone, number)
            named.exhaustive = False
        named.entries += found
        if found:
            wrong = ~everywhere
            wrong.reshape(-1)[sorted({e.index for e in found})] = True
            named.wrong[number] = wrong
    return named


def wrong_columns(prober: Prober, number: int, like: Probe) -> Iterator[Entry]:
    """Every entry of the Jacobian of one input on which backward and the differences differ by more than the bound."""
    point, noise = prober.point, like.derivative.noise
    x, xp = point.x[number], module_of(point.x[number])
    rows = [point.vjp(point.outputs.unit(k))[number].reshape(-1) for k in range(point.outputs.vector.size)]
    claimed = xp.stack(rows)
    confirmed = 0
    for index, size in enumerate(point.scales[number].reshape(-1).tolist()):
        d = xp.zeros(x.size)
        d[index] = size
        line, mine = point.line(only(number, d.reshape(x.shape), point.x)), claimed[:, index]
        for whole in (False, True):
            found = prober.scanned(Scan(line), noise, True).both if whole else quick(line, noise)
            value, bar = found.value / size, found.bar / size
            bar = bar + (ROUNDING + prober.rtol) * np.maximum(abs(value), abs(mine))
            wrong = ~(abs(mine - value) <= bar)
            if not bool(wrong.any()) or confirmed >= MOST_CONFIRMED:
                break
        confirmed += bool(wrong.any())
        for k in xp.flatnonzero(wrong & (bar < np.inf)).tolist():
            yield Entry(number, index, k, float(mine[k]), float(value[k]), float(bar[k]))


def searched(prober: Prober, probe: Probe, number: int) -> list[Entry]:
    """Some wrong elements of one input, by halving it: the derivative of the weighted outputs along each is wrong."""
    point, d = prober.point, probe.direction[number]
    assert d is not None
    xp, whole = module_of(probe.cotangent), d.reshape(-1)

    def along(mask: Array) -> Probe:
        part = only(number, (whole * mask).reshape(d.shape), point.x)
        return prober.along(part, probe, whole=bool(mask.sum() == 1))

    found = []
    for index in halved(xp, whole.size, lambda mask: along(mask).decision is Decision.FAIL, MOST_LOCATED):
        one = xp.zeros(whole.size)
        one[index] = 1
        there, step = along(one), float(abs(whole[index])) * (1.0 if whole[index].real >= 0 else -1.0)
        value, claim = there.seen.value / step, there.claim.value / step
        found.append(Entry(number, index, SUM_OF_OUTPUTS, claim, value, there.seen.bar / abs(step)))
    return found


def halved(xp: Any, size: int, shows: Callable[[Array], bool], most: int) -> Iterator[int]:
    """The single elements of a mask over `size` for which `shows` holds, found by halving; at most `most`."""
    stack = [(0, size)]
    found = 0
    while stack and found < most:
        start, stop = stack.pop()
        mask = xp.zeros(size)
        mask[start:stop] = 1
        if not shows(mask):
            continue
        if stop - start == 1:
            found += 1
            yield start
        else:
            middle = (start + stop) // 2
            stack += [(middle, stop), (start, middle)]


# --------------------------------------------------------------------------- whole slices
def patterns(point: Point, named: Named) -> Iterator[str]:
    """Per input whose wrong elements make up whole slices: ``all of x[:, 3]``. Only where all of them are known."""
    for number, mask in named.wrong.items() if named.exhaustive else ():
        wrong, name = np.asarray(mask.tolist()), point.problem.names[point.moved[number]]
        yield from (f"all of {name}[{', '.join(place)}]" for place in whole_slices(wrong))


def whole_slices(wrong: np.ndarray[Any, Any]) -> Iterator[list[str]]:
    """The slices along one axis that are wrong throughout, if they are all that is wrong, and not everything."""
    for axis in range(wrong.ndim) if 1 < int(wrong.sum()) < wrong.size else ():
        whole = wrong.all(axis=tuple(k for k in range(wrong.ndim) if k != axis))
        places = np.flatnonzero(whole).tolist()
        if places and len(places) * (wrong.size // wrong.shape[axis]) == int(wrong.sum()):
            run = places == list(range(places[0], places[-1] + 1))
            shown = f"{places[0]}:{places[-1] + 1}" if run and len(places) > 1 else ", ".join(map(str, places))
            shown = shown if run else f"[{shown}]"
            yield [shown if k == axis else ":" for k in range(wrong.ndim)]
            return
