"""A layer that rounds to few digits on the way, in NumPy, where its slope cannot be seen through the rounding: it is
checked as if it kept its digits, where its casts can be left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend
from gradcheck.case.agreement import alike
from gradcheck.checker.low_precision import BACKWARD_UNITS
from gradcheck.checker.problem import Problem
from gradcheck.codes import FIRST_CONTRACT, LAST_CONTRACT
from gradcheck.numeric.arrays import EPSILON, Array, wide
from gradcheck.result import GradientSummary, Status, WrongEntry, distance


def without_casts(
    backend: Backend, problem: Problem, check: Callable[[Problem], GradientSummary], summary: GradientSummary
) -> GradientSummary:
    """The summary, or what is found of the layer without its casts where it is not right with them.

    The derivative of a cast is 1. PASS counts; where nothing could be decided, FAIL too, if it is beyond the rounding
    of these dtypes, which a backward may still make where its casts cannot be left out.
    """
    undecided = summary.verdict is Status.INCONCLUSIVE
    if not undecided and not (summary.verdict is Status.FAIL and of_the_derivative(summary)):
        return summary
    left_out = set[str]()
    whole = kept(backend, problem, left_out)
    try:
        found = run(whole)
        plain = run(problem) if left_out else found
    except Exception:  # what the layer itself raises was heard before
        return summary
    epsilon = max((EPSILON[name] for name in left_out), default=0.0)
    if not left_out or not all(alike(a, b, epsilon) for a, b in zip(plain, found, strict=True)):
        return summary  # what overflows or underflows in them is no rounding
    again = check(whole)
    fails = undecided and again.verdict is Status.FAIL and beyond(again.wrong, epsilon)
    if again.verdict is not Status.PASS and not fails:
        return summary
    return again.model_copy(update={"marks": (*again.marks, f"without its casts to {' and '.join(sorted(left_out))}")})


def run(problem: Problem) -> list[Array]:
    """The outputs and, for a random cotangent, the gradients, in double precision."""
    inputs, random = [wide(x) for x in problem.inputs], np.random.default_rng(0)
    outputs = problem.forward(inputs)
    cotangents = [random.standard_normal(out.shape).astype(out.dtype) for out in outputs]
    gradients = problem.vjp(inputs, cotangents)
    return [wide(a) for a in (*outputs, *(x * 0 if g is None else g for x, g in zip(inputs, gradients, strict=True)))]


def of_the_derivative(summary: GradientSummary) -> bool:
    """Whether a FAIL says no more than that backward is not the derivative."""
    others = {"GC110", "GC113"}  # not linear; wrong in the inputs' own dtype alone
    return not any(d.code in others or FIRST_CONTRACT <= d.code <= LAST_CONTRACT for d in summary.diagnosis)


def beyond(wrong: Sequence[WrongEntry], epsilon: float) -> bool:
    """Whether entries are off by more than a backward rounds, relative to the largest of them: one that rounds is off
    at the largest of all as well."""
    errors = [distance(e.analytic, e.numeric) for e in wrong]
    sizes = [max(abs(e.analytic), abs(e.numeric)) for e in wrong]
    return max(errors, default=0.0) > BACKWARD_UNITS * epsilon * max(sizes, default=0.0)


def kept(backend: Backend, problem: Problem, left_out: set[str]) -> Problem:
    """The problem computed without casts to dtypes of fewer digits; `left_out` is told of these."""

    def within(function: Callable[..., Any]) -> Callable[..., Any]:
        def keeping(*given: Any) -> Any:
            with backend.unrounded(left_out):
                return function(*given)

        return keeping

    inputs = [wide(x) if x.dtype.kind in "fV" else x for x in problem.inputs]
    forward, vjp = within(problem.forward), within(problem.vjp)
    return replace(problem, inputs=inputs, forward=forward, vjp=vjp, observe=None, outputs=None, record=None)
