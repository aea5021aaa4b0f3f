"""The verdict on a gradient: PASS, FAIL, KINK or INCONCLUSIVE, from error bars and the tape alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gradcheck.checker.contract import Contracts
from gradcheck.checker.decide import POWER, Decision
from gradcheck.checker.kinks import judged
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.low_precision import wrong_in_low_precision
from gradcheck.checker.name import Named, diagonal, everything, name_wrong
from gradcheck.checker.point import Entry, Point
from gradcheck.checker.problem import Problem
from gradcheck.numeric.line import Array, module_of
from gradcheck.result import Diagnosis, GradientSummary, Status

Mode = Literal["auto", "probe", "full"]

SECOND_SIZE = 64.0
"""How much larger the second look's cotangent is: a backward that clips or squares it shows at some size."""
MOST_LISTED = 20
"""Wrong entries that a summary lists of an input; all are counted."""
MOST_REGROUPED = 8
"""Looks at what was too small to be seen beside the rest, each at its own scale: eight times a factor of 1e9
is all of float64."""
MULTIPLES = [2.0**-k for k in (1, 2, 3, 4, 6, 8, 10)] + [2.0**k for k in (1, 4, 8, 16, 24, 40)]
"""Of the inputs, at which a function that is flat here is looked at: saturated functions respond nearer to 0,
underflown ones beyond."""
BESIDE = 2.0**-7
"""How far off, relative to the inputs' scale, witnesses that contradict each other are heard again."""

UNSEEN = (
    "the derivative is too small to be seen beside the rounding errors of the forward here (saturated, flat or noisy), "
    "so nothing could be verified{}. Choose inputs at which the outputs respond, or a forward that keeps more digits "
    "(expm1, log1p, float64)"
)


def check_gradient(
    problem: Problem,
    *,
    seed: int = 0,
    rtol: float | None = None,
    mode: Mode = "auto",
    contracts: bool = True,
    listed: int = MOST_LISTED,
    thorough: bool = False,
    decided: Callable[[GradientSummary], None] | None = None,
) -> GradientSummary:
    """Hold the vjp that `problem` claims against the differences and the tape, its behaviour against the contracts.

    Args:
        seed: of the directions and cotangents.
        rtol: widens the bars, relative to the derivative; never narrows them.
        mode: ``probe`` compares projections alone; ``auto`` also every entry where the Jacobian is diagonal, and every
            entry of the gradient where there is a tape; ``full`` every entry of every Jacobian.
        contracts: whether to check linearity, determinism, mutation and the like (see `checker.contract`) as well.
        listed: wrong entries that the summary lists of an input at most; all that are found are counted.
        thorough: name every wrong entry whatever it costs; else about ten times the check itself is spent.
        decided: told of the verdict before entries and causes are looked for.

    Raises:
        Exception: whatever the layer raises.
    """
    with np.errstate(all="ignore"):  # steps lead out of the domain, weights of what is not seen overflow
        return Check(problem, seed, rtol or 0.0, mode, contracts, listed, thorough, decided).run()


@dataclass
class Found:
    """What came out of some looks: a verdict, and what it hangs on."""

    verdict: Status
    why: str = ""
    look: Look | None = None
    """A look that shows the gradient wrong."""
    wrong: Sequence[Entry] = ()
    diagnosis: tuple[Diagnosis, ...] = ()
    marks: tuple[str, ...] = ()
    wrong_elsewhere: bool = False
    """Nothing is seen here, but where the function responds the gradient is wrong."""
    doubted: bool = False
    """Nothing is certain, but something speaks against the gradient."""


@dataclass
class Check:
    """One gradient check."""

    problem: Problem
    seed: int
    rtol: float
    mode: Mode
    with_contracts: bool
    listed: int
    thorough: bool
    decided: Callable[[GradientSummary], None] | None
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
        bad = point.outputs.not_finite()
        if bad is not None:
            where = f"{self.problem.output_names[bad[0]]}{list(bad[1]) if bad[1] else ''}"
            return self.summary(Found(Status.INCONCLUSIVE, f"{where} is not finite here: choose another point"))
        nothing = self.nothing_to_check()
        if nothing:
            return self.summary(Found(Status.INCONCLUSIVE, f"nothing was checked: {nothing}"))
        contracts = Contracts(point, np.random.default_rng(self.seed + 1))
        broken = contracts.broken() if self.with_contracts else []
        if any(d.code == "GC131" for d in broken):  # then there is no function to differentiate
            return self.summary(replace(Found(Status.FAIL), diagnosis=tuple(broken)))
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
        if self.decided is not None:
            self.decided(self.summary(found))
        named = name_wrong(self.looker, found.look, self.listed, self.thorough)
        return self.summary(replace(found, wrong=named.entries, diagnosis=(*found.diagnosis, *named.causes)), named)

    def nothing_to_check(self) -> str:
        """Why there is no gradient to check, if so."""
        if not self.point.moved:
            return "no input takes a gradient"
        if not self.point.outputs.active:
            return "the call returned no Tensor that claims a gradient"
        if not self.point.outputs.size:
            return "the outputs have no elements"
        return "" if sum(x.size for x in self.point.x) else "the inputs have no elements"

    def summary(self, found: Found, named: Named | None = None) -> GradientSummary:
        """The result, with everything that was counted so far."""
        names = [self.problem.names[k] for k in self.point.moved]
        elements = {(entry.input, entry.index) for entry in found.wrong}
        counts: dict[str, tuple[int, int]] = {}
        for number, name in enumerate(names):
            count = sum(i == number for i, _ in elements)
            if named is not None:
                count = max(count, named.counts.get(number, 0))
            right = named is not None and number in named.right
            if count or right or found.verdict is not Status.FAIL:
                counts[name] = (count, self.point.x[number].size)
        listed = [e for k in range(len(names)) for e in [e for e in found.wrong if e.input == k][: self.listed]]
        worst = [abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in found.wrong]
        return GradientSummary(
            verdict=found.verdict,
            why=found.why,
            wrong=tuple(self.point.named(entry) for entry in listed),
            wrong_counts=counts if found.look is not None or found.wrong or found.verdict is not Status.FAIL else {},
            exhaustive=named.exhaustive if named is not None else True,
            worst_error=max(worst, default=self.worst),
            diagnosis=found.diagnosis,
            certified=self.certified and found.verdict in (Status.PASS, Status.KINK),
            marks=found.marks,
            patterns=named.patterns if named is not None else (),
            seed=self.seed,
            evaluations=self.point.evaluations,
        )

    # ----------------------------------------------------------------- the derivative
    def derivative(self) -> Found:
        """The smooth part of the function, and its kinks."""
        held = self.at_kinks_by_tape()
        if held is None:
            found = self.smooth_part(None)
        else:
            free = [~m for m in held]
            found = self.smooth_part(free) if any(bool(m.any()) for m in free) else Found(Status.PASS)
            if found.verdict is Status.FAIL:
                return found
            found = self.with_kinks(found, held)
        if found.verdict in (Status.PASS, Status.KINK) and self.mode == "full" and not self.certified:
            wrong = everything(self.looker)
            if wrong is not None:
                self.certified = not wrong
                if wrong:
                    return Found(Status.FAIL, wrong=wrong)
        return found

    def at_kinks_by_tape(self) -> list[Array] | None:
        """Per moved input the elements that feed an operation at its kink, as the tape tells; None if none do."""
        tape, point = self.point.tape, self.point
        if tape is None or tape.smooth:
            return None
        kinks = tape.kinks()
        if not kinks:
            return None
        masks = [module_of(x).zeros(x.shape, dtype=bool) for x in point.x]
        for kink in kinks:
            for number, k in enumerate(point.moved):
                if kink.inputs[k] is not None:
                    masks[number] |= kink.inputs[k]
        return masks if any(bool(m.any()) for m in masks) else None

    def with_kinks(self, found: Found, masks: Sequence[Array | None] | None) -> Found:
        """`found`, and what the kinks over the elements in `masks` add to it."""
        if not self.point.by_rows:
            why = f"a kink at the point, and more than {self.point.outputs.size} outputs to hold against its sides"
            return Found(Status.INCONCLUSIVE, why)
        kinks = judged(self.looker, masks)
        if kinks.wrong:
            element = self.point.place(kinks.wrong[0])
            text = f"the gradient is not between the one-sided derivatives at {element}"
            return Found(Status.FAIL, "", None, kinks.wrong, (Diagnosis.of("GC120", text),))
        if kinks.wrong_beside is not None:
            return Found(Status.FAIL, "", kinks.wrong_beside)
        if not bool(kinks.kinked.all()):
            for _ in range(2):  # the outputs that have none
                look = self.looker.look(masks, whole=True, by_rows=True, without=kinks.kinked)
                if look.decision is not Decision.FAIL:
                    break
            else:
                return self.failed(look)
        if not kinks.places:
            return found
        why = f"not differentiable at {kinks.text}; the gradient lies between the one-sided derivatives"
        if found.verdict is Status.INCONCLUSIVE:
            return found
        return replace(found, verdict=Status.KINK, why=why, diagnosis=(Diagnosis.of("GC120", why),))

    def smooth_part(self, masks: Sequence[Array | None] | None) -> Found:
        """The gradient over the elements in `masks`, where the function has a derivative."""
        look = self.looker.look(masks)
        if look.decision is Decision.FAIL and look.rejected is not None and not look.kinked:
            if self.tape_is_wrong(look.rejected):
                return Found(Status.PASS, marks=("the differences against an operation's own rule",))
            return self.failed(look)
        if not look.kinked and look.decision is Decision.PASS:
            found = self.closer(look, masks)
        else:
            found = self.longer(masks, look.kinked)
        if self.point.tape is not None:
            return found
        if found.verdict is Status.PASS and look.decision is not Decision.PASS and found.look is not None:
            return self.of_lost_outputs(look, found)
        if found.verdict not in (Status.FAIL, Status.INCONCLUSIVE):
            return found
        self.looker.fine = True  # FAIL only if it is wrong whatever the finest structure is
        fine = self.longer(masks, look.kinked)
        doubted = found.verdict is Status.FAIL or found.doubted
        # what rounds has kinks everywhere, so that KINK tells nothing once the gradient is doubted
        believed = (Status.PASS, Status.FAIL) if doubted else (Status.PASS, Status.KINK)
        self.looker.fine = fine.verdict in believed
        return fine if self.looker.fine else found

    def of_lost_outputs(self, brief: Look, found: Found) -> Found:
        """Where outputs are so small that rounding on the way may be all there is of them, and a look without it
        disagreed: what it is worth where they respond."""
        assert found.look is not None
        before, after = brief.derivative, found.look.derivative
        if not brief.by_rows or not found.look.by_rows:
            return found
        lost = before.resolved & ~after.resolved & (after.nearby == 0)
        if not bool(lost.any()):
            return found
        there = self.elsewhere(brief, anyway=True)
        if there.wrong_elsewhere:
            return Found(Status.FAIL, look=brief)
        return replace(found, marks=(*found.marks, *there.marks) if there.verdict is Status.PASS else found.marks)

    def tape_is_wrong(self, rejected: Sequence[Array]) -> bool:
        """Whether the differences over the entries that the tape rejects hold what backward gives and exclude the tape.

        The rule of an operation underflows at points at which the gradient does not.
        """
        look = self.looker.look([m if bool(m.any()) else None for m in rejected], by_rows=True)
        if look.heard is None or not np.isfinite(look.seen.bar) or look.kinked:
            return False
        clear = look.seen.bar <= POWER * abs(look.seen.value)
        return clear and look.seen.holds(look.claim.value) and look.seen.excludes(look.heard.value)

    def longer(self, masks: Sequence[Array | None] | None, kinked: bool) -> Found:
        """The same from a whole scan, where a first look was not enough; FAIL if another direction shows it too."""
        for _ in range(1 if self.looker.fine else 2):
            look = self.looker.look(masks, whole=True, by_rows=kinked)
            if look.kinked:
                return self.with_kinks(Found(Status.PASS), masks)
            if look.decision is not Decision.FAIL or look.rejected is not None:
                break
        self.worst = look.error
        match look.decision:
            case Decision.FAIL:
                return self.failed(look)
            case Decision.CONTRADICTION:
                return self.contradicted(look)
            case Decision.UNSEEN:
                return self.elsewhere(look)
        return self.closer(look, masks)

    def failed(self, look: Look) -> Found:
        """FAIL for what a look shows."""
        self.worst = look.error
        return Found(Status.FAIL, look=look)

    def closer(self, look: Look, masks: Sequence[Array | None] | None) -> Found:
        """What one projection cannot show: another cotangent and direction, every input alone, what is too small."""
        self.worst = look.error
        marks = ("by the tape",) if look.decision is Decision.BY_TAPE else ()
        second = None
        if self.point.tape is None:
            second = self.looker.look(masks, like=look.derivative if look.by_rows else None, size=SECOND_SIZE)
            if second.decision is not Decision.PASS:
                second = self.looker.look(masks, whole=True, size=SECOND_SIZE)
                if second.decision is Decision.FAIL:
                    return self.failed(second)
            for wrong in (self.inputs_alone(look, masks), self.too_small(look, masks)):
                if wrong is not None:
                    return wrong
        if self.mode != "probe":
            known = diagonal(self.looker, look, second)
            if known is not None:
                self.certified = not known
                if known:
                    found = self.tried(self.masks_of(known), look, thoroughly=True)
                    if isinstance(found, Found):
                        return replace(found, wrong=known)
        return Found(Status.PASS, marks=marks, look=look)

    def masks_of(self, entries: Sequence[Entry]) -> list[Array | None]:
        """The elements that entries are about, as masks over the moved inputs."""
        masks = [module_of(x).zeros(x.shape, dtype=bool) for x in self.point.x]
        for entry in entries:
            masks[entry.input].reshape(-1)[entry.index] = True
        return [m if bool(m.any()) else None for m in masks]

    def inputs_alone(self, look: Look, masks: Sequence[Array | None] | None) -> Found | None:
        """Every input by itself, so that a small share is seen at its own scale."""
        if len(self.point.x) < 2:
            return None
        for number in range(len(self.point.x)):
            if not self.point.x[number].size:
                continue
            own = None if masks is None else masks[number]
            alone: list[Array | None] = [None] * len(self.point.x)
            x = self.point.x[number]
            alone[number] = module_of(x).ones(x.shape, bool) if own is None else own
            found = self.tried(alone, look, thoroughly=True)
            if isinstance(found, Found):
                return found
        return None

    def too_small(self, look: Look, masks: Sequence[Array | None] | None) -> Found | None:
        """Entries whose whole share is within the bar, by themselves, as long as that shows more."""
        for _ in range(MOST_REGROUPED):
            small = [
                None if d is None else (abs(g * d) <= look.seen.bar) & (d != 0)
                for g, d in zip(look.gradients, look.direction, strict=True)
            ]
            count = sum(int(m.sum()) for m in small if m is not None)
            everything = sum(int((d != 0).sum()) for d in look.direction if d is not None)
            if not count or count == everything:
                return None
            found = self.tried(small, look)
            if not isinstance(found, Look):
                return found
            look = found
        return None

    def tried(self, masks: Sequence[Array | None], like: Look, thoroughly: bool = False) -> Found | Look | None:
        """A look over some elements: FAIL if a longer one confirms it, the look if it saw something, else None.

        Where nothing is claimed, only `thoroughly` looks longer.
        """
        known = like.derivative if like.by_rows else None
        look = self.looker.look(masks, like=known)
        if look.decision is Decision.PASS:
            return look
        if look.decision is Decision.UNSEEN and not look.claim.size and not thoroughly:
            return None
        for _ in range(2):
            look = self.looker.look(masks, whole=True, floor=known)
            if look.kinked or look.decision is not Decision.FAIL:
                return look if look.decision is Decision.PASS else None
        return self.failed(look)

    # ----------------------------------------------------------------- where this point does not tell
    def elsewhere(self, look: Look, anyway: bool = False) -> Found:
        """What the gradient is worth where nothing is seen: it is looked at where the function responds.

        `anyway` also if the claim is not within the bar here.
        """
        for multiple in MULTIPLES if anyway or (look.seen.holds(look.claim.value) and not look.seen.noisy) else ():
            try:
                beside = self.point.beside([x * multiple for x in self.point.x])
                there = Looker(beside, self.looker.random, self.rtol, fine=True)
                if there.point.outputs.not_finite() is not None:
                    continue
                found = there.look()
                if found.decision is Decision.UNSEEN or found.kinked:
                    continue
                if found.decision is Decision.FAIL:
                    found = there.look(whole=True)
            except Exception:  # it is not asked to work elsewhere
                continue
            if found.decision is Decision.PASS:
                return Found(Status.PASS, marks=(f"flat here, right at {multiple:g} times the inputs",))
            if found.decision is Decision.FAIL and look.rejected is not None:
                return self.failed(look)  # the tape rejects it here, and both where something is seen
            if found.decision is Decision.FAIL:
                why = UNSEEN.format(f": at {multiple:g} times the inputs, where it responds, the gradient is wrong")
                cause = Diagnosis.of("GC121", why)
                return Found(Status.INCONCLUSIVE, why, diagnosis=(cause,), wrong_elsewhere=True, doubted=True)
        silent = not bool((look.derivative.around > 0).any()) and not look.seen.noisy
        if silent and not any(bool((g != 0).any()) for g in self.point.vjp(self.looker.even_weights())):
            return Found(Status.PASS, marks=("nothing changes here",))
        why = UNSEEN.format(self.point.raised)
        doubted = not look.seen.holds(look.claim.value)
        return Found(Status.INCONCLUSIVE, why, diagnosis=(Diagnosis.of("GC121", why),), doubted=doubted)

    def contradicted(self, look: Look) -> Found:
        """The differences exclude what both backward and the tape say: they are heard again beside the point."""
        direction = self.point.direction(self.looker.random)
        moved = [x if d is None else x + BESIDE * d for x, d in zip(self.point.x, direction, strict=True)]
        try:
            there = Looker(self.point.beside(moved), self.looker.random, self.rtol).look(whole=True).decision
        except Exception:  # it is not asked to work elsewhere
            there = Decision.UNSEEN
        tape = self.point.tape
        if there in (Decision.PASS, Decision.BY_TAPE) and tape is not None and tape.kinks():
            return self.failed(look)
        names = sorted({kink.operation.name for kink in tape.kinks()}) if tape is not None else []
        blamed = f" ({', '.join(names)} at a kink)" if names else ""
        why = (
            f"the differences give {look.seen.value:.6g} ± {look.seen.bar:.1g} where backward gives "
            f"{look.claim.value:.6g}, and the operations' own derivatives agree with backward{blamed}: "
            "the forward is noisier than its operations tell, or one has a wrong rule"
        )
        return Found(Status.INCONCLUSIVE, why, diagnosis=(Diagnosis.of("GC121", why),))

    def in_low_precision(self) -> Found | None:
        """FAIL if the backward in the inputs' own dtype strays from the one in float64, which was just found right."""
        wrong = wrong_in_low_precision(self.point, self.looker.random, self.rtol)
        if not wrong:
            return None
        names = tuple(self.problem.names[self.point.moved[n]] for n in sorted({entry.input for entry in wrong}))
        dtypes = sorted({str(self.problem.inputs[k].dtype) for k in self.point.moved})
        text = f"right in float64, wrong in {', '.join(dtypes)}"
        return Found(Status.FAIL, wrong=wrong, diagnosis=(Diagnosis.of("GC113", text, names),))
