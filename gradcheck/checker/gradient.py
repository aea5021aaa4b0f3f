"""The verdict on a gradient: PASS, FAIL, KINK or INCONCLUSIVE, from error bars and the tape alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gradcheck.checker.closer import (
    again,
    by_themselves,
    parts_alone,
    rejected_by_tape,
    tape_is_wrong,
    twice,
    unsure_by_tape,
    whole_look,
)
from gradcheck.checker.contract import Contracts
from gradcheck.checker.decide import Decision
from gradcheck.checker.elsewhere import Found, contradicted, disputed, elsewhere, no_entry, of_lost_outputs, with_kink
from gradcheck.checker.infinite import infinite
from gradcheck.checker.kinks import judged, kinked_by_tape
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.low_precision import wrong_in_low_precision
from gradcheck.checker.name import Named, everything, name_wrong
from gradcheck.checker.point import Point
from gradcheck.checker.problem import Problem
from gradcheck.checker.steps import steps_of
from gradcheck.checker.structure import claimed_diagonal, wrong_on_diagonal
from gradcheck.numeric.arrays import Array
from gradcheck.numeric.line import MOST_ROWS
from gradcheck.result import UNFINISHED, Diagnosis, GradientSummary, Status

Mode = Literal["auto", "probe", "full"]
Effort = Literal["usual", "full"]
"""How much is spent on naming what is wrong."""

MOST_LISTED = 20
"""Wrong entries that a summary lists of an input; all are counted."""


def check_gradient(
    problem: Problem,
    *,
    seed: int = 0,
    rtol: float | None = None,
    mode: Mode = "auto",
    listed: int = MOST_LISTED,
    effort: Effort = "usual",
    seconds: float = np.inf,
) -> GradientSummary:
    """Hold the vjp that `problem` claims against the differences and the tape, its behaviour against the contracts.

    Args:
        seed: of the directions and cotangents.
        rtol: widens the bars, relative to the derivative; never narrows them.
        mode: ``probe`` compares projections alone; ``auto`` also every entry where the Jacobian is diagonal, and every
            entry of the gradient where there is a tape; ``full`` every entry of every Jacobian.
        listed: wrong entries that the summary lists of an input at most; all that are found are counted.
        effort: ``usual`` spends about ten times the check itself on naming what is wrong; ``full`` names every entry.
        seconds: how long the check may take before naming ends. The verdict stands before that and is never lost.

    Raises:
        Exception: whatever the layer raises.
    """
    with np.errstate(all="ignore"):  # steps lead out of the domain, weights of what is not seen overflow
        return Check(problem, seed, rtol or 0.0, mode, listed, effort, time.monotonic() + seconds).run()


@dataclass
class Check:
    """One gradient check."""

    problem: Problem
    seed: int
    rtol: float
    mode: Mode
    listed: int
    effort: Effort
    deadline: float
    worst: float = 0.0
    certified: bool = False
    point: Point = field(init=False)
    looker: Looker = field(init=False)

    def __post_init__(self) -> None:
        self.point = Point(self.problem)
        self.looker = Looker(self.point, np.random.default_rng(self.seed), self.rtol)

    def run(self) -> GradientSummary:
        """The whole check: contracts that the rest relies on, the derivative, the other contracts."""
        point = self.point
        if (bad := point.outputs.not_finite()) is not None:
            where = f"{self.problem.output_names[bad[0]]}{list(bad[1]) if bad[1] else ''}"
            return self.summary(Found(Status.INCONCLUSIVE, f"{where} is not finite here: choose another point"))
        if nothing := point.nothing_to_check:
            return self.summary(Found(Status.INCONCLUSIVE, f"nothing was checked: {nothing}"))
        contracts = Contracts(point, np.random.default_rng(self.seed + 1))
        broken = contracts.broken()
        if any(d.code == "GC131" for d in broken):  # then there is no function to differentiate
            return self.summary(Found(Status.FAIL, diagnosis=tuple(broken)))
        if not broken:  # what the contracts have run needs no second time
            self.looker.claims = contracts.claims
        found = self.derivative()
        if found.verdict is Status.PASS:
            found = self.in_low_precision() or found
        if found.verdict is Status.FAIL and contracts.in_place:
            names = ", ".join(contracts.in_place)
            text = f"forward changes {names} in place, so backward sees other values than those of the inputs"
            broken.append(Diagnosis.of("GC133", text, contracts.in_place))
        if broken:
            found = replace(found, verdict=Status.FAIL, diagnosis=(*broken, *found.diagnosis))
        if found.look is None or found.verdict is not Status.FAIL:
            return self.summary(found)
        looker = found.looker or self.looker
        looker.point.spent.deadline = self.deadline
        named = name_wrong(looker, found.look, self.listed, self.effort == "full")
        named.exhaustive &= found.looker is None
        if named.unfinished:
            found = replace(found, marks=(*found.marks, UNFINISHED))
        wrong = named.entries or found.wrong
        if named.excused and not wrong and not broken:
            return self.summary(no_entry(found))
        summary = self.summary(replace(found, wrong=wrong, diagnosis=(*found.diagnosis, *named.causes)), named)
        scan = steps_of(looker, wrong[0]) if wrong else None
        return summary if scan is None else summary.model_copy(update={"scan": scan})

    def summary(self, found: Found, named: Named | None = None) -> GradientSummary:
        """The result, with everything that was counted so far."""
        named = named or Named(exhaustive=found.exhaustive)
        names = [self.problem.names[k] for k in self.point.moved]
        elements = Counter(number for number, _ in {(entry.input, entry.index) for entry in found.wrong})
        counts: dict[str, tuple[int, int]] = {}
        for number, name in enumerate(names):
            known = int(named.wrong[number].sum()) if number in named.wrong else 0
            count = max(elements[number], known)
            if count or number in named.right or found.verdict is not Status.FAIL:
                counts[name] = (count, self.point.x[number].size)
        listed = [e for k in range(len(names)) for e in [e for e in found.wrong if e.input == k][: self.listed]]
        worst = [abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in found.wrong]
        return GradientSummary(
            verdict=found.verdict,
            why=found.why,
            wrong=tuple(self.point.named(entry) for entry in listed),
            wrong_counts=counts,
            exhaustive=named.exhaustive,
            worst_error=max(worst, default=self.worst),
            diagnosis=found.diagnosis,
            certified=self.certified and found.verdict in (Status.PASS, Status.KINK),
            marks=found.marks,
            patterns=named.patterns,
            seed=self.seed,
            evaluations=self.point.spent.evaluations,
        )

    # ----------------------------------------------------------------- the derivative
    def derivative(self) -> Found:
        """The function without the elements at which the gradient is infinite, and these."""
        there = infinite(self.looker)
        if there is None:
            return self.finite_part()
        if there.verdict is Status.FAIL:
            return there
        found = Found(Status.PASS) if all(bool(m.all()) for m in self.point.held) else self.finite_part()
        return with_kink(found, there.why)

    def finite_part(self) -> Found:
        """The smooth part of the function, and its kinks."""
        held = kinked_by_tape(self.point)
        if held is None:
            found = self.smooth_part(None)
        else:
            free = [~m for m in held]
            found = self.smooth_part(free) if any(bool(m.any()) for m in free) else Found(Status.PASS)
            if found.verdict is Status.FAIL:
                return found
            found = self.with_kinks(found, held)
        full = self.mode == "full" and not self.certified and not self.point.held
        if full and found.verdict in (Status.PASS, Status.KINK):
            wrong = everything(self.looker)
            if wrong is not None:
                self.certified = not wrong
                if wrong:
                    return Found(Status.FAIL, wrong=wrong)
        return found

    def with_kinks(self, found: Found, masks: Sequence[Array | None] | None) -> Found:
        """`found`, and what the kinks over the elements in `masks` add to it."""
        if not self.point.by_rows:
            size = self.point.outputs.size
            why = f"a kink at the point, and {size} outputs: more than {MOST_ROWS} are not held against its sides"
            return Found(Status.INCONCLUSIVE, why)
        kinks = judged(self.looker, masks)
        if kinks.wrong:
            element = self.point.place(kinks.wrong[0])
            text = f"the gradient is not between the one-sided derivatives at {element}"
            return Found(Status.FAIL, wrong=kinks.wrong, diagnosis=(Diagnosis.of("GC120", text),))
        if not bool(kinks.kinked.all()):
            smooth = twice(lambda: self.looker.look(masks, whole=True, by_rows=True, without=kinks.kinked))
            if smooth.decision is Decision.FAIL:
                return self.failed(smooth)
        if kinks.wrong_beside is not None:
            looker, look = kinks.wrong_beside
            text = f"the gradient is wrong beside {kinks.text}: the wrong entries are those at a point close by"
            return Found(Status.FAIL, look=look, looker=looker, diagnosis=(Diagnosis.of("GC120", text),))
        if not kinks.places:
            return found
        return with_kink(
            found, f"not differentiable at {kinks.text}; the gradient lies between the one-sided derivatives"
        )

    def smooth_part(self, masks: Sequence[Array | None] | None) -> Found:
        """The gradient over the elements in `masks`, where the function has a derivative."""
        look = self.looker.look(masks)
        if look.decision is Decision.FAIL and look.rejected is not None and not look.kinked:
            if tape_is_wrong(self.looker, look.rejected):
                return Found(Status.PASS, marks=("the differences against an operation's own rule",))
            return self.failed(look)
        if not look.kinked and look.decision is Decision.PASS:
            found = self.more_looks(look)
        else:
            found = self.by_whole_scan(masks, look.kinked)
        if self.point.tape is not None:
            return found
        if found.verdict is Status.PASS and look.decision is not Decision.PASS and found.look is not None:
            return of_lost_outputs(self.looker, look, found)
        if found.verdict in (Status.FAIL, Status.INCONCLUSIVE):
            return self.by_the_finer_reading(found, masks, look.kinked)
        return found

    def by_the_finer_reading(self, found: Found, masks: Sequence[Array | None] | None, kinked: bool) -> Found:
        """`found` by the coarser reading, or what the finer one gives: its PASS always counts, its FAIL where the
        coarser says FAIL or doubts the gradient, its KINK only where nothing is doubted."""
        self.looker.fine = True
        fine = self.by_whole_scan(masks, kinked)
        doubted = found.verdict is Status.FAIL or found.doubted
        # what rounds has kinks everywhere, so that KINK tells nothing once the gradient is doubted
        believed = (Status.PASS, Status.FAIL) if doubted else (Status.PASS, Status.KINK)
        self.looker.fine = fine.verdict in believed
        return fine if self.looker.fine else found

    def by_whole_scan(self, masks: Sequence[Array | None] | None, kinked: bool) -> Found:
        """The same from a whole scan, where a first look was not enough."""
        look = whole_look(self.looker, masks, kinked)
        # too near to tell for the differences is no kink where a tape tells: one that it knows was split off before
        by_tape = look.decision is Decision.BY_TAPE and not bool(look.derivative.kinked.any())
        if look.kinked and not by_tape:
            return self.with_kinks(Found(Status.PASS), masks)
        self.worst = look.error
        match look.decision:
            case Decision.FAIL:
                return self.failed(look)
            case Decision.CONTRADICTION:
                return contradicted(self.looker, look)
            case Decision.UNSEEN:
                wrong = rejected_by_tape(self.looker, look)
                return elsewhere(self.looker, look) if wrong is None else self.failed(wrong)
        return self.more_looks(look)

    def failed(self, look: Look) -> Found:
        """FAIL for what a look shows."""
        self.worst = look.error
        return Found(Status.FAIL, look=look)

    def more_looks(self, look: Look) -> Found:
        """What one projection cannot show: another cotangent and direction, every input alone, what is too small."""
        self.worst = look.error
        marks = ("by the tape",) if look.decision is Decision.BY_TAPE else ()
        wrong = unsure_by_tape(self.looker, look)
        if wrong is not None:
            return self.failed(wrong)
        second = again(self.looker, look) if self.point.tape is None else None
        if second is not None:
            if second.decision is Decision.FAIL:
                return self.failed(second)
            if not second.seen.holds(second.claim.value):
                return disputed(second)
            wrong = parts_alone(self.looker, look)
            if wrong is not None:
                return self.failed(wrong)
        if self.mode != "probe" and len(self.point.x) == 1 and look.rejected is None:
            if second is None:
                self.certified = self.point.witnessed and claimed_diagonal(self.looker, look, 0) is not None
            else:
                wrong_ones = wrong_on_diagonal(self.looker, look, second, 0, by_either=True)
                self.certified = wrong_ones == [] and bool((look.derivative.both.bar < np.inf).all())
                if wrong_ones:
                    shown = by_themselves(self.looker, wrong_ones)
                    if shown.decision is Decision.FAIL:
                        return replace(self.failed(shown), wrong=wrong_ones)
                    if shown.decision is Decision.UNSEEN:
                        return elsewhere(self.looker, shown)
        return Found(Status.PASS, marks=marks, look=look)

    def in_low_precision(self) -> Found | None:
        """FAIL if the backward in the inputs' own dtype strays from the one in float64, which was just found right."""
        wrong = wrong_in_low_precision(self.point, self.looker.random, self.rtol)
        if not wrong:
            return None
        names = tuple(self.problem.names[self.point.moved[n]] for n in sorted({entry.input for entry in wrong}))
        dtypes = sorted({str(self.problem.inputs[k].dtype) for k in self.point.moved})
        text = f"right in float64, wrong in {', '.join(dtypes)}"
        return Found(Status.FAIL, wrong=wrong, diagnosis=(Diagnosis.of("GC113", text, names),))
