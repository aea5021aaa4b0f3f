"""The same function at several points and in several dtypes, and the one summary of what was found at all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from gradcheck.backends.base import Array, is_differentiable
from gradcheck.case.expectation import agrees
from gradcheck.case.finding import SEVERITY
from gradcheck.case.function import TensorFunction
from gradcheck.checking.arrays import wide
from gradcheck.result import GradientSummary, Status

DTYPES = {"float64": "complex128", "float32": "complex64", "float16": "complex64", "bfloat16": "complex64"}
"""The dtypes that floating inputs can be looked at in, and what complex inputs are then."""
SPREADS = (1.0, 2.0**-2, 2.0**-4, 2.0**-6)
"""Powers of two by which elements are multiplied at most; the smaller ones where the function is not defined there."""


def looks(
    function: TensorFunction, points: int, dtypes: Sequence[str], seed: int
) -> Iterator[tuple[str, TensorFunction]]:
    """The function at `points` points in each of `dtypes` (none: the inputs' own), with the words for where that is.

    The first point is the given one. At the others every element of a floating input is multiplied by a random factor
    between 1/2 and 2: it keeps its sign and its magnitude; integers and booleans stay. Nearer ones are taken if the
    function raises there or is not finite.
    """
    random = np.random.default_rng(seed)
    for number in range(points):
        at = function if number == 0 else nearby(function, random)
        where = f"point {number + 1} of {points}" if points > 1 else ""
        for dtype in dtypes or [""]:
            yield ", ".join(filter(None, [where, dtype])), in_dtype(at, dtype) if dtype else at


def nearby(function: TensorFunction, random: np.random.Generator) -> TensorFunction:
    """The function at another point."""
    signs = {name: random.uniform(-1, 1, x.shape) for name, x in function.arrays.items()}
    for spread in SPREADS:
        powers = {name: 2 ** (spread * signs[name]) for name in signs}
        at = with_arrays(function, lambda name, x, by=powers: (x * by[name]).astype(x.dtype))  # type: ignore[misc]
        if is_defined(at):
            break
    return at


def in_dtype(function: TensorFunction, dtype: str) -> TensorFunction:
    """The function with its floating inputs in `dtype`, complex ones in that of the same precision."""
    at = copy.copy(function)
    at.dtypes = {
        name: {"c": DTYPES[dtype]}.get(x.dtype.kind, dtype) if is_differentiable(x) else function.dtypes[name]
        for name, x in function.arrays.items()
    }
    tensors = at.tensors()
    at.arrays = {name: at.backend.array(tensor) for name, tensor in tensors.items()}
    return at


def in_float32_if_it_must(
    function: TensorFunction, check: Callable[[TensorFunction], GradientSummary]
) -> GradientSummary:
    """A check, in float32 and marked so where an operation is not there for the dtypes of the inputs on this device."""
    try:
        return check(function)
    except Exception as error:
        lacking = sorted({x.dtype.name for x in function.arrays.values() if x.dtype.name in ("float16", "bfloat16")})
        if not lacking or not function.backend.lacks_kernel(error):
            raise
    summary = check(in_dtype(function, "float32"))
    mark = f"in float32, as Paddle lacks an operation in {' and '.join(lacking)} here"
    return summary.model_copy(update={"marks": (*summary.marks, mark)})


def with_arrays(function: TensorFunction, changed: Callable[[str, Array], Array]) -> TensorFunction:
    """The function with its floating and complex inputs changed."""
    at = copy.copy(function)
    at.arrays = {
        name: np.asarray(changed(name, x)) if is_differentiable(x) else x for name, x in function.arrays.items()
    }
    return at


def is_defined(function: TensorFunction) -> bool:
    """Whether the outputs are finite there."""
    try:
        outputs = [function.backend.array(t) for t in function.outputs(function.call(function.tensors()))]
    except Exception:
        return False
    return all(bool(np.isfinite(abs(wide(a))).all()) for a in outputs if is_differentiable(a))


def worst(
    looked: Iterator[tuple[str, TensorFunction]], check: Callable[[TensorFunction], GradientSummary]
) -> GradientSummary:
    """The worst summary, with where it was found; the search ends with the first FAIL.

    That a backward agrees with the derivative although it is declared to differ counts only if it does at every point.
    """
    found: list[GradientSummary] = []
    for where, function in looked:
        summary = check(function)
        found.append(summary.model_copy(update={"where": where}) if where else summary)
        if summary.verdict is Status.FAIL and not agrees(summary):
            break
    if len(found) == 1 and not found[0].where:
        return found[0]
    differing = [summary for summary in found if not agrees(summary)] or found
    chosen = min(differing, key=lambda summary: SEVERITY.index(summary.verdict))
    right = chosen.verdict is Status.PASS
    together = {
        "evaluations": sum(summary.evaluations for summary in found),
        "certified": all(summary.certified for summary in found) if right else chosen.certified,
        "where": "" if right else chosen.where,
        "marks": tuple(dict.fromkeys(m for s in found for m in s.marks)) if right else chosen.marks,
    }
    return chosen.model_copy(update=together)
