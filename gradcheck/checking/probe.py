"""One probe of uᵀJ d: what backward claims, what the differences see, what the tape says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradcheck.checking.arrays import (
    EPS,
    FLOAT32,
    MANY,
    RANDOM_SIGNS,
    SMALLEST,
    Array,
    even_weights,
    module_of,
    root_of_squares,
    shares,
)
from gradcheck.checking.decide import POWER, Claim, Heard, Ruling, Seen, decide
from gradcheck.checking.derivative import BRIEF, Derivative, Interval, derivative_of
from gradcheck.checking.line import RATIO, USUAL, Scan
from gradcheck.checking.noise import from_close_values, noise_by_perturbation
from gradcheck.checking.point import Point
from gradcheck.checking.tape_comparison import Comparison, Masks, tape_diff

OTHERS, SLOPE_STEP = 2, RATIO ** BRIEF[-1]
"""Directions along which the outputs' sizes are seen, by one step each: of 1,000 outputs none is then small by chance
by more than a factor of 10 (along one direction, of 1,000)."""
PERTURBED_STEPS = BRIEF[1:-1]
"""The first steps where the noise is known from perturbations: three give two values that have to agree."""
ROUNDING = MANY * EPS
"""Of a projection, relative to the sum of its absolute terms."""
SMALL = math.sqrt(SMALLEST["float32"])
"""The size of a cotangent whose projection is finite where that of one of size 1 overflows, for float32 as well."""
LOW_PRECISION = MANY * FLOAT32
"""What a backward that nothing sees may be off by rounding to float32, relative to the sum of absolute terms, where the
inputs were given in float32 or less."""
STANDS_OUT = 1e6
"""An output counts in a projection as if its derivative were at least so many of its error bounds: all those lost in
noise together widen the bound by one millionth of their number."""
SMALLEST_SIZE = math.sqrt(SMALLEST["float64"])
"""Of an output in a projection: cotangents have to leave room for the derivatives."""


def within_range(gradients: Sequence[Array], direction: Sequence[Array | None]) -> bool:
    """Whether a projection of gradients on a direction does not overflow."""
    parts = (shares(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None)
    return all(bool(abs(part).sum() < np.inf) for part in parts)


@dataclass
class Probe:
    """What one direction d and one cotangent u show."""

    direction: list[Array | None]
    derivative: Derivative
    cotangent: Array
    gradients: list[Array]
    claim: Claim
    seen: Seen
    by_rows: bool
    """Whether the derivative is that of every output, not that of their weighted sum alone."""
    comparison: Comparison | None = None
    """What the tape says entry by entry, where it is a witness."""
    heard: Heard | None = None
    """What it says of the projection."""

    @property
    def kinked(self) -> bool:
        """Whether some output has a kink or a jump here."""
        return bool(self.derivative.kinked.any())

    @property
    def wrong(self) -> Sequence[Array] | None:
        """Per moved input, the entries that the tape rejects; None if there are none."""
        return None if self.comparison is None else self.comparison.wrong

    @property
    def by_tape(self) -> bool:
        """Whether the tape says what the gradient is here."""
        tells = {Ruling.BY_TAPE, Ruling.PASS if self.wrong is None else Ruling.FAIL}
        return self.heard is not None and self.decision in tells

    @property
    def decision(self) -> Ruling:
        """See `decide`."""
        return decide(self.claim, self.seen, self.heard)

    @property
    def unresolved(self) -> Array:
        """The outputs of which an error of `POWER` would not have shown, though they are not constant."""
        found = self.derivative
        size = np.maximum(abs(found.both.value), found.nearby)
        return ~(found.both.bar <= POWER * size) & ((size > 0) | ~(found.both.bar < np.inf))

    @property
    def error(self) -> float:
        """|claim − value| over the error bound."""
        difference = abs(self.claim.value - self.seen.value)
        if not difference < np.inf:
            return float("inf")
        bar = self.seen.bar + self.seen.allowed
        return difference / bar if bar else float("inf") if difference else 0.0


@dataclass
class Prober:
    """Probes at a point, with one source of randomness and what the user allows."""

    point: Point
    random: np.random.Generator
    rtol: float
    claims: list[tuple[Array, list[Array]]] = field(default_factory=list)
    """Random cotangents that nothing was compared with yet, and the gradients that backward gives for them."""

    def at(self, moved: Sequence[Array]) -> Prober:
        """Probes at another point."""
        return Prober(self.point.beside(moved), self.random, self.rtol)

    def claimed(self, without: Array | None = None) -> tuple[Array, list[Array]]:
        """A random cotangent of one size over all outputs but some, and the gradients that backward gives for it."""
        if self.claims and without is None:
            return self.claims.pop()
        cotangent = even_weights(self.point.outputs.vector, self.random)
        cotangent = cotangent if without is None else cotangent * ~without
        return cotangent, self.point.vjp(cotangent)

    def probe(
        self,
        masks: Masks | None = None,
        *,
        whole: bool = False,
        like: Probe | None = None,
        by_rows: bool = False,
        without: Array | None = None,
    ) -> Probe:
        """A probe along a random direction over the elements in `masks`, or over all.

        Args:
            whole: steps of all sizes, where the first ones were not enough.
            like: a probe along another direction, whose noise is here as well.
            by_rows: a derivative for every output, also where there is a tape.
            without: outputs that take no part, as a mask.
        """
        point, direction = self.point, self.point.direction(self.random, masks)
        by_rows = point.by_rows and (by_rows or point.tape is None)
        if not by_rows:
            cotangent, gradients = self.claimed(without)
            if not within_range(gradients, direction):
                cotangent = cotangent * SMALL
                gradients = point.vjp(cotangent)
            scan = Scan(point.line(direction, cotangent))
            derivative = self.scanned(scan, self.noise(scan, whole), whole)
            return self.compared(direction, derivative, cotangent, gradients, by_rows, masks)
        scan = Scan(point.line(direction))
        noise = self.noise(scan, whole) if like is None else like.derivative.noise
        derivative = self.scanned(scan, noise, whole)
        cotangent = equal_weights(derivative.both, self.slopes(masks), self.random)
        if not bool(cotangent.any()):  # of no output is anything seen: a cotangent of 0 would have everyone agree
            cotangent = even_weights(point.outputs.vector, self.random)
        cotangent = cotangent * ~derivative.kinked
        if without is not None:
            cotangent = cotangent * ~without
        return self.compared(direction, derivative, cotangent, point.vjp(cotangent), by_rows, masks)

    def along(self, direction: list[Array | None], like: Probe, whole: bool) -> Probe:
        """A probe along a given direction, with the cotangent and the noise of another one."""
        scan = Scan(self.point.line(direction, None if like.by_rows else like.cotangent))
        derivative = self.scanned(scan, like.derivative.noise, whole)
        masks = [None if d is None else d != 0 for d in direction]
        return self.compared(direction, derivative, like.cotangent, like.gradients, like.by_rows, masks)

    def noise(self, scan: Scan, whole: bool) -> Array:
        """The rounding error of every row."""
        line, point = scan.line, self.point
        noise = None
        if point.tape is not None or not point.opaque:
            noise, ends = noise_by_perturbation(point, line.direction, RATIO ** PERTURBED_STEPS[-1], self.random)
            scan.take(PERTURBED_STEPS[-1], *ends)
        if noise is None or point.opaque:
            return from_close_values(line, whole, point.epsilon)
        if line.weights is None:
            return noise
        terms = abs(line.weights) * noise
        total = min(float(terms.sum()), RANDOM_SIGNS * root_of_squares(terms))  # the signs are the cotangent's
        return np.full_like(terms[:1], total if total == total else np.inf)

    def scanned(self, scan: Scan, noise: Array, whole: bool) -> Derivative:
        """The derivative by the first steps; by all of them if it shall be `whole`."""
        scan.extend(USUAL if whole else BRIEF if self.point.opaque else PERTURBED_STEPS)
        return derivative_of(scan, noise)

    def slopes(self, masks: Masks | None) -> Array:
        """How large the slope of every output is along `OTHERS` more directions."""
        xp, largest = module_of(self.point.outputs.vector), abs(self.point.outputs.vector) * 0
        for _ in range(OTHERS):
            change = self.point.line(self.point.direction(self.random, masks)).at(SLOPE_STEP).size
            largest = xp.maximum(largest, xp.where(xp.isfinite(change), change / SLOPE_STEP, 0.0))
        return largest

    def compared(
        self,
        direction: list[Array | None],
        derivative: Derivative,
        cotangent: Array,
        gradients: list[Array],
        by_rows: bool,
        masks: Masks | None,
    ) -> Probe:
        """What backward claims, the differences see and the tape says for this cotangent."""
        parts = [shares(gradients[k], d) for k, d in enumerate(direction) if d is not None]
        claim = Claim(
            sum(float(part.real.sum()) for part in parts),
            sum(float(abs(part).sum()) for part in parts),
            math.hypot(*(root_of_squares(part) for part in parts)),
        )
        u = cotangent if by_rows else np.ones_like(cotangent[:1])
        seen = self.seen(derivative, u, claim)
        probe = Probe(direction, derivative, cotangent, gradients, claim, seen, by_rows)
        if self.point.witnessed:
            probe.comparison = tape_diff(self.point, cotangent, gradients, masks, self.rtol)
            probe.heard = probe.comparison.heard(direction)
            if probe.heard is not None and not probe.heard.rejects and probe.heard.of_claim < np.inf:
                probe.seen = replace(seen, allowed=seen.allowed + probe.heard.of_claim)
        return probe

    def seen(self, derivative: Derivative, u: Array, claim: Claim) -> Seen:
        """What the differences say of the rows weighted by `u`."""
        used, both, weight = u != 0, derivative.both, abs(u)

        def total(values: Array) -> float:
            return float(np.where(used, values, 0.0).sum())

        def root(values: Array) -> float:
            return root_of_squares(np.where(used, values, 0.0))

        value = total(u * both.value)
        bar = min(total(weight * both.bar), RANDOM_SIGNS * root(weight * both.bar))
        if np.isfinite(claim.size):
            bar += ROUNDING * claim.size
        if not bool(used.any()):
            bar = np.inf
        allowed = self.rtol * max(abs(value), abs(claim.value))
        if self.point.opaque and self.point.may_round:
            allowed += LOW_PRECISION * claim.size
        gap = root(weight * derivative.gap)  # there is no kink in all outputs at once
        return Seen(value, bar, root(weight * derivative.nearby), gap, allowed if allowed < np.inf else 0.0)


def equal_weights(found: Interval, slopes: Array, random: np.random.Generator) -> Array:
    """Random signs and magnitudes under which every output counts alike, whatever the size of its derivative.

    Args:
        found: the derivative of every output along one direction.
        slopes: how large the slope of every output is along others. A derivative that is small along one direction by
            chance would otherwise drown the rest, with its rounding.
    """
    known = abs(found.bar) < np.inf
    size = np.maximum(np.maximum(abs(found.value), slopes), STANDS_OUT * np.where(known, found.bar, 0.0))
    weight = np.where(known, 1 / np.maximum(np.where(size > 0, size, 1.0), SMALLEST_SIZE), 0.0)
    return even_weights(slopes, random) * weight
