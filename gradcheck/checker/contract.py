"""Rules that a backward must keep beside being the derivative: each broken one is a code with what was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.checker.point import Point
from gradcheck.checker.problem import Observation
from gradcheck.numeric.line import Array, module_of, spacing
from gradcheck.result import Diagnosis

Gradients = list[Array | None]

UNITS = 2.0**10
"""Units in the last place, relative to the largest element, that separate sums of gradients may be off."""
COARSE = 2.0**6 * 2.0**-23
"""The same for a backward that computes in float32 on the way, relative to the largest element. Rounding of any
precision commutes with factors that are powers of two, other non-linear functions of the cotangent do not: only then it
is granted."""
LEAST = float(np.finfo("float64").tiny)
"""Below it, digits are lost."""
FACTOR = -3.0
POWER_OF_TWO = -4.0


@dataclass
class Contracts:
    """The rules, held against one problem at one point."""

    at: Point
    random: np.random.Generator
    in_place: tuple[str, ...] = ()
    """Inputs that forward changed by in-place operations: allowed, but the cause if the gradient is wrong."""

    def broken(self) -> list[Diagnosis]:
        """What is broken, the cause before its consequences."""
        g = self.cotangents()
        seen = self.at.problem.observe(g) if self.at.problem.observe else None
        again = seen if self.at.as_given else None
        observed = self.observed(seen) if seen else []
        found = self.forward_repeats(again)
        if not found:
            gradients = self.gradients(g)
            found = self.backward_repeats(g, gradients, again)
            del seen, again  # as large as the inputs, the outputs and the gradients
            found = found or [*self.linear(g, gradients), *self.undefined_cotangents()]
        return [*observed, *found]

    # ----------------------------------------------------------------- helpers
    def cotangents(self) -> list[Array | None]:
        """A random signed cotangent per output that has a derivative."""
        xp = module_of(self.at.outputs.vector)
        drawn = self.random.uniform(-1, 1, self.at.outputs.vector.size)
        return self.at.outputs.split(xp.asarray(drawn + np.copysign(0.5, drawn)))

    def gradients(self, cotangents: Sequence[Array | None]) -> Gradients:
        """What backward gives at the point."""
        return self.at.problem.vjp(list(self.at.inputs), list(cotangents))

    def named(self, differ: Callable[[int], bool]) -> tuple[str, ...]:
        """The inputs for which `differ` holds."""
        wanted = zip(self.at.problem.names, self.at.problem.differentiable, strict=True)
        return tuple(name for k, (name, need) in enumerate(wanted) if need and differ(k))

    # ----------------------------------------------------------------- the rules
    def forward_repeats(self, seen: Observation | None) -> list[Diagnosis]:
        """The same inputs give the same outputs, bit by bit; what was seen is the second time."""
        again = seen.outputs if seen and seen.outputs is not None else self.at.problem.forward(list(self.at.inputs))
        pairs = zip(self.at.outputs.arrays, again, self.at.problem.output_names, strict=True)
        names = [name for a, b, name in pairs if not same(a, b)]
        return [Diagnosis.of("GC131", f"two calls give different values of {', '.join(names)}")] if names else []

    def backward_repeats(
        self, cotangents: Sequence[Array | None], once: Gradients, seen: Observation | None
    ) -> list[Diagnosis]:
        """The same cotangents give the same gradients, bit by bit; what was seen is the second time."""
        again = seen.gradients if seen and seen.gradients is not None else self.gradients(cotangents)
        names = self.named(lambda k: not same(once[k], again[k]))
        return [Diagnosis.of("GC132", "two calls with the same cotangent give different gradients", names)] * bool(
            names
        )

    def linear(self, g: Sequence[Array | None], of_g: Gradients) -> list[Diagnosis]:
        """b(a·g + h) = a·b(g) + b(h), and b(0) = 0."""
        h = self.cotangents()
        of_h = self.gradients(h)
        if not all(finite(a) for a in (*of_g, *of_h)):
            return []
        mixed = [None if a is None or b is None else array_like(FACTOR * a + b, a) for a, b in zip(g, h, strict=True)]
        whole = self.gradients(mixed)
        if not all(finite(a) for a in whole):  # three times as large is too large for the dtype
            return []
        names = self.named(lambda k: not close(whole[k], of_g[k], FACTOR, of_h[k], self.natural(mixed, k)))
        if names:
            scaled = self.gradients([None if a is None else array_like(POWER_OF_TWO * a, a) for a in g])
            if not self.named(lambda k: not close(scaled[k], of_g[k], POWER_OF_TWO, None)):
                names = self.named(
                    lambda k: not close(whole[k], of_g[k], FACTOR, of_h[k], self.natural(mixed, k), COARSE)
                )
        if names:
            return [Diagnosis.of("GC110", f"b({FACTOR:g}·g + h) is not {FACTOR:g}·b(g) + b(h)", names)]
        zero = self.gradients([None if a is None else array_like(a * 0, a) for a in g])
        names = self.named(lambda k: any(bool((part != 0).any()) for part in [zero[k]] if part is not None))
        text = "a cotangent of zeros does not give a gradient of zeros"
        return [Diagnosis.of("GC110", text, names)] if names else []

    def natural(self, cotangents: Sequence[Array | None], k: int) -> float:
        """The size of an input's gradient if the outputs were proportional to it: beside it rounding errors are small,
        also where the gradient is nothing but rounding errors of a zero."""
        x = self.at.inputs[k]
        size = float(abs(x).max()) if x.size else 0.0
        along = [
            float(abs(g).max()) * float(abs(y).max())
            for g, y in zip(cotangents, self.at.outputs.arrays, strict=True)
            if g is not None and g.size
        ]
        return max(along, default=0.0) / size if size else 0.0

    def undefined_cotangents(self) -> list[Diagnosis]:
        """An output that takes no part in the loss counts as one with a cotangent of zeros."""
        if len(self.at.outputs.active) < 2:
            return []
        g = self.cotangents()
        active = [k for k in self.at.outputs.active if g[k] is not None]
        for k in active:
            name = self.at.problem.output_names[k]
            alone: list[Array | None] = [c if j == k else None for j, c in enumerate(g)]
            zeros = [c if j == k or c is None else array_like(c * 0, c) for j, c in enumerate(g)]
            try:
                undefined = self.gradients(alone)
            except Exception as error:
                text = f"backward raises {type(error).__name__} when only {name} takes part in the loss: {error}"
                return [Diagnosis.of("GC136", text)]
            with_zeros = self.gradients(zeros)
            names = self.named(lambda i, u=undefined, z=with_zeros: not close(u[i], z[i], 1.0, None))  # type: ignore[misc]
            if names:
                return [
                    Diagnosis.of(
                        "GC136", f"when only {name} takes part in the loss, zeros give another gradient", names
                    )
                ]
        return []

    def observed(self, seen: Observation) -> list[Diagnosis]:
        """Nothing but the result changes: inputs, cotangents and saved tensors stay as they were."""
        self.in_place = seen.changed_in_place
        rows = [
            ("GC133", seen.changed_by_forward, "forward writes into"),
            ("GC134", seen.changed_by_backward, "backward writes into"),
            ("GC135", seen.aliased, "backward returns the memory of"),
        ]
        return [Diagnosis.of(code, f"{text} {', '.join(names)}", names) for code, names, text in rows if names]


def array_like(value: Array, like: Array) -> Array:
    """A result of arithmetic as an array of the same type and dtype: NumPy turns 0-d ones into scalars."""
    return module_of(like).asarray(value, dtype=like.dtype)


def finite(a: Array | None) -> bool:
    """Whether all elements are finite; None has none."""
    return a is None or bool(np.isfinite(float(abs(a).astype("float64").sum()))) or bool((abs(a) < np.inf).all())


def same(a: Array | None, b: Array | None) -> bool:
    """Whether two arrays, or missing ones, are equal but for the order of sums, which a GPU leaves to chance."""
    if a is None or b is None:
        return a is None and b is None
    if a.shape != b.shape:
        return False
    if bool(((a == b) | ((a != a) & (b != b))).all()):
        return True
    return a.dtype.kind in "fcV" and close(a, b, 1.0, None)


def close(whole: Any, part: Any, factor: float, rest: Any, size: float = 0.0, coarse: float = 0.0) -> bool:
    """Whether whole = factor · part + rest up to rounding, relative to the largest element; None counts as zeros.

    `size` is one beside which differences count as well, `coarse` the rounding granted at least.
    """
    given = [a for a in (whole, part, rest) if a is not None]
    if not given or not given[0].size:
        return True
    whole, part, rest = (given[0].dtype.type(0) if a is None else a for a in (whole, part, rest))
    size = max(size, float(abs(whole).max()), abs(factor) * float(abs(part).max()), float(abs(rest).max()))
    eps = max(coarse, UNITS * max(spacing(a) for a in given))
    return bool(np.isfinite(size)) and float(abs(whole - (factor * part + rest)).max()) <= eps * size + LEAST
