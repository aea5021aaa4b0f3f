"""Mistakes in a factor, a term or an operand: the right gradient is the claimed one times, or plus, something."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from gradcheck.checker.subject import Subject, shown
from gradcheck.numeric.arrays import Array, module_of, wide
from gradcheck.result import Diagnosis

LEAST_DIGITS = 6.0
"""Digits of the right gradient that have to be known for a formula with a free factor: of 200 tried, one fits four of
them by chance once in 50 times, six once in 5,000."""
SIGNS = 16
"""Elements from which a function that has one size throughout, such as the sign, is tried: any signs of n elements are
those of one of 30 functions once in 2^(n − 6)."""


def functions(s: Subject) -> Iterator[tuple[str, Array]]:
    """Simple functions of input, output and the other inputs, elementwise, of the input's shape."""
    several = len(s.outputs.active) > 1
    outputs = [(f"out[{k}]" if several else "out", wide(s.outputs.arrays[k])) for k in s.outputs.active]
    others = [(n, v) for n, v in zip(s.names, s.inputs, strict=True) if n != s.name]
    for name, v in [(s.name, s.x), *outputs, *others]:
        if v.shape != s.x.shape or v.dtype.kind == "c":
            continue
        yield name, v
        yield f"(1 − {name})", 1 - v
        yield f"(1 + {name})", 1 + v
        yield f"{name}²", v * v
        yield f"(1 − {name}²)", 1 - v * v
        yield f"(1 + {name}²)", 1 + v * v
        yield f"{name} · (1 − {name})", v * (1 - v)
        for function in ("exp", "cos", "sin", "sqrt", "abs", "sign", "log", "tanh"):
            yield f"{function}({name})", getattr(module_of(v), function)(v)


def ratio(s: Subject) -> Diagnosis | None:
    """Analytic times or over a simple function."""
    if s.x.dtype.kind == "c" or s.digits(s.truth[0]) < LEAST_DIGITS:
        return None
    for name, f in functions(s):
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            if not usable(values):
                continue
            c = s.factor([g * values for g in s.gradients])
            if c is not None:
                scaled = "" if c == 1 else f"{shown(c)} · "
                return s.diagnosis("GC111", f"numeric = {scaled}{text}{hint(s, text)}")
    return None


def hint(s: Subject, text: str) -> str:
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
    if s.x.dtype.kind == "c" or out is None or out.size != s.x.size or s.outputs.complex:
        return None
    if s.digits(s.truth[0] - s.gradients[0]) < LEAST_DIGITS:
        return None
    cotangents = [u.reshape(s.x.shape) for u in s.cotangents]
    for name, f in (("", s.x * 0 + 1), *functions(s)):
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
    """Whether all are finite, some are not 0, and they are more than a pattern of a few signs."""
    sizes = abs(values)
    largest = float(sizes.max())
    return 0 < largest < float("inf") and (values.size >= SIGNS or bool((sizes != largest).any()))
