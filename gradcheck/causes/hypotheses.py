"""Formulas of the right gradient in what backward gives: a factor, a term, another order, another input's gradient.

A row says what the right gradients are if it is true, one for each of two random cotangents. The first one that holds,
element by element, is the cause: the simplest come first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from gradcheck.causes.candidates import FORMULAS, products
from gradcheck.checking.arrays import SMALLEST, Array, module_of, wide
from gradcheck.checking.point import FlatOutputs

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
SIMPLE = 12
"""Factors that are fractions of numbers up to this are simple."""


class Hypothesis(NamedTuple):
    """One hypothesis."""

    says: str | Callable[[float], str]
    """Its code and what it says; of the factor, where one is free, with nothing where that is not worth a word."""
    values: Sequence[Array]
    """The right gradients, or what they are a constant times of, plus `rests`."""
    rests: Sequence[Array] = ()


@dataclass
class Evidence:
    """What hypotheses about one input are made from; one gradient of all inputs per cotangent, one right gradient of
    this input, and how far what is right may be off it."""

    number: int
    names: Sequence[str]
    inputs: Sequence[Array]
    outputs: FlatOutputs
    cotangents: Sequence[Array]
    claimed: Sequence[Sequence[Array]]
    truth: Sequence[Array]
    bars: Sequence[Array]
    vjp: Callable[[Array], list[Array]]
    wrong: Sequence[int]
    """The inputs whose gradients are wrong."""

    def __post_init__(self) -> None:
        self.x, self.name = self.inputs[self.number], self.names[self.number]
        self.gradients = [gradients[self.number] for gradients in self.claimed]
        """Of this input, as backward gives them."""
        active = self.outputs.active
        self.out = self.outputs.arrays[active[0]] if len(active) == 1 else None
        """The one output, if there is only one."""
        parts = [self.outputs.split(u)[active[0]] for u in self.cotangents]
        self.of_out = [wide(part).reshape(self.outputs.arrays[active[0]].shape) for part in parts if part is not None]
        """The cotangents of the first output in its shape."""

    def holds(self, candidates: Sequence[Array]) -> bool:
        """Whether gradients, one per cotangent, are the right ones."""
        return all(bool((abs(c - t) <= b).all()) for c, t, b in zip(candidates, self.truth, self.bars, strict=True))

    def known(self, values: Array) -> bool:
        """Whether enough digits are known of values of the right gradient's size, those of one element left out: a
        factor fits that."""
        xp = module_of(values)
        digits = xp.log10(xp.maximum(abs(values) / xp.maximum(self.bars[0], SMALLEST["float64"]), 1.0))
        return float(digits.sum() - digits.max()) >= LEAST_KNOWN_DIGITS

    def factor(self, candidates: Sequence[Array], rests: Sequence[Array] = ()) -> float | None:
        """The simple factor c for which c · candidate (plus rest) is right; None if there is none."""
        rests = rests or [0 * a for a in candidates]
        place = int(abs(candidates[0]).argmax())
        base, wanted = (complex(a.reshape(-1)[place]) for a in (candidates[0], self.truth[0] - rests[0]))
        if not base or not np.isfinite(abs(base)) or not np.isfinite(abs(wanted)):
            return None
        ratio, bar = (wanted / base).real, float(self.bars[0].reshape(-1)[place]) / abs(base)
        if abs(ratio) <= 4 * bar or not np.isfinite(ratio):
            return None
        c = nice(ratio, bar)

        def fits(step: int) -> bool:
            """Whether every so many elements are right."""
            arrays = zip(candidates, rests, self.truth, self.bars, strict=True)
            flat = ([v.reshape(-1)[::step] for v in four] for four in arrays)
            return all(bool((abs(c * a + r - t) <= b).all()) for a, r, t, b in flat)

        return c if fits(1 + self.x.size // FIRST_ELEMENTS) and fits(1) else None


def likely(s: Evidence) -> tuple[str, str] | None:
    """The code of the first hypothesis that holds, and what it says."""
    for row in itertools.chain.from_iterable(family(s) for family in HYPOTHESES):
        if isinstance(row.says, str):
            says = row.says if s.holds(row.values) else ""
        else:
            c = s.factor(row.values, row.rests)
            says = "" if c is None else row.says(c)
        if says:
            code, _, text = says.partition(" ")
            return code, text
    return None


# --------------------------------------------------------------------------- nothing but the gradient
def trivial_gradients(s: Evidence) -> Iterator[Hypothesis]:
    """The cotangent passed on where the derivative is 0, all zeros, the same for every cotangent."""
    first, second = s.gradients
    alike = s.out is not None and s.out.shape == s.x.shape
    if alike and all(bool((g == u).all()) for g, u in zip(s.gradients, s.of_out, strict=True)):
        says = "GC122 the derivative is 0 here and backward passes the cotangent on (straight-through)"
        yield Hypothesis(says, [0 * t for t in s.truth])
    if not bool((first != 0).any() or (second != 0).any()):
        yield Hypothesis("GC108 backward gives 0 everywhere, or None, but the derivative is not 0", s.truth)
    if bool((first == second).all()):
        yield Hypothesis("GC109 backward gives the same whatever the incoming gradient is", s.truth)


def constant_factor(s: Evidence) -> Iterator[Hypothesis]:
    """A constant factor; −1 and the numbers of elements have names of their own."""

    def said(c: float) -> str:
        if c == -1:
            return "GC102 numeric = −analytic: the sign is wrong"
        if abs(c - 1) <= 1e-6 or (s.x.size < 2 and factor_text(c) == f"{c:.6g}" and c != int(c)):
            return ""  # of one number any factor can be found
        for what, n in sizes(s):
            if n >= LEAST_LENGTH and min(abs(abs(c) / n - 1), abs(abs(c) * n - 1)) <= 1e-9:
                times = f"{factor_text(c)} · analytic" if abs(c) > 1 else f"analytic / {factor_text(1 / c)}"
                return f"GC112 numeric = {times}, and {n} is {what}"
        return f"GC101 numeric = {factor_text(c)} · analytic, for all entries"

    yield Hypothesis(said, s.gradients)


def sizes(s: Evidence) -> Iterator[tuple[str, int]]:
    """The numbers of elements that a factor may be."""
    for name, array in ((s.name, s.x), *(("the output", s.outputs.arrays[k]) for k in s.outputs.active)):
        yield f"the number of elements of {name}", array.size
        yield from ((f"the length of axis {axis} of {name}", n) for axis, n in enumerate(array.shape))


def parts(s: Evidence) -> Iterator[Hypothesis]:
    """Without its conjugate; zero at some elements, right at all others."""
    if s.x.dtype.kind == "c":
        yield Hypothesis("GC115 numeric = conj(analytic)", [g.conj() for g in s.gradients])
    mask = sum(abs(g - t) > b for g, t, b in zip(s.gradients, s.truth, s.bars, strict=True)) > 0
    count = int(mask.sum())
    if 0 < count < s.x.size:
        where = f"{s.name}{np.argwhere(np.asarray(mask.tolist()))[0].tolist() or ''}"
        says = f"GC107 {count} of {s.x.size} elements get 0 where it is not ({where} …)"
        put = module_of(mask).where
        yield Hypothesis(says, [put(mask & (g == 0), t, g) for g, t in zip(s.gradients, s.truth, strict=True)])


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Evidence) -> Iterator[Hypothesis]:
    """That of another input, which is wrong as well; transposed, its axes permuted, rolled by one, flipped; what
    backward gives for the cotangent summed over some axes."""
    xp, shape = module_of(s.x), s.x.shape
    for other in s.wrong:
        if other != s.number and s.inputs[other].shape == shape:
            says = f"GC105 numeric = the gradient that backward gives for {s.names[other]}"
            yield Hypothesis(says, [gradients[other] for gradients in s.claimed])
    axes = range(len(shape))
    moves: list[tuple[str, Callable[[Array], Array]]] = []
    for order in itertools.islice(itertools.permutations(axes), 1, 24):
        if tuple(shape[k] for k in order) == shape:
            words = "transposed" if order == (*axes[:-2], *axes[:-3:-1]) else f"with its axes permuted to {list(order)}"
            moves.append((f"GC103 numeric = analytic {words}", partial(xp.transpose, axes=order)))
    for k in (k for k in axes if shape[k] > 1):
        beginning = "GC104 numeric = analytic"
        for step in (1, -1):
            moves.append((f"{beginning} rolled by {step} along axis {k}", partial(xp.roll, shift=step, axis=k)))
        moves.append((f"{beginning} flipped along axis {k}", partial(xp.flip, axis=k)))
    yield from (Hypothesis(says, [move(g) for g in s.gradients]) for says, move in moves)
    if s.out is None or s.out.ndim > 4 or s.outputs.complex:
        return
    for summed in (some for n in range(s.out.ndim) for some in itertools.combinations(range(s.out.ndim), n + 1)):
        sums = [(u.sum(axis=summed, keepdims=True) + 0 * u).reshape(-1) for u in s.of_out]
        says = f"GC106 the cotangent must be summed over axis {', '.join(map(str, summed))}"
        yield Hypothesis(says, [s.vjp(u)[s.number] for u in sums])


# --------------------------------------------------------------------------- an operand, a factor or a term
def operands(s: Evidence) -> Iterator[Hypothesis]:
    """A product of the cotangent with another input, each perhaps transposed, where backward gives another of them."""
    if s.x.ndim != 2 or s.out is None or s.out.ndim != 2:
        return
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if v.ndim == 2 and n != s.name]
    found = [dict(products(("dy", u), others)) for u in s.of_out]
    fitting = {name: [f[name] for f in found] for name, value in found[0].items() if value.shape == s.x.shape}
    claimed = replace(s, truth=s.gradients)
    if any(claimed.holds(values) for values in fitting.values()):
        yield from (Hypothesis(f"GC116 numeric = {name}", values) for name, values in fitting.items())


def functions(s: Evidence) -> Iterator[tuple[str, Array]]:
    """Simple functions of input, output and the other inputs, elementwise, of the input's shape."""
    several = len(s.outputs.active) > 1
    outputs = [(f"out[{k}]" if several else "out", wide(s.outputs.arrays[k])) for k in s.outputs.active]
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if n != s.name]
    for name, v in [(s.name, s.x), *outputs, *others]:
        if v.shape == s.x.shape and v.dtype.kind != "c":
            yield from ((bracketed(text.format(name)), formula(v)) for text, formula in FORMULAS.items())


def bracketed(formula: str) -> str:
    """A formula as a factor."""
    return f"({formula})" if " " in formula else formula


def usable(values: Array) -> bool:
    """Whether all are finite, some are not 0, and they are more than a pattern of a few signs."""
    largest = float(abs(values).max())
    return 0 < largest < float("inf") and (values.size >= LEAST_SIGNS or bool((abs(values) != largest).any()))


def ratios(s: Evidence) -> Iterator[Hypothesis]:
    """Analytic times or over a simple function."""
    if s.x.dtype.kind == "c" or not s.known(s.truth[0]):
        return
    for name, f in functions(s):
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            if usable(values):
                yield Hypothesis(partial(ratio, text), [g * values for g in s.gradients])


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
    out = s.out
    if s.x.dtype.kind == "c" or out is None or out.size != s.x.size or s.outputs.complex:
        return
    if not s.known(s.truth[0] - s.gradients[0]):
        return

    for name, f in (("", s.x * 0 + 1), *functions(s)):
        if usable(f) or not name:
            yield Hypothesis(
                partial(term, f"dy{name and f' · {name}'}"), [u.reshape(s.x.shape) * f for u in s.of_out], s.gradients
            )


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


def factor_text(value: float, simple: int = SIMPLE) -> str:
    """A factor as a person would write it: 2, 1/3, 0.1234."""
    fraction = Fraction(value).limit_denominator(simple)
    return str(fraction) if abs(float(fraction) - value) <= 1e-9 * abs(value) else f"{value:.6g}"
