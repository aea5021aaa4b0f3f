"""Which entries are wrong, once the verdict is FAIL: from the tape by vjps alone, else by columns; within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcheck.checker.beside_tape import apart, beside_tape, unasked
from gradcheck.checker.causes import BUDGET, causes
from gradcheck.checker.decide import Decision
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.point import SUM_OF_OUTPUTS, OutOfTimeError, Point
from gradcheck.checker.structure import claimed_diagonal, wrong_on_diagonal
from gradcheck.numeric.arrays import Array, module_of, only
from gradcheck.numeric.jacobian import Block, Entry, halved, paired_axes, wrong_in_block
from gradcheck.result import Diagnosis, distance

LEAST_BUDGET = 300
"""Evaluations and vjps that naming may take in any case: some hundredths of a second."""
MOST_LOCATED = 5
"""Wrong elements whose output is searched for by halving: as many as reports show."""
MOST_ROWS_BY_TAPE = 32
"""Outputs up to which all rows of the Jacobian are compared to list every wrong entry."""
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
    excused: bool = False
    """Whether some entries seemed wrong, but stand still between close values, and are right beyond."""


def name_wrong(looker: Looker, look: Look, listed: int, thorough: bool) -> Named:
    """What is wrong about a gradient that a look shows to be wrong, and the likely causes."""
    point = looker.point
    spent = point.spent.runs
    budget = np.inf if thorough else max(LEAST_BUDGET, BUDGET * spent)
    named = Named()
    try:
        if point.witnessed and look.rejected is not None:
            named = by_tape(looker, look, listed)
        else:
            named = by_columns(looker, look, budget)
        named.entries.sort(key=lambda e: -distance(e.analytic, e.numeric))
        named.patterns = tuple(patterns(point, named))
        left = budget - (point.spent.runs - spent)
        named.causes = tuple(causes(looker, list(named.wrong), look, left))
    except OutOfTimeError:
        named.unfinished = True
    return named


# --------------------------------------------------------------------------- with the tape
def by_tape(looker: Looker, look: Look, listed: int) -> Named:
    """The wrong entries as the tape tells them: counted exactly for a random cotangent, located by vjps."""
    point, named = looker.point, Named()
    assert look.tape is not None
    assert look.tape.rejected is not None
    named.exhaustive = look.tape.unsure is None
    worst = []
    for number, (g, t, mask) in enumerate(zip(look.gradients, look.tape.gradients, look.tape.rejected, strict=True)):
        if not bool(mask.any()):
            named.right.add(number)
            continue
        named.wrong[number] = mask
        errors, places = (g - t)[mask], module_of(mask).flatnonzero(mask)
        first = module_of(mask).argsort(-abs(errors))[:MOST_LOCATED].tolist()
        worst += [(complex(errors[i]), number, int(places[i])) for i in first]
    diagonal = claimed_diagonal(looker, look, 0) if len(point.x) == 1 else None
    if diagonal is not None:
        said = look.tape.gradients[0].reshape(-1) / look.cotangent
        wrong = module_of(said).flatnonzero(look.tape.rejected[0].reshape(-1)).tolist()
        named.entries = [Entry(0, i, i, float(diagonal[i]), float(said[i]), TAPED * abs(float(said[i]))) for i in wrong]
    elif point.outputs.vector.size <= MOST_ROWS_BY_TAPE:
        named.entries = list(rows_by_tape(looker, look, listed))
    if not named.entries:
        worst.sort(key=lambda wrong: -abs(wrong[0]))
        entries = [located(point, look.cotangent, *wrong) for wrong in worst[:MOST_LOCATED]]
        named.entries = [entry for entry in entries if entry.analytic != entry.numeric]
    return named


def rows_by_tape(looker: Looker, look: Look, listed: int) -> Iterator[Entry]:
    """Of every row of the Jacobian the entries that the tape rejects; of each input at most so many.

    To measure the rounding of a row takes two dozen backwards. What it is, times the row's cotangent, is a part of what
    is known of all rows together: a row is measured only where an entry is off by less.
    """
    point, said = looker.point, look.tape
    assert said is not None
    assert said.rejected is not None
    left = dict.fromkeys(range(len(point.x)), listed)
    for output in range(point.outputs.vector.size):
        one, weight = point.outputs.unit(output), abs(complex(look.cotangent[output]))
        claimed, taped = point.vjp(one), point.by_tape(one)
        rejected, unclear = [], weight == 0
        for g, t, bar, mask in zip(claimed, taped, said.rounding, said.rejected, strict=True):
            off = mask & apart(point, g, t, looker.rtol) & np.isfinite(t)
            rejected.append(off)
            unclear = unclear or not bool((abs(g - t) * weight > bar)[off].all())
        if unclear:
            rejected = beside_tape(point, one, claimed, said.rejected, looker.rtol).rejected or []
        for number, mask in enumerate(rejected):
            for i in module_of(one).flatnonzero(mask.reshape(-1)).tolist()[: left[number]]:
                left[number] -= 1
                yield entry_of(point, number, i, output, claimed, taped)


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


# --------------------------------------------------------------------------- without the tape
def by_columns(looker: Looker, look: Look, budget: float) -> Named:
    """The wrong entries as differences find them: by columns where the budget allows, else by halving."""
    point, named = looker.point, Named()
    for number in range(len(point.x)):
        if not point.x[number].size:
            named.right.add(number)
            continue
        everywhere = module_of(look.cotangent).ones(point.x[number].shape, bool)
        alone = looker.look(only(number, everywhere, point.x), whole=True)
        if alone.decision is Decision.PASS:
            named.right.add(number)
            continue
        found = None
        if 1 < point.x[number].size == point.outputs.vector.size:
            again = looker.look(only(number, everywhere, point.x), whole=True)
            found = wrong_on_diagonal(looker, alone, again, number)
        if found is None and not point.complex and point.by_rows:
            before = point.spent.runs
            if point.outputs.size + 4 * point.x[number].size <= budget:
                found, excused = wrong_in(looker, number, alone)
                named.excused |= excused
            budget -= point.spent.runs - before
        if not found:
            found = searched(looker, alone, number)
            named.exhaustive = False
        named.entries += found
        if found:
            wrong = ~everywhere
            wrong.reshape(-1)[sorted({e.index for e in found})] = True
            named.wrong[number] = wrong
    return named


def wrong_in(looker: Looker, number: int, look: Look) -> tuple[list[Entry], bool]:
    """Every wrong entry of the Jacobian of one input, and whether others are excused; see `Block`."""
    point, found, excused, start = looker.point, list[Entry](), False, 0
    for array in (point.outputs.arrays[k] for k in point.outputs.active):
        if array.size and point.x[number].size:
            block = block_of(point, number, start, tuple(array.shape))
            pairs = paired_axes(block, looker.random)
            found += wrong_in_block(block, pairs, look.derivative.noise, unasked(point) + looker.rtol)
            excused |= block.stands_still
        start += array.size
    return found, excused


def block_of(point: Point, number: int, start: int, shape: tuple[int, ...]) -> Block:
    """The part of the Jacobian that belongs to one moved input and one output."""

    def part_of(vjp: Callable[[Array], list[Array]]) -> Callable[[Array], Array]:
        def pulled(cotangent: Array) -> Array:
            whole = point.outputs.vector * 0
            whole[start : start + cotangent.size] = cotangent.reshape(-1)
            return vjp(whole)[number]

        return pulled

    taped = part_of(point.by_tape) if point.witnessed else None
    return Block(point.line, point.x, point.scales, number, start, shape, part_of(point.vjp), taped)


def everything(looker: Looker) -> list[Entry] | None:
    """Every wrong entry of every Jacobian, for mode ``full``; None where it is too large or complex."""
    point = looker.point
    if point.complex or not point.by_rows or sum(x.size for x in point.x) * point.outputs.size > MOST_ENTRIES:
        return None
    look = looker.look(by_rows=True)
    return [entry for number in range(len(point.x)) for entry in wrong_in(looker, number, look)[0]]


def searched(looker: Looker, look: Look, number: int) -> list[Entry]:
    """Some wrong elements of one input, by halving it: the derivative of the weighted outputs along each is wrong."""
    point, d = looker.point, look.direction[number]
    assert d is not None
    xp, whole = module_of(look.cotangent), d.reshape(-1)

    def along(mask: Array) -> Look:
        part = only(number, (whole * mask).reshape(d.shape), point.x)
        return looker.along(part, look, whole=bool(mask.sum() == 1))

    found = []
    for index in halved(xp, whole.size, lambda mask: along(mask).decision is Decision.FAIL, MOST_LOCATED):
        one = xp.zeros(whole.size)
        one[index] = 1
        there, step = along(one), float(abs(whole[index])) * (1.0 if whole[index].real >= 0 else -1.0)
        value, claim = there.seen.value / step, there.claim.value / step
        found.append(Entry(number, index, SUM_OF_OUTPUTS, claim, value, there.seen.bar / abs(step)))
    return found


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
