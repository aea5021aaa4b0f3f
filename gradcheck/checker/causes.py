"""The likely cause of a wrong gradient: what the tape explains, else a hypothesis that makes the right gradient of the
claimed one.

Both are held against the gradients for several random cotangents, element by element. What does not reproduce them is
not printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gradcheck.checker.beside_tape import unasked
from gradcheck.checker.hypotheses import HYPOTHESES
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.subject import Subject
from gradcheck.numeric.arrays import Array, module_of, only
from gradcheck.numeric.derivative import QUICK, quick
from gradcheck.numeric.line import Scan
from gradcheck.numeric.noise import measured
from gradcheck.result import Diagnosis

BUDGET = 10
"""Naming costs at most so many times the evaluations and vjps of the check itself. The search on the tape takes
a tenth of it: a check that fails has by then taken five times those of its passing twin, and measured the rounding."""
COTANGENTS = 2
"""Random ones that a hypothesis has to hold for: with one, any number can be explained."""


def causes(looker: Looker, wrong: Sequence[int], look: Look, budget: float) -> Iterator[Diagnosis]:
    """What explains the gradients of the inputs that are `wrong`: of all at once by the tape, or one by one.

    Without a tape the right gradient is found column by column, as long as `budget` evaluations allow it.
    """
    point = looker.point
    known = look.tape if look.rejected is not None and not look.by_rows else None
    claims = [looker.claimed() for _ in range(COTANGENTS - (known is not None))]
    if known is not None:  # what the look has shown needs no second time
        claims = [(look.cotangent, look.gradients), *claims]
    cotangents, claimed = zip(*claims, strict=True)
    anything = any(bool((g[number] != 0).any()) for g in claimed for number in wrong)
    rounding: list[Sequence[Array]] = []
    if point.witnessed:  # that of one cotangent is as large as that of another, if not at the same elements
        first = known.rounding if known is not None else point.rounding(cotangents[0])
        rounding = [first, [module_of(r).full_like(r, r.max(initial=0.0)) for r in first]]
    if point.witnessed and anything:
        explained = list(point.explained([*claims, looker.claimed()], rounding[0], budget / BUDGET))
        yield from explained
        wrong = [k for k in wrong if not any(point.problem.names[point.moved[k]] in d.inputs for d in explained)]
    taped = [point.by_tape(u) for u in cotangents] if point.witnessed else []
    for number in wrong:
        cost = 0 if point.witnessed else 4 * point.x[number].size
        if cost > budget:
            continue
        budget -= cost
        values, bars = ([given[number] for given in of_all] for of_all in (taped, rounding))
        if not point.witnessed:
            values, bars = by_columns(looker, look, number, cotangents)
        subject = Subject(
            number=number,
            names=[point.problem.names[k] for k in point.moved],
            inputs=point.x,
            outputs=point.outputs,
            cotangents=cotangents,
            claimed=claimed,
            truth=values,
            bars=[b + unasked(point) * abs(v).max(initial=0.0) for b, v in zip(bars, values, strict=True)],
            vjp=point.vjp,
        )
        if subject.holds(subject.gradients):  # the bars are too wide to tell them from the right ones
            continue
        with np.errstate(all="ignore"):  # hypotheses try the logarithm of whatever there is
            found = next((held for hypothesis in HYPOTHESES for held in hypothesis(subject)), None)
        if found is not None:
            yield subject.diagnosis(*found)


def by_columns(looker: Looker, look: Look, number: int, cotangents: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """The right gradients of an input by differences, one per cotangent, and their bars."""
    point, x = looker.point, looker.point.x[number]
    xp = module_of(x)
    noise = look.derivative.noise if look.by_rows else measured(Scan(point.line(point.direction(looker.random))))
    step = max(QUICK, sorted(look.derivative.step.tolist())[look.derivative.step.size // 2])
    parts, dtype = ([1.0, 1j], x.dtype) if x.dtype.kind == "c" else ([1.0], "float64")
    values = [xp.zeros(x.size, dtype) for _ in cotangents]
    bars = [xp.zeros(x.size) for _ in cotangents]
    for index, size in enumerate(point.scales[number].reshape(-1).tolist()):
        for part in parts:
            d = xp.zeros(x.size, dtype)
            d[index] = part * size
            found = quick(point.line(only(number, d.reshape(x.shape), point.x)), noise, step)
            for k, u in enumerate(cotangents):
                values[k][index] += part * float((u * found.value).sum()) / size
                bars[k][index] += float((abs(u) * found.bar).sum()) / size
    return [v.reshape(x.shape) for v in values], [b.reshape(x.shape) for b in bars]
