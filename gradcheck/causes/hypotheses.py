"""The likely cause of a wrong gradient: what the tape explains, else a formula of the right gradient in what backward
gives: a factor, a term, another order, another input's gradient.

A row says what the right gradients are if it is true, one for each of two random cotangents. The first one that holds,
element by element, is the cause: the simplest come first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.causes.candidates import FORMULAS, matrices, orders, products
from gradcheck.causes.search import Backward
from gradcheck.causes.words import SIMPLE, explained_by_tape, factor_text
from gradcheck.checking.point import Point
from gradcheck.checking.precision import SMALLEST, wide
from gradcheck.checking.probe import ROUNDING, Probe, Prober
from gradcheck.result import Diagnosis

LEAST_KNOWN_DIGITS = 6.0
"""Digits of the right gradient that have to be known for a formula with a free factor: of 200 tried, one fits four of
them by chance once in 50 times, six once in 5,000."""
LEAST_LENGTH = 5
"""Elements of an axis from which a factor is taken for their number: 2, 3 and 4 are powers and constants more often."""
LEAST_SIGNS = 16
"""Elements from which a function that has one size throughout, such as the sign, is tried: any signs of n elements are
those of one of 30 functions once in 2^(n − 6)."""
FIRST_ELEMENTS = 1000
"""Elements, about, on which a factor is tried before all are."""
OF_BUDGET = 10
"""The search on the tape takes a tenth of what naming may cost."""
COTANGENTS = 2
"""Random ones that a hypothesis has to hold for: with one, any number can be explained."""


class Hypothesis(NamedTuple):
    """One hypothesis; arrays have a first axis for the cotangents."""

    says: str | Callable[[float], str]
    """Its code and what it says; of the factor, where one is free, with nothing where that is not worth a word."""
    values: Array
    """The right gradients, or what they are a constant times of, plus `rests`."""
    rests: Array | float = 0.0


@dataclass
class Evidence:
    """What hypotheses about one moved input are made from."""

    point: Point
    number: int
    cotangents: Sequence[Array]
    claimed: Sequence[Sequence[Array]]
    """The gradients of all moved inputs that backward gives, per cotangent."""
    truth: Array
    """The right ones of this input, one row per cotangent, and how far what is right may be off them."""
    bars: Array
    wrong: Sequence[int]
    """The inputs whose gradients are wrong."""

    def __post_init__(self) -> None:
        self.inputs, outputs = self.point.x, self.point.outputs
        self.names = [self.point.problem.names[k] for k in self.point.moved]
        self.x, self.name = self.inputs[self.number], self.names[self.number]
        self.gradients = self.stacked([gradients[self.number] for gradients in self.claimed])
        """Of this input, as backward gives them."""
        self.outputs = [outputs.arrays[k] for k in outputs.active]
        self.out = self.outputs[0] if len(self.outputs) == 1 else None
        """The one output, if there is only one."""
        parts = [outputs.split(u)[outputs.active[0]] for u in self.cotangents]
        self.of_out = self.stacked([wide(part) for part in parts if part is not None])
        """The cotangents of the first output in its shape."""

    def stacked(self, rows: Sequence[Array]) -> Array:
        """One row per cotangent."""
        return np.stack(rows)

    def holds(self, values: Array) -> bool:
        """Whether gradients are the right ones."""
        return bool((abs(values - self.truth) <= self.bars).all())

    def told(self, row: Hypothesis) -> str:
        """The code of a hypothesis and what it says, if it holds."""
        if isinstance(row.says, str):
            return row.says if self.holds(row.values) else ""
        c = self.factor(row.values, row.rests)
        return "" if c is None else row.says(c)

    def known(self, values: Array) -> bool:
        """Whether enough digits are known of such values, those of one element left out: a factor fits that."""
        digits = np.log10(np.maximum(abs(values) / np.maximum(self.bars[0], SMALLEST["float64"]), 1.0))
        return float(digits.sum() - digits.max()) >= LEAST_KNOWN_DIGITS

    def factor(self, values: Array, rests: Array | float) -> float | None:
        """The simple factor c for which c · values, plus rests, is right; None if there is none."""
        found = [v.reshape(len(self.truth), -1) for v in (values, self.truth - rests, self.bars)]
        place = int(abs(found[0][0]).argmax())
        base, wanted, bar = (complex(v[0, place]) for v in found)
        if not base or not np.isfinite(abs(base)) or not np.isfinite(abs(wanted)):
            return None
        ratio, off = (wanted / base).real, bar.real / abs(base)
        if abs(ratio) <= 4 * off or not np.isfinite(ratio):
            return None
        c = nice(ratio, off)

        def fits(step: int) -> bool:
            """Whether every so many elements are right."""
            a, t, b = (v[:, ::step] for v in found)
            return bool((abs(c * a - t) <= b).all())

        return c if fits(1 + self.x.size // FIRST_ELEMENTS) and fits(1) else None


def likely_causes(
    prober: Prober,
    wrong: Sequence[int],
    probe: Probe,
    jacobians: Mapping[int, tuple[Array, Array]],
    budget: float,
) -> tuple[list[Diagnosis], Backward]:
    """What explains the gradients of the inputs that are `wrong`: of all at once by the tape, or one by one; and
    backward, which is not asked where the tape with what was found gives the same.

    Without a tape the right gradients are those of `jacobians`, as far as these are known.
    """
    point, said = prober.point, probe.comparison
    claims = [(probe.cotangent, probe.gradients)] if probe.wrong is not None else []
    claims += [prober.claimed() for _ in range(COTANGENTS - len(claims))]
    # where a gradient of zeros was written there is nothing to search for; at second order it is what was cut off
    sought = point.problem.order > 1 or any(bool((g[number] != 0).any()) for _, g in claims for number in wrong)
    found = list[Diagnosis]()
    by_causes: Backward = point.vjp
    if said is not None and sought:
        found, by_causes = explained_by_tape(point, [*claims, prober.claimed()], said.rounding, budget / OF_BUDGET)
        wrong = [k for k in wrong if not any(point.problem.names[point.moved[k]] in d.inputs for d in found)]
    return [*found, *formulas(prober, wrong, probe, jacobians, claims)], point.vjp if wrong else by_causes


def formulas(
    prober: Prober,
    wrong: Sequence[int],
    probe: Probe,
    jacobians: Mapping[int, tuple[Array, Array]],
    claims: Sequence[tuple[Array, Sequence[Array]]],
) -> Iterator[Diagnosis]:
    """The formulas of the right gradients in the wrong ones, input by input."""
    point, said = prober.point, probe.comparison
    cotangents, claimed = zip(*claims, strict=True)
    for number in wrong:
        if said is not None:  # rounding of one cotangent is as large as that of another, if not at the same elements
            bounds = said.rounding[number], 0 * said.rounding[number] + said.rounding[number].max(initial=0.0)
            rows = [(point.by_tape(u)[number], bound) for u, bound in zip(cotangents, bounds, strict=True)]
        elif number in jacobians:
            rows = [gradient(*jacobians[number], u, point.x[number].shape) for u in cotangents]
        else:
            continue
        truth, bars = map(np.stack, zip(*rows, strict=True))
        largest = abs(truth).max(axis=tuple(range(1, truth.ndim)), keepdims=True, initial=0.0)
        subject = Evidence(point, number, cotangents, claimed, truth, bars + ROUNDING * largest, wrong)
        if subject.holds(subject.gradients):  # the bounds are too wide to tell them from the right ones
            continue
        with np.errstate(all="ignore"):  # hypotheses try the logarithm of whatever there is
            tried = itertools.chain.from_iterable(family(subject) for family in HYPOTHESES)
            code, _, text = next(filter(None, map(subject.told, tried)), "").partition(" ")
        if code:
            yield Diagnosis.of(code, f"{subject.name}: {text}", (subject.name,))


def gradient(jacobian: Array, bounds: Array, cotangent: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """That of a cotangent by a Jacobian, or its diagonal, and its bound."""
    u, size = cotangent, abs(cotangent)
    found = (u * jacobian, size * bounds) if jacobian.ndim == 1 else (u @ jacobian, size @ bounds)
    return found[0].reshape(shape), found[1].reshape(shape)


# --------------------------------------------------------------------------- nothing but the gradient
def trivial_gradients(s: Evidence) -> Iterator[Hypothesis]:
    """The cotangent passed on where the derivative is 0, all zeros, the same for every cotangent."""
    first, second = s.gradients
    if s.out is not None and s.out.shape == s.x.shape and bool((s.gradients == s.of_out).all()):
        says = "GC122 the derivative is 0 here and backward passes the cotangent on (straight-through)"
        yield Hypothesis(says, 0 * s.truth)
    if not bool((s.gradients != 0).any()):
        yield Hypothesis("GC108 backward gives 0 everywhere, or None, but the derivative is not 0", s.truth)
    if bool((first == second).all()):
        yield Hypothesis("GC109 backward gives the same whatever the incoming gradient is", s.truth)


def constant_factor(s: Evidence) -> Iterator[Hypothesis]:
    """A constant factor; −1 and the numbers of elements have names of their own."""
    sizes = []
    for name, array in ((s.name, s.x), *(("the output", out) for out in s.outputs)):
        sizes.append((f"the number of elements of {name}", array.size))
        sizes += [(f"the length of axis {axis} of {name}", n) for axis, n in enumerate(array.shape)]

    def said(c: float) -> str:
        if c == -1:
            return "GC102 numeric = −analytic: the sign is wrong"
        if abs(c - 1) <= 1e-6 or (s.x.size < 2 and factor_text(c) == f"{c:.6g}" and c != int(c)):
            return ""  # of one number any factor can be found
        for what, n in sizes:
            if n >= LEAST_LENGTH and min(abs(abs(c) / n - 1), abs(abs(c) * n - 1)) <= 1e-9:
                times = f"{factor_text(c)} · analytic" if abs(c) > 1 else f"analytic / {factor_text(1 / c)}"
                return f"GC112 numeric = {times}, and {n} is {what}"
        return f"GC101 numeric = {factor_text(c)} · analytic, for all entries"

    yield Hypothesis(said, s.gradients)


def parts(s: Evidence) -> Iterator[Hypothesis]:
    """Without its conjugate; zero at some elements, right at all others."""
    if s.x.dtype.kind == "c":
        yield Hypothesis("GC115 numeric = conj(analytic)", s.gradients.conj())
    mask = (abs(s.gradients - s.truth) > s.bars).any(0)
    count = int(mask.sum())
    if 0 < count < s.x.size:
        where = f"{s.name}{np.argwhere(np.asarray(mask.tolist()))[0].tolist() or ''}"
        says = f"GC107 {count} of {s.x.size} elements get 0 where it is not ({where} …)"
        yield Hypothesis(says, np.where(mask & (s.gradients == 0), s.truth, s.gradients))


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Evidence) -> Iterator[Hypothesis]:
    """That of another wrong input; in another order; what backward gives for the cotangent summed over some axes."""
    for other in s.wrong:
        if other != s.number and s.inputs[other].shape == s.x.shape:
            says = f"GC105 numeric = the gradient that backward gives for {s.names[other]}"
            yield Hypothesis(says, s.stacked([gradients[other] for gradients in s.claimed]))
    for words, order in orders(s.x.shape):
        code = "GC104" if words.startswith(("rolled", "flipped")) else "GC103"
        yield Hypothesis(f"{code} numeric = analytic {words}", s.stacked(list(map(order, s.gradients))))
    if s.out is None or s.out.ndim > 4 or s.point.outputs.complex:
        return
    for summed in (some for n in range(s.out.ndim) for some in itertools.combinations(range(s.out.ndim), n + 1)):
        sums = [(u.sum(axis=summed, keepdims=True) + 0 * u).reshape(-1) for u in s.of_out]
        says = f"GC106 the cotangent must be summed over axis {', '.join(map(str, summed))}"
        yield Hypothesis(says, s.stacked([s.point.vjp(u)[s.number] for u in sums]))


# --------------------------------------------------------------------------- an operand, a factor or a term
def operands(s: Evidence) -> Iterator[Hypothesis]:
    """A product of the cotangent with another input, each perhaps transposed, where backward gives another of them."""
    if s.x.ndim != 2 or s.out is None or s.out.ndim != 2:
        return
    others = {n: v for n, v in zip(s.names, s.inputs, strict=True) if v.ndim == 2 and n != s.name}
    found = [matrices({"dy": u, **others}) for u in s.of_out]
    pairs = [(a, b) for a, b in products(found[0]) if (found[0][a].shape[0], found[0][b].shape[1]) == s.x.shape]
    fit = [(a, b) for a, b in pairs if found[0][a].shape[1] == found[0][b].shape[0]]
    fitting = {f"{a} @ {b}": s.stacked([f[a] @ f[b] for f in found]) for a, b in fit}
    if any(bool((abs(values - s.gradients) <= s.bars).all()) for values in fitting.values()):
        yield from (Hypothesis(f"GC116 numeric = {name}", values) for name, values in fitting.items())


def functions(s: Evidence) -> Iterator[tuple[str, Array]]:
    """Simple functions of input, output and the other inputs, elementwise, of the input's shape, where that is real."""
    active = zip(s.point.outputs.active, s.outputs, strict=True)
    outputs = [("out" if s.out is not None else f"out[{k}]", wide(out)) for k, out in active]
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if n != s.name]
    for name, v in [(s.name, s.x), *outputs, *others]:
        if v.shape == s.x.shape and "c" not in (v.dtype.kind, s.x.dtype.kind):
            for text, formula in FORMULAS.items():
                yield (f"({text})" if " " in text else text).format(name), formula(v)


def usable(values: Array) -> bool:
    """Whether all are finite, some are not 0, and they are more than a pattern of a few signs."""
    largest = float(abs(values).max())
    return 0 < largest < float("inf") and (values.size >= LEAST_SIGNS or bool((abs(values) != largest).any()))


def ratios(s: Evidence) -> Iterator[Hypothesis]:
    """Analytic times or over a simple function."""
    for name, f in functions(s) if s.known(s.truth[0]) else ():
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            if usable(values):
                yield Hypothesis(partial(ratio, text), s.gradients * values)


def ratio(text: str, c: float) -> str:
    """What a constant times a ratio says, and what that most often means."""
    said = f"GC111 numeric = {'' if c == 1 else f'{factor_text(c)} · '}{text}"
    found = re.fullmatch(r"analytic ([·/]) \(1 \+ ([^²]+)\)", text)
    if not found:
        return said
    there, wanted = (f"1 − {found[2]}", f"1 − {found[2]}²")[:: 1 if found[1] == "·" else -1]
    return f"{said}: a factor {there} that should be {wanted}"


def terms(s: Evidence) -> Iterator[Hypothesis]:
    """Analytic plus the cotangent times a simple function."""
    if s.out is None or s.out.size != s.x.size or s.point.complex or not s.known(s.truth[0] - s.gradients[0]):
        return
    for name, f in (("", s.x * 0 + 1), *functions(s)):
        if usable(f) or not name:
            values = s.of_out.reshape(s.truth.shape) * f
            yield Hypothesis(partial(term, f"dy{name and f' · {name}'}"), values, s.gradients)


def term(text: str, c: float) -> str:
    """What a constant times a term says."""
    number = "" if abs(c) == 1 else f"{factor_text(abs(c))} · "
    return f"GC114 numeric = analytic {'−' if c < 0 else '+'} {number}{text}"


HYPOTHESES = (trivial_gradients, constant_factor, parts, rearranged, operands, ratios, terms)
"""In the order in which they are tried: the simplest first."""


def nice(value: float, bar: float) -> float:
    """The simplest fraction with a small denominator within the bar of a value, or the value."""
    for denominator in range(1, SIMPLE + 1):
        near = round(value * denominator) / denominator
        if near and abs(near - value) <= 4 * bar + 1e-9 * abs(value):
            return near
    return value
