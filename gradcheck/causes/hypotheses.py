"""The likely cause of a wrong gradient: a mistake found on the tape, otherwise a formula.

A formula turns backward's gradient into the right one: a factor, a term, another order, another
input's gradient. The cause is the first formula that holds, element by element and for two random
cotangents; simpler ones come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import prod

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.causes.candidates import FORMULAS, axes_subsets, matrices, orders, products
from gradcheck.causes.search import Backward
from gradcheck.causes.words import SIMPLE, explained_by_tape, factor_text
from gradcheck.checking.point import Point
from gradcheck.checking.precision import SMALLEST, wide
from gradcheck.checking.probe import ROUNDING, Comparison, Probe, Prober
from gradcheck.result import Diagnosis

LEAST_KNOWN_DIGITS = 6.0
"""Digits of the right gradient that must be known for a formula with a free factor: if 200 formulas
are tried, one of them fits four digits by chance once in 50 times, six digits once in 5,000.
"""
LEAST_LENGTH = 5
"""Smallest length of an axis that is reported as the meaning of a factor: 2, 3 and 4 are more often
powers and constants.
"""
LEAST_SIGNS = 16
"""Fewest elements for which a function of constant magnitude, such as the sign, is tried: random
signs of n elements match one of 30 functions once in 2^(n − 6).
"""
OF_BUDGET = 10
"""The share of a diagnosis's cost that the search on the tape may take."""
FAR_FETCHED = {"GC105", "GC114"}
"""Codes of causes with a line that rank last."""
SLACK = 1e-3
"""The rounding allowed in a screening comparison, relative to the values; formulas that pass are
tried in full.
"""
AFFINE_TO = 2.0**-4
"""How far a gradient may be from affine in the cotangent, as a share of its largest entry: terms
that are rounded to bfloat16 leave 2^-8 each.
"""
COTANGENTS = 2
"""The random cotangents for which a formula must hold: with only one, any number can be
explained.
"""

FIRST = (..., slice(1000))
"""The elements of the last axis for which a formula must hold before all are compared."""

Claims = Sequence[tuple[Array, Sequence[Array]]]
"""Cotangents, and backward's gradients of the moved inputs for each."""
Formula = tuple[str, str, Array]
"""A code, a formula in words, and the right gradients if the formula holds, one for each
cotangent.
"""
FormulaFamily = Callable[["Evidence"], Iterator[Formula]]


def likely_causes(
    prober: Prober,
    wrong: Sequence[int],
    probe: Probe,
    jacobians: Mapping[int, tuple[Array, Array]],
    budget: float,
) -> tuple[list[Diagnosis], Backward]:
    """Explain the gradients of the inputs that are `wrong`: all at once, or one by one.

    Return the causes, and a backward: the tape with these mistakes, if it gives the same gradients,
    as it is cheaper. Without a tape the right gradients are those of `jacobians`, as far as these
    are known.
    """
    point, comparison = prober.point, probe.comparison
    claims = [(probe.cotangent, probe.gradients)] if probe.wrong is not None else []
    claims += [prober.draw_claim() for _ in range(COTANGENTS - len(claims))]
    # A backward that returns zeros needs no search. At second order, zeros mean that the graph was
    # cut.
    written = any((gradients[k] != 0).any() for _, gradients in claims for k in wrong)
    diagnoses: list[Diagnosis] = []
    backward: Backward = point.vjp
    wrong_names = [point.problem.names[point.moved[k]] for k in wrong]
    # Mistakes on the tape and formulas give gradients that are affine in the cotangent.
    affine = affine_gradients(point, claims)
    if affine.isdisjoint(wrong):
        return diagnoses, backward
    if comparison is not None and (written or point.problem.order > 1):
        three, walks = [*claims, prober.draw_claim()], budget / OF_BUDGET
        diagnoses, backward = explained_by_tape(point, three, comparison.rounding, walks)
    is_explained = explained_inputs(diagnoses).issuperset(wrong_names)
    if not is_explained or FAR_FETCHED.intersection(d.code for d in diagnoses):
        right = right_gradients(point, comparison, jacobians, [u for u, _ in claims])
        evidence = [Evidence(point, k, wrong, claims, *right[k]) for k in wrong if k in right]
        # Two swapped gradients are one slip; separate causes on the tape for each are far-fetched.
        swaps = [d for of_input in evidence for d in of_input.diagnoses((swapped_inputs,))]
        of_swaps = explained_inputs(swaps)
        diagnoses = [*swaps, *(d for d in diagnoses if not of_swaps.issuperset(d.inputs))]
        explained = explained_inputs(diagnoses)
        for of_input in evidence:
            if of_input.name not in explained:
                diagnoses += of_input.diagnoses(FAMILIES_OF_FORMULAS)
        if not is_explained or swaps:
            backward = point.vjp
    return [*name_explained_inputs(diagnoses, wrong_names)], backward


def affine_gradients(point: Point, claims: Claims) -> set[int]:
    """The moved inputs whose gradients by backward are affine in the cotangent."""
    (u, of_u), (v, of_v), *_ = claims
    gradients = zip(point.vjp((u + v) / 2), of_u, of_v, strict=True)
    return {
        k
        for k, (middle, a, b) in enumerate(gradients)
        if (abs(2 * middle - a - b) <= AFFINE_TO * (abs(a) + abs(b)).max(initial=0)).all()
    }


def explained_inputs(causes: Sequence[Diagnosis]) -> set[str]:
    """The inputs that causes explain."""
    return {name for cause in causes for name in cause.inputs}


def name_explained_inputs(causes: Sequence[Diagnosis], wrong: Sequence[str]) -> Iterator[Diagnosis]:
    """The causes; a cause that does not explain all wrong inputs names those that it explains and
    those that remain.
    """
    explained = explained_inputs(causes)
    remaining = ", ".join(name for name in wrong if name not in explained)
    rest = f"; the gradient of {remaining} is wrong as well" if remaining else ""
    for cause in causes:
        is_partial = cause.line and not set(cause.inputs).issuperset(wrong)
        says = f" (explains {', '.join(cause.inputs)}{rest})" if is_partial else ""
        yield cause.model_copy(update={"text": f"{cause.text}{says}"})


def right_gradients(
    point: Point,
    comparison: Comparison | None,
    jacobians: Mapping[int, tuple[Array, Array]],
    cotangents: Sequence[Array],
) -> dict[int, tuple[Array, Array]]:
    """The right gradients for some cotangents and their bounds, where known, by moved input."""
    right = {}
    if comparison is not None:
        taped = zip(*map(point.by_tape, cotangents), strict=True)
        for k, (gradients, bounds) in enumerate(zip(taped, comparison.rounding, strict=True)):
            # With another cotangent the rounding is as large, but perhaps at other elements.
            largest = np.full_like(bounds, bounds.max(initial=0.0))
            right[k] = np.stack(gradients), np.stack([bounds, largest])
        return right
    u = np.stack(cotangents)
    for k, (jacobian, bounds) in jacobians.items():
        times = np.multiply if jacobian.ndim == 1 else np.matmul  # a diagonal, or the whole matrix
        shape = len(u), *point.x[k].shape
        right[k] = times(u, jacobian).reshape(shape), times(abs(u), bounds).reshape(shape)
    return right


class Evidence:
    """The data of formulas for one moved input. The first axis is that of the cotangents.

    Args:
        wrong: the inputs whose gradients are wrong.
        truth: the right gradients of the input.
        bounds: the error bounds of `truth`.
    """

    def __init__(
        self,
        point: Point,
        number: int,
        wrong: Sequence[int],
        claims: Claims,
        truth: Array,
        bounds: Array,
    ) -> None:
        self.point, self.number, self.wrong = point, number, wrong
        self.claims, self.truth = claims, truth
        self.inputs = {point.problem.names[k]: x for k, x in zip(point.moved, point.x, strict=True)}
        self.name, self.x = list(self.inputs.items())[number]
        axes = tuple(range(1, truth.ndim))
        self.bounds = bounds + ROUNDING * abs(truth).max(axis=axes, keepdims=True, initial=0.0)
        self.analytic = self.claimed_gradients(number)
        self.outputs: dict[str, Array] = {}
        """The outputs by name: ``out`` if there is only one, otherwise ``out[1]``."""
        self.cotangents: dict[str, Array] = {}
        active = point.outputs.active
        for k in active:
            name = "out" if len(active) == 1 else f"out[{k}]"
            self.outputs[name] = wide(point.outputs.arrays[k])
            self.cotangents[name] = np.stack([wide(point.outputs.split(u)[k]) for u, _ in claims])

    def claimed_gradients(self, number: int) -> Array:
        """Backward's gradients of an input."""
        return np.stack([gradients[number] for _, gradients in self.claims])

    def diagnoses(self, families: Sequence[FormulaFamily]) -> list[Diagnosis]:
        """The first formula that holds, in words; empty if none does."""
        # The bounds may be too wide to distinguish the claim from the right gradient.
        if self.holds(self.analytic):
            return []
        with np.errstate(all="ignore"):  # formulas take logarithms of any values
            for code, text, gradients in chain.from_iterable(f(self) for f in families):
                if self.holds(gradients):
                    return [Diagnosis.of(code, f"{self.name}: {text}", (self.name,))]
        return []

    def holds(self, values: Array) -> bool:
        """Whether these values are the right gradients. Checked one at a time, because most
        formulas already fail for the first.
        """
        return all(
            (abs(values[index] - self.truth[index]) <= self.bounds[index]).all()
            for index in (FIRST, ...)
        )

    def may_fit(self, first: Array, wanted: Array) -> bool:
        """Whether a common factor may turn values into the expected ones. Only the first elements
        are compared; the factor is that of the largest value, within its error bound.
        """
        bounds = np.broadcast_to(self.bounds[FIRST], wanted.shape)
        place = abs(first).argmax()
        base = first.reshape(-1)[place] or 1.0
        factor, factor_bound = wanted.reshape(-1)[place] / base, bounds.reshape(-1)[place] / base
        error, room = abs(factor * first - wanted), bounds + abs(first * factor_bound)
        return bool((error <= (1 + SLACK) * room + SLACK * abs(wanted)).all())

    def factor(self, values: Array, added: Array | float = 0.0) -> float:
        """The simplest factor for `values` such that the largest of them, plus the added term, is
        right; 0 if there is none.
        """
        place = (0, *np.unravel_index(abs(values[0]).argmax(), values[0].shape))
        arrays = (values, self.truth, added, self.bounds)
        base, right, more, bound = (
            complex(np.broadcast_to(array, values.shape)[place]) for array in arrays
        )
        wanted = right - more
        if not base or not np.isfinite([base, wanted]).all():
            return 0.0
        ratio, ratio_bound = (wanted / base).real, bound.real / abs(base)
        return nice(ratio, ratio_bound) if 4 * ratio_bound < abs(ratio) < np.inf else 0.0

    def known(self, values: Array) -> bool:
        """Whether enough digits of values are known, not counting the one element that a factor
        always fits.
        """
        bounds = np.maximum(self.bounds[0], SMALLEST["float64"])
        digits = np.log10(np.maximum(abs(values) / bounds, 1.0))
        return float(digits.sum() - digits.max()) >= LEAST_KNOWN_DIGITS


def nice(value: float, bound: float) -> float:
    """The simplest fraction with a small denominator within the bound of a value; the value itself
    if there is none.
    """
    for denominator in range(1, SIMPLE + 1):
        near = round(value * denominator) / denominator
        if near and abs(near - value) <= 4 * bound + 1e-9 * abs(value):
            return near
    return value


# --------------------------------------------------------------------- formulas of one gradient
def trivial(s: Evidence) -> Iterator[Formula]:
    """Yield the trivial causes: the cotangent passed on unchanged; all zeros; the same gradient for
    every cotangent.
    """
    for name, cotangents in s.cotangents.items():
        if np.array_equal(s.analytic, cotangents):
            of_output = "" if name == "out" else f" of {name}"
            passes = f"backward passes the cotangent{of_output} on as it is (straight-through)"
            yield "GC122", f"{passes}, which is not the derivative", s.truth
    if not s.analytic.any():
        text = "backward gives 0 everywhere, or None, but the derivative is not 0"
        yield "GC108", text, s.truth
    if (s.analytic == s.analytic[:1]).all():
        yield "GC109", "backward gives the same result whatever the incoming gradient is", s.truth


def constant_factor(s: Evidence) -> Iterator[Formula]:
    """Yield a constant factor; −1 and numbers of elements are described as such."""
    c = s.factor(s.analytic)
    right = c * s.analytic
    if c == -1:
        yield "GC102", "numeric = −analytic: the sign is wrong", right
    # Some factor always fits a single number.
    by_chance = s.x.size < 2 and factor_text(c) == f"{c:.6g}" and c != int(c)
    if by_chance or not c or abs(c - 1) <= 1e-6:
        return
    problem, outputs = s.point.problem, s.point.outputs
    arrays = [(s.name, s.name, s.x)]
    arrays += [(problem.output_names[k], "the output", outputs.arrays[k]) for k in outputs.active]
    numbers: dict[int, str] = {}
    for name, words, array in arrays:
        shape = array.shape[name in problem.ranked :]  # the size on one rank of a world
        numbers.setdefault(prod(shape), f"the number of elements of {words}")
        for axis, length in enumerate(shape):
            numbers.setdefault(length, f"the length of axis {axis} of {words}")
    size = max(abs(c), 1 / abs(c))
    n = round(size)
    if n in numbers and n >= LEAST_LENGTH and abs(size / n - 1) <= 1e-9:
        times = f"{factor_text(c)} · analytic" if abs(c) > 1 else f"analytic / {factor_text(1 / c)}"
        yield "GC112", f"numeric = {times}, and {n} is {numbers[n]}", right
    yield "GC101", f"numeric = {factor_text(c)} · analytic, for all entries", right


def parts(s: Evidence) -> Iterator[Formula]:
    """Yield two causes: the conjugate is missing; the gradient is zero at some elements and right
    at all others.
    """
    if s.x.dtype.kind == "c":
        yield "GC115", "numeric = conj(analytic)", s.analytic.conj()
    mask = (abs(s.analytic - s.truth) > s.bounds).any(0)
    if mask.any() and not mask.all():
        first = s.point.problem.element(s.name, tuple(np.argwhere(mask)[0].tolist()))
        text = f"{mask.sum()} of {s.x.size} elements get 0, but their gradient is not 0 ({first} …)"
        yield "GC107", text, np.where(mask & (s.analytic == 0), s.truth, s.analytic)


# --------------------------------------------------------------------------- rearranged
def swapped_inputs(s: Evidence) -> Iterator[Formula]:
    """Yield the gradient of another wrong input."""
    for k, (name, x) in enumerate(s.inputs.items()):
        if k in s.wrong and k != s.number and x.shape == s.x.shape:
            text = f"numeric = the gradient that backward gives for {name}"
            yield "GC105", text, s.claimed_gradients(k)


def rearrangements(s: Evidence) -> Iterator[Formula]:
    """Yield the gradient in another order, and with the cotangent summed over some axes."""
    problem, outputs = s.point.problem, s.point.outputs
    for words, order in orders(s.x.shape, partial(problem.axis, s.name)):
        code = "GC104" if words.startswith(("rolled", "flipped")) else "GC103"
        ordered = np.stack([order(gradient) for gradient in s.analytic])
        yield code, f"numeric = analytic {words}", ordered
    if "out" not in s.outputs or s.outputs["out"].ndim > 4 or outputs.numbers == 2:
        return
    axis_name = partial(problem.axis, problem.output_names[outputs.active[0]])
    for axes in axes_subsets(s.outputs["out"].ndim):
        text = f"the cotangent must be summed over {' and '.join(map(axis_name, axes))}"
        summed = [u.sum(axis=axes, keepdims=True) + 0 * u for u in s.cotangents["out"]]
        gradients = [s.point.vjp(u.reshape(-1))[s.number] for u in summed]
        yield "GC106", text, np.stack(gradients)


# --------------------------------------------------------------------------- operand, factor, term
def operands(s: Evidence) -> Iterator[Formula]:
    """Yield a product of the cotangent with another input, if backward gives a different such
    product.
    """
    if s.x.ndim != 2 or "out" not in s.outputs or s.outputs["out"].ndim != 2:
        return
    other_matrices = {name: v for name, v in s.inputs.items() if v.ndim == 2 and name != s.name}
    factors = matrices({"dy": s.cotangents["out"], **other_matrices})
    fitting = {}
    for a, b in products(factors):
        left, right = factors[a], factors[b]
        if (*left.shape[-2:], right.shape[-1]) == (s.x.shape[0], right.shape[-2], s.x.shape[1]):
            fitting[f"{a} @ {b}"] = left @ right
    if any((abs(v - s.analytic) <= s.bounds).all() for v in fitting.values()):
        yield from (("GC116", f"numeric = {name}", v) for name, v in fitting.items())


def functions(s: Evidence) -> Iterator[tuple[str, Callable[[Array], Array], Array]]:
    """Simple elementwise functions of input, output and other inputs, with their arguments, which
    have the input's shape.
    """
    for name, v in ({s.name: s.x} | s.outputs | s.inputs).items():
        if v.shape == s.x.shape and "c" not in (v.dtype.kind, s.x.dtype.kind):
            for text, formula in FORMULAS.items():
                yield (f"({text})" if " " in text else text).format(name), formula, v


def usable(values: Array) -> bool:
    """Whether all values are finite, some are not 0, and they are more than a pattern of a few
    signs.
    """
    sizes = abs(values)
    largest = float(sizes.max())
    varied = values.size >= LEAST_SIGNS or bool((sizes != largest).any())
    return varied and 0 < largest < np.inf


TIMES: dict[str, Callable[[Array], Array]] = {"·": np.asarray}
TIMES_OR_OVER = TIMES | {"/": np.reciprocal}
"""The text of a product with a function, by sign."""


Fitting = tuple[str, str, Array]
"""A sign, and the name and the values of a function."""


def fitting(
    s: Evidence,
    scaled: Array,
    wanted: Array,
    signs: Mapping[str, Callable[[Array], Array]],
    plain: Sequence[Fitting] = (),
) -> Iterator[Fitting]:
    """The `plain` functions, then those by which `scaled` may match the expected values, up to a
    factor.
    """
    if not s.known(wanted[0]):
        return
    yield from plain
    for name, formula, v in functions(s):
        first = formula(v[None][FIRST])
        for sign, power in signs.items():
            if s.may_fit(scaled[FIRST] * power(first), wanted[FIRST]):
                values = power(formula(v))
                if usable(values):
                    yield sign, name, values


def ratios(s: Evidence) -> Iterator[Formula]:
    """Yield the analytic gradient multiplied or divided by a simple function."""
    for sign, name, values in fitting(s, s.analytic, s.truth, TIMES_OR_OVER):
        product = s.analytic * values
        if c := s.factor(product):
            yield "GC111", ratio(f"analytic {sign} {name}", c), c * product


def ratio(text: str, c: float) -> str:
    """Describe a formula times a constant, with the mistake that most often gives this formula."""
    says = f"numeric = {'' if c == 1 else f'{factor_text(c)} · '}{text}"
    match = re.fullmatch(r"analytic ([·/]) \(1 \+ ([^²]+)\)", text)
    if not match:
        return says
    linear, squared = f"1 − {match[2]}", f"1 − {match[2]}²"
    wrong, right = (linear, squared) if match[1] == "·" else (squared, linear)
    return f"{says}: a factor {wrong} that should be {right}"


def terms(s: Evidence) -> Iterator[Formula]:
    """Yield the analytic gradient plus the cotangent times a simple function."""
    if "out" not in s.outputs or s.outputs["out"].size != s.x.size or s.point.complex:
        return
    cotangents = s.cotangents["out"].reshape(s.truth.shape)
    plain = ("·", "", np.ones_like(s.x))
    for _, name, f in fitting(s, cotangents, s.truth - s.analytic, TIMES, [plain]):
        if c := s.factor(cotangents * f, s.analytic):
            number = "" if abs(c) == 1 else f"{factor_text(abs(c))} · "
            term = f"{number}dy · {name}" if name else f"{number}dy"
            text = f"numeric = analytic {'−' if c < 0 else '+'} {term}"
            yield "GC114", text, c * (cotangents * f) + s.analytic


def far_fetched(s: Evidence) -> Iterator[Formula]:
    """Formulas that are tried where no edit repairs backward."""
    if s.point.problem.find_fix() is None:
        for family in (rearrangements, operands, ratios, terms):
            yield from family(s)


FAMILIES_OF_FORMULAS = (trivial, constant_factor, parts, far_fetched)
"""Families of formulas, in the order in which they are tried."""
