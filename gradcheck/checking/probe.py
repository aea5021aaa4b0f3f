"""One probe of uᵀJ d: the estimates by backward (the claim), by differences and by the tape, and
the decision (`decide`).

| the differences | the tape (complete, independent) | decision |
|---|---|---|
| the claim inside, with power | agrees, or not used | PASS |
| the tape inside, or no power | rejects the claim | FAIL |
| the claim outside, with power or far | rejects, is not used, or is inside itself | FAIL |
| the claim outside, with power or far | agrees with the claim, and is outside too | CONTRADICTION |
| no power | agrees | BY_TAPE: PASS, marked |
| no power | not used | UNSEEN |

"Far" means off by `FAR_BARS` bounds, which is evidence even without resolution. A tape that the
differences exclude, by more than an unnoticed kink explains, is not evidence against a gradient
that they confirm: at a kink an operation's rule gives one of many valid gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

import numpy as np

from gradcheck.backends.base import Array, Cotangents
from gradcheck.checking.differences import (
    BRIEF,
    FAR_BARS,
    RATIO,
    USUAL,
    Derivative,
    Direction,
    Interval,
    Line,
    derivative_of,
    from_close_values,
)
from gradcheck.checking.point import (
    Entry,
    Masks,
    Point,
    directional_derivative,
    elements_of,
    even_weights,
    parts_of,
)
from gradcheck.checking.precision import (
    CLEAR,
    EPS,
    FEW,
    FLOAT32,
    MANY,
    RANDOM_SIGNS,
    SMALLEST,
    Measured,
    distance,
    flat,
    of_each_largest,
    unflatten,
)
from gradcheck.checking.reasons import VerdictReason
from gradcheck.result import Diagnosis, Status

POWER = 1e-2
"""The differences have power if an error of 1 % of the claim would have shown."""
MOST_DRAWS = 8
"""The most perturbed runs until a disagreement counts. Fewer than one check in 1e15 has an entry
whose responses are all small by chance.
"""
MOST_PROBES = 3
"""The number of probes over all steps if the first ones are not conclusive: along some directions
nothing is visible.
"""
OTHERS, SLOPE_STEP = 2, RATIO ** BRIEF[-1]
"""The number of directions along which the sizes of the outputs' derivatives are sampled, by one
step each: of 1,000 outputs none is then too small by chance by more than a factor of 10 (with one
direction, a factor of 1,000).
"""
PERTURBED_STEPS = BRIEF[1:-1]
"""The first steps if the noise is known from perturbations: three steps give two values that must
agree.
"""
ROUNDING = MANY * EPS
"""The rounding error of a projection, relative to the sum of its absolute terms."""
SMALL = math.sqrt(SMALLEST["float32"])
"""The size of a cotangent to use if the projection for size 1 overflows; small enough for float32
too.
"""
LOW_PRECISION = MANY * FLOAT32
"""The error that rounding to float32 may cause in a backward that is not recorded, relative to the
sum of absolute terms, if the inputs were given in float32 or less.
"""
STANDS_OUT = 1e6
"""An output counts in a projection as if its derivative were at least this many of its error
bounds: all outputs lost in noise together widen the bound by one millionth of their number.
"""
NEAREST = RATIO ** USUAL[0]
"""The step at which both sides of a kink are sampled if the differences do not resolve it."""
SAME_PIECE = 1e-5
"""The largest difference between the slopes of one smooth piece over this step, relative to the
larger.
"""
SMALLEST_SIZE = math.sqrt(SMALLEST["float64"])
"""The smallest size of an output in a projection: cotangents must leave room for the
derivatives.
"""


# ------------------------------------------------------- the decision
class Ruling(Enum):
    """The decision on one probe; see the module's docstring."""

    PASS = auto()
    BY_TAPE = auto()
    FAIL = auto()
    CONTRADICTION = auto()
    UNSEEN = auto()


@dataclass(frozen=True)
class DifferenceEstimate:
    """The estimate of uᵀJ d by differences, and its error bound."""

    value: float
    bar: float
    scale: float
    """The size of the derivative nearby: |uᵀJ d| within a thousandth of the inputs' scale. A
    stationary point is recognised by comparison with it.
    """
    gap: float = math.inf
    """How far apart the slopes on both sides may be: the size of a kink that would not have
    shown.
    """
    allowed: float = 0.0
    """The further error that backward may have: its own rounding, and the user's tolerance. It does
    not lower the resolution.
    """

    def holds(self, derivative: float, bar: float = 0.0) -> bool:
        """Whether a derivative lies within the bound, widened by the derivative's own bound."""
        return abs(derivative - self.value) <= self.bar + self.allowed + bar

    def excludes(self, derivative: float) -> bool:
        """Whether a derivative lies outside of the error bound, and outside of the range that the
        two sides allow.
        """
        return not abs(derivative - self.value) <= self.bar + self.gap + self.allowed


@dataclass(frozen=True)
class BackwardEstimate:
    """Backward's estimate of uᵀJ d."""

    value: float
    size: float
    """The sum of the absolute values of the projection's terms."""
    root: float = math.inf
    """The root of the sum of their squares, if known: the expected size of the projection if their
    signs are random.
    """
    spread: float = 0.0
    """How far the projection may be off because results differ from run to run."""


@dataclass(frozen=True)
class TapeEstimate:
    """The tape's estimate of uᵀJ d, and whether the tape rejects backward's gradient in some entry
    by more than the rounding of both.
    """

    value: float
    rejects: bool
    bar: float = 0.0
    """The error bound of the value by rounding."""
    of_claim: float = 0.0
    """The error bound of backward's value by rounding."""


def decide(
    claim: BackwardEstimate, differences: DifferenceEstimate, tape: TapeEstimate | None
) -> Ruling:
    """The decision on one set of estimates, by the table in the module's docstring."""
    size = max(abs(differences.value), differences.scale, min(claim.size, claim.root))
    known = math.isfinite(differences.bar) and math.isfinite(differences.value)
    power = known and differences.bar <= POWER * size
    if tape is not None and not math.isfinite(tape.value):
        tape = None
    # next to a kink a central difference is off by up to the gap, compared with tape or claim
    if tape is not None and tape.rejects and not (power and differences.excludes(tape.value)):
        return Ruling.FAIL
    error = abs(claim.value - differences.value)
    if (
        known
        and differences.excludes(claim.value)
        and (power or not error <= FAR_BARS * differences.bar + differences.allowed)
    ):
        agrees = (
            tape is not None and not tape.rejects and not differences.holds(tape.value, tape.bar)
        )
        return Ruling.CONTRADICTION if agrees else Ruling.FAIL
    if power and differences.holds(claim.value):
        return Ruling.PASS
    return Ruling.BY_TAPE if tape is not None and not tape.rejects else Ruling.UNSEEN


def random_sum(bounds: Array) -> float:
    """A bound on a sum of numbers with random signs, given a bound of each number."""
    return min(float(bounds.sum()), RANDOM_SIGNS * root_of_squares(bounds))


def root_of_squares(terms: Array) -> float:
    """The root of the sum of squares, even if the squares would leave the range of float64."""
    sizes = abs(terms)
    unit = float(np.maximum.reduce(sizes, axis=None, initial=0.0))
    if not 0 < unit < np.inf:
        return unit
    sizes /= unit
    sizes *= sizes
    return unit * math.sqrt(float(np.add.reduce(sizes, axis=None)))


# ------------------------------------------ the claim compared with the tape
@dataclass
class Comparison:
    """The claimed gradients for one cotangent compared with the tape's; everything per moved
    input.
    """

    claimed: Sequence[Array]
    taped: Sequence[Array]
    bounds: Sequence[Array]
    """The largest difference between the two that rounding explains; inf if no digit is known;
    zeros if they agree without a measurement.
    """
    of_claim: Sequence[Array]
    of_tape: Sequence[Array]
    """The absolute error bound of each by its own rounding; finite even if no digit is known."""
    wrong: Sequence[Array] | None = None
    """The entries in which both differ by more than that; None if there are none."""
    unsure: Sequence[Array] | None = None
    """The entries in which both differ by less, but an error of `POWER` would not show; None if
    there are none.
    """
    mostly_rounding: bool = False
    """Whether more than half of the whole gradient may be rounding, as in a chaotic recurrence."""

    @property
    def rounding(self) -> list[Array]:
        """The largest absolute difference of both by rounding, finite even if no digit is known: a
        number that cancels to 0 has no digits, but a small error.
        """
        return [a + b for a, b in zip(self.of_claim, self.of_tape, strict=True)]

    @property
    def blank(self) -> bool:
        """Whether some input's gradient has no entry with a known digit."""
        rows = zip(self.claimed, self.taped, self.bounds, strict=True)
        return any(c.size and (b >= np.fmax(abs(c), abs(t))).all() for c, t, b in rows)

    def tape_estimate(self, direction: Masks) -> TapeEstimate | None:
        """The tape's estimate of the projection on a direction; None if its gradient is mostly
        rounding.
        """
        if self.wrong is None and self.mostly_rounding:
            return None
        value = directional_derivative(self.taped, direction)
        bar, of_claim = (
            sum(float(abs(share).sum()) for share in parts_of(bounds, direction))
            for bounds in (self.of_tape, self.of_claim)
        )
        return TapeEstimate(value, self.wrong is not None, bar, of_claim)


def unmeasured_tolerance(point: Point, claimed: Array, taped: Array, allowed: Array) -> Array:
    """The allowed difference of both without a measurement: relative to their size, plus the user's
    tolerance; 0 if one is not finite.
    """
    tolerance = MANY * point.epsilon * np.maximum(abs(claimed), abs(taped)) + allowed
    return np.where(np.isfinite(tolerance), tolerance, 0.0)


def tape_diff(
    point: Point, cotangent: Array, claimed: Sequence[Array], masks: Masks | None, rtol: float
) -> Comparison:
    """Compare the gradients `claimed` for a cotangent with the tape's, entry by entry.

    Entries outside of `masks`, and those that the point keeps fixed, cannot be wrong.
    """
    taped = point.by_tape(cotangent)
    # A vector has the entries of all inputs.
    claim, right, sizes = flat(claimed), flat(taped), of_each_largest(taped)
    error, allowed = distance(claim, right), rtol * sizes
    doubted = ~(error <= unmeasured_tolerance(point, claim, right, allowed)) & flat(
        point.free_elements(masks)
    )
    if not doubted.any():
        none = [0 * abs(t) for t in taped]
        return Comparison(claimed, taped, bounds=none, of_claim=none, of_tape=none)

    scales = flat(point.scales)
    random, parts = np.random.default_rng(point.spent.vjps), point.outputs.split(cotangent)
    assert point.tape is not None
    # The rounding of backward is measured unless that of the tape explains the rest: a gradient
    # that agrees with a tape with nearly all digits is as exact as the tape.
    exact = CLEAR * MANY * point.epsilon * sizes
    exact = np.minimum(exact, POWER * np.fmax(abs(claim), abs(right)))
    measured = [point.measured_tape(point.tape, parts, taped, random)]
    unconverged = unconverged_bounds(point, parts, right, sizes)
    for _ in range(MOST_DRAWS):
        for quantity in measured:
            quantity.draw()
        beside = unperturbed_rounding(point, measured, sizes) + unconverged
        rounding = measured[0].bounds()
        for of_claim in measured[1:]:
            # a claim that is not finite has no digits to lose: only the tape may be unknown there
            rounding = np.where(np.isfinite(claim), of_claim.bounds(), 0.0) + rounding
        bounds = np.where(doubted, rounding + allowed, 0.0) + beside
        wrong = doubted & ~(error <= bounds)
        if len(measured) == 1 and (wrong | (doubted & ~(bounds <= exact))).any():
            measured.append(point.measured_claim(parts, random))
        # after one draw, only a large disagreement counts
        elif not (wrong & (error <= CLEAR * bounds)).any():
            break
    unsure = doubted & ~wrong & (bounds > POWER * np.fmax(abs(claim), abs(right)))
    weights = scales * np.where(np.isfinite(right), abs(right), 0.0)
    total = float(weights.sum())
    of_rounding = float(np.minimum(weights, scales * bounds).sum())
    return Comparison(
        claimed,
        taped,
        bounds=unflatten(bounds, taped),
        of_claim=unflatten(measured[-1].bounds(absolute=True) + beside, taped),
        of_tape=unflatten(measured[0].bounds(absolute=True), taped),
        wrong=none_if_all_false(unflatten(wrong, taped)),
        unsure=none_if_all_false(unflatten(unsure, taped)),
        mostly_rounding=not (total and 2 * of_rounding <= total),
    )


def unperturbed_rounding(point: Point, measured: Sequence[Measured], sizes: Array) -> Array:
    """Bounds, per entry, of the rounding that perturbations do not measure.

    Unobserved operations of a backward may round by epsilons of the largest entry. If the layer was
    given inputs of fewer digits, or casts to such dtypes, constants on either side (a table, 0.1)
    may be off by float32's epsilon; that changes the terms that an entry sums. The size of these
    terms is the entry's response to perturbations.

    Args:
        sizes: per entry, the magnitude of the largest entry of its input.
    """
    unobserved = MANY * point.epsilon if point.runs.leaks else 0.0
    if not (point.casts_left_out or point.may_round):
        return unobserved * sizes
    return unobserved * sizes + FEW * FLOAT32 * sum(quantity.terms() for quantity in measured)


def unconverged_bounds(point: Point, parts: Cotangents, taped: Array, sizes: Array) -> Array:
    """Error bounds, per entry, of the tape's gradients if an iteration was stopped: the change that
    one more step makes.

    If the change affects more than half of an entry's digits, the iteration has not converged, and
    no error is allowed.
    """
    later = point.one_step_later(parts)
    if later is None:
        return 0.0 * sizes
    change = distance(flat(later), taped)
    return MANY * np.where(change <= math.sqrt(point.given_epsilon) * sizes, change, 0.0)


def none_if_all_false(masks: Iterable[Array]) -> list[Array] | None:
    """The masks; None if they contain no element."""
    masks = list(masks)
    return masks if any(mask.any() for mask in masks) else None


# ------------------------------------------------------------ a probe
@dataclass
class Probe:
    """Estimates for one direction d and one cotangent u."""

    direction: Direction
    derivative: Derivative
    cotangent: Array
    gradients: list[Array]
    claim: BackwardEstimate
    differences: DifferenceEstimate
    by_rows: bool
    """Whether the derivative of every output was estimated, not only that of their weighted sum."""
    comparison: Comparison | None
    """The tape's comparison entry by entry, if it is independent evidence."""
    decision: Ruling
    """See `decide`."""

    @property
    def kinked(self) -> bool:
        """Whether some output has a kink or a jump here."""
        return bool(self.derivative.kinked.any())

    @property
    def wrong(self) -> Sequence[Array] | None:
        """The entries that the tape rejects, per moved input; None if there are none."""
        return None if self.comparison is None else self.comparison.wrong

    @property
    def conclusive(self) -> bool:
        """Whether the differences and the tape, if there is one, agree."""
        return self.decision is (Ruling.PASS if self.wrong is None else Ruling.FAIL)

    @property
    def is_wrong(self) -> bool:
        """Whether the decision is a FAIL that no kink explains."""
        return self.decision is Ruling.FAIL and not self.kinked

    @property
    def unresolved(self) -> Array:
        """A mask of the outputs in which an error of `POWER` would not have shown although they are
        not constant.
        """
        derivative = self.derivative
        size = np.maximum(abs(derivative.value), derivative.nearby)
        return ~(derivative.bar <= POWER * size) & ((size > 0) | ~(derivative.bar < np.inf))

    @property
    def error(self) -> float:
        """|claim − value| over the error bound."""
        difference, bar = (
            abs(self.claim.value - self.differences.value),
            self.differences.bar + self.differences.allowed,
        )
        if not difference < np.inf or not bar:
            return float("inf") if difference else 0.0
        return difference / bar


@dataclass
class Prober:
    """Makes probes at a point, with one random generator and the user's `rtol`."""

    point: Point
    random: np.random.Generator
    rtol: float
    claims: list[tuple[Array, list[Array]]] = field(default_factory=list)
    """Random cotangents that were not compared with anything yet, and backward's gradients for
    them.
    """
    noises: dict[bool, Array] = field(default_factory=dict)
    """The rounding error of every output, keyed by whether it was measured for a scan over all
    steps.
    """

    def draw_claim(self, without: Array | None = None) -> tuple[Array, list[Array]]:
        """A random cotangent of equal size over all outputs except some, and backward's gradients
        for it.
        """
        if self.claims and without is None:
            return self.claims.pop()
        cotangent = even_weights(self.point.outputs.vector.size, self.random)
        cotangent = cotangent if without is None else cotangent * ~without
        return cotangent, self.point.vjp(cotangent)

    def probe_until_conclusive(
        self, masks: Masks | None = None, *, by_rows: bool = False, without: Array | None = None
    ) -> Probe:
        """A brief probe; if it is not conclusive, probes over all steps until one is conclusive or
        two agree: a single FAIL by the differences does not count. The arguments are those of
        `probe`.
        """
        first = self.probe(masks, all_steps=self.point.searches, by_rows=by_rows, without=without)
        if first.conclusive and not (first.kinked and self.point.tape is None):
            return first
        before = None
        for _ in range(MOST_PROBES):
            probe = self.probe(masks, all_steps=True, by_rows=by_rows, without=without)
            unseen = probe.decision is Ruling.UNSEEN and self.point.tape is not None
            known = probe.decision in (Ruling.PASS, Ruling.BY_TAPE, before)
            if known or unseen or probe.wrong is not None:
                break
            before = probe.decision
        return probe

    def probe(
        self,
        masks: Masks | None = None,
        *,
        all_steps: bool = False,
        by_rows: bool = False,
        without: Array | None = None,
    ) -> Probe:
        """A probe along a random direction over the elements in `masks`, or over all.

        Args:
            all_steps: use steps of all sizes, if the first ones were not enough.
            by_rows: estimate a derivative for every output, even if there is a tape.
            without: a mask of outputs that take no part.
        """
        point, direction = self.point, self.point.direction(self.random, masks)
        by_rows = point.by_rows and (by_rows or point.tape is None)
        if by_rows:
            line = point.line(direction)
        else:
            cotangent, gradients = self.draw_claim(without)
            if not all((abs(share).sum() < np.inf) for share in parts_of(gradients, direction)):
                cotangent = cotangent * SMALL
                gradients = point.vjp(cotangent)
            line = point.line(direction, cotangent)
        derivative = self.scan_line(line, self.noise(line, all_steps), all_steps)
        if by_rows:
            cotangent = self.equal_weights(derivative, masks) * ~derivative.kinked
            cotangent = cotangent if without is None else cotangent * ~without
            gradients = point.vjp(cotangent)
        return self.compare_estimates(direction, derivative, cotangent, gradients, by_rows, masks)

    def probe_along(self, direction: Direction, like: Probe, all_steps: bool) -> Probe:
        """A probe along a given direction, with the cotangent and the noise of another one."""
        line = self.point.line(direction, None if like.by_rows else like.cotangent)
        derivative = self.scan_line(line, like.derivative.noise, all_steps)
        masks = elements_of(direction)
        return self.compare_estimates(
            direction, derivative, like.cotangent, like.gradients, like.by_rows, masks
        )

    def noise(self, line: Line, all_steps: bool) -> Array:
        """The rounding error of every row; that of every output is measured along only one
        direction.
        """
        point, rows = self.point, self.noises.get(all_steps) if line.weights is None else None
        if rows is not None:
            return rows
        if point.tape is not None or not point.opaque:
            rows = point.noise(line, PERTURBED_STEPS[-1], self.random)
        if rows is None or point.opaque:
            noise = from_close_values(line, all_steps, point.epsilon, stairs=point.searches)
        elif line.weights is None:
            noise = rows
        else:
            terms = abs(line.weights) * rows
            total = random_sum(terms)  # the cotangent's signs are random
            noise = np.full_like(terms[:1], total if total == total else np.inf)
        if line.weights is None:
            self.noises[all_steps] = noise
        return noise

    def nondet_spread(self, gradients: Sequence[Array], direction: Direction) -> float:
        """How far a projection of backward's gradients may differ from run to run, if each entry
        differs by `Problem.nondet` of the largest entry and the signs are those of a random
        direction.
        """
        nondet = self.point.problem.nondet
        if not nondet:
            return 0.0
        sizes = unflatten(of_each_largest(gradients), gradients)
        return nondet * random_sum(abs(flat(parts_of(sizes, direction))))

    def scan_line(self, line: Line, noise: Array, all_steps: bool) -> Derivative:
        """The derivative by the first steps; by all steps if `all_steps`."""
        line.extend(USUAL if all_steps else BRIEF if self.point.opaque else PERTURBED_STEPS)
        return derivative_of(line, noise)

    def equal_weights(self, interval: Interval, masks: Masks | None) -> Array:
        """Random signs and magnitudes that give every output equal weight, whatever the size of its
        derivative. `interval` is the derivative along one direction; its size is sampled along
        `OTHERS` too: otherwise an output that is small by chance would get a large weight and drown
        the rest in its rounding.
        """
        size, known = abs(interval.value), abs(interval.bar) < np.inf
        for _ in range(OTHERS):
            change = self.point.line(self.point.direction(self.random, masks)).at(SLOPE_STEP).size
            size = np.maximum(size, np.where(np.isfinite(change), change / SLOPE_STEP, 0.0))
        size = np.maximum(size, STANDS_OUT * np.where(known, interval.bar, 0.0))
        weights = even_weights(size.size, self.random)
        # if no derivative is visible, all outputs count: with a cotangent of 0 every estimate
        # agrees
        known = known if known.any() else ~known
        return weights * np.where(
            known, 1 / np.maximum(np.where(size > 0, size, 1.0), SMALLEST_SIZE), 0.0
        )

    def compare_estimates(
        self,
        direction: Direction,
        derivative: Derivative,
        cotangent: Array,
        gradients: list[Array],
        by_rows: bool,
        masks: Masks | None,
    ) -> Probe:
        """Estimates by backward, differences and tape for this cotangent."""
        terms = flat(parts_of(gradients, direction))
        claim = BackwardEstimate(
            float(terms.real.sum()),
            float(abs(terms).sum()),
            root_of_squares(terms),
            self.nondet_spread(gradients, direction),
        )
        differences = self.estimate_by_differences(
            derivative, cotangent if by_rows else np.ones_like(cotangent[:1]), claim
        )
        comparison = tape = None
        if self.point.witnessed:
            comparison = tape_diff(self.point, cotangent, gradients, masks, self.rtol)
            tape = comparison.tape_estimate(direction)
            if tape is not None and not tape.rejects and tape.of_claim < np.inf:
                differences = replace(differences, allowed=differences.allowed + tape.of_claim)
        ruling = decide(claim, differences, tape)
        if comparison is not None:
            outvoted = ruling is Ruling.PASS and comparison.wrong is not None
            doubtful = outvoted or ruling is Ruling.CONTRADICTION
            if doubtful and self.hides_kink(comparison, direction, cotangent, differences):
                ruling = decide(claim, replace(differences, bar=math.inf), tape)
        return Probe(
            direction,
            derivative,
            cotangent,
            gradients,
            claim,
            differences,
            by_rows,
            comparison,
            ruling,
        )

    def hides_kink(
        self,
        comparison: Comparison,
        direction: Direction,
        cotangent: Array,
        differences: DifferenceEstimate,
    ) -> bool:
        """Whether a kink lies within the smallest step, so that the differences see the mean of
        both sides.

        Then the tape's gradients on both sides differ: in an entry that it rejects, or, if it
        rejects none, in some entry while their mean equals the differences' estimate. An operation
        with a wrong rule gives equal values on both sides. (`DifferenceEstimate.gap` shows a kink
        as well, but not if the kinks of several outputs cancel in their sum.)
        """
        ahead, behind = (
            self.point.tape_gradients(direction, cotangent, t) for t in (NEAREST, -NEAREST)
        )
        if ahead is None or behind is None:
            return False
        room = SAME_PIECE * np.fmax(abs(flat(ahead)), abs(flat(behind)))
        room = room + flat(comparison.bounds)
        differ = distance(flat(ahead), flat(behind)) > room
        if comparison.wrong is not None:
            return bool((differ & flat(comparison.wrong)).any())
        mean = (
            directional_derivative(ahead, direction) + directional_derivative(behind, direction)
        ) / 2
        return bool(differ.any()) and differences.holds(mean)

    def estimate_by_differences(
        self, derivative: Derivative, u: Array, claim: BackwardEstimate
    ) -> DifferenceEstimate:
        """The differences' estimate for the rows weighted by `u`."""
        used = u != 0
        rows = np.array([derivative.value, derivative.bar, derivative.gap, derivative.nearby])
        values, bars, gaps, slopes = np.where(used, u * rows, 0.0)
        value = float(values.sum())
        bar = random_sum(abs(bars)) + claim.spread if used.any() else np.inf
        if np.isfinite(claim.size):
            bar += ROUNDING * claim.size
        allowed = self.rtol * max(abs(value), abs(claim.value))
        if self.point.opaque and self.point.may_round:
            allowed += LOW_PRECISION * claim.size
        gap = root_of_squares(gaps)  # unlikely: a kink of all outputs at once
        scale = root_of_squares(slopes)
        return DifferenceEstimate(value, bar, scale, gap, allowed if allowed < np.inf else 0.0)


# ----------------------------------------------------------- outcomes
@dataclass
class CheckOutcome:
    """A verdict, and the facts that it depends on."""

    verdict: Status
    why: str = ""
    probe: Probe | None = None
    """A probe that shows the gradient to be wrong."""
    prober: Prober | None = None
    """The prober of `wrong`, if it is at another point."""
    wrong: Sequence[Entry] = ()
    exhaustive: bool = True
    """Whether `wrong` contains everything that is wrong."""
    diagnosis: tuple[Diagnosis, ...] = ()
    marks: tuple[str, ...] = ()


def inconclusive_outcome(reason: VerdictReason, **facts: object) -> CheckOutcome:
    """INCONCLUSIVE for a reason, with the facts to fill in its sentence."""
    why = reason.sentence(**facts)
    return CheckOutcome(Status.INCONCLUSIVE, why, diagnosis=(Diagnosis.of("GC121", why),))


def add_kink(outcome: CheckOutcome, why: str) -> CheckOutcome:
    """Add to an outcome that the function has a kink at which nothing is wrong."""
    if outcome.verdict not in (Status.PASS, Status.KINK):
        return outcome
    return replace(
        outcome,
        verdict=Status.KINK,
        why="; ".join(filter(None, (outcome.why, why))),
        diagnosis=(*outcome.diagnosis, Diagnosis.of("GC120", why)),
    )
