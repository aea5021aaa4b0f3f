"""The likely cause of a wrong gradient: what the tape explains, else a hypothesis that makes the right gradient of the
analytic one.

Both are held against the gradients for several random cotangents, element by element. What does not reproduce them is
not printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.causes.from_tape import explain_from_tape
from gradcheck.causes.hypotheses import Evidence, likely
from gradcheck.checking.arrays import module_of
from gradcheck.checking.point import Point
from gradcheck.checking.probe import ROUNDING, Probe, Prober
from gradcheck.result import Diagnosis

OF_BUDGET = 10
"""The search on the tape takes a tenth of what naming may cost."""
COTANGENTS = 2
"""Random ones that a hypothesis has to hold for: with one, any number can be explained."""


def likely_causes(
    prober: Prober,
    wrong: Sequence[int],
    probe: Probe,
    jacobians: Mapping[int, tuple[Array, Array]],
    budget: float,
) -> Iterator[Diagnosis]:
    """What explains the gradients of the inputs that are `wrong`: of all at once by the tape, or one by one.

    Without a tape the right gradients are those of `jacobians`, as far as these are known.
    """
    point = prober.point
    claims = [(probe.cotangent, probe.gradients)] if probe.wrong is not None else []
    claims += [prober.claimed() for _ in range(COTANGENTS - len(claims))]
    cotangents, claimed = zip(*claims, strict=True)
    taped = [point.by_tape(u) for u in cotangents] if point.witnessed else []
    rounding: list[Sequence[Array]] = []
    if point.witnessed:  # that of one cotangent is as large as that of another, if not at the same elements
        rounding = [[0 * abs(t) for t in taped[0]] if probe.comparison is None else probe.comparison.rounding]
        rounding.append([module_of(r).full_like(r, r.max(initial=0.0)) for r in rounding[0]])
        # where a gradient of zeros was written there is nothing to search for; at second order it is what was cut off
        if point.problem.order > 1 or any(bool((g[number] != 0).any()) for g in claimed for number in wrong):
            explained = list(explained_by_tape(point, [*claims, prober.claimed()], rounding[0], budget / OF_BUDGET))
            yield from explained
            wrong = [k for k in wrong if not any(point.problem.names[point.moved[k]] in d.inputs for d in explained)]
    for number in wrong:
        if point.witnessed:
            truth = [(t[number], b[number]) for t, b in zip(taped, rounding, strict=True)]
        elif number in jacobians:
            truth = [gradient(*jacobians[number], u, point.x[number].shape) for u in cotangents]
        else:
            continue
        subject = Evidence(
            number=number,
            names=[point.problem.names[k] for k in point.moved],
            inputs=point.x,
            outputs=point.outputs,
            cotangents=cotangents,
            claimed=claimed,
            truth=[value for value, _ in truth],
            bars=[bar + ROUNDING * abs(value).max(initial=0.0) for value, bar in truth],
            vjp=point.vjp,
            wrong=wrong,
        )
        if subject.holds(subject.gradients):  # the bounds are too wide to tell them from the right ones
            continue
        with np.errstate(all="ignore"):  # hypotheses try the logarithm of whatever there is
            found = likely(subject)
        if found is not None:
            yield Diagnosis.of(found[0], f"{subject.name}: {found[1]}", (subject.name,))


def gradient(jacobian: Array, bounds: Array, cotangent: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """That of a cotangent by a Jacobian, or its diagonal, and its bound."""
    u, size = cotangent, abs(cotangent)
    found = (u * jacobian, size * bounds) if jacobian.ndim == 1 else (u @ jacobian, size @ bounds)
    return found[0].reshape(shape), found[1].reshape(shape)


def explained_by_tape(
    point: Point, claims: Sequence[tuple[Array, Sequence[Array]]], rounding: Sequence[Array], walks: float
) -> Sequence[Diagnosis]:
    """The mistakes on the tape that reproduce what backward gives for some cotangents, each with its line.

    `rounding` is that for the first of them, per moved input; no more than so many walks over the tape are taken.
    """
    tape = point.recorded(point.inputs, lines=True)
    if tape is None:
        return []

    def of_all(values: Sequence[Array]) -> list[Array | None]:
        found = dict(zip(point.moved, values, strict=True))
        return [found.get(k) for k in range(len(point.inputs))]

    pairs = [(point.outputs.split(u), of_all(gradients)) for u, gradients in claims]
    return explain_from_tape(tape, point.problem.reruns, pairs, point.problem.names, of_all(rounding), walks)
