"""One look at uᵀJ d from all sides: what backward claims, what the differences see, what the tape says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gradcheck.checker.beside_tape import ROUNDING, BesideTape, beside_tape
from gradcheck.checker.cotangents import equal_weights, even_weights
from gradcheck.checker.decide import Claim, Decision, Heard, Seen, decide
from gradcheck.checker.low_precision import allowances, most_allowed
from gradcheck.checker.point import Point
from gradcheck.numeric.arrays import EPS, FLOAT32, RANDOM_SIGNS, Array, module_of, root_of_squares, shares
from gradcheck.numeric.derivative import BRIEF, Derivative, Interval, derivative_of
from gradcheck.numeric.line import LARGE, RATIO, USUAL, Scan, moved
from gradcheck.numeric.noise import OF_FLOAT32, ON_THE_WAY, measured, stairs, with_hidden
from gradcheck.witness.tape import Tape

EXCLUDED = (Decision.FAIL, Decision.CONTRADICTION)
"""Decisions by which the differences exclude the claim."""
OTHERS, SLOPE_STEP = 2, RATIO ** BRIEF[-1]
"""Directions along which the outputs' sizes are seen, by one step each: of 1,000 outputs none is then small by chance
by more than a factor of 10 (along one direction, of 1,000)."""
NEGLIGIBLE = 1e-9
"""An output whose noise is such a share of the largest output needs no derivative of its own
(a GELU at -8 is all rounding)."""
TAPE_STEPS = range(-8, -4)
"""The first look where the noise is known: four steps give three values that have to agree."""
AGAIN_STEPS = range(-8, -5)
"""A look along another direction where the noise is known already."""


@dataclass
class Look:
    """What one direction d and one cotangent u show."""

    direction: list[Array | None]
    derivative: Derivative
    cotangent: Array
    gradients: list[Array]
    claim: Claim
    seen: Seen
    by_rows: bool
    """Whether the derivative is that of every output, not that of their weighted sum alone."""
    tape: BesideTape | None = None
    """What the tape says entry by entry, where it is a witness and was asked."""
    heard: Heard | None = None
    """What it says of the projection."""

    @property
    def kinked(self) -> bool:
        """Whether some output has a kink or a jump here, or too near to tell."""
        return bool((self.derivative.kinked | self.derivative.unclear).any())

    @property
    def rejected(self) -> list[Array] | None:
        """Per moved input, what the tape rejects; None if that is nothing."""
        return None if self.tape is None else self.tape.rejected

    @property
    def decision(self) -> Decision:
        """See `decide`."""
        return decide(self.claim, self.seen, self.heard)

    @property
    def error(self) -> float:
        """|claim − value| over the bar."""
        difference = abs(self.claim.value - self.seen.value)
        if not difference < np.inf:
            return float("inf")
        bar = self.seen.bar + self.seen.allowed
        return difference / bar if bar else float("inf") if difference else 0.0


@dataclass
class Looker:
    """Looks at a point, with one source of randomness and what the user allows."""

    point: Point
    random: np.random.Generator
    rtol: float
    fine: bool = False
    """Whether whole scans take the finest structure for the function's own; else it is rounding."""
    slopes_over: tuple[Sequence[Array | None] | None, Array] | None = None
    """The masks that slopes were last taken over, and these slopes."""
    in_float32: bool = False
    """Whether the function was seen to compute in float32."""
    claims: list[tuple[Array, list[Array]]] = field(default_factory=list)
    """Random cotangents that nothing was looked at with yet, and the gradients that backward gives for them."""

    def at(self, moved: Sequence[Array], fine: bool = False) -> Looker:
        """Looks at another point, knowing what is known of the function."""
        return Looker(self.point.beside(moved), self.random, self.rtol, fine, in_float32=self.in_float32)

    def look(
        self,
        masks: Sequence[Array | None] | None = None,
        *,
        whole: bool = False,
        like: Derivative | None = None,
        size: float = 1.0,
        by_rows: bool = False,
        without: Array | None = None,
        with_tape: bool = True,
    ) -> Look:
        """A look along a random direction over the elements in `masks`, or over all.

        Args:
            whole: a scan over all steps, where a first look was not enough.
            like: the derivative along another direction, whose noise is here as well, though it may not show: a brief
                look takes it for its own, and three steps do.
            size: of the cotangent.
            by_rows: a derivative for every output, also where the tape tells the noise of a weighted sum.
            without: outputs that take no part, as a mask; of a look by rows.
            with_tape: whether to ask the tape as well.
        """
        point = self.point
        direction = point.direction(self.random, masks)
        by_rows = point.by_rows and (by_rows or point.tape is None)
        if by_rows:
            scan = Scan(point.line(direction))
            noise = like.noise if like is not None and not whole else self.noise(scan, whole)
            if like is not None:
                noise = module_of(noise).maximum(noise, like.noise)
            derivative = self.scanned(scan, noise, whole, AGAIN_STEPS if like is not None else BRIEF)
            cotangent = size * equal_weights(derivative.both, self.slopes(masks), self.random)
            if not bool(cotangent.any()):  # of no output is anything seen: a cotangent of 0 would have everyone agree
                cotangent = size * even_weights(point.outputs.vector, self.random)
            cotangent *= ~(derivative.kinked | derivative.unclear)
            if without is not None:
                cotangent *= ~without
            gradients = point.vjp(cotangent)
        else:
            cotangent, gradients = self.claimed(size) if point.tape is not None else self.weighted(size, masks)
            derivative = self.of_weighted_sum(direction, cotangent, whole)
        look = self.compared(direction, derivative, cotangent, gradients, by_rows)
        return self.with_allowance(self.with_tape(look, masks) if with_tape else look)

    def along(self, direction: list[Array | None], like: Look, whole: bool) -> Look:
        """A look along a given direction, with the cotangent and the noise of another look."""
        scan = Scan(self.point.line(direction, None if like.by_rows else like.cotangent))
        noise = like.derivative.noise
        if whole:  # a single element shows stairs that are lost among others
            noise = module_of(noise).maximum(noise, stairs(scan))
        derivative = self.scanned(scan, noise, whole, BRIEF)
        masks = [None if d is None else d != 0 for d in direction]
        look = self.compared(direction, derivative, like.cotangent, like.gradients, like.by_rows)
        return self.with_allowance(self.with_tape(look, masks))

    def with_allowance(self, look: Look) -> Look:
        """The claim excluded only beyond its own rounding, which is measured where it could change the decision."""
        size = min(look.claim.size, RANDOM_SIGNS * look.claim.root)
        if look.decision not in EXCLUDED or not np.isfinite(size):
            return look
        at_most = replace(look.seen, allowed=look.seen.allowed + most_allowed(self.point, size))
        if decide(look.claim, at_most, look.heard) in EXCLUDED:
            return look
        for more in allowances(self.point, look.direction, look.cotangent, look.gradients, size):
            look.seen = replace(look.seen, allowed=look.seen.allowed + more)
            if look.decision not in EXCLUDED:
                break
        return look

    @cached_property
    def floor(self) -> float:
        """The rounding of numbers on the way that may hide in every output."""
        return ON_THE_WAY * EPS * self.point.line([]).on_the_way

    def noise(self, scan: Scan, whole: bool) -> Array:
        """The rounding error of every row, measured; for a whole scan from both sides, with what close values hide.

        Where there is a tape, it knows how much can hide.
        """
        xp, tape = module_of(scan.line.outputs), self.point.tape
        found = measured(scan, both_sides=whole)
        if whole:
            hidden, sure = with_hidden(scan, found)
            if tape is not None:
                total = self.tape_noise(tape, xp.ones_like(self.point.outputs.vector))
                found = xp.minimum(hidden, xp.maximum(found, total))
            else:
                self.in_float32 |= bool((sure > 0).any())
                found = xp.maximum(sure, found if self.fine else xp.maximum(hidden, self.floor))
        # what stands still between close values as well
        coarsest = FLOAT32 if self.in_float32 else EPS if tape is None else tape.coarsest
        return xp.maximum(found, coarsest * scan.line.sizes)

    def scanned(self, scan: Scan, noise: Array, whole: bool, brief: Sequence[int]) -> Derivative:
        """The derivative by the brief steps; by all of them if it shall be `whole`."""
        scan.extend(USUAL if whole else brief)
        found = derivative_of(scan, noise)
        if whole and bool((~found.resolved & ~found.kinked).any()):
            scan.extend(LARGE)
            found = derivative_of(scan, noise)
        if self.in_float32:  # of a change as well, where the function itself is 0
            both = found.both
            found = replace(found, both=Interval(both.value, both.bar + OF_FLOAT32 * abs(both.value)))
        return found

    def of_weighted_sum(self, direction: list[Array | None], cotangent: Array, whole: bool) -> Derivative:
        """The derivative of the weighted outputs, its noise from the tapes at the point and at both ends of a step, as
        at the point itself numbers may cancel; measured where these cannot tell it."""
        xp, scan = module_of(cotangent), Scan(self.point.line(direction, cotangent))
        reach = RATIO ** TAPE_STEPS[-1]
        noise = self.tape_noise(self.point.tape, cotangent)
        if np.isfinite(noise):  # one further tape at a time is held
            ends = (self.point.at(moved(self.point.x, direction, t)) for t in (reach, -reach))
            noise = max(noise, *(self.tape_noise(self.point.recorded(there), cotangent) for there in ends))
        if not np.isfinite(noise):
            return self.scanned(scan, self.noise(scan, whole), whole, BRIEF)
        return self.scanned(scan, xp.asarray([noise]), whole, TAPE_STEPS)

    def tape_noise(self, tape: Tape | None, cotangent: Array) -> float:
        """The rounding error of the weighted outputs, as a tape tells it; inf where it does not."""
        noise = np.inf if tape is None else tape.noise(self.point.outputs.split(cotangent))
        return noise if noise == noise else np.inf

    def claimed(self, size: float = 1.0) -> tuple[Array, list[Array]]:
        """A random cotangent of one size over all outputs, and the gradients that backward gives for it."""
        if self.claims and size == 1.0:
            return self.claims.pop()
        cotangent = size * even_weights(self.point.outputs.vector, self.random)
        return cotangent, self.point.vjp(cotangent)

    def weighted(self, size: float, masks: Sequence[Array | None] | None) -> tuple[Array, list[Array]]:
        """A random cotangent by which every output counts alike, as far as it stands out of rounding."""
        slopes = self.slopes(masks)
        known = Interval(slopes, 0 * slopes + self.floor / SLOPE_STEP)
        cotangent = size * equal_weights(known, slopes, self.random)
        return cotangent, self.point.vjp(cotangent)

    def slopes(self, masks: Sequence[Array | None] | None) -> Array:
        """How large the slope of every output is along `OTHERS` more directions; taken once for the same elements."""
        if self.slopes_over is None or self.slopes_over[0] is not masks:
            xp, largest = module_of(self.point.outputs.vector), abs(self.point.outputs.vector) * 0
            for _ in range(OTHERS):
                change = self.point.line(self.point.direction(self.random, masks)).at(SLOPE_STEP).size
                largest = xp.maximum(largest, xp.where(xp.isfinite(change), change / SLOPE_STEP, 0.0))
            self.slopes_over = masks, largest
        return self.slopes_over[1]

    def compared(
        self,
        direction: list[Array | None],
        derivative: Derivative,
        cotangent: Array,
        gradients: list[Array],
        by_rows: bool,
    ) -> Look:
        """What backward claims and the differences see for this cotangent."""
        parts = [shares(gradients[k], d) for k, d in enumerate(direction) if d is not None]
        claim = Claim(
            sum(float(part.real.sum()) for part in parts),
            sum(float(abs(part).sum()) for part in parts),
            math.hypot(*(root_of_squares(part) for part in parts)),
        )
        u = cotangent if by_rows else module_of(cotangent).asarray([1.0])
        return Look(direction, derivative, cotangent, gradients, claim, self.seen(derivative, u, claim), by_rows)

    def with_tape(self, look: Look, masks: Sequence[Array | None] | None = None) -> Look:
        """The same with what the tape says, where it is a witness: it rejects entries in `masks` alone."""
        if self.point.witnessed:
            look.tape = beside_tape(self.point, look.cotangent, look.gradients, masks, self.rtol)
            look.heard = look.tape.heard(look.direction, self.point.scales)
            look.seen = replace(look.seen, allowed=look.seen.allowed + look.tape.rounded(look.direction))
        return look

    def seen(self, derivative: Derivative, u: Array, claim: Claim) -> Seen:
        """What the differences say of the rows weighted by `u`."""
        xp, used = module_of(u), u != 0
        both, weight = derivative.both, abs(u)

        def total(values: Array) -> float:
            return float(xp.where(used, values, 0.0).sum())

        def root(values: Array) -> float:
            return root_of_squares(xp.where(used, values, 0.0))

        value = total(u * both.value)
        bar = min(total(weight * both.bar), RANDOM_SIGNS * root(weight * both.bar))
        if np.isfinite(claim.size):
            bar += ROUNDING * claim.size
        if not bool(used.any()):
            bar = np.inf
        allowed = self.rtol * max(abs(value), abs(claim.value))
        largest = float(abs(self.point.outputs.vector).max())
        negligible = largest * (OF_FLOAT32 if self.in_float32 else NEGLIGIBLE)
        lost = ~(xp.isfinite(both.bar) | (derivative.blind & (derivative.noise <= negligible)))
        granted = OF_FLOAT32 * max(1.0, largest) if self.in_float32 else self.floor
        noisy = bool((lost & derivative.blind & (derivative.noise > 2 * granted)).any())
        slopes = derivative.nearby if claim.size else derivative.stepped  # of steps, 0 is the gradient
        gap = root(weight * derivative.gap)  # there is no kink in all outputs at once
        return Seen(
            value, bar, root(weight * slopes), gap, bool(lost.any()), noisy, allowed if allowed < np.inf else 0.0
        )
