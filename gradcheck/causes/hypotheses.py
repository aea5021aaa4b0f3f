"""What makes the right gradient of the claimed one: a mistake in all of it, in a factor, a term or an operand.

A hypothesis yields what holds, as a code and what to say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from gradcheck.causes.candidates import FORMULAS, bracketed, products
from gradcheck.causes.hypothesis import Subject, shown
from gradcheck.checking.arrays import Array, module_of, wide

LEAST_DIGITS = 6.0
"""Digits of the right gradient that have to be known for a formula with a free factor: of 200 tried, one fits four of
them by chance once in 50 times, six once in 5,000."""
LEAST_LENGTH = 5
"""Elements of an axis from which a factor is taken for their number: 2, 3 and 4 are powers and constants more often."""
LEAST_SIGNS = 16
"""Elements from which a function that has one size throughout, such as the sign, is tried: any signs of n elements are
those of one of 30 functions once in 2^(n − 6)."""

Held = Iterator[tuple[str, str]]


# --------------------------------------------------------------------------- nothing but the gradient
def zero(s: Subject) -> Held:
    """All zeros."""
    if not any(bool((g != 0).any()) for g in s.gradients):
        yield "GC108", "backward gives 0 everywhere, but the derivative is not 0"


def ignored(s: Subject) -> Held:
    """The same gradient for every cotangent."""
    first, second = s.gradients
    if bool((first == second).all()):
        yield "GC109", "backward gives the same whatever the incoming gradient is"


def straight_through(s: Subject) -> Held:
    """The cotangent passed on where the derivative is 0."""
    out = s.single_output
    if out is None or out.shape != s.x.shape or not s.holds([0 * t for t in s.truth]):
        return
    if all(bool((g == u).all()) for g, u in zip(s.gradients, s.shaped(s.x.shape), strict=True)):
        yield "GC122", "the derivative is 0 here and backward passes the cotangent on (straight-through)"


def conjugated(s: Subject) -> Held:
    """A complex gradient without its conjugate."""
    if s.x.dtype.kind == "c" and s.holds([g.conj() for g in s.gradients]):
        yield "GC115", "numeric = conj(analytic)"


def factor(s: Subject) -> Held:
    """A constant factor; −1 and the numbers of elements have names of their own."""
    c = s.factor(s.gradients)
    if c is None or abs(c - 1) <= 1e-6:
        return
    if c == -1:
        yield "GC102", "numeric = −analytic: the sign is wrong"
    if s.x.size < 2 and shown(c) == f"{c:.6g}" and c != int(c):
        return  # of one number any factor can be found
    times = f"numeric = {shown(c)} · analytic"
    for what, n in sizes(s):
        if n >= LEAST_LENGTH and min(abs(abs(c) / n - 1), abs(abs(c) * n - 1)) <= 1e-9:
            yield "GC112", f"{times if abs(c) > 1 else f'numeric = analytic / {shown(1 / c)}'}, and {n} is {what}"
    yield "GC101", f"{times}, for all entries"


def sizes(s: Subject) -> Iterator[tuple[str, int]]:
    """The numbers of elements that a factor may be."""
    outputs = [("the output", s.outputs.arrays[k]) for k in s.outputs.active]
    for name, array in ((s.name, s.x), *outputs):
        yield f"the number of elements of {name}", array.size
        yield from ((f"the length of axis {axis} of {name}", n) for axis, n in enumerate(array.shape))


def dead(s: Subject) -> Held:
    """Zero at some elements where the derivative is not, right at all others."""
    wrong = [abs(g - t) > b for g, t, b in zip(s.gradients, s.truth, s.bars, strict=True)]
    mask = sum(wrong) > 0
    count = int(mask.sum())
    if 0 < count < s.x.size and not any(bool((w & (g != 0)).any()) for w, g in zip(wrong, s.gradients, strict=True)):
        first = np.argwhere(np.asarray(mask.tolist()))[0].tolist()
        where = f"{s.name}{first or ''}"
        yield "GC107", f"{count} of {s.x.size} elements get 0 where it is not ({where} …), all others are right"


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Subject) -> Held:
    """Transposed, its axes permuted, rolled by an index that is off by one, flipped."""
    xp, shape = module_of(s.x), s.x.shape
    axes = range(len(shape))
    moves = []
    for order in itertools.islice(itertools.permutations(axes), 1, 24):
        if tuple(shape[k] for k in order) == shape:
            words = "transposed" if order == (*axes[:-2], *axes[:-3:-1]) else f"with its axes permuted to {list(order)}"
            moves.append(("GC103", words, partial(xp.transpose, axes=order)))
    for axis in (axis for axis in axes if shape[axis] > 1):
        for step in (1, -1):
            moves.append(("GC104", f"rolled by {step} along axis {axis}", partial(xp.roll, shift=step, axis=axis)))
        moves.append(("GC104", f"flipped along axis {axis}", partial(xp.flip, axis=axis)))
    for code, words, move in moves:
        if s.holds([move(g) for g in s.gradients]):
            yield code, f"numeric = analytic {words}"


def swapped(s: Subject) -> Held:
    """The gradient of another input, which is wrong as well."""
    for other, name in enumerate(s.names):
        found = [gradients[other] for gradients in s.claimed]
        if other != s.number and other in s.wrong and found[0].shape == s.x.shape and s.holds(found):
            yield "GC105", f"numeric = the gradient that backward gives for {name}"


def unsummed(s: Subject) -> Held:
    """What backward gives for the cotangent summed over some axes."""
    out = s.single_output
    if out is None or out.ndim > 4 or s.outputs.complex:
        return
    for axes in (axes for n in range(out.ndim) for axes in itertools.combinations(range(out.ndim), n + 1)):
        sums = [u.reshape(out.shape).sum(axis=axes, keepdims=True) + 0 * s.outputs.vector.reshape(out.shape)
                for u in s.cotangents]  # fmt: skip
        if s.holds([s.vjp(u.reshape(-1))[s.number] for u in sums]):
            yield "GC106", f"the cotangent must be summed over axis {', '.join(map(str, axes))}"


# --------------------------------------------------------------------------- a factor, a term or an operand
def functions(s: Subject) -> Iterator[tuple[str, Array]]:
    """Simple functions of input, output and the other inputs, elementwise, of the input's shape."""
    several = len(s.outputs.active) > 1
    outputs = [(f"out[{k}]" if several else "out", wide(s.outputs.arrays[k])) for k in s.outputs.active]
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if n != s.name]
    for name, v in [(s.name, s.x), *outputs, *others]:
        if v.shape == s.x.shape and v.dtype.kind != "c":
            yield from ((bracketed(text.format(name)), formula(v)) for text, formula in FORMULAS.items())


def ratio(s: Subject) -> Held:
    """Analytic times or over a simple function."""
    if s.x.dtype.kind == "c" or s.digits(s.truth[0]) < LEAST_DIGITS:
        return
    if any(True for _ in ratios(s.thinned())):
        for c, text in ratios(s):
            yield "GC111", f"numeric = {'' if c == 1 else f'{shown(c)} · '}{text}{hint(text)}"


def ratios(s: Subject) -> Iterator[tuple[float, str]]:
    """What the gradient is a constant times of, and the constant."""
    for name, f in functions(s):
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            c = s.factor([g * values for g in s.gradients]) if usable(values) else None
            if c is not None:
                yield c, text


def hint(text: str) -> str:
    """What a ratio most often means."""
    found = re.fullmatch(r"analytic ([·/]) \(1 \+ ([^²]+)\)", text)
    if not found:
        return ""
    there, wanted = (f"1 − {found[2]}", f"1 − {found[2]}²")[:: 1 if found[1] == "·" else -1]
    return f": a factor {there} that should be {wanted}"


def term(s: Subject) -> Held:
    """Analytic plus the cotangent times a simple function."""
    out = s.single_output
    if s.x.dtype.kind == "c" or out is None or out.size != s.x.size or s.outputs.complex:
        return
    if s.digits(s.truth[0] - s.gradients[0]) < LEAST_DIGITS:
        return
    cotangents = [u.reshape(s.x.shape) for u in s.cotangents]
    for name, f in (("", s.x * 0 + 1), *functions(s)):
        c = s.factor([u * f for u in cotangents], s.gradients) if usable(f) else None
        if c is not None:
            number = "" if abs(c) == 1 else f"{shown(abs(c))} · "
            yield "GC114", f"numeric = analytic {'−' if c < 0 else '+'} {number}dy{name and f' · {name}'}"


def operands(s: Subject) -> Held:
    """A product of the cotangent with another input, each perhaps transposed, where backward gives another of them."""
    out = s.single_output
    if s.x.ndim != 2 or out is None or out.ndim != 2:
        return

    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if v.ndim == 2 and n != s.name]
    found = [dict(products(("dy", u), others)) for u in s.shaped(out.shape)]
    fitting = {name: [f[name] for f in found] for name, value in found[0].items() if value.shape == s.x.shape}
    right = [name for name, values in fitting.items() if s.holds(values)]
    if right and any(
        all(bool((abs(g - p) <= b).all()) for g, p, b in zip(s.gradients, values, s.bars, strict=True))
        for values in fitting.values()
    ):
        yield "GC116", f"numeric = {right[0]}"


def usable(values: Array) -> bool:
    """Whether all are finite, some are not 0, and they are more than a pattern of a few signs."""
    sizes = abs(values)
    largest = float(sizes.max())
    return 0 < largest < float("inf") and (values.size >= LEAST_SIGNS or bool((sizes != largest).any()))


HYPOTHESES: tuple[Callable[[Subject], Held], ...] = (
    straight_through, zero, ignored, factor, conjugated, dead, swapped, rearranged, unsummed, operands, ratio, term,
)  # fmt: skip
"""In the order in which they are tried: the simplest first."""
