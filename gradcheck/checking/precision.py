"""Rounding errors measured by perturbation: a mistake does not depend on the precision, rounding
does.

A quantity is computed as usual, and again with the result of every rounding operation multiplied by
1 ± `size`, with random signs (Monte Carlo arithmetic at a virtual precision: Parker 1997;
Verificarlo: Denis, de Oliveira Castro and Petit 2016). The resulting change, scaled down to the
dtype's own epsilon, is the effect of rounding on the quantity. It includes cancellation, saturation
and the size of intermediates, because the perturbed operations are those that round.

Choices do not round: a perturbed run repeats the comparisons, orders and integers of the plain run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.recording import chooses, quietly

NumpyArray = np.ndarray[Any, Any]

EPS = 2.0**-52
"""The spacing of float64 at 1."""
EPSILON = {
    "float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": EPS,
    "complex64": 2.0**-23, "complex128": EPS,
}  # fmt: skip
"""The spacing of a dtype's numbers at 1: 2 to the power of minus the number of bits after the
point.
"""
FLOAT32 = EPSILON["float32"]
FEW = 4.0
"""The epsilons of a few roundings: of the result itself, of its operands, and of sums inside of one
operation. They are added to the measured response, which decides.
"""
MANY = 16.0
"""The epsilons of a dozen operations whose errors do not cancel: 4 bits. The bound is this many
times the response to perturbations of one epsilon. A rounding is 0.29 epsilon in the mean square,
so this is 55 of its standard deviations: room for an entry whose two responses are both small by
chance (fewer than one in 1,000 is too small by a factor of 55 in both), and for operations that are
off by an epsilon or so (tanh, erf).
"""
CLEAR = 2.0**10
"""An error of this many bounds, or epsilons, cannot be chance."""
SMALLEST = {
    "float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022,
    "complex64": 2.0**-126, "complex128": 2.0**-1022,
}  # fmt: skip
"""The smallest normal number of a dtype: below it the spacing of numbers does not shrink."""
RANDOM_SIGNS = 5.0
"""A sum of bounded errors with random signs exceeds the root of the sum of their bounds' squares by
this factor once in 100,000 (Hoeffding 1963: 2 exp(−5² / 2)), and a FAIL takes two such probes. The
signs are those of cotangent and direction.
"""

Change = Callable[[str, Array, int], None]
"""A function that perturbs the fresh output of an operation in place, given the operation's name,
the output, and its number on the tape or −1.
"""

PERTURBATION_SIZES = {
    EPS: 2.0**-34,
    FLOAT32: 2.0**-13,
    EPSILON["float16"]: 2.0**-6,
    EPSILON["bfloat16"]: 2.0**-4,
}
"""The size of perturbations, by the epsilon of the coarsest dtype of a computation: far above
epsilon, so that rounding is negligible, and far below 1, so that a result responds in
proportion.
"""
LOST = {epsilon: size ** (1 / 3) for epsilon, size in PERTURBATION_SIZES.items()}
"""An entry that moves by more than this share of itself (0.04 % in float64) has lost two thirds of
the digits that were not perturbed. As its response may not be in proportion, it is also perturbed
by only `MANY` epsilons.
"""
UNKNOWN = 1 / 8
"""An entry that moves by more than this share of itself under perturbations by `MANY` epsilons has
no known digit. Neither has an entry that moves by more than this share of its usual response; in
proportion, it would move by 2^-14 of that in float64, 2^-6 in float32. The rounded difference of
numbers that should be equal, as in 1 / (a − b), moves equally under both, and may be off by `MANY`
times as much.
"""

MOVES = {
    "reshape", "transpose", "broadcast_view", "broadcast_to", "clone", "concat", "stack", "split",
    "unbind", "getitem", "setitem", "cast", "gather", "take_along_axis", "index_select",
    "diagonal", "tensor_unfold",
}  # fmt: skip
"""Operations that move values; their derivative has no sign, and no factor if the number of
elements stays the same.
"""
EXACT = MOVES | {
    "tile", "flip", "roll", "tril", "triu", "written", "where", "complex", "real", "imag", "conj",
    "one_hot",
    "neg", "maximum", "minimum", "fmax", "fmin", "clip", "nan_to_num", "max", "min", "relu",
    "hardtanh", "pad", "as_strided", "fill", "sort", "as_complex", "as_real",
    "put_reduced", "all_gather", "all_to_all", "broadcast_ranks",
}  # fmt: skip
"""Operations that move, select or copy values, or change them without rounding, as do their vjps.
The vjps of selecting operations test where the result equals one of the values (`put_reduced`: an
extreme; its products round by epsilons).
"""
RINGS = {
    "add",
    "subtract",
    "multiply",
    "sum",
    "scale",
    "add_n",
    "matmul",
    "cumsum",
    "all_reduce",
    "reduce_scatter",
}
"""Operations that are exact if the result is a whole number, or nearly always so."""

VJP = "vjp of "
"""Prefix of the names of products in the backward walk. If a product underflows, its later factors
may have been as large; a structural zero among products may move too, because all later operations
are linear.
"""


@functools.cache
def dtype_name(dtype: Any) -> str:
    """The name of a dtype, cached because NumPy computes it at each access."""
    return dtype.name  # type: ignore[no-any-return]


def coarsest(arrays: Iterable[Array]) -> float:
    """The largest relative spacing of the floating dtypes of some arrays; that of float64 if there
    are none.
    """
    return max((EPSILON[dtype_name(array.dtype)] for array in arrays), default=EPS)


def wide(array: Array) -> Array:
    """A floating array in float64, a complex one in complex128; others unchanged."""
    if array.dtype.kind not in "fcV":  # V: bfloat16
        return array
    return array.astype("complex128" if array.dtype.kind == "c" else "float64", copy=False)


def finite(arrays: Iterable[Array | None]) -> bool:
    """Whether all elements of some arrays are finite; None counts as an array without elements."""
    return all(a is None or (abs(a) < np.inf).all() for a in arrays)


@np.errstate(invalid="ignore")
def distance(a: Array, b: Array) -> Array:
    """|a − b|; 0 if both are equal, infinities included; inf if only one is finite."""
    difference = abs(a - b) if a.dtype.kind != "b" else 1.0 * (a != b)
    if are_usual(difference):
        return difference
    return np.where(a == b, 0.0, np.where(np.isnan(difference), np.inf, difference))


def identical(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, NaN being equal to itself."""
    return bool((a == b).all() or ((a == b) | ((a != a) & (b != b))).all())


def largest(gradient: Array) -> float:
    """The magnitude of the largest finite entry."""
    return float(np.maximum.reduce(finite_sizes(gradient), axis=None, initial=0.0))


def finite_sizes(values: Array) -> Array:
    """The magnitudes of values, 0 for those that are not finite."""
    sizes = abs(values)
    return sizes if are_usual(sizes) else np.where(np.isfinite(values), sizes, 0.0)


def are_usual(sizes: Array) -> bool:
    """Whether sizes are finite and of a floating dtype of NumPy: the usual, fast case."""
    is_own = sizes.dtype.kind == "f"
    return is_own and bool(np.maximum.reduce(sizes, axis=None, initial=0.0) < np.inf)


def is_exact(name: str, output: Array) -> bool:
    """Whether an operation rounds nothing."""
    return name in EXACT or (name == "abs" and output.dtype.kind != "c")


def noting(choices: list[Array], rounded_constants: list[str] | None = None) -> Change:
    """A change that alters nothing, but lists the choices in order, and the names of rounding
    operations that are not on the tape because they do not depend on the inputs.
    """

    def change(name: str, output: Array, number: int) -> None:
        if chooses(name, output):
            choices.append(output.copy())
        elif rounded_constants is not None and number < 0 and not is_exact(name, output):
            rounded_constants.append(name)

    return change


def perturbing(size: float, random: np.random.Generator, choices: Sequence[Array]) -> Change:
    """A change that perturbs each result that rounds, and replays the given choices in order."""
    remaining = iter(choices)

    def change(name: str, output: Array, number: int) -> None:
        if chooses(name, output):
            known = next(remaining, None)
            if (
                known is not None
                and known.shape == output.shape
                and known.dtype == output.dtype
                and output.flags.writeable
            ):
                output[...] = known
        elif not output.flags.writeable:
            return
        elif dtype_name(output.dtype) in EPSILON and not is_exact(name.removeprefix(VJP), output):
            # It may run inside a layer that makes NumPy raise floating-point errors.
            quietly(perturb, (output, size, random, name in RINGS, name.startswith(VJP)))

    return change


def perturb(
    array: Array,
    size: float,
    random: np.random.Generator,
    but_whole: bool = False,
    zeros: bool = False,
) -> None:
    """Multiply every element (both parts of a complex one) by 1 ± size in place; with `but_whole`,
    whole numbers stay, and with `zeros`, zeros move like the smallest numbers. Sizes are drawn from
    1/2 to 3/2 of `size`: equal ones would cancel in a product.
    """
    real = array.view(array.real.dtype) if array.dtype.kind == "c" and array.ndim else array
    drawn = random.uniform(-1, 1, real.shape)
    signs = drawn + np.copysign(0.5, drawn)
    moves = size * signs
    if but_whole:
        moves *= real != np.rint(real)
    moved = real * (1 + moves)
    # Below the smallest normal number the spacing of numbers does not shrink. Numbers far above it
    # have no digit that such a move could change.
    smallest = size * SMALLEST[dtype_name(real.dtype)]
    if np.logical_or.reduce(abs(real) < smallest / EPS**2, axis=None):
        moved += ((real != 0) | zeros) * signs * smallest
    np.copyto(real, moved, where=np.isfinite(real), casting="unsafe")


def rounded_input(x: Array, change: Change) -> Array:
    """Perturb an input or a cotangent too, because operations also round internally (as in an
    elimination, or a sum).
    """
    fresh = x.copy()
    change("input", fresh, -1)
    return fresh


# ------------------------------------------------- many arrays as one
def flat(arrays: Sequence[Array]) -> Array:
    """All elements of `arrays` in one vector; complex if one of the arrays is."""
    return (
        np.concatenate([a.reshape(-1) for a in arrays])
        if len(arrays) > 1
        else arrays[0].reshape(-1)
    )


def unflatten(vector: Array, arrays: Sequence[Array]) -> list[Array]:
    """The parts of a flat vector, in the shapes of `arrays`."""
    parts, start = list[Array](), 0
    for array in arrays:
        parts.append(vector[start : start + array.size].reshape(array.shape))
        start += array.size
    return parts


def of_each_largest(arrays: Sequence[Array]) -> Array:
    """A flat vector: for each entry, the magnitude of the largest finite entry of its array."""
    return flat([np.full(a.shape, largest(a)) for a in arrays])


class Measured:
    """The arrays that a computation returns, and a bound of each entry's rounding error, estimated
    from the runs so far. All arrays are joined in one flat vector.

    Args:
        compute: computes the arrays under a `Change`.
        epsilon: of the coarsest dtype in the computation.
        plain: the unperturbed arrays, with the choices made, if known.
        nondet: how far two identical runs may differ, relative to the largest entry; such a
            difference is not a response.
    """

    def __init__(
        self,
        compute: Callable[[Change], Sequence[Array]],
        epsilon: float,
        random: np.random.Generator,
        plain: tuple[Sequence[Array], Sequence[Array]] | None = None,
        nondet: float = 0.0,
    ) -> None:
        self.compute, self.epsilon, self.random = compute, epsilon, random
        self.nondet = nondet
        if plain is None:
            choices: list[Array] = []
            plain = compute(noting(choices)), choices
        self.plain, self.choices = plain
        self.vector = flat(self.plain)
        self.responses: Any = 0.0
        """The largest change of every entry so far."""
        self.finer: Any = 0.0
        """Responses to perturbations by `MANY` epsilons."""

    def draw(self) -> None:
        """Perturb once more. Entries that respond out of proportion are perturbed by less: they
        have fewer digits than the perturbation assumes.
        """
        self.draw_at(PERTURBATION_SIZES[self.epsilon])
        if self.lost().any():
            self.finer = self.largest_changes(MANY * self.epsilon, self.finer)

    def draw_at(self, size: float) -> None:
        """Perturb once more by 1 ± `size`."""
        self.responses = self.largest_changes(size, self.responses)

    def largest_changes(self, size: float, before: Any) -> Array:
        """Update the largest change of every entry so far by one more run."""
        again = self.compute(perturbing(size, self.random, self.choices))
        by_chance = self.nondet and self.nondet * of_each_largest(self.plain)
        return np.maximum(before, distance(flat(again), self.vector) - by_chance)

    def lost(self) -> Array:
        """A mask of the entries whose response to perturbations is disproportionately large."""
        return self.responses > LOST[self.epsilon] * abs(self.vector)

    def terms(self) -> Array:
        """The size of the terms whose sum an entry is: the entry's value or, if the terms cancel,
        its response relative to the perturbations.
        """
        sizes = np.maximum(abs(self.vector), self.responses / PERTURBATION_SIZES[self.epsilon])
        return np.where(np.isfinite(sizes), sizes, 0.0)

    def bounds(self, absolute: bool = False) -> Array:
        """The bound η of every entry's rounding error; inf if no digit is known, unless an
        `absolute` error is requested.

        Each response is raised to at least the median of its row: a single response may be small by
        chance, but half of a row cannot.
        """
        size, lost = finite_sizes(self.vector), self.lost()
        rows = zip(unflatten(self.responses, self.plain), unflatten(size, self.plain), strict=True)
        medians = flat([median_response(*row) + 0.0 * row[1] for row in rows])
        response = np.maximum(self.responses, size * medians)
        bound = MANY * self.epsilon / PERTURBATION_SIZES[self.epsilon] * response
        if lost.any():
            odd = self.finer > UNKNOWN * response
            nothing = odd | (self.finer > UNKNOWN * (size + SMALLEST["float64"]))
            finer_bound = np.where(
                nothing & (not absolute), np.inf, self.finer * np.where(odd, MANY, 1.0)
            )
            known = np.where(response < np.inf, bound, 0.0)  # perturbations may leave the domain
            bound = np.where(lost, np.maximum(known, finer_bound), bound)
        return bound + FEW * self.epsilon * (size + SMALLEST["float64"])


def median_response(response: Array, size: Array) -> Array:
    """The median of the relative responses per row, without lost entries; 0 for a row of one entry
    or of lost entries only.
    """
    if not size.ndim or size.shape[-1] < 2:
        return 0.0
    relative = np.where(response <= UNKNOWN * size, response / (size + (size == 0)), np.inf)
    rows = relative.reshape(-1, size.shape[-1])
    rows.sort(axis=-1)
    known = (rows < np.inf).sum(axis=-1)
    middle = rows[np.arange(len(rows)), np.maximum((known - 1) // 2, 0)]
    return np.where(known > 0, middle, 0.0).reshape(*size.shape[:-1], 1)
