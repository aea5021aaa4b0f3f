"""The verdict on a gradient: PASS, FAIL, KINK or INCONCLUSIVE, from contracts, the tape and
differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.checking.contracts import Contracts, digits, lost_digits, wrong_in_own_precision
from gradcheck.checking.differences import FAR_BARS
from gradcheck.checking.domains import advice
from gradcheck.checking.kinks import check_at_kinks, check_where_infinite, kinked_by_tape, kinks
from gradcheck.checking.point import Masks, Point, elements_of, one_input_only
from gradcheck.checking.precision import EPS, SMALLEST
from gradcheck.checking.probe import (
    LOW_PRECISION,
    POWER,
    CheckOutcome,
    Probe,
    Prober,
    Ruling,
    add_kink,
    inconclusive_outcome,
    tape_diff,
)
from gradcheck.checking.problem import Problem
from gradcheck.checking.reasons import VerdictReason
from gradcheck.result import Diagnosis, Status

Precision = Literal["strict", "loose"]


@dataclass
class Check:
    """One gradient check, from the problem to the verdict."""

    problem: Problem
    seed: int
    rtol: float
    certify: bool
    """Whether to search for errors that a single projection cannot show."""
    precision: Precision
    may_round: bool = False
    """Whether unrecorded code may round to float32, to find out whether rounding is the only
    mistake.
    """
    worst: float = 0.0
    certified: bool = False
    point: Point = field(init=False)
    prober: Prober = field(init=False)

    def __post_init__(self) -> None:
        self.point = Point(self.problem, may_round=self.may_round)
        self.prober = Prober(self.point, np.random.default_rng(self.seed), self.rtol)

    def run(self) -> CheckOutcome:
        """Check in order: the contracts that the rest relies on, the derivative, the other
        contracts, the layer's own precision.
        """
        point = self.point
        if (bad := point.outputs.not_finite()) is not None:
            where = f"{self.problem.output_names[bad[0]]}{list(bad[1]) if bad[1] else ''}"
            why = VerdictReason.NOT_FINITE.sentence(place=where, advice=advice(self.problem))
            return CheckOutcome(Status.INCONCLUSIVE, why)
        if nothing := point.nothing_to_check:
            return CheckOutcome(Status.INCONCLUSIVE, VerdictReason.NOTHING.sentence(why=nothing))
        contracts = Contracts(point, np.random.default_rng(self.seed + 1))
        broken = contracts.find_broken()
        if any(d.code == "GC131" for d in broken):  # forward has no derivative then
            return CheckOutcome(Status.FAIL, diagnosis=tuple(broken))
        if not broken:  # reuse the contracts' runs
            self.prober.claims = contracts.claims
        outcome = self.derivative()
        if outcome.verdict is Status.PASS:
            outcome = self.check_own_precision(outcome)
        elif (
            outcome.verdict is Status.FAIL
            and outcome.probe is not None
            and point.opaque
            and not point.may_round
        ):
            outcome = self.check_in_float32(outcome, outcome.probe)
        if outcome.verdict is Status.FAIL and contracts.in_place:
            names = ", ".join(contracts.in_place)
            text = (
                f"forward changes {names} in place: "
                "if backward reads them, it gets the changed values"
            )
            broken.append(Diagnosis.of("GC133", text, contracts.in_place))
        if not broken and outcome.verdict is not Status.FAIL:
            broken = contracts.check_needs_alone()
        if broken:
            outcome = replace(outcome, verdict=Status.FAIL, diagnosis=(*broken, *outcome.diagnosis))
        return outcome

    def derivative(self) -> CheckOutcome:
        """Check separately: the elements with an infinite gradient, those that feed a kink, and the
        others.
        """
        point, infinite = self.point, check_where_infinite(self.prober)
        if infinite.verdict is Status.FAIL:
            return infinite
        outcome = CheckOutcome(Status.PASS)
        if not all(m.all() for m in point.infinite):
            kinked = kinked_by_tape(point, self.prober.claims[-1][0])
            free = None if kinked is None else [~m for m in kinked]
            if free is None or any(m.any() for m in free):
                outcome = self.check_smooth_part(free)
            if kinked is not None and outcome.verdict is not Status.FAIL:
                outcome = check_at_kinks(self.prober, outcome, kinked)
        return add_kink(outcome, infinite.why) if infinite.why else outcome

    def check_smooth_part(self, masks: Masks | None) -> CheckOutcome:
        """Check the gradient of the elements in `masks`, at which the function has a derivative."""
        probe = self.prober.probe_until_conclusive(masks)
        self.worst = probe.error
        if probe.decision is Ruling.FAIL:
            return self.confirm_failure(probe)
        if probe.decision is Ruling.CONTRADICTION:
            assert self.point.tape is not None
            names = ", ".join(sorted({kink.name for kink in kinks(self.point.tape)}))
            return inconclusive_outcome(
                VerdictReason.CONTRADICTION,
                value=probe.differences.value,
                bar=probe.differences.bar,
                claim=probe.claim.value,
                at_kink=f" ({names} at a kink)" if names else "",
            )
        if probe.kinked and self.point.tape is None:
            return self.pieces_meet()
        if probe.decision is Ruling.UNSEEN:
            return self.without_evidence(probe)
        return (
            self.check_without_tape(probe, masks)
            if probe.comparison is None
            else self.check_with_tape(probe, masks)
        )

    def confirm_failure(self, probe: Probe) -> CheckOutcome:
        """FAIL by the evidence of a probe, if the function has a derivative, that is, if its slopes
        along two directions add up to the slope along their sum. If pieces meet, as in a median of
        equal numbers, the function may be smooth along every line although the slopes do not add
        up.
        """
        if self.point.tape is None:
            other = self.point.direction(self.prober.random, elements_of(probe.direction))
            total = [a if b is None else a + b for a, b in zip(probe.direction, other, strict=True)]
            first = probe.derivative
            second, third = (
                self.prober.probe_along(d, probe, True).derivative for d in (other, total)
            )
            differ = abs(first.value + second.value - third.value) > FAR_BARS * (
                first.bar + second.bar + third.bar
            )
            if (differ & (probe.cotangent != 0 if probe.by_rows else True)).any():
                return self.pieces_meet()
        self.worst = probe.error
        return CheckOutcome(Status.FAIL, probe=probe)

    # ------------------------- errors that one projection cannot show
    def check_with_tape(self, probe: Probe, masks: Masks | None) -> CheckOutcome:
        """Check the entries that the tape leaves uncertain by differences, and another
        cotangent.
        """
        comparison = probe.comparison
        assert comparison is not None
        # An operation's own rule underflows where the gradient does not.
        if comparison.wrong is not None:
            return CheckOutcome(
                Status.PASS, marks=("the differences against an operation's own rule",), probe=probe
            )
        marks = ("by the tape",) if probe.decision is Ruling.BY_TAPE else ()
        if comparison.unsure is not None:
            alone = self.prober.probe_until_conclusive(comparison.unsure, by_rows=True)
            if alone.is_wrong:
                return self.confirm_failure(alone)
            if marks and comparison.blank:
                return self.without_evidence(probe)
            count = sum(int(u.sum()) for u in comparison.unsure)
            counted = "1 entry" if count == 1 else f"{count} entries"
            marks = (*marks, f"{counted} verified to 1 % at best")
        if self.certify and masks is None:
            cotangent, gradients = self.prober.draw_claim()
            second = tape_diff(self.point, cotangent, gradients, masks, self.rtol)
            if second.wrong is not None:
                return self.confirm_failure(
                    replace(probe, cotangent=cotangent, gradients=gradients, comparison=second)
                )
            self.certified = comparison.unsure is None and second.unsure is None
        return CheckOutcome(Status.PASS, marks=marks, probe=probe)

    def check_without_tape(self, probe: Probe, masks: Masks | None) -> CheckOutcome:
        """A second direction and cotangent, and the parts that are probed separately."""
        second = self.prober.probe_until_conclusive(masks)
        if second.is_wrong:
            return self.confirm_failure(second)
        unseen = list[str]()
        for name, mask, without in self.parts(masks, probe, second):
            alone = self.prober.probe_until_conclusive(mask, by_rows=True, without=without)
            if alone.is_wrong:
                return self.confirm_failure(alone)
            if alone.decision is not Ruling.PASS and (
                alone.claim.size or alone.derivative.largest.any()
            ):
                if without is not None and not (alone.derivative.bar[~without] < np.inf).all():
                    return self.no_derivative(alone)
                unseen.append(name)
        # Outside, but an undetected kink may explain it.
        if not second.differences.holds(second.claim.value):
            return inconclusive_outcome(
                VerdictReason.HIDDEN_KINK,
                claim=second.claim.value,
                value=second.differences.value,
                bar=second.differences.bar,
                gap=second.differences.gap,
            )
        noisy = f"{', '.join(unseen)} not verified: below the noise of the differences"
        return CheckOutcome(Status.PASS, marks=(noisy,) if unseen else (), probe=probe)

    def parts(
        self, masks: Masks | None, probe: Probe, second: Probe
    ) -> Iterator[tuple[str, Masks | None, Array | None]]:
        """Parts that are probed separately without a tape, by name, as masks of inputs and of
        excluded outputs: every input; the elements in whose share an error of `POWER` is within the
        bound; and the outputs in which such an error would not have shown.
        """
        inputs, names = self.point.x, self.point.select_moved(self.problem.names)
        free = self.point.everywhere if masks is None else masks
        for k, mask in enumerate(free) if len(inputs) > 1 else ():
            if mask is not None and mask.any():
                yield names[k], one_input_only(k, mask, inputs), None
        small = [
            None
            if d is None
            else (POWER * abs(g * d) <= probe.differences.bar + probe.differences.allowed)
            & (d != 0)
            for g, d in zip(probe.gradients, probe.direction, strict=True)
        ]
        count = sum(int(m.sum()) for m in small if m is not None)
        if 0 < count < self.point.size:
            yield f"{count} of {self.point.size} elements", small, None
        lost = probe.unresolved & second.unresolved
        if probe.by_rows and lost.any():
            yield f"{int(lost.sum())} of {lost.size} outputs", masks, ~lost

    # ------------------------------------- points that decide nothing
    def without_evidence(self, probe: Probe) -> CheckOutcome:
        """The outcome if the differences show nothing and no tape can be used. A gradient of zero
        is right if nothing changes: at any step, or at the first ones (on a step of floor), at
        which outputs in proportion to the inputs would have shown.
        """
        derivative, sizes = probe.derivative, abs(self.point.outputs.vector)
        size = sizes if probe.by_rows else (abs(probe.cotangent) * sizes).sum()
        if self.point.opaque:  # a guessed noise proves nothing
            stays = bool((derivative.largest <= EPS * size).all())
        else:
            noise = (
                derivative.noise
                if float(derivative.noise.max()) <= POWER * float(sizes.sum()) + SMALLEST["float64"]
                else 0.0
            )
            stays = bool((derivative.largest <= FAR_BARS * noise).all())
            would_show = POWER * float((abs(probe.cotangent) * sizes).sum())
            stays |= not derivative.nearby.any() and probe.differences.bar <= would_show
        if stays and probe.claim.size <= probe.differences.bar < np.inf:
            return CheckOutcome(Status.PASS, marks=("nothing changes here",))
        if self.point.searches:
            return inconclusive_outcome(VerdictReason.SEARCH)
        if not self.point.raised and not (derivative.bar < np.inf).all():
            return self.no_derivative(probe)
        return inconclusive_outcome(VerdictReason.UNSEEN, raised=self.point.raised)

    def no_derivative(self, probe: Probe) -> CheckOutcome:
        """The undecided outcome if no steps agree: at the edge of the domain, or within it."""
        largest = probe.derivative.largest
        finite = not self.point.raised and bool(np.isfinite(largest).all())
        return inconclusive_outcome(
            VerdictReason.NO_STEP if finite else VerdictReason.EDGE, raised=self.point.raised
        )

    def pieces_meet(self) -> CheckOutcome:
        """The undecided outcome if pieces meet and no tape shows which."""
        if self.point.searches:
            return inconclusive_outcome(VerdictReason.SEARCH)
        recorded = self.point.record(self.point.inputs) is not None
        unrecorded = (
            "the recorded forward and the call itself give different outputs"
            if recorded
            else "not all of the code that computes them could be recorded"
        )
        return inconclusive_outcome(VerdictReason.PIECES_UNRECORDED, unrecorded=unrecorded)

    # -------------------------------------- the layer's own precision
    def check_own_precision(self, outcome: CheckOutcome) -> CheckOutcome:
        """Turn an outcome into FAIL if backward, in its own dtypes, loses digits that the tape
        keeps.
        """
        wrong, name = wrong_in_own_precision(self.point, self.prober.random, self.rtol)
        if not wrong:
            return outcome
        names = tuple(
            self.problem.names[self.point.moved[n]]
            for n in sorted({entry.input for entry in wrong})
        )
        text = lost_digits(self.point, wrong, name)
        if self.precision == "loose":
            return replace(outcome, marks=(*outcome.marks, text))
        return CheckOutcome(
            Status.FAIL, wrong=wrong, diagnosis=(Diagnosis.of("GC113", text, names),)
        )

    def check_in_float32(self, outcome: CheckOutcome, probe: Probe) -> CheckOutcome:
        """Keep a FAIL unless it is explained by rounding to float32 in unrecorded code."""
        error = abs(probe.claim.value - probe.differences.value)
        if not (
            probe.claim.size and error <= probe.differences.bar + LOW_PRECISION * probe.claim.size
        ):
            return outcome
        rounding = replace(self, may_round=True)
        rounding.point.spent = self.point.spent
        again = rounding.derivative()
        if again.verdict is not Status.PASS:
            return outcome
        text = digits(error / probe.claim.size, "float64")
        if self.precision == "loose":
            return replace(again, marks=(*again.marks, text))
        return replace(outcome, diagnosis=(Diagnosis.of("GC113", text), *outcome.diagnosis))
