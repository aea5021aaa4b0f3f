"""The likely cause of a wrong gradient: hypotheses, each printed only if it reproduces the numerical derivative.

A hypothesis makes candidate gradients from what backward returned, the cotangents, inputs and outputs. It holds if all
projections of the candidates agree with the numerical ones within their bars, in a number of evaluations that does not
depend on the size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.evidence import Evidence, shown
from gradcheck.checker.outputs import Outputs, widened
from gradcheck.checker.problem import Array
from gradcheck.numeric.derivative import module_of
from gradcheck.numeric.probe import ROUNDING, Point, inner
from gradcheck.result import Diagnosis

MOST_ROLLED = 2
"""Steps of a roll that are tried along each axis."""


@dataclass
class Subject:
    """What hypotheses about one input are made from."""

    evidence: Evidence
    name: str
    names: Sequence[str]
    """Of all moved inputs."""
    inputs: Sequence[Array]
    """All moved inputs."""
    outputs: Outputs
    vjp: Callable[[Array], list[Array]]
    point: Point

    @property
    def x(self) -> Array:
        return self.evidence.x

    @property
    def gradients(self) -> list[Array]:
        return self.evidence.gradients

    def cotangents(self, k: int) -> list[Array | None]:
        """The cotangents of output `k`, in its shape."""
        return [self.outputs.split(u)[k] for u in self.evidence.cotangents]

    def diagnosis(self, code: str, text: str) -> Diagnosis:
        return Diagnosis.of(code, f"{self.name}: {text}", (self.name,))


Hypothesis = Callable[[Subject], Diagnosis | None]


def diagnosed(subject: Subject) -> Diagnosis | None:
    """The first hypothesis that explains the wrong gradient of an input, if any."""
    for hypothesis in HYPOTHESES:
        found = hypothesis(subject)
        if found is not None:
            return found
    return None


# --------------------------------------------------------------------------- nothing but the gradient
def zero(s: Subject) -> Diagnosis | None:
    """All zeros."""
    if any(bool((g != 0).any()) for g in s.gradients):
        return None
    return s.diagnosis("GC108", "backward gives 0 everywhere, but the derivative is not 0")


def conjugated(s: Subject) -> Diagnosis | None:
    """A complex gradient without its conjugate."""
    if s.x.dtype.kind != "c" or not s.evidence.holds([g.conj() for g in s.gradients]):
        return None
    return s.diagnosis("GC115", "numeric = conj(analytic)")


def factor(s: Subject) -> Diagnosis | None:
    """A constant factor; −1 and the numbers of elements have names of their own."""
    c = s.evidence.factor(s.gradients)
    if c is None:
        return None
    if c == -1:
        return s.diagnosis("GC102", "numeric = −analytic: the sign is wrong")
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
    """Zero at some elements, right at all others."""
    xp, gradients = module_of(s.x), s.gradients
    mask = xp.ones(s.x.shape, dtype=bool)
    for g in gradients:
        mask &= g == 0
    count = int(mask.sum())
    if not 0 < count < s.x.size:
        return None
    alive = s.evidence.directions[0] * ~mask
    part: list[Array | None] = [None] * len(s.inputs)
    part[s.evidence.number] = alive
    derivative = s.point.along(part)
    for u, g in zip(s.evidence.cotangents, gradients, strict=True):
        bar = float(xp.where(u == 0, 0.0, xp.abs(u) * derivative.bar).sum()) + ROUNDING * float(abs(g * alive).sum())
        if not abs(inner(g, alive) - inner(u, derivative.value)) <= bar:
            return None
    first = [int(i) for i in np.argwhere(np.asarray(mask.tolist()))[0]]
    where = f"{s.name}{first}" if first else s.name
    return s.diagnosis("GC107", f"{count} of {s.x.size} elements get 0 ({where} …), all others are right")


# --------------------------------------------------------------------------- the gradient rearranged
def rearranged(s: Subject) -> Diagnosis | None:
    """Transposed, rolled, flipped, permuted."""
    xp, shape = module_of(s.x), s.x.shape
    axes = range(len(shape))
    if len(shape) > 1:
        for order in itertools.islice(itertools.permutations(axes), 1, 24):
            if tuple(shape[k] for k in order) == shape:
                turned = [xp.transpose(g, order) for g in s.gradients]
                if s.evidence.holds(turned):
                    last = [*axes][:-2] + [*axes][:-3:-1]
                    what = "transposed" if list(order) == last else f"with its axes permuted to {list(order)}"
                    return s.diagnosis("GC103", f"numeric = analytic {what}")
    for axis in axes:
        if shape[axis] < 2:
            continue
        for step in [k for m in range(1, MOST_ROLLED + 1) for k in (m, -m)]:
            if s.evidence.holds([xp.roll(g, step, axis) for g in s.gradients]):
                return s.diagnosis("GC104", f"numeric = analytic rolled by {step} along axis {axis}")
        if s.evidence.holds([xp.flip(g, axis) for g in s.gradients]):
            return s.diagnosis("GC104", f"numeric = analytic flipped along axis {axis}")
    return None


def swapped(s: Subject) -> Diagnosis | None:
    """The gradient of another input."""
    for other, name in enumerate(s.names):
        found = [gradients[other] for gradients in s.evidence.analytic]
        if other != s.evidence.number and found[0].shape == s.x.shape and s.evidence.holds(found):
            return s.diagnosis("GC105", f"numeric = the gradient that backward gives for {name}")
    return None


def unsummed(s: Subject) -> Diagnosis | None:
    """What backward gives for the cotangent summed over some axes."""
    for k in s.outputs.active:
        shape = s.outputs.arrays[k].shape
        if len(s.outputs.active) > 1 or not 0 < len(shape) <= 4:
            continue
        xp = module_of(s.x)
        subsets = [c for r in range(1, len(shape) + 1) for c in itertools.combinations(range(len(shape)), r)]
        for chosen in subsets:
            if all(shape[a] == 1 for a in chosen):
                continue
            summed = [
                xp.broadcast_to(u.reshape(shape).sum(axis=chosen, keepdims=True), shape).reshape(-1).copy()
                for u in s.evidence.cotangents
            ]
            if s.evidence.holds([s.vjp(u)[s.evidence.number] for u in summed]):
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
            c = s.evidence.factor([g * values for g in s.gradients])
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
    if s.x.dtype.kind == "c" or len(s.outputs.active) > 1 or s.outputs.vector.size != s.x.size or s.x.size < 2:
        return None
    cotangents = [u.reshape(s.x.shape) for u in s.evidence.cotangents]
    ones = s.x * 0 + 1
    for name, f in (("", ones), *functions(s)):
        if not usable(f):
            continue
        c = s.evidence.factor([u * f for u in cotangents], s.gradients)
        if c is not None:
            times = f" · {name}" if name else ""
            sign = "−" if c < 0 else "+"
            number = "" if abs(c) == 1 else f"{shown(abs(c))} · "
            return s.diagnosis("GC114", f"numeric = analytic {sign} {number}dy{times}")
    return None


def operands(s: Subject) -> Diagnosis | None:
    """A product of the cotangent with another input, each perhaps transposed."""
    if s.x.ndim != 2 or len(s.outputs.active) != 1 or s.outputs.arrays[s.outputs.active[0]].ndim != 2:
        return None
    shape = s.outputs.arrays[s.outputs.active[0]].shape
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if v.ndim == 2 and n != s.name]
    cotangents = [u.reshape(shape) for u in s.evidence.cotangents]
    for (name, v), turn_g, turn_v, first in itertools.product(others, (False, True), (False, True), (True, False)):
        pairs = [(g.T if turn_g else g, v.T if turn_v else v) for g in cotangents]
        pairs = [pair if first else pair[::-1] for pair in pairs]
        left, right = pairs[0]
        if left.shape[1] != right.shape[0] or (left.shape[0], right.shape[1]) != s.x.shape:
            continue
        if s.evidence.holds([a @ b for a, b in pairs]):
            texts = ["dy.T" if turn_g else "dy", f"{name}.T" if turn_v else name]
            return s.diagnosis("GC116", f"numeric = {' @ '.join(texts if first else texts[::-1])}")
    return None


def usable(values: Array) -> bool:
    """Whether all are finite and some are not 0."""
    size = float(abs(values).max())
    return 0 < size < float("inf")


# --------------------------------------------------------------------------- the cotangent
def ignored(s: Subject) -> Diagnosis | None:
    """The same gradient for every cotangent."""
    first, second = s.gradients
    if not bool((first == second).all()):
        return None
    return s.diagnosis("GC109", "backward gives the same whatever the incoming gradient is")


HYPOTHESES: tuple[Hypothesis, ...] = (
    zero, ignored, factor, conjugated, dead, swapped, rearranged, unsummed, operands, ratio, term,
)  # fmt: skip
"""In the order in which they are tried."""
