"""Mistakes in a factor, a term or an operand: the right gradient is the claimed one times, or plus, something."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradcheck.checker.subject import Subject, shown
from gradcheck.numeric.arrays import Array, wide
from gradcheck.witness.candidates import FORMULAS, bracketed, products

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
        if v.shape == s.x.shape and v.dtype.kind != "c":
            yield from ((bracketed(text.format(name)), formula(v)) for text, formula in FORMULAS.items())


def ratio(s: Subject) -> Iterator[tuple[str, str]]:
    """Analytic times or over a simple function."""
    if s.x.dtype.kind == "c" or s.digits(s.truth[0]) < LEAST_DIGITS:
        return
    for name, f in functions(s):
        for text, values in ((f"analytic · {name}", f), (f"analytic / {name}", 1 / f)):
            c = s.factor([g * values for g in s.gradients]) if usable(values) else None
            if c is not None:
                yield "GC111", f"numeric = {'' if c == 1 else f'{shown(c)} · '}{text}{hint(text)}"


def hint(text: str) -> str:
    """What a ratio most often means."""
    found = re.fullmatch(r"analytic ([·/]) \(1 \+ ([^²]+)\)", text)
    if not found:
        return ""
    there, wanted = (f"1 − {found[2]}", f"1 − {found[2]}²")[:: 1 if found[1] == "·" else -1]
    return f": a factor {there} that should be {wanted}"


def term(s: Subject) -> Iterator[tuple[str, str]]:
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


def operands(s: Subject) -> Iterator[tuple[str, str]]:
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
    return 0 < largest < float("inf") and (values.size >= SIGNS or bool((sizes != largest).any()))
