"""The verdict on a gradient: PASS, FAIL, KINK or INCONCLUSIVE, from contracts, the tape and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gradcheck.checking.arrays import EPS, SMALLEST, Array, module_of, only
from gradcheck.checking.contracts import Contracts
from gradcheck.checking.decide import FAR_BARS, POWER, Ruling
from gradcheck.checking.domains import advice
from gradcheck.checking.found import Found, undecided, with_kink
from gradcheck.checking.infinite_slopes import infinite
from gradcheck.checking.kinks import EDGE, judge_kinks, kinked_by_tape
from gradcheck.checking.own_precision import digits, lost_digits, wrong_in_own_precision
from gradcheck.checking.point import Point
from gradcheck.checking.probe import LOW_PRECISION, Probe, Prober
from gradcheck.checking.problem import Problem
from gradcheck.checking.tape_comparison import Masks, tape_diff
from gradcheck.result import Diagnosis, Status

Precision = Literal["strict", "loose"]

MOST_PROBES = 3
"""Probes over all steps that are taken where the first ones do not tell: along some directions nothing is seen."""

UNSEEN = (
    "the derivative is too small to be seen beside the rounding errors of the forward here (saturated, flat or noisy), "
    "so nothing could be verified{}. Choose inputs at which the outputs respond, or a forward that keeps more digits "
    "(expm1, log1p, float64)"
)


@dataclass
class Check:
    """One gradient check, from the problem to the verdict."""

    problem: Problem
    seed: int
    rtol: float
    certify: bool
    """Whether what one projection cannot show is looked at as well."""
    precision: Precision
    may_round: bool = False
    """Whether rounding to float32 is granted to code that nothing sees, to see whether that is all that is wrong."""
    worst: float = 0.0
    certified: bool = False
    point: Point = field(init=False)
    prober: Prober = field(init=False)

    def __post_init__(self) -> None:
        self.point = Point(self.problem, may_round=self.may_round)
        self.prober = Prober(self.point, np.random.default_rng(self.seed), self.rtol)

    def run(self) -> Found:
        """Contracts that the rest relies on, the derivative, the other contracts, the layer's own precision."""
        point = self.point
        if (bad := point.outputs.not_finite()) is not None:
            where = f"{self.problem.output_names[bad[0]]}{list(bad[1]) if bad[1] else ''}"
            return Found(Status.INCONCLUSIVE, f"{where} is not finite here: {advice(self.problem)}")
        if nothing := point.nothing_to_check:
            return Found(Status.INCONCLUSIVE, f"nothing was checked: {nothing}")
        contracts = Contracts(point, np.random.default_rng(self.seed + 1))
        broken = contracts.broken()
        if any(d.code == "GC131" for d in broken):  # then there is no function to differentiate
            return Found(Status.FAIL, diagnosis=tuple(broken))
        if not broken:  # what the contracts have run needs no second time
            self.prober.claims = contracts.claims
        found = self.derivative()
        if found.verdict is Status.PASS:
            found = self.in_own_precision(found)
        elif found.verdict is Status.FAIL and found.probe is not None and point.opaque and not point.may_round:
            found = self.in_float32(found, found.probe)
        if found.verdict is Status.FAIL and contracts.in_place:
            names = ", ".join(contracts.in_place)
            text = f"forward changes {names} in place, so backward sees other values than those of the inputs"
            broken.append(Diagnosis.of("GC133", text, contracts.in_place))
        if broken:
            found = replace(found, verdict=Status.FAIL, diagnosis=(*broken, *found.diagnosis))
        return found

    def derivative(self) -> Found:
        """The function without the elements at which the gradient is infinite, and these."""
        there = infinite(self.prober)
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
            return self.smooth_part(None)
        free = [~m for m in held]
        found = self.smooth_part(free) if any(bool(m.any()) for m in free) else Found(Status.PASS)
        return found if found.verdict is Status.FAIL else self.with_kinks(found, held)

    def with_kinks(self, found: Found, masks: Masks | None) -> Found:
        """`found`, and what the kinks over the elements in `masks` add to it."""
        kinks = judge_kinks(self.prober, masks)
        if kinks.wrong:
            element = self.point.place(kinks.wrong[0])
            text = f"the gradient is not between the one-sided derivatives at {element}"
            return Found(Status.FAIL, wrong=kinks.wrong, diagnosis=(Diagnosis.of("GC120", text),))
        if not bool(kinks.kinked.all()):
            smooth = self.twice(lambda: self.prober.probe(masks, without=kinks.kinked))
            if smooth.decision is Ruling.FAIL:
                return self.wrong(smooth)
        if kinks.wrong_beside is not None:
            prober, probe = kinks.wrong_beside
            text = f"the gradient is wrong beside {kinks.text}: the wrong entries are those at a point close by"
            return Found(Status.FAIL, probe=probe, prober=prober, diagnosis=(Diagnosis.of("GC120", text),))
        if kinks.unknown:
            return undecided(kinks.unknown)
        if not kinks.places:
            return found
        why = f"not differentiable at {kinks.text}; the gradient lies between the one-sided derivatives"
        return with_kink(found, why)

    def smooth_part(self, masks: Masks | None) -> Found:
        """The gradient over the elements in `masks`, where the function has a derivative."""
        probe = first = self.prober.probe(masks)
        if probe.decision is not (Ruling.PASS if probe.wrong is None else Ruling.FAIL):
            probe = self.whole(masks, probe)
        self.worst = probe.error
        if probe.kinked and not probe.by_tape:
            found = self.with_kinks(Found(Status.PASS), masks)
            if found.verdict is not Status.PASS or self.point.tape is None:
                return found
        match probe.decision:
            case Ruling.FAIL:
                return self.failed(probe)
            case Ruling.CONTRADICTION:
                return self.contradicted(probe)
            case Ruling.UNSEEN:
                return self.unseen(probe, first)
        return self.further(probe, masks)

    def whole(self, masks: Masks | None, first: Probe) -> Probe:
        """A probe over all steps. FAIL is not believed once: more directions follow until one of them sees anything."""
        probe = self.prober.probe(masks, whole=True, by_rows=first.by_rows or first.kinked)
        for _ in range(MOST_PROBES - 1):
            settled = probe.decision in (Ruling.PASS, Ruling.BY_TAPE) or probe.wrong is not None or probe.kinked
            if settled or (probe.decision is Ruling.UNSEEN and self.point.tape is not None):
                break
            again = self.prober.probe(masks, whole=True, by_rows=first.by_rows)
            if again.decision is probe.decision:
                return again
            probe = again
        return probe

    def twice(self, probe: Callable[[], Probe]) -> Probe:
        """A probe; where it says FAIL another one, along another direction: one may be off by chance."""
        first = probe()
        return probe() if first.decision is Ruling.FAIL and first.wrong is None else first

    def failed(self, probe: Probe) -> Found:
        """FAIL for what a probe shows, if the function has a derivative."""
        if self.point.tape is None and not self.linear(probe):
            return self.with_kinks(Found(Status.PASS), None)
        return self.wrong(probe)

    def wrong(self, probe: Probe) -> Found:
        """FAIL for what a probe shows."""
        self.worst = probe.error
        return Found(Status.FAIL, probe=probe)

    def linear(self, probe: Probe) -> bool:
        """Whether the slopes along two directions add up to that along their sum. Where pieces meet, as in a median
        of equal numbers, the function may be smooth along every line, and they do not."""
        other = self.point.direction(self.prober.random, [None if d is None else d != 0 for d in probe.direction])
        total = [a if b is None else a + b for a, b in zip(probe.direction, other, strict=True)]
        first = probe.derivative.both
        second, third = (self.prober.along(d, probe, True).derivative.both for d in (other, total))
        apart = abs(first.value + second.value - third.value)
        return not bool((apart > FAR_BARS * (first.bar + second.bar + third.bar)).any())

    def further(self, probe: Probe, masks: Masks | None) -> Found:
        """What one projection cannot show: another cotangent, and without a tape every input and output alone."""
        marks = ("by the tape",) if probe.decision is Ruling.BY_TAPE else ()
        comparison = probe.comparison
        if comparison is not None:
            if comparison.wrong is not None:  # an operation's own rule underflows where the gradient does not
                return Found(Status.PASS, marks=("the differences against an operation's own rule",), probe=probe)
            if comparison.unsure is not None:
                alone = self.alone(comparison.unsure, probe)
                if alone.decision is Ruling.FAIL and not alone.kinked:
                    return self.failed(alone)
                if marks and comparison.blank:
                    return self.unseen(probe, probe)
                marks = (*marks, f"{sum(int(u.sum()) for u in comparison.unsure)} entries known to less than 1 %")
            if not self.certify or masks is not None:
                return Found(Status.PASS, marks=marks, probe=probe)
            cotangent, gradients = self.prober.claimed()
            second = tape_diff(self.point, cotangent, gradients, masks, self.rtol)
            if second.wrong is not None:
                again = replace(probe, cotangent=cotangent, gradients=gradients, comparison=second)
                return self.failed(again)
            self.certified = comparison.unsure is None and second.unsure is None
            return Found(Status.PASS, marks=marks, probe=probe)
        second_probe = self.prober.probe(masks, like=probe if probe.by_rows else None)
        if second_probe.decision is not Ruling.PASS:
            second_probe = self.prober.probe(masks, whole=True)
        if second_probe.decision is Ruling.FAIL and not second_probe.kinked:
            return self.failed(second_probe)
        unseen = list[str]()
        for name, mask, others in self.parts(masks, probe, second_probe):
            alone = self.alone(mask, probe, others)
            if alone.decision is Ruling.FAIL and not alone.kinked:
                return self.failed(alone)
            if alone.decision is not Ruling.PASS and (alone.claim.size or bool(alone.derivative.largest.any())):
                if others is not None and not bool((alone.derivative.both.bar[~others] < np.inf).all()):
                    return undecided(EDGE.format(self.point.raised))
                unseen.append(name)
        if not second_probe.seen.holds(second_probe.claim.value):
            return self.disputed(second_probe)
        if unseen:
            marks = (*marks, f"{', '.join(unseen)} too small to be seen")
        return Found(Status.PASS, marks=marks, probe=probe)

    def parts(
        self, masks: Masks | None, probe: Probe, second: Probe
    ) -> Iterator[tuple[str, Masks | None, Array | None]]:
        """What is looked at by itself without a tape, with its name, as masks of the inputs and of the outputs that are
        left out: every input, the elements of whose share an error of `POWER` is within the bound, and the outputs of
        which one would not have shown."""
        inputs, names = self.point.x, [self.problem.names[k] for k in self.point.moved]
        whole = [module_of(x).ones(x.shape, bool) for x in inputs] if masks is None else masks
        for k, mask in enumerate(whole) if len(inputs) > 1 else ():
            if mask is not None and bool(mask.any()):
                yield names[k], only(k, mask, inputs), None
        small = [
            None if d is None else (POWER * abs(g * d) <= probe.seen.bar + probe.seen.allowed) & (d != 0)
            for g, d in zip(probe.gradients, probe.direction, strict=True)
        ]
        count, of = sum(int(m.sum()) for m in small if m is not None), sum(x.size for x in inputs)
        if 0 < count < of:
            yield f"{count} of {of} elements", small, None
        lost = probe.unresolved & second.unresolved
        if probe.by_rows and bool(lost.any()):
            yield f"{int(lost.sum())} of {lost.size} outputs", masks, ~lost

    def alone(self, masks: Masks | None, like: Probe, without: Array | None = None) -> Probe:
        """A probe over some elements by themselves, or of some outputs: a brief one, and where that does not tell one
        over all steps."""
        known = like if like.by_rows and without is None else None
        probe = self.prober.probe(masks, by_rows=True, like=known, without=without)
        if probe.decision is Ruling.PASS:
            return probe
        return self.twice(lambda: self.prober.probe(masks, whole=True, by_rows=True, without=without))

    # ----------------------------------------------------------------- where the point does not tell
    def unseen(self, probe: Probe, first: Probe) -> Found:
        """Nothing is seen, and no tape is heard. It is right to give nothing where nothing changes: at any step, or at
        the first ones (on a step of floor), though outputs in proportion to the inputs would have shown there."""
        found = probe.derivative
        sizes = abs(self.point.outputs.vector)
        rounding = FAR_BARS * found.noise
        if self.point.opaque:  # a noise that is guessed is no proof
            rounding = EPS * (sizes if probe.by_rows else (abs(probe.cotangent) * sizes).sum())
        elif not bool((found.noise <= POWER * float(sizes.sum()) + SMALLEST["float64"]).all()):  # all is rounding
            rounding = 0 * rounding
        stays = bool((found.largest <= rounding).all()) and probe.claim.size <= probe.seen.bar < np.inf
        if not stays and not self.point.opaque and not bool(first.derivative.largest.any()):
            would_show = POWER * float((abs(first.cotangent) * sizes).sum())
            stays = first.claim.size <= first.seen.bar <= would_show
        if stays:
            return Found(Status.PASS, marks=("nothing changes here",))
        at_edge = not self.point.raised and not bool((found.both.bar < np.inf).all())
        return undecided((EDGE if at_edge else UNSEEN).format(self.point.raised))

    def contradicted(self, probe: Probe) -> Found:
        """The differences exclude what both backward and the tape say."""
        assert self.point.tape is not None
        names = sorted({kink.name for kink in self.point.tape.kinks})
        blamed = f" ({', '.join(names)} at a kink)" if names else ""
        return undecided(
            f"the differences give {probe.seen.value:.6g} ± {probe.seen.bar:.1g} where backward gives "
            f"{probe.claim.value:.6g}, and the operations' own derivatives agree with backward{blamed}: "
            "the forward is noisier than its operations tell, or one has a wrong rule"
        )

    def disputed(self, probe: Probe) -> Found:
        """The claim is outside of the error bound, but not by more than a kink that would not have shown."""
        return undecided(
            f"backward gives {probe.claim.value:.6g} where the differences give {probe.seen.value:.6g} ± "
            f"{probe.seen.bar:.1g}, and a kink of {probe.seen.gap:.1g} would not have shown there: choose other inputs"
        )

    def in_own_precision(self, found: Found) -> Found:
        """The same, or FAIL if backward, in the dtypes that it computes in, loses digits that the tape keeps."""
        wrong, name = wrong_in_own_precision(self.point, self.prober.random, self.rtol)
        if not wrong:
            return found
        names = tuple(self.problem.names[self.point.moved[n]] for n in sorted({entry.input for entry in wrong}))
        text = lost_digits(self.point, wrong, name)
        if self.precision == "loose":
            return replace(found, marks=(*found.marks, text))
        return Found(Status.FAIL, wrong=wrong, diagnosis=(Diagnosis.of("GC113", text, names),))

    def in_float32(self, found: Found, probe: Probe) -> Found:
        """The same FAIL, or what is right but for rounding to float32 in code that nothing sees."""
        apart = abs(probe.claim.value - probe.seen.value)
        if not (probe.claim.size and apart <= probe.seen.bar + LOW_PRECISION * probe.claim.size):
            return found
        rounding = replace(self, may_round=True)
        rounding.point.spent = self.point.spent
        again = rounding.derivative()
        if again.verdict is not Status.PASS:
            return found
        text = digits(apart / probe.claim.size, "float64")
        if self.precision == "loose":
            return replace(again, marks=(*again.marks, text))
        return replace(found, diagnosis=(Diagnosis.of("GC113", text), *found.diagnosis))
