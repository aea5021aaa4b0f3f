"""How much of a gradient is rounding: it is computed again with every value moved by one rounding of its dtype.

Moving the inputs alone would not do: tanh and its backward 1/cosh² are both right, differ by more than the inputs'
rounding explains, and by less than that of 1 − y² for a y that is rounded to 1 (random rounding: J. Vignes, A
stochastic arithmetic for reliable scientific computation, 1993). They are moved as well, for what rules compute from
them. Values that are exact stay as well, so that ties remain ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from gradcheck.backends.base import Array, Mover
from gradcheck.numeric.arrays import EPSILON, SMALLEST, module_of, wide
from gradcheck.witness.graph import Graph


class Replays(Protocol):
    """What computes a call again, with values moved on the way."""

    leaks: list[str]
    """What took values off the tape when `claimed` was last run: what is computed from these is not moved."""

    def beside(self, inputs: Sequence[Array], move: Mover) -> Graph:
        """The call recorded at other inputs."""

    def claimed(self, cotangents: Sequence[Array | None], move: Mover) -> list[Array | None]:
        """The gradients that the layer's own backward gives, forward and backward run with `move`."""


EXACT = {
    "reshape", "transpose", "broadcast_view", "broadcast_to", "clone", "tile", "flip", "roll", "tril", "triu", "concat",
    "stack", "split", "unbind", "getitem", "setitem", "written", "where", "complex", "real", "imag", "conj", "neg",
    "maximum", "minimum", "fmax", "fmin", "clip", "abs", "sign", "floor", "ceil", "trunc", "round", "nan_to_num", "max",
    "min", "relu", "hardtanh", "pad", "as_strided", "fill", "with_zeros",
}  # fmt: skip
"""Operations that move, select or copy values, or change them without rounding."""

REPLAYS = 6
"""Computations with moved values."""

MARGIN = 6
"""Times the largest of the changes, which is at least their root mean square (whose squares would overflow). Moves are
of 1 unit or more where a rounding is of 0.29 in the mean square, so this is 20 times what an element strays: with 6
replays, Student's t exceeds that once in a million elements."""


def mover(random: np.random.Generator) -> Mover:
    """What moves the outputs of operations that round, each element up or down by 1 to 2 units of its rounding.

    Moves of one size would cancel: in a product whose factors move oppositely, in a difference of equals.
    """

    @np.errstate(all="ignore")  # it runs inside the layer, which may have errors of NumPy raised
    def move(name: str, out: Array, number: int) -> None:
        dtype = out.dtype.name
        if name in EXACT or dtype not in EPSILON or not out.flags.writeable:
            return
        real = out.view(out.real.dtype) if out.dtype.kind == "c" and out.ndim else out
        step = EPSILON[dtype] * np.maximum(abs(real), SMALLEST[dtype])
        moving = (real != 0) & np.isfinite(real)  # a mask of −inf stays one
        real += np.where(moving, units(random, real) * step, 0.0).astype(real.dtype)

    return move


def units(random: np.random.Generator, like: Array) -> Array:
    """Numbers of size 1 to 2 and of either sign at random, in the shape of an array and where it lies."""
    signs = random.integers(0, 2, like.shape, dtype=np.int8) * 2 - 1
    return module_of(like).asarray(random.uniform(1, 2, like.shape) * signs)


def jittered(move: Mover, array: Array) -> Array:
    """A copy of an input or a cotangent, moved: what rules compute from it, such as 1 − x², is off as if it were."""
    copy = array.copy()
    move("", copy, -1)
    return copy


def shaken(random: np.random.Generator, cotangent: Array, value: Array) -> Array:
    """A cotangent moved by 1 to 2 roundings of the dtype of its value: that in which a backward computes it."""
    return cotangent * (1 + EPSILON[value.dtype.name] * units(random, cotangent))


def tape_rounding(tape: Graph, cotangents: Sequence[Array | None], replays: Replays) -> Iterator[list[Array]]:
    """Per input and element, how far the tape's gradient may be off; see `spread`."""

    def replay(random: np.random.Generator) -> list[Array]:
        move = mover(random)
        again = replays.beside([jittered(move, x) for x in tape.recording.arrays[: tape.recording.inputs]], move)
        arrays = again.recording.arrays
        pending = {number: shaken(random, u, arrays[number]) for number, u in again.starts(cotangents).items()}
        for _, _, pulled in again.walk(pending):
            pulled[:] = [(position, number, shaken(random, u, arrays[number])) for position, number, u in pulled]
        return again.filled(pending)

    return spread(tape.gradient(cotangents), replay)


def claim_rounding(tape: Graph, cotangents: Sequence[Array | None], replays: Replays) -> Iterator[list[Array]]:
    """Per input and element, how far the gradient of the layer's own backward may be off; see `spread`."""

    def claimed(cotangents: Sequence[Array | None], move: Mover) -> list[Array]:
        found = replays.claimed(cotangents, move)
        return [tape.recording.arrays[k] * 0 if g is None else g for k, g in enumerate(found)]

    def replay(random: np.random.Generator) -> list[Array]:
        move = mover(random)  # of cotangents too: what a product or a sum of them rounds inside is of their size
        return claimed([None if u is None else jittered(move, u) for u in cotangents], move)

    return spread(claimed(cotangents, lambda name, out, number: None), replay)


def spread(plain: Sequence[Array], replay: Callable[[np.random.Generator], Sequence[Array]]) -> Iterator[list[Array]]:
    """Per input and element, how far its gradient `plain` may be off; `replay` gives it with values moved at random.

    After each replay what is known so far: it only grows, so that who agrees within it needs no more. The last holds.
    """
    largest: list[Any] = [0.0 for _ in plain]
    for seed in range(REPLAYS):
        moved = replay(np.random.default_rng(seed))
        largest = [np.maximum(s, abs(wide(m) - wide(g))) for s, m, g in zip(largest, moved, plain, strict=True)]
        own = (EPSILON.get(g.dtype.name, 0.0) * abs(wide(g)) for g in plain)
        yield [MARGIN * (s + unit) for s, unit in zip(largest, own, strict=True)]
