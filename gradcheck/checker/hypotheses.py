"""Mistakes in a whole gradient: what the right one is in terms of the claimed one, the cotangent, inputs, outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.outputs import Outputs, widened
from gradcheck.numeric.line import Array, module_of
from gradcheck.result import Diagnosis

MOST_ROLLED = 2
"""Steps of a roll that are tried along each axis."""
SIMPLE = 12
"""Factors that are fractions of numbers up to this are simple."""


@dataclass
class Subject:
    """What hypotheses about one input are made from; one gradient of all inputs per cotangent, one right gradient of
    this input."""

    number: int
    names: Sequence[str]
    inputs: Sequence[Array]
    outputs: Outputs
    cotangents: Sequence[Array]
    claimed: Sequence[Sequence[Array]]
    truth: Sequence[Array]
    bars: Sequence[Array]
    vjp: Callable[[Array], list[Array]]

    @property
    def x(self) -> Array:
        return self.inputs[self.number]

    @property
    def name(self) -> str:
        return self.names[self.number]

    @property
    def gradients(self) -> list[Array]:
        """Of this input, as backward gives them."""
        return [gradients[self.number] for gradients in self.claimed]

    @property
    def single_output(self) -> Array | None:
        """The one output, if there is only one."""
        return self.outputs.arrays[self.outputs.active[0]] if len(self.outputs.active) == 1 else None

    def shaped(self, shape: tuple[int, ...]) -> list[Array]:
        """The cotangents of the one output in its shape."""
        parts = [self.outputs.split(u)[self.outputs.active[0]] for u in self.cotangents]
        return [widened(part).reshape(shape) for part in parts if part is not None]

    def holds(self, candidates: Sequence[Array]) -> bool:
        """Whether gradients, one per cotangent, are the right ones."""
        return all(
            c.shape == t.shape and bool((abs(c - t) <= b).all())
            for c, t, b in zip(candidates, self.truth, self.bars, strict=True)
        )

    def factor(self, candidates: Sequence[Array], rests: Sequence[Array] | None = None) -> float | None:
        """The simple factor c for which c · candidate (plus rest) is right; None if there is none.

        Never of a single element, for which any factor can be found.
        """
        missing = list(self.truth) if rests is None else [t - r for t, r in zip(self.truth, rests, strict=True)]
        if candidates[0].shape != self.truth[0].shape or candidates[0].size < 1:
            return None
        place = int(abs(candidates[0]).argmax())
        base, wanted = (complex(a.reshape(-1)[place]) for a in (candidates[0], missing[0]))
        if not base or not np.isfinite(abs(base)) or not np.isfinite(abs(wanted)):
            return None
        ratio = (wanted / base).real
        bar = float(self.bars[0].reshape(-1)[place]) / abs(base)
        if abs(ratio) <= 4 * bar:
            return None
        c = nice(ratio, bar)
        made = [c * a if rests is None else c * a + rests[k] for k, a in enumerate(candidates)]
        return c if self.holds(made) else None

    def diagnosis(self, code: str, text: str) -> Diagnosis:
        return Diagnosis.of(code, f"{self.name}: {text}", (self.name,))


Hypothesis = Callable[[Subject], Diagnosis | None]


def nice(value: float, bar: float) -> float:
    """The simplest fraction with a small denominator within the bar of a value, or the value."""
    for denominator in range(1, SIMPLE + 1):
        near = round(value * denominator) / denominator
        if near and abs(near - value) <= 4 * bar + 1e-9 * abs(value):
            return near
    return value


def shown(value: float) -> str:
    """A factor as a person would write it: 2, 1/3, 0.1234."""
    for denominator in range(1, SIMPLE + 1):
        whole = round(value * denominator)
        if abs(whole - value * denominator) <= 1e-9 * abs(value * denominator) and abs(whole) < 10**6:
            return str(whole) if denominator == 1 else f"{whole}/{denominator}"
    return f"{value:.6g}"


# --------------------------------------------------------------------------- nothing but the gradient
def zero(s: Subject) -> Diagnosis | None:
    """All zeros."""
    if any(bool((g != 0).any()) for g in s.gradients):
        return None
    return s.diagnosis("GC108", "backward gives 0 everywhere, but the derivative is not 0")


def ignored(s: Subject) -> Diagnosis | None:
    """The same gradient for every cotangent."""
    first, second = s.gradients
    if not bool((first == second).all()):
        return None
    return s.diagnosis("GC109", "backward gives the same whatever the incoming gradient is")


def straight_through(s: Subject) -> Diagnosis | None:
    """The cotangent passed on where the derivative is 0."""
    out = s.single_output
    if out is None or out.shape != s.x.shape:
        return None
    if any(bool((abs(t) > b).any()) for t, b in zip(s.truth, s.bars, strict=True)):
        return None
    if not all(bool((g == u).all()) for g, u in zip(s.gradients, s.shaped(s.x.shape), strict=True)):
        return None
    return s.diagnosis("GC122", "the derivative is 0 here and backward passes the cotangent on (straight-through)")


def conjugated(s: Subject) -> Diagnosis | None:
    """A complex gradient without its conjugate."""
    if s.x.dtype.kind != "c" or not s.holds([g.conj() for g in s.gradients]):
        return None
    return s.diagnosis("GC115", "numeric = conj(analytic)")


def factor(s: Subject) -> Diagnosis | None:
    """A constant factor; −1 and the numbers of elements have names of their own."""
    c = s.factor(s.gradients)
    if c is None or abs(c - 1) <= 1e-6:
        return None
    if c == -1:
        return s.diagnosis("GC102", "numeric = −analytic: the sign is wrong")
    if s.x.size < 2 and nice(c, 0.0) == c and shown(c) == f"{c:.6g}" and "/" not in shown(c) and c != int(c):
        return None  # of one number any factor can be found
    for what, n in sizes(s):
        if n > 2 and any(abs(c - v) <= 1e-9 * abs(v) for v in (n, -n)):
            return s.diagnosis("GC112", f"numeric = {shown(c)} · analytic, and {abs(n)} is {what}")
        if n > 2 and any(abs(c - v) <= 1e-9 * abs(v) for v in (1 / n, -1 / n)):
            return s.diagnosis("GC112", f"numeric = analytic / {shown(1 / c)}, and {n} is {what}")
    return s.diagnosis("GC101", f"numeric = {shown(c)} · analytic, for all entries")


def sizes(s: Subject) -> Iterator[tuple[str, int]]:
    """The numbers of elements that a factor may be."""
    yield f"the number of elements of {s.name}", s.x.size
    for k in s.outputs.active:
        yield "the number of elements of the output", s.outputs.arrays[k].size
    for axis, n in enumerate(s.x.shape):
        yield f"the length of axis {axis} of {s.name}", n
    for k in s.outputs.active:
        for axis, n in enumerate(s.outputs.arrays[k].shape):
            yield f"the length of axis {axis} of the output", n


def dead(s: Subject) -> Diagnosis | None:
    """Zero at some elements where the derivative is not, right at all others."""
    xp = module_of(s.x)
    mask = xp.zeros(s.x.shape, dtype=bool)
    for g, t, b in zip(s.gradients, s.truth, s.bars, strict=True):
        wrong = abs(g - t) > b
        if bool((wrong & (g != 0)).any()):
            return None
        mask |= wrong
    count = int(mask.sum())
    if not 0 < count < s.x.size:
        return None
    first = [int(i) for i in np.argwhere(np.asarray(mask.tolist()))[0]]
    where = f"{s.name}{first}" if first else s.name
    text = f"{count} of {s.x.size} elements get 0 where it is not ({where} …), all others are right"
    return s.diagnosis("GC107", text)


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Subject) -> Diagnosis | None:
    """Transposed, rolled, flipped, permuted."""
    xp, shape = module_of(s.x), s.x.shape
    axes = range(len(shape))
    if len(shape) > 1:
        for order in itertools.islice(itertools.permutations(axes), 1, 24):
            if tuple(shape[k] for k in order) == shape and s.holds([xp.transpose(g, order) for g in s.gradients]):
                last = [*axes][:-2] + [*axes][:-3:-1]
                what = "transposed" if list(order) == last else f"with its axes permuted to {list(order)}"
                return s.diagnosis("GC103", f"numeric = analytic {what}")
    for axis in axes:
        if shape[axis] < 2:
            continue
        for step in [k for m in range(1, MOST_ROLLED + 1) for k in (m, -m)]:
            if s.holds([xp.roll(g, step, axis) for g in s.gradients]):
                return s.diagnosis("GC104", f"numeric = analytic rolled by {step} along axis {axis}")
        if s.holds([xp.flip(g, axis) for g in s.gradients]):
            return s.diagnosis("GC104", f"numeric = analytic flipped along axis {axis}")
    return None


def swapped(s: Subject) -> Diagnosis | None:
    """The gradient of another input."""
    for other, name in enumerate(s.names):
        found = [gradients[other] for gradients in s.claimed]
        if other != s.number and found[0].shape == s.x.shape and s.holds(found):
            return s.diagnosis("GC105", f"numeric = the gradient that backward gives for {name}")
    return None


def unsummed(s: Subject) -> Diagnosis | None:
    """What backward gives for the cotangent summed over some axes."""
    out = s.single_output
    if out is None or not 0 < out.ndim <= 4 or s.outputs.complex:
        return None
    xp, shape = module_of(s.x), out.shape
    for chosen in [c for r in range(1, len(shape) + 1) for c in itertools.combinations(range(len(shape)), r)]:
        if all(shape[a] == 1 for a in chosen):
            continue
        summed = [
            xp.broadcast_to(u.reshape(shape).sum(axis=chosen, keepdims=True), shape).reshape(-1).copy()
            for u in s.cotangents
        ]
        if s.holds([s.vjp(u)[s.number] for u in summed]):
            return s.diagnosis("GC106", f"the cotangent must be summed over axis {', '.join(map(str, chosen))}")
    return None


# --------------------------------------------------------------------------- the gradient times, or plus, something
def functions(s: Subject) -> Iterator[tuple[str, Array]]:
    """Simple functions of input, output and the other inputs, elementwise, of the input's shape."""
    values = [(s.name, s.x)]
    values += [
        (f"{'out' if len(s.outputs.active) == 1 else f'out[{k}]'}", widened(s.outputs.arrays[k]))
        for k in s.outputs.active
    ]
    values += [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if n != s.name]
    xp = module_of(s.x)
    for name, v in values:
        if v.shape != s.x.shape or v.dtype.kind == "c":
            continue
        yield name, v
        yield f"(1 − {name})", 1 - v
        yield f"(1 + {name})", 1 + v
        yield f"{name}²", v * v
        yield f"(1 − {name}²)", 1 - v * v
        yield f"(1 + {name}²)", 1 + v * v
        yield f"{name} · (1 − {name})", v * (1 - v)
        for title, function in (("exp", xp.exp), ("cos", xp.cos), ("sin", xp.sin), ("sqrt", xp.sqrt), ("abs", xp.abs),
                                ("sign", xp.sign), ("log", xp.log), ("tanh", xp.tanh)):  # fmt: skip
            yield f"{title}({name})", function(v)


def ratio(s: Subject) -> Diagnosis | None:
    """Analytic times or over a simple function."""
    if s.x.dtype.kind == "c" or s.x.size < 2:
        return None
    for name, f in functions(s):
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            if not usable(values):
                continue
            c = s.factor([g * values for g in s.gradients])
            if c is not None:
                scaled = "" if c == 1 else f"{shown(c)} · "
                return s.diagnosis("GC111", f"numeric = {scaled}{text}{hint(s, name, text)}")
    return None


def hint(s: Subject, name: str, text: str) -> str:
    """What a ratio most often means."""
    for v in ("out", s.name):
        if text == f"analytic · (1 + {v})":
            return f": a factor 1 − {v} that should be 1 − {v}²"
        if text == f"analytic / (1 + {v})":
            return f": a factor 1 − {v}² that should be 1 − {v}"
    return ""


def term(s: Subject) -> Diagnosis | None:
    """Analytic plus the cotangent times a simple function."""
    out = s.single_output
    if s.x.dtype.kind == "c" or out is None or out.size != s.x.size or s.x.size < 2 or s.outputs.complex:
        return None
    cotangents = [u.reshape(s.x.shape) for u in s.cotangents]
    ones = s.x * 0 + 1
    for name, f in (("", ones), *functions(s)):
        if not usable(f):
            continue
        c = s.factor([u * f for u in cotangents], s.gradients)
        if c is not None:
            times = f" · {name}" if name else ""
            sign = "−" if c < 0 else "+"
            number = "" if abs(c) == 1 else f"{shown(abs(c))} · "
            return s.diagnosis("GC114", f"numeric = analytic {sign} {number}dy{times}")
    return None


def operands(s: Subject) -> Diagnosis | None:
    """A product of the cotangent with another input, each perhaps transposed."""
    out = s.single_output
    if s.x.ndim != 2 or out is None or out.ndim != 2:
        return None
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if v.ndim == 2 and n != s.name]
    cotangents, found, claimed = s.shaped(out.shape), "", False
    for (name, v), turn_g, turn_v, first in itertools.product(others, (False, True), (False, True), (True, False)):
        pairs = [(g.T if turn_g else g, v.T if turn_v else v) for g in cotangents]
        pairs = [pair if first else pair[::-1] for pair in pairs]
        left, right = pairs[0]
        if left.shape[1] != right.shape[0] or (left.shape[0], right.shape[1]) != s.x.shape:
            continue
        products = [a @ b for a, b in pairs]
        texts = ["dy.T" if turn_g else "dy", f"{name}.T" if turn_v else name]
        found = found or (" @ ".join(texts if first else texts[::-1]) if s.holds(products) else "")
        # what backward gives is a product, if another one
        claimed |= all(bool((abs(g - p) <= b).all()) for g, p, b in zip(s.gradients, products, s.bars, strict=True))
    return s.diagnosis("GC116", f"numeric = {found}") if found and claimed else None


def usable(values: Array) -> bool:
    """Whether all are finite and some are not 0."""
    size = float(abs(values).max())
    return 0 < size < float("inf")


HYPOTHESES: tuple[Hypothesis, ...] = (
    straight_through, zero, ignored, factor, conjugated, dead, swapped, rearranged, unsummed, operands, ratio, term,
)  # fmt: skip
"""In the order in which they are tried: the simplest first."""
