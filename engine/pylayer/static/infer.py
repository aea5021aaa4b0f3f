"""Shapes and dtypes of results, inferred by running the operation itself on small arrays, so that
no shape rules are written.

Unknown sizes are given numbers and the call is tried two or three times, with different numbers and
values. A size of the result that stays the same is known; one that equals an unknown size each time
is that size; any other is a new unknown, which a run reads from the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, cycle, product
from typing import Any, NamedTuple

import numpy as np

from pylayer.static.sizes import SymbolicSize, UnknownSize
from pylayer.static.values import substitute, tensors_in
from pylayer.static.variable import Shape, Variable
from pylayer.tape.op import compute
from pylayer.tape.symbol import named, recording
from pylayer.tape.vjp import OpDef
from pylayer.tensor.array import to_numpy
from pylayer.tensor.nested import leaves_in
from pylayer.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
Numbers = dict[int, int]
"""The numbers tried in place of unknown sizes, by the size's key."""

PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
MULTIPLES = (1, 12)
"""Unknown sizes are tried as primes, and as multiples of them in case a size must be divisible."""

LARGEST_CONSTANT = 65_536
"""Most elements of a constant whose values are kept, for operations that need them while the
program is built: sizes and indices.
"""

LARGEST_BOUND = 1000
"""The largest bound of a slice for which larger sizes are tried."""

REFUSALS = (ValueError, IndexError, TypeError)
"""Errors by which an operation rejects sizes or values."""

MOST_KNOWN, LARGEST_KNOWN = 64, 10_000
"""The number of known sizes that are tried in place of an unknown size, in case it must equal one
of them; and the largest known size that is tried.
"""


VALUES: tuple[Callable[[Array], Array], ...] = (
    lambda k: k * 0,
    lambda k: (k + 1) % 2,
    lambda k: k % 2 + 1,
)
"""Functions from element numbers to the values that are tried: the last differ from the first in
every element; those between are rejected by fewer operations.
"""


class OutputSpec(NamedTuple):
    """The inferred properties of a result."""

    shape: Shape
    dtype: np.dtype[Any]
    value: Array | None = None
    """The result itself, if it has at most `LARGEST_CONSTANT` elements and is the same in every
    run.
    """


class Trial(NamedTuple):
    """The numbers tried in place of unknown sizes, and the sizes that are fixed because no other
    number is accepted.
    """

    numbers: Numbers
    fixed: frozenset[int] = frozenset()
    distinct: bool = True
    values: int = 0

    def number(self, size: UnknownSize) -> int:
        """The number tried in place of an unknown size."""
        return self.numbers[size.key]

    def array(self, tensor: Tensor) -> Array:
        """The array tried in place of a Variable, in its dtype; for a Tensor, its own values."""
        if not isinstance(tensor, Variable):
            return to_numpy(tensor.array)
        if tensor.constant is not None:
            return tensor.constant
        spec = tensor._spec
        shape = substitute(spec.shape, self.array, self.number)
        row = VALUES[self.values](np.arange(*shape[-1:] or (1,))).astype(spec.dtype)
        return np.broadcast_to(row if shape else row[0], shape)


def infer_operation(op: OpDef, arguments: Sequence[Any]) -> tuple[type | None, list[OutputSpec]]:
    """The container type of an operation's results (list, tuple, or None for a single result), and
    their specs.

    Raises:
        ValueError, IndexError, TypeError: the operation rejects the shapes or dtypes, whatever the
            unknown sizes are.
    """
    kernel = op.kernels[np.ndarray]
    kind: list[type | None] = []

    def run(trial: Trial) -> list[Array]:
        raw = [substitute(value, trial.array, trial.number) for value in arguments]
        result = compute(op, kernel, raw)
        several = isinstance(result, (tuple, list))
        kind[:] = [type(result) if several else None]
        return [np.asarray(o) for o in (result if several else [result])]

    specs = infer_specs(run, arguments)
    return kind[0], specs


def infer_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[OutputSpec, bool]:
    """The spec of the Tensor that a function makes, and its stop_gradient.

    Raises:
        Exception: whatever the function raises.
    """

    def run(trial: Trial) -> list[Array]:
        def tensor(t: Tensor) -> Tensor:
            return Tensor(np.array(trial.array(t))) if isinstance(t, Variable) else t

        token = recording.set(None)
        try:
            substituted = [
                substitute(value, tensor, trial.number) for value in (list(args), dict(kwargs))
            ]
            tensors.append(function(*substituted[0], **substituted[1]))
            return [to_numpy(tensors[-1].array)]
        finally:
            recording.reset(token)

    tensors: list[Tensor] = []
    (spec,) = infer_specs(run, (args, kwargs))
    return spec, tensors[-1]._stop_gradient


def infer_specs(run: Callable[[Trial], list[Array]], arguments: Any) -> list[OutputSpec]:
    """The specs of the results of `run`, from several trials."""
    tensors = tensors_in(arguments)
    values = [n for t in tensors for n in t.array.shape] + list(leaves_in(arguments))
    unknown = {u.key: u for n in values if isinstance(n, SymbolicSize) for u in n.unknowns()}
    known = {n for n in values if type(n) is int and 0 < n < LARGEST_KNOWN}
    constant = not unknown and all(getattr(t, "constant", None) is not None for t in tensors)
    with np.errstate(all="ignore"):
        try:
            trial, results = attempt(run, trials(list(unknown), known))
        except REFUSALS as error:
            raise explain_error(error, arguments) from None
        trial_results = [] if constant else [(trial, results), *further(run, trial, arguments)]
    if any(len(other) != len(results) for _, other in trial_results):
        raise undecided_error("the number of results", arguments)
    specs = []
    for k, array in enumerate(results):
        shapes = [(tried.numbers, other[k].shape) for tried, other in trial_results]
        if any(len(shape) != array.ndim for _, shape in shapes):
            raise undecided_error("the number of dimensions of the result", arguments)
        value = array.copy() if constant and array.size <= LARGEST_CONSTANT else None
        shape = array.shape if constant else common_shape(shapes, trial, unknown)
        specs.append(OutputSpec(shape, array.dtype, value))
    return specs


def attempt(
    run: Callable[[Trial], list[Array]], candidates: Iterable[Trial]
) -> tuple[Trial, list[Array]]:
    """The first accepted trial, and its results. Raises the error of the first trial if none is
    accepted.
    """
    errors: list[Exception] = []
    for trial in candidates:
        try:
            return trial, run(trial)
        except REFUSALS as error:
            errors.append(error)
    raise errors[0]


def explain_error(error: Exception, arguments: Any) -> Exception:
    """Add the Variables involved, and their origin, to an error; remove the sizes of trials from
    it.
    """
    text = str(error.args[0] if error.args else error)
    return type(error)(text.partition(" (shapes ")[0].removesuffix(".") + named(arguments) + ".")


def further(
    run: Callable[[Trial], list[Array]], trial: Trial, arguments: Any
) -> Iterator[tuple[Trial, list[Array]]]:
    """Further trials, with their results: larger sizes in the opposite order, other values, and
    sizes of 1.

    With sizes in the same order only, a minimum of two sizes would look like one of them, and sizes
    above a bound would all look like the bound.
    """
    free = sorted((n, key) for key, n in trial.numbers.items() if key not in trial.fixed)
    bound = max((abs(n) for n in slice_bounds(arguments)), default=0)
    bounded = free and len(free) <= 2 and bound < LARGEST_BOUND
    factor = 2 + 2 * bound // free[0][0] if bounded else 2
    larger = {key: n * factor for (_, key), (n, _) in zip(free, reversed(free), strict=True)}
    ones = trial.numbers | {key: 1 for _, key in free}
    with suppress(*REFUSALS):  # an operation may refuse the values
        values = reversed(range(len(VALUES)))
        yield attempt(run, (Trial(trial.numbers | larger, values=v) for v in values))
    with suppress(*REFUSALS):
        yield attempt(run, [Trial(ones)])


def slice_bounds(value: Any) -> Iterable[int]:
    """The ints in the slices of a value."""
    if isinstance(value, (list, tuple)):
        return chain.from_iterable(map(slice_bounds, value))
    is_slice = type(value) is slice
    return [n for n in (value.start, value.stop) if type(n) is int] if is_slice else []


def undecided_error(subject: str, arguments: Any) -> ValueError:
    """The error for a value that is needed while a program is built but is not known yet."""
    return ValueError(
        f"{subject} depends on a size or value that is known only while the program runs. Give the "
        f"size in static.data{named(arguments)}."
    )


def common_shape(
    shapes: Sequence[tuple[Numbers, Sequence[int]]], trial: Trial, sizes: Mapping[int, UnknownSize]
) -> Shape:
    """Infer a shape from a result's shapes for several numbers in place of unknown sizes."""
    fixed = {trial.numbers[key] for key in trial.fixed}  # fits, but something else might too
    shape: list[int | SymbolicSize] = []
    for axis, first in enumerate(shapes[0][1]):
        trial_sizes = [(numbers, result[axis]) for numbers, result in shapes]
        if all(n == first for _, n in trial_sizes) and first not in fixed:
            shape.append(int(first))
            continue
        same = [
            key for key in trial.numbers if all(numbers[key] == n for numbers, n in trial_sizes)
        ]
        shape.append(sizes[same[0]] if same and trial.distinct and not fixed else UnknownSize())
    return tuple(shape)


def trials(unknown: Sequence[int], known: set[int]) -> Iterator[Trial]:
    """Numbers to try for the unknown sizes of these keys: distinct numbers, then equal ones, then
    some equal to known sizes.
    """
    if not unknown:
        yield Trial({})
        return
    free = [p for p in PRIMES if p not in known]
    distinct = len(unknown) <= len(free)
    primes = dict(zip(unknown, cycle(free), strict=False))
    for multiple in MULTIPLES:
        yield Trial({key: p * multiple for key, p in primes.items()}, distinct=distinct)
    for multiple in MULTIPLES:
        yield Trial(dict.fromkeys(unknown, free[0] * multiple), distinct=len(unknown) == 1)
    # some equal to known sizes: first one at a time, then all
    candidates = sorted({*known, 1}, reverse=True)[:MOST_KNOWN]
    alone = [[key] for key in unknown if len(unknown) > 1]
    for fixed, n in product([*alone, unknown], candidates):
        yield Trial(primes | dict.fromkeys(fixed, n), frozenset(fixed), distinct)
