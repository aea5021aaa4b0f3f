"""The verdict on a gradient: PASS, FAIL, KINK or INCONCLUSIVE, from error bars alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from gradcheck.checker.at_point import AtPoint
from gradcheck.checker.contract import Contracts
from gradcheck.checker.diagnose import Subject, diagnosed
from gradcheck.checker.evidence import Evidence
from gradcheck.checker.low_precision import wrong_in_low_precision
from gradcheck.checker.outputs import Outputs, widened
from gradcheck.checker.problem import Array, Problem
from gradcheck.checker.unseen import seen, why_unseen
from gradcheck.numeric.derivative import module_of, spacing
from gradcheck.numeric.jacobian import Block, paired_axes, wrong_in_block
from gradcheck.numeric.kink import Kink, kinks_of, one_sided
from gradcheck.numeric.probe import (
    Entry,
    Point,
    Probe,
    compare,
    diagonal,
    diagonal_entries,
    weights,
    wrong_entries,
)
from gradcheck.numeric.scan import Derivative
from gradcheck.result import Diagnosis, GradientSummary, Status

Mode = Literal["auto", "probe", "full"]

SECOND_SIZE = 64.0
"""How much larger the second probe's cotangent is: a backward that clips or squares it shows at some size."""
WIDEST_BAR = 1e-2
"""A derivative whose bar is wider than this, relative to itself, decides nothing."""
NEGLIGIBLE = 1e-9
"""An output so small beside the largest one needs no bar of its own size (GELU at −8 is all rounding)."""
MOST_AVERAGED = 2**12
"""Outputs for which many derivatives are averaged, if nothing stands out of its bar otherwise."""
MOST_LISTED = 20
"""Wrong entries that a summary lists of an input, worst first; all are counted."""
MOST_ENTRIES = 2**25
"""Entries of a Jacobian that mode ``full`` computes at most."""
LISTED_INPUTS, LISTED_ENTRIES = 2**8, 2**14
"""Of a Jacobian that is wrong, all entries are looked at up to this size, to list every wrong one."""


def check_gradient(
    problem: Problem,
    *,
    seed: int = 0,
    rtol: float | None = None,
    mode: Mode = "auto",
    contracts: bool = True,
    listed: int = MOST_LISTED,
) -> GradientSummary:
    """Hold the vjp that `problem` claims against numerical derivatives, and its behaviour against the contracts.

    Random projections uᵀJ d are compared from both sides; where they disagree, single wrong entries are searched for,
    and only a confirmed entry gives FAIL. The differences are taken in float64 whatever the inputs' dtype, unless the
    layer cannot.

    Args:
        seed: of the directions and cotangents.
        rtol: widens the bars, relative to the derivative; never narrows them.
        mode: ``probe`` compares projections alone; ``auto`` also every entry where the Jacobian is diagonal; ``full``
            every entry of every Jacobian.
        contracts: whether to check linearity, determinism, mutation and the like (see `checker.contract`) as well.
        listed: wrong entries that the summary lists of an input at most; all are counted.

    Raises:
        Exception: whatever the layer raises.
    """
    return Check(problem, seed, rtol or 0.0, mode, contracts, listed).run()


class Check:
    """One gradient check while it runs."""

    def __init__(self, problem: Problem, seed: int, rtol: float, mode: Mode, contracts: bool, listed: int) -> None:
        self.problem = problem
        self.seed = seed
        self.rtol = rtol
        self.mode = mode
        self.with_contracts = contracts
        self.listed = listed
        self.random = np.random.default_rng(seed)
        self.at = AtPoint(problem)
        self.worst = 0.0
        self.point: Point | None = None
        self.exhaustive = True
        self.certified = False
        self.right: set[int] = set()
        """The inputs whose gradient agreed when they were tried alone."""
        self.kinks: list[Kink] = []
        """Where the function has no derivative, and the gradient lies between its sides."""

    def summary(
        self, verdict: Status, why: str = "", wrong: Sequence[Entry] = (), diagnosis: Sequence[Diagnosis] = ()
    ) -> GradientSummary:
        """The result, with everything that was counted so far."""
        elements = {(entry.input, entry.index) for entry in wrong}
        counts = {}
        for number, k in enumerate(self.at.moved):
            count = sum(i == number for i, _ in elements)
            if count or number in self.right or verdict is not Status.FAIL:
                counts[self.problem.names[k]] = (count, self.at.inputs[k].size)
        listed = [e for k in range(len(self.at.moved)) for e in [e for e in wrong if e.input == k][: self.listed]]
        return GradientSummary(
            verdict=verdict,
            why=why,
            wrong=tuple(self.at.named(entry) for entry in listed),
            wrong_counts=counts,
            exhaustive=self.exhaustive,
            worst_error=self.worst,
            diagnosis=tuple(diagnosis),
            certified=self.certified and verdict in (Status.PASS, Status.KINK),
            seed=self.seed,
            evaluations=self.point.evaluations if self.point else 0,
        )

    def run(self) -> GradientSummary:
        """The whole check: contracts that the rest relies on, the derivative, the other contracts."""
        bad = self.at.outputs.not_finite()
        if bad is not None:
            where = f"{self.problem.output_names[bad[0]]}{list(bad[1]) if bad[1] else ''}"
            return self.summary(Status.INCONCLUSIVE, f"{where} is not finite here: choose another point")
        if not self.at.moved or not self.at.outputs.active or not self.at.outputs.vector.size:
            return self.summary(Status.PASS)
        if not sum(self.at.inputs[k].size for k in self.at.moved):
            return self.summary(Status.PASS)
        contracts = Contracts(self.at, np.random.default_rng(self.seed + 1))
        broken = contracts.broken() if self.with_contracts else []
        self.point = Point(self.at.forward, self.at.vjp, [self.at.inputs[k] for k in self.at.moved])
        if any(d.code == "GC131" for d in broken):  # then there is no function to differentiate
            return self.summary(Status.FAIL, "", (), broken)
        found = self.derivative()
        if found.verdict is Status.PASS:
            found = self.in_low_precision() or found
        if found.verdict is Status.FAIL and contracts.in_place:
            names = ", ".join(contracts.in_place)
            text = f"forward changes {names} in place, so backward sees other values than those of the inputs"
            broken.append(Diagnosis.of("GC133", text, contracts.in_place))
        if broken:
            verdict = Status.FAIL if found.verdict is not Status.FAIL else found.verdict
            return found.model_copy(update={"verdict": verdict, "diagnosis": (*broken, *found.diagnosis)})
        return found

    # ----------------------------------------------------------------- the derivative
    def derivative(self) -> GradientSummary:
        """Two probes of the derivative, and in mode ``full`` all of it."""
        assert self.point is not None
        outputs = widened(self.at.outputs.vector)
        for briefly in (
            True,
            False,
        ):  # before it counts, a disagreement is looked at along another direction, and longer
            direction, self.kinks = self.point.random_direction(self.random), []
            derivative = self.point.along(direction, briefly=briefly)
            found = self.without_derivative(derivative, outputs)
            if found is not None:
                return found
            probe = self.probed(derivative, direction)
            if probe.ratio(self.rtol) <= 1:
                break
        else:
            return self.disagreement(probe.cotangent, direction)
        self.worst = probe.ratio(self.rtol)
        if not seen(probe.derivative) and outputs.size <= MOST_AVERAGED and bool((probe.derivative.value != 0).any()):
            probe = self.probed(self.point.averaged(direction), direction)
            if probe.ratio(self.rtol) > 1:
                return self.disagreement(probe.cotangent, direction)
        unseen = "" if seen(probe.derivative) else why_unseen(self.at, self.point, probe, self.random)
        found = self.second_probe(probe)
        if found is None and self.mode == "full":
            found = self.full(probe.derivative)
        if found is not None:
            return found
        if unseen:
            return self.summary(Status.INCONCLUSIVE, unseen, (), [Diagnosis.of("GC121", unseen)])
        if probe.derivative.kinked is not None:
            kinked = module_of(outputs).flatnonzero(probe.derivative.kinked).tolist()
            self.kinks += kinks_of(self.point, outputs, kinked)  # the gradient agrees with the mean of both sides
        return self.kinked() if self.kinks else self.summary(Status.PASS)

    def probed(self, derivative: Derivative, direction: Sequence[Array], size: float = 1.0) -> Probe:
        """The gradients for a random cotangent beside a derivative."""
        cotangent = size * weights(derivative, widened(self.at.outputs.vector), self.random)
        return Probe(direction, derivative, cotangent, self.at.vjp(cotangent))

    def second_probe(self, first: Probe) -> GradientSummary | None:
        """Another direction and a larger cotangent, at a step that was good: FAIL or KINK, if they disagree.

        Where both probes show a diagonal Jacobian, its entries are held against the first one by one.
        """
        assert self.point is not None
        direction = self.point.random_direction(self.random)
        known = module_of(first.cotangent).isfinite(first.derivative.bar)
        second = self.probed(first.derivative, direction, SECOND_SIZE)
        second.derivative = self.point.as_along(direction, first.derivative)
        if replace(second, cotangent=second.cotangent * known).ratio(self.rtol) > 1:
            second.derivative = self.point.along(direction)
            if second.ratio(self.rtol) > 1:
                return self.disagreement(second.cotangent, direction)
            self.worst = max(self.worst, second.ratio(self.rtol))
        found = diagonal(first, second, self.rtol) if self.mode != "probe" else None
        if found is not None:
            self.certified, wrong = found
            if wrong:
                entries = diagonal_entries(self.point, 0, second.cotangent, direction, self.rtol, self.random)
                return self.judged([(entries, True)]) if entries else None
        return None

    def full(self, derivative: Derivative) -> GradientSummary | None:
        """Every entry of every Jacobian; FAIL or KINK if one disagrees. None as well where it is too large."""
        assert self.point is not None
        numbers = range(len(self.at.moved))
        if sum(self.at.entries(number) for number in numbers) > MOST_ENTRIES or self.at.complex():
            return None
        found = [(self.wrong_in(number, derivative), False) for number in numbers]
        self.certified = not any(entries for entries, _ in found)
        return self.judged(found)

    def wrong_in(self, number: int, like: Derivative | None) -> list[Entry]:
        """Every wrong entry of the Jacobian of one input; `like`, for a first look, along some direction."""
        assert self.point is not None
        point, starts, found = self.point, self.at.outputs.starts(), list[Entry]()
        for k in self.at.outputs.active:
            array, start = self.at.outputs.arrays[k], starts[k]
            if not array.size or not point.inputs[number].size:
                continue

            def vjp(cotangent: Array, start: int = start) -> Array:
                whole = widened(self.at.outputs.vector) * 0
                whole[start : start + cotangent.size] = cotangent.reshape(-1)
                return self.at.vjp(whole)[number]

            block = Block(point, vjp, number, start, tuple(array.shape))
            found += wrong_in_block(block, paired_axes(block, self.random), like, self.rtol)
        return found

    def in_low_precision(self) -> GradientSummary | None:
        """FAIL if the backward in the inputs' own dtype strays from the one in float64, which was just found right."""
        if self.at.as_given:
            return None
        given = list(self.problem.inputs)
        low = given, Outputs(self.problem.forward(given), self.at.outputs.active)
        eps = max(spacing(given[k]) for k in self.at.moved)
        wrong = wrong_in_low_precision(
            self.at.vjp_at, low, (self.at.inputs, self.at.outputs), self.at.moved, eps, self.rtol, self.random
        )
        if not wrong:
            return None
        self.right.update(range(len(self.at.moved)))
        names = tuple(self.problem.names[self.at.moved[n]] for n in sorted({entry.input for entry in wrong}))
        text = f"right in float64, wrong in {', '.join(sorted({str(given[k].dtype) for k in self.at.moved}))}"
        return self.summary(Status.FAIL, "", wrong, [Diagnosis.of("GC113", text, names)])

    # ----------------------------------------------------------------- what a disagreement means
    def without_derivative(self, derivative: Derivative, outputs: Array) -> GradientSummary | None:
        """INCONCLUSIVE or FAIL if outputs have no usable derivative, unless the gradient is between its two sides."""
        assert self.point is not None
        xp = module_of(outputs)
        size = xp.abs(outputs)
        reference = xp.maximum(xp.abs(derivative.value), xp.maximum(size, NEGLIGIBLE * float(size.max()) * (size > 0)))
        wide = (derivative.bar > WIDEST_BAR * reference) & ((reference > 0) | ~xp.isfinite(derivative.bar))
        wide = xp.flatnonzero(wide).tolist()
        if not wide:
            return None
        wrong, explained = list[Kink](), set[int]()
        for entry, sides in kinks_of(self.point, outputs, wide):
            explained.add(entry.output)
            if sides.hold(entry.analytic):
                self.kinks.append((entry, sides))
            else:
                wrong.append((sides.beside(entry), sides))
        if wrong:
            text = f"the gradient is not between the one-sided derivatives at {self.places(wrong)}"
            return self.failed([entry for entry, _ in wrong], [Diagnosis.of("GC120", text)])
        left = [i for i in wide if i not in explained]
        if not left:
            return None
        k, index = self.at.outputs.locate(left[0])
        name = f"{self.problem.output_names[k]}{list(index) if index else ''}"
        more = f" and of {len(left) - 1} other elements" if len(left) > 1 else ""
        why = (
            f"the numerical derivative of {name}{more} has no usable error bar: the forward is too noisy, or "
            f"jumps, around this point. Use inputs further from such places, or a forward that keeps more digits"
            f"{self.at.raised}"
        )
        return self.summary(Status.INCONCLUSIVE, why)

    def disagreement(self, cotangent: Array, direction: Sequence[Array]) -> GradientSummary:
        """FAIL with the entries that are wrong, KINK where the function has no derivative, or INCONCLUSIVE."""
        found = self.judged(self.suspects(cotangent, direction))
        if found is not None:
            return found
        why = "the projections disagree, but no single entry does by more than its bar: the forward is too noisy"
        return self.summary(Status.INCONCLUSIVE, why, (), [Diagnosis.of("GC121", why)])

    def judged(self, suspects: Sequence[tuple[list[Entry], bool]]) -> GradientSummary | None:
        """The verdict on entries that disagree, given with whether their Jacobian is diagonal."""
        assert self.point is not None
        wrong: list[Entry] = []
        for entries, independent in suspects:
            for entry, sides in zip(entries, one_sided(self.point, entries, independent), strict=True):
                if sides is None or sides.nearby(entry) or not sides.hold(entry.analytic):
                    wrong.append(entry)
                else:
                    self.kinks.append((entry, sides))
        if wrong:
            return self.failed(wrong, self.causes(wrong))
        return self.kinked() if self.kinks else None

    def failed(self, wrong: list[Entry], causes: list[Diagnosis]) -> GradientSummary:
        """FAIL with these entries, worst first."""
        self.worst = max(abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in wrong)
        return self.summary(Status.FAIL, "", sorted(wrong, key=relative_error, reverse=True), causes)

    def kinked(self) -> GradientSummary:
        """KINK: where the function has no derivative, and what its sides are."""
        why = f"not differentiable at {self.places(self.kinks)}; the gradient lies between the one-sided derivatives"
        return self.summary(Status.KINK, why, (), [Diagnosis.of("GC120", why)])

    def places(self, kinks: Sequence[Kink]) -> str:
        """Where the first kinks are, and their sides."""
        shown = [f"{self.at.place(entry)} ({sides})" for entry, sides in kinks]
        return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")

    def causes(self, wrong: Sequence[Entry]) -> list[Diagnosis]:
        """What explains the wrong entries, input by input."""
        assert self.point is not None
        found = []
        names = [self.problem.names[k] for k in self.at.moved]
        for number in sorted({entry.input for entry in wrong}):
            vector = widened(self.at.outputs.vector)
            evidence = Evidence.gathered(self.point, number, vector, self.at.vjp, self.random)
            subject = Subject(
                evidence, names[number], names, self.point.inputs, self.at.outputs, self.at.vjp, self.point
            )
            with np.errstate(all="ignore"):  # hypotheses try the logarithm of whatever there is
                cause = diagnosed(subject)
            if cause is not None:
                found.append(cause)
        return found

    def suspects(self, cotangent: Array, direction: Sequence[Array]) -> list[tuple[list[Entry], bool]]:
        """Per input that is not right, the entries that are wrong by their bars, and whether its Jacobian is diagonal.

        Of a diagonal or small Jacobian all wrong entries are found, of another some.
        """
        assert self.point is not None
        gradients, found = self.at.vjp(cotangent), []
        for number in range(len(self.at.moved)):
            alone = [d if k == number else d * 0 for k, d in enumerate(direction)]
            derivative = self.point.along([d if k == number else None for k, d in enumerate(direction)])
            if compare(cotangent, derivative, gradients, alone, self.rtol).ratio <= 1:
                self.right.add(number)
                continue
            entries = diagonal_entries(self.point, number, cotangent, direction, self.rtol, self.random)
            if entries is not None:
                found.append((entries, True))
                continue
            small = (
                self.at.inputs[self.at.moved[number]].size <= LISTED_INPUTS
                and self.at.entries(number) <= LISTED_ENTRIES
            )
            entries = self.wrong_in(number, None) if small and not self.at.complex() else []
            if not entries:  # of a backward that is not linear, unit cotangents may show nothing
                self.exhaustive = False
                entries = list(wrong_entries(self.point, cotangent, alone, derivative, self.rtol))
            found.append((entries, False))
        return found


def relative_error(entry: Entry) -> float:
    """|analytic − numeric| over the larger of both; inf if one of them is not finite."""
    error = abs(entry.analytic - entry.numeric) / max(abs(entry.analytic), abs(entry.numeric))
    return error if np.isfinite(error) else np.inf
