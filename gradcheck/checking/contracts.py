"""Rules that a backward must keep besides being the derivative. Each broken rule is reported as a
code with the evidence.

The last rule is accuracy: in the layer's own dtypes, casts included, the gradient may not lose more
digits than automatic differentiation or the rounding of its operations would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import ml_dtypes
import numpy as np

from gradcheck.backends.base import Array, Cotangents
from gradcheck.checking.point import (
    SUM_OF_OUTPUTS,
    Entry,
    FlatOutputs,
    Point,
    array_and_element,
    even_weights,
)
from gradcheck.checking.precision import (
    CLEAR,
    EPSILON,
    FEW,
    FLOAT32,
    MANY,
    SMALLEST,
    coarsest,
    distance,
    finite,
    flat,
    identical,
    largest,
    of_each_largest,
    unflatten,
)
from gradcheck.checking.problem import Observation
from gradcheck.result import Diagnosis
from gradcheck.support.foreign import text_of

FACTOR = -64.0
"""A factor for cotangents, large and negative, so that a cotangent that is clipped, squared or
masked is noticed.
"""

OTHER_ORDER = "a cotangent whose axes are in another order in memory, as after a transpose"
REPEATED = {
    "GC132": "two calls with the same cotangent give different gradients",
    "GC138": (
        "a forward at other values, run before backward, changes the gradient: "
        "keep what backward needs on ctx"
    ),
    "GC166": f"backward gives another gradient for {OTHER_ORDER}",
}
"""Messages for a backward that does not repeat its gradient, by code."""

DRAWS = 3
"""Number of perturbed runs: with three, an entry's largest response is too small by a factor of 10
once in 1,000.
"""


@dataclass
class Contracts:
    """The rules, checked on one problem at one point."""

    point: Point
    random: np.random.Generator
    in_place: tuple[str, ...] = ()
    """Inputs that forward changed by in-place operations: allowed, but the cause if the gradient is
    wrong.
    """
    claims: list[tuple[Array, list[Array]]] = field(default_factory=list)
    """Random cotangents, with backward's gradients of the moved inputs."""

    def find_broken(self) -> list[Diagnosis]:
        """Broken contracts, the cause before its consequences."""
        point = self.point
        g = point.outputs.cotangent(self.random)
        observation, refused = self.observe_run(point.outputs.split(g))
        observed = [*refused, *self.find_side_effects(observation)]
        diagnoses = self.check_forward_repeats(observation.outputs)
        if not diagnoses:
            of_g = self.point.claimed_gradients(g)
            diagnoses = self.check_backward_repeats(g, of_g, observation)
            del observation  # as large as the inputs, the outputs and the gradients
            diagnoses = diagnoses or [
                *self.check_linearity(g, of_g),
                *self.check_undefined_cotangents(),
            ]
        return [*observed, *diagnoses]

    def observe_run(self, cotangents: Cotangents) -> tuple[Observation, list[Diagnosis]]:
        """Observe a run with cotangents in another memory order; if backward rejects it, a run with
        the usual order.
        """
        observe = self.point.problem.observe
        try:
            return observe(list(map(in_other_order, cotangents))), []
        except Exception as error:
            broken = self.diagnose_error("GC166", f"for {OTHER_ORDER}", error)
        observation = observe(cotangents)  # raises as well, unless the order is at fault
        return observation, [broken]

    # -------------------------------------------------------- helpers
    def diagnose_error(self, code: str, when: str, error: Exception) -> Diagnosis:
        """The diagnosis of a backward that raises an error where it should not."""
        text = f"backward raises {type(error).__name__} {when}: {text_of(error)}"
        return Diagnosis(
            code=code, text=text, detail="raises", **self.point.problem.place_of(error)
        )

    def names_where(self, differ: Callable[[int], bool]) -> tuple[str, ...]:
        """The inputs for which `differ` holds."""
        return tuple(self.point.problem.names[k] for k in self.point.moved if differ(k))

    # ------------------------------------------------------ the rules
    def check_forward_repeats(self, again: Sequence[Array] | None) -> list[Diagnosis]:
        """Check that equal inputs give equal outputs, bit by bit or up to `Problem.nondet`.

        Args:
            again: the outputs for the inputs in their own dtypes, if they were computed a second
                time.
        """
        point, problem = self.point, self.point.problem
        first, inputs = problem.outputs, problem.inputs
        if first is None:
            first, inputs = point.outputs.arrays, point.inputs
            again = again if point.as_given else None
        pairs = zip(first, again or problem.forward(list(inputs)), strict=True)
        differ = [not same(a, b, problem.nondet) for a, b in pairs]
        names = ", ".join(compress(problem.output_names, differ))
        return diagnosis_if(any(differ), "GC131", f"two calls give different values of {names}")

    def check_backward_repeats(
        self, g: Array, of_g: Cotangents, observation: Observation
    ) -> list[Diagnosis]:
        """Check that equal cotangents give equal gradients, up to the same tolerance as
        `check_forward_repeats`, even if forward ran at other values in between: a layer's state
        belongs to one call. `observation` is one of the two runs.
        """
        point, problem = self.point, self.point.problem
        if observation.gradients is None or observation.outputs is None:
            return self.diagnose_difference("GC132", of_g, point.claimed_gradients(g))
        parts = zip(point.outputs.split(g), observation.outputs, strict=True)
        cotangents = [None if u is None else u.astype(y.dtype) for u, y in parts]

        def in_own_dtypes() -> Cotangents:
            point.spent.count_run(vjps=1)
            return problem.vjp(list(problem.inputs), cotangents)

        once = of_g if point.is_own_precision else in_own_dtypes()
        if not self.diagnose_difference("GC132", once, observation.gradients):
            return []
        again = in_own_dtypes()
        if diagnoses := self.diagnose_difference("GC132", once, again):
            return diagnoses
        ordered = problem.vjp(list(problem.inputs), list(map(in_other_order, cotangents)))
        if diagnoses := self.diagnose_difference("GC166", once, ordered):
            return diagnoses
        return self.diagnose_difference(
            "GC138" if observation.interrupted else "GC132", once, observation.gradients
        )

    def diagnose_difference(
        self, code: str, first: Cotangents, second: Cotangents
    ) -> list[Diagnosis]:
        """The diagnosis of two gradients that should be the same; empty if they are."""
        nondet = self.point.problem.nondet
        names = self.names_where(lambda k: not same(first[k], second[k], nondet))
        return diagnosis_if(bool(names), code, REPEATED[code], names)

    def check_linearity(self, g: Array, of_g: Cotangents) -> list[Diagnosis]:
        """b(a·g + h) = a·b(g) + b(h), and b(0) = 0."""
        mixed = self.point.outputs.round_cotangent(
            FACTOR * g + self.point.outputs.cotangent(self.random)
        )
        # as a difference, so that none of the three is rounded, whatever dtype the outputs have
        h = mixed - FACTOR * g
        of_h = self.point.claimed_gradients(h)
        self.claims = [
            (u, self.point.moved_gradients(gradients)) for u, gradients in ((h, of_h), (g, of_g))
        ]
        if not finite([*of_g, *of_h]):
            return []
        of_mixed = self.point.claimed_gradients(mixed)
        if not finite(of_mixed):  # the multiple overflows the dtype
            return []

        nondet = 3 * self.point.problem.nondet  # three runs may differ

        def is_broken(k: int, rounding: float = 0.0) -> bool:
            return not close(of_mixed[k], of_g[k], FACTOR, of_h[k], rounding, nondet)

        names = self.names_where(is_broken)
        if names:
            rounding = dict(zip(self.point.moved, self.rounding(mixed), strict=True))
            names = self.names_where(lambda k: is_broken(k, FEW * rounding[k]))
        if names:
            return [
                Diagnosis.of("GC110", f"b({FACTOR:g}·g + h) is not {FACTOR:g}·b(g) + b(h)", names)
            ]
        zero = dict(zip(self.point.moved, self.point.vjp(0 * g), strict=True))
        names = self.names_where(lambda k: bool((zero[k] != 0).any()))
        text = "a cotangent of zeros does not give a gradient of zeros"
        return diagnosis_if(bool(names), "GC110", text, names)

    def rounding(self, cotangent: Array) -> list[float]:
        """The largest error that rounding can cause in an entry of the gradient, per moved input.

        A backward that cannot be observed may round terms as large as outputs divided by inputs, in
        the dtype of inputs or outputs or in float32; if these terms cancel, their rounding
        remains.
        """
        if self.point.opaque:
            epsilon = max(FLOAT32, self.point.epsilon, self.point.given_epsilon)
            terms, gradients = cotangent * self.point.outputs.vector, self.point.vjp(cotangent)
            return [
                opaque_bound(x, terms, g, epsilon)
                for x, g in zip(self.point.x, gradients, strict=True)
            ]
        measured = self.point.measured_claim(self.point.outputs.split(cotangent), self.random)
        measured.draw()
        bounds = unflatten(measured.bounds(), self.point.x)
        return [float(bound.max(initial=0.0)) for bound in bounds]

    def check_undefined_cotangents(self) -> list[Diagnosis]:
        """Check that an output outside of the loss gives the same gradient as one with a cotangent
        of zeros.
        """
        if len(self.point.outputs.active) < 2:
            return []
        problem, inputs = self.point.problem, list(self.point.inputs)
        cotangents = self.point.outputs.split(self.point.outputs.cotangent(self.random))
        for k in self.point.outputs.active:
            name = problem.output_names[k]
            alone = [u if j == k else None for j, u in enumerate(cotangents)]
            zeros = [
                u if j == k or u is None else np.zeros_like(u) for j, u in enumerate(cotangents)
            ]
            try:
                undefined = problem.vjp(inputs, alone)
            except Exception as error:
                return [
                    self.diagnose_error("GC136", f"when only {name} takes part in the loss", error)
                ]
            with_zeros = problem.vjp(inputs, zeros)
            pairs = zip(undefined, with_zeros, strict=True)
            alike = [close(u, z, 1.0, None, nondet=problem.nondet) for u, z in pairs]
            names = self.names_where(lambda i, alike=alike: not alike[i])  # type: ignore[misc]
            if names:
                text = f"when only {name} takes part in the loss, zeros give another gradient"
                return [Diagnosis.of("GC136", text, names)]
        return []

    def check_needs_alone(self) -> list[Diagnosis]:
        """The gradient of an input is the same where no other input needs one."""
        problem, inputs = self.point.problem, list(self.point.inputs)
        if problem.vjp_alone is None or len(self.point.moved) < 2:
            return []
        parts = self.point.outputs.split(self.point.outputs.cotangent(self.random))
        together = problem.vjp(inputs, parts)
        for k in self.point.moved:
            name = problem.names[k]
            try:
                alone = problem.vjp_alone(k, inputs, parts)
            except Exception as error:
                return [self.diagnose_error("GC167", f"where only {name} needs a gradient", error)]
            if not close(alone, together[k], 1.0, None, nondet=problem.nondet):
                text = f"backward gives another gradient of {name} where only {name} needs one"
                return [Diagnosis.of("GC167", text, (name,))]
        return []

    def find_side_effects(self, observation: Observation) -> list[Diagnosis]:
        """Check that backward changes nothing else: inputs, cotangents and saved tensors stay as
        they were.
        """
        self.in_place = observation.changed_in_place
        rows = [
            ("GC133", observation.changed_by_forward, "forward writes into"),
            ("GC134", observation.changed_by_backward, "backward writes into"),
            ("GC135", observation.aliased, "backward returns the memory of"),
        ]
        return [
            Diagnosis.of(code, f"{text} {', '.join(names)}", names)
            for code, names, text in rows
            if names
        ]


def in_other_order(cotangent: Array | None) -> Array | None:
    """A copy of a cotangent whose first axis varies fastest in memory; unchanged if it has a single
    axis.
    """
    if cotangent is None or cotangent.ndim < 2:
        return cotangent
    return cotangent.T.copy().T


def diagnosis_if(
    broken: bool, code: str, text: str, names: tuple[str, ...] = ()
) -> list[Diagnosis]:
    """One diagnosis if a contract is broken, otherwise none."""
    return [Diagnosis.of(code, text, names)] if broken else []


def same(a: Array | None, b: Array | None, nondet: float = 0.0) -> bool:
    """Whether two arrays, or missing ones, are equal up to the order of sums, which varies on a
    GPU, and up to `nondet` of the largest element.
    """
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    if identical(a, b):
        return True
    if a.dtype.kind not in "fcV":
        return False
    equal = (a == b) | ((a != a) & (b != b))
    infinite = equal & ~(abs(a) < np.inf)  # equal infinities are left out of the comparison
    first, second = (np.where(infinite, v.dtype.type(0), v) for v in (a, b))
    return close(first, second, 1.0, None, nondet=nondet)


def close(
    total: Any, term: Any, factor: float, rest: Any, rounding: float = 0.0, nondet: float = 0.0
) -> bool:
    """Whether total = factor · term + rest up to rounding and `nondet`, relative to the largest
    element; None counts as zeros.

    `rounding` is the measured rounding error.
    """
    arrays = [a for a in (total, term, rest) if a is not None]
    if not arrays or not arrays[0].size:
        return True
    total, term, rest = (arrays[0].dtype.type(0) if a is None else a for a in (total, term, rest))
    size = max(
        float(abs(total).max()), abs(factor) * float(abs(term).max()), float(abs(rest).max())
    )
    share = CLEAR * coarsest(arrays) + nondet
    bar = share * size + rounding + SMALLEST["float64"]  # below that, digits are lost
    return bool(np.isfinite(size)) and float(abs(total - (factor * term + rest)).max()) <= bar


# ------------------------------------------ the layer's own precision
def wrong_in_own_precision(
    point: Point, random: np.random.Generator, rtol: float
) -> tuple[list[Entry], str]:
    """The entries of the gradient of a random sum of the outputs in which the layer's own backward,
    in its own dtypes, loses more digits than it may; and the dtype that it computes in.

    None if it computes only in double precision, or if its outputs do not fit its dtype.
    """
    if point.is_own_precision:
        return [], ""
    problem, inputs = point.problem, list(point.problem.inputs)
    tape = point.record(inputs, keep_casts=True)
    outputs = FlatOutputs(
        problem.forward(inputs) if problem.outputs is None else list(problem.outputs),
        point.outputs.active,
    )
    epsilon = max([point.given_epsilon, *(EPSILON[name] for name in point.casts)])
    if tape is not None:
        epsilon = max(epsilon, tape.coarsest)
    name = next(n for n, e in EPSILON.items() if e == epsilon)
    limits: Any = ml_dtypes.finfo(name)  # type: ignore[no-untyped-call]
    if not (abs(outputs.vector) <= float(limits.max)).all():  # overflow in this dtype
        return [], name
    cotangent = even_weights(outputs.vector.size, random)
    parts = outputs.split(cotangent)
    if tape is not None:
        right = point.moved_gradients(tape.gradient(parts))
        measured = point.measured_claim(parts, random, keep_casts=True)
        of_tape = point.measured_tape(tape, parts, right, random, keep_casts=True)
        for _ in range(DRAWS):
            measured.draw_at(FEW * epsilon)
        for _ in range(DRAWS):
            of_tape.draw_at(FEW * epsilon)
        claimed = measured.vector
        # no rounding explains a gradient that is not finite
        responses = np.where(np.isfinite(claimed), measured.responses, 0.0)
        # another formula has other intermediates: of 297 right layers in float32 none needed more
        # than 0.15 of this
        bound = (
            responses
            + of_each_largest(unflatten(of_tape.responses, right))
            + FEW * epsilon * abs(flat(right))
        )
    else:
        claimed, right = (
            flat(point.moved_gradients(problem.vjp(inputs, parts))),
            point.vjp(cotangent),
        )
        if point.searches:  # backward has no more digits than the outputs of the search
            lost = largest(outputs.vector - point.outputs.vector)
            epsilon = max(epsilon, lost / (largest(point.outputs.vector) + SMALLEST["float64"]))
        terms = outputs.vector * cotangent
        known = zip(point.x, right, strict=True)
        bound = flat([0 * abs(g) + opaque_bound(x, terms, g, epsilon) for x, g in known])
    truth, bar = flat(right), float(limits.smallest_normal) + bound + rtol * of_each_largest(right)
    outside = ~(distance(claimed, truth) <= bar) & (abs(truth) <= float(limits.max))
    wrong = []
    for i in np.flatnonzero(outside).tolist():
        values = [float(v[i].real) for v in (claimed, truth, bar)]
        wrong.append(Entry(*array_and_element(right, i), SUM_OF_OUTPUTS, *values))
    return wrong, name


def opaque_bound(x: Array, terms: Array, gradient: Array, epsilon: float) -> float:
    """The error bound of one input's gradient if operations are not observed: the rounding of its
    terms, and of a difference of two numbers as large as the outputs divided by the scale of the
    inputs.
    """
    scale, largest = float(abs(x).max(initial=0.0)), float(abs(terms).max(initial=0.0))
    natural = max(largest / scale if scale else 0.0, min(largest, 1.0))
    return epsilon * (MANY * float(abs(gradient).max(initial=0.0)) + 2 * natural)


def lost_digits(point: Point, entries: Sequence[Entry], name: str) -> str:
    """The decimal digits lost in the worst entry, out of the digits of the dtype."""
    errors = [abs(e.analytic - e.numeric) / abs(e.numeric) for e in entries if e.numeric]
    casts = sorted(cast for cast in point.runs.omitted_casts if EPSILON[cast] > EPSILON[name])
    text = digits(max([e for e in errors if e == e], default=1.0), name)
    return f"{text}, with casts to {', '.join(casts)}" if casts else text


def digits(error: float, name: str) -> str:
    """The number of correct decimal digits at a relative error, out of the digits of the dtype."""
    known = round(-np.log10(EPSILON[name]))
    lost = min(max(round(known + np.log10(error)), 1), known) if error else 1
    return f"right, but {lost} of {known} digits are lost in {name}"
