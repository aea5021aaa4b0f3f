"""The likely cause of a wrong gradient: what the tape explains, else a formula of the right gradient in what backward
gives: a factor, a term, another order, another input's gradient.

A formula says what the right gradient is if it is true. The first one that holds, element by element and for two random
cotangents, is the cause: the simplest come first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
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
"""Elements, about, on which a formula is tried before all are."""
OF_BUDGET = 10
"""The search on the tape takes a tenth of what naming may cost."""
SWAPPED = "GC105"
"""The code of gradients in the wrong order: one slip, which is wrong about two inputs."""
COTANGENTS = 2
"""Random ones that a formula has to hold for: with one, any number can be explained."""


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
    sought = point.problem.order > 1 or any(
        bool((g[number] != 0).any()) for _, g in claims for number in wrong
    )
    found = list[Diagnosis]()
    by_causes: Backward = point.vjp
    if said is not None and sought:
        found, by_causes = explained_by_tape(
            point, [*claims, prober.claimed()], said.rounding, budget / OF_BUDGET
        )
    names = [point.problem.names[k] for k in point.moved]
    left = [k for k in wrong if not any(names[k] in d.inputs for d in found)]

    def formula(number: int) -> str:
        """The code of the formula that holds for an input, and what it says."""
        if (
            said is not None
        ):  # rounding of one cotangent is as large as that of another, if not at the same elements
            bounds = (
                said.rounding[number],
                0 * said.rounding[number] + said.rounding[number].max(initial=0.0),
            )
            rows = [
                (point.by_tape(u)[number], bound)
                for (u, _), bound in zip(claims, bounds, strict=True)
            ]
        elif number in jacobians:
            rows = [gradient(*jacobians[number], u, point.x[number].shape) for u, _ in claims]
        else:
            return ""
        with np.errstate(all="ignore"):  # formulas try the logarithm of whatever there is
            return Evidence(point, number, wrong, claims, rows).formula()

    told = {number: formula(number) for number in left}
    if any(
        text.startswith(SWAPPED) for text in told.values()
    ):  # then what the tape says of the others is far-fetched
        others = {number: formula(number) for number in wrong if number not in left}
        told |= {number: text for number, text in others.items() if text.startswith(SWAPPED)}
    found = [d for d in found if not any(d.inputs == (names[k],) for k in told)]
    for number, (code, _, text) in ((k, text.partition(" ")) for k, text in told.items() if text):
        found.append(Diagnosis.of(code, f"{names[number]}: {text}", (names[number],)))
    return found, point.vjp if left or not found else by_causes


def gradient(
    jacobian: Array, bounds: Array, cotangent: Array, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """That of a cotangent by a Jacobian, or its diagonal, and its bound."""
    u, size = cotangent, abs(cotangent)
    found = (u * jacobian, size * bounds) if jacobian.ndim == 1 else (u @ jacobian, size @ bounds)
    return found[0].reshape(shape), found[1].reshape(shape)


class Formula(NamedTuple):
    """What the right gradient may be."""

    says: str | Callable[[float], str]
    """Its code and what it says; of the factor, where one is free, with nothing where that is not worth a word."""
    values: Array
    """The right gradients, one for each cotangent, or what they are a constant times of."""
    added: bool = False
    """Whether what backward gives is added to that."""


@dataclass
class Evidence:
    """What formulas for one moved input are made from. Its arrays have a first axis for the cotangents."""

    point: Point
    number: int
    wrong: Sequence[int]
    """The inputs whose gradients are wrong."""
    claims: Sequence[tuple[Array, Sequence[Array]]]
    """Cotangents, and the gradients of the moved inputs that backward gives for each."""
    rows: Sequence[tuple[Array, Array]]
    """The right gradients of the input, and how far what is right may be off them."""

    def __post_init__(self) -> None:
        outputs = self.point.outputs
        self.inputs = dict(
            zip((self.point.problem.names[k] for k in self.point.moved), self.point.x, strict=True)
        )
        self.name, self.x = list(self.inputs.items())[self.number]
        self.outputs = [outputs.arrays[k] for k in outputs.active]
        self.out = self.outputs[0] if len(self.outputs) == 1 else None
        """The one output, if there is only one."""
        self.of_out = np.stack([wide(outputs.split(u)[outputs.active[0]]) for u, _ in self.claims])
        """The cotangents of the first output in its shape."""
        self.truth, bars = map(np.stack, zip(*self.rows, strict=True))
        axes = tuple(range(1, self.truth.ndim))
        self.bars = bars + ROUNDING * abs(self.truth).max(axis=axes, keepdims=True, initial=0.0)
        self.analytic = self.claimed(self.number)

    def claimed(self, number: int) -> Array:
        """The gradients of an input that backward gives."""
        return np.stack([gradients[number] for _, gradients in self.claims])

    def formula(self) -> str:
        """The code of the first formula that holds, and what it says; nothing if none does."""
        if self.holds(self.analytic):  # the bounds are too wide to tell them from the right ones
            return ""
        tried = itertools.chain.from_iterable(family(self) for family in FAMILIES_OF_FORMULAS)
        return next(filter(None, map(self.told, tried)), "")

    def holds(self, values: Array, factor: float = 1.0, added: bool = False) -> bool:
        """Whether a factor times values, plus what backward gives if that is `added`, are the right gradients."""
        for step in (1 + self.x.size // FIRST_ELEMENTS, 1):
            arrays = (values, self.truth, self.bars, self.analytic)
            v, t, b, a = (array.reshape(len(self.truth), -1)[:, ::step] for array in arrays)
            if not bool((abs(factor * v + (a if added else 0.0) - t) <= b).all()):
                return False
        return True

    def told(self, row: Formula) -> str:
        """What a formula says, if it holds."""
        if isinstance(row.says, str):
            return row.says if self.holds(row.values) else ""
        c = self.factor(row.values, row.added)
        return row.says(c) if c and self.holds(row.values, c, row.added) else ""

    def factor(self, values: Array, added: bool) -> float:
        """The simple factor that is right for the largest of some values; 0 if there is none."""
        place = int(abs(values[0]).argmax())
        arrays = (values, self.truth, self.bars, self.analytic)
        base, wanted, bar, analytic = (complex(array[0].reshape(-1)[place]) for array in arrays)
        wanted -= analytic if added else 0
        if not base or not np.isfinite(abs(base)) or not np.isfinite(abs(wanted)):
            return 0.0
        ratio, off = (wanted / base).real, bar.real / abs(base)
        return nice(ratio, off) if np.isfinite(ratio) and abs(ratio) > 4 * off else 0.0

    def known(self, values: Array) -> bool:
        """Whether enough digits are known of such values, those of one element left out: a factor fits that."""
        digits = np.log10(
            np.maximum(abs(values) / np.maximum(self.bars[0], SMALLEST["float64"]), 1.0)
        )
        return float(digits.sum() - digits.max()) >= LEAST_KNOWN_DIGITS


def nice(value: float, bar: float) -> float:
    """The simplest fraction with a small denominator within the bar of a value, or the value."""
    for denominator in range(1, SIMPLE + 1):
        near = round(value * denominator) / denominator
        if near and abs(near - value) <= 4 * bar + 1e-9 * abs(value):
            return near
    return value


# --------------------------------------------------------------------------- nothing but the gradient
def trivial(s: Evidence) -> Iterator[Formula]:
    """The cotangent passed on as it is, all zeros, the same for every cotangent."""
    outputs = s.point.outputs
    for k in outputs.active:
        cotangents = [wide(outputs.split(u)[k]) for u, _ in s.claims]
        if cotangents[0].shape == s.x.shape and bool((s.analytic == np.stack(cotangents)).all()):
            of = "" if s.out is not None else f" of out[{k}]"
            says = f"backward passes the cotangent{of} on as it is (straight-through), which is not the derivative"
            yield Formula(f"GC122 {says}", s.truth)
    if not bool((s.analytic != 0).any()):
        yield Formula(
            "GC108 backward gives 0 everywhere, or None, but the derivative is not 0", s.truth
        )
    if bool((s.analytic == s.analytic[:1]).all()):
        yield Formula("GC109 backward gives the same whatever the incoming gradient is", s.truth)


def constant_factor(s: Evidence) -> Iterator[Formula]:
    """A constant factor; −1 and the numbers of elements have names of their own."""
    sizes, problem = [], s.point.problem
    outputs = [
        (problem.output_names[k], "the output", s.point.outputs.arrays[k])
        for k in s.point.outputs.active
    ]
    for name, called, array in ((s.name, s.name, s.x), *outputs):
        own = array.shape[name in problem.ranked :]  # what one rank of a world has
        sizes.append((f"the number of elements of {called}", prod(own)))
        sizes += [(f"the length of axis {axis} of {called}", n) for axis, n in enumerate(own)]

    def said(c: float) -> str:
        if c == -1:
            return "GC102 numeric = −analytic: the sign is wrong"
        if abs(c - 1) <= 1e-6 or (s.x.size < 2 and factor_text(c) == f"{c:.6g}" and c != int(c)):
            return ""  # of one number any factor can be found
        for what, n in sizes:
            if n >= LEAST_LENGTH and min(abs(abs(c) / n - 1), abs(abs(c) * n - 1)) <= 1e-9:
                times = (
                    f"{factor_text(c)} · analytic"
                    if abs(c) > 1
                    else f"analytic / {factor_text(1 / c)}"
                )
                return f"GC112 numeric = {times}, and {n} is {what}"
        return f"GC101 numeric = {factor_text(c)} · analytic, for all entries"

    yield Formula(said, s.analytic)


def parts(s: Evidence) -> Iterator[Formula]:
    """Without its conjugate; zero at some elements, right at all others."""
    if s.x.dtype.kind == "c":
        yield Formula("GC115 numeric = conj(analytic)", s.analytic.conj())
    mask = (abs(s.analytic - s.truth) > s.bars).any(0)
    count = int(mask.sum())
    if 0 < count < s.x.size:
        first = tuple(np.argwhere(np.asarray(mask.tolist()))[0].tolist())
        where = s.point.problem.element(s.name, first)
        says = f"GC107 {count} of {s.x.size} elements get 0 where it is not ({where} …)"
        yield Formula(says, np.where(mask & (s.analytic == 0), s.truth, s.analytic))


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Evidence) -> Iterator[Formula]:
    """That of another wrong input; in another order; what backward gives for the cotangent summed over some axes."""
    for number, (name, x) in enumerate(s.inputs.items()):
        if number in s.wrong and number != s.number and x.shape == s.x.shape:
            yield Formula(
                f"{SWAPPED} numeric = the gradient that backward gives for {name}",
                s.claimed(number),
            )
    for words, order in orders(s.x.shape, partial(s.point.problem.axis, s.name)):
        code = "GC104" if words.startswith(("rolled", "flipped")) else "GC103"
        yield Formula(f"{code} numeric = analytic {words}", np.stack(list(map(order, s.analytic))))
    if s.out is None or s.out.ndim > 4 or s.point.outputs.complex:
        return
    axis = partial(s.point.problem.axis, s.point.problem.output_names[s.point.outputs.active[0]])
    for summed in (
        some for n in range(s.out.ndim) for some in itertools.combinations(range(s.out.ndim), n + 1)
    ):
        sums = [(u.sum(axis=summed, keepdims=True) + 0 * u).reshape(-1) for u in s.of_out]
        says = f"GC106 the cotangent must be summed over {' and '.join(map(axis, summed))}"
        yield Formula(says, np.stack([s.point.vjp(u)[s.number] for u in sums]))


# --------------------------------------------------------------------------- an operand, a factor or a term
def operands(s: Evidence) -> Iterator[Formula]:
    """A product of the cotangent with another input, each perhaps transposed, where backward gives another of them."""
    if s.x.ndim != 2 or s.out is None or s.out.ndim != 2:
        return
    others = {n: v for n, v in s.inputs.items() if v.ndim == 2 and n != s.name}
    named = matrices({"dy": s.of_out, **others})
    fitting = {}
    for a, b in products(named):
        (rows, inner), (again, columns) = named[a].shape[-2:], named[b].shape[-2:]
        if inner == again and (rows, columns) == s.x.shape:
            fitting[f"{a} @ {b}"] = named[a] @ named[b]
    if any(bool((abs(values - s.analytic) <= s.bars).all()) for values in fitting.values()):
        yield from (Formula(f"GC116 numeric = {name}", values) for name, values in fitting.items())


def functions(s: Evidence) -> Iterator[tuple[str, Array]]:
    """Simple functions of input, output and the other inputs, elementwise, of the input's shape, where that is real."""
    active = zip(s.point.outputs.active, s.outputs, strict=True)
    outputs = {"out" if s.out is not None else f"out[{k}]": wide(out) for k, out in active}
    for name, v in ({s.name: s.x} | outputs | s.inputs).items():
        if v.shape == s.x.shape and "c" not in (v.dtype.kind, s.x.dtype.kind):
            for text, formula in FORMULAS.items():
                yield (f"({text})" if " " in text else text).format(name), formula(v)


def usable(values: Array) -> bool:
    """Whether all are finite, some are not 0, and they are more than a pattern of a few signs."""
    largest = float(abs(values).max())
    return 0 < largest < float("inf") and (
        values.size >= LEAST_SIGNS or bool((abs(values) != largest).any())
    )


def ratios(s: Evidence) -> Iterator[Formula]:
    """Analytic times or over a simple function."""
    for name, f in functions(s) if s.known(s.truth[0]) else ():
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            if usable(values):
                yield Formula(partial(ratio, text), s.analytic * values)


def ratio(text: str, c: float) -> str:
    """What a constant times a ratio says, and what that most often means."""
    said = f"GC111 numeric = {'' if c == 1 else f'{factor_text(c)} · '}{text}"
    found = re.fullmatch(r"analytic ([·/]) \(1 \+ ([^²]+)\)", text)
    if not found:
        return said
    there, wanted = (f"1 − {found[2]}", f"1 − {found[2]}²")[:: 1 if found[1] == "·" else -1]
    return f"{said}: a factor {there} that should be {wanted}"


def terms(s: Evidence) -> Iterator[Formula]:
    """Analytic plus the cotangent times a simple function."""
    if (
        s.out is None
        or s.out.size != s.x.size
        or s.point.complex
        or not s.known(s.truth[0] - s.analytic[0])
    ):
        return
    for name, f in (("", s.x * 0 + 1), *functions(s)):
        if usable(f) or not name:
            values = s.of_out.reshape(s.truth.shape) * f
            yield Formula(partial(term, f"dy{name and f' · {name}'}"), values, added=True)


def term(text: str, c: float) -> str:
    """What a constant times a term says."""
    number = "" if abs(c) == 1 else f"{factor_text(abs(c))} · "
    return f"GC114 numeric = analytic {'−' if c < 0 else '+'} {number}{text}"


FAMILIES_OF_FORMULAS = (trivial, constant_factor, parts, rearranged, operands, ratios, terms)
"""In the order in which they are tried: the simplest first."""
