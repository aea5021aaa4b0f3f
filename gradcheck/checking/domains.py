"""Advice for points outside of a function's domain: the operation that left it, and values
inside.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradcheck.checking.precision import finite
from gradcheck.checking.problem import Problem

POSITIVE, WITHIN_ONE = (0.1, 3.0), (-0.9, 0.9)
DOMAINS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(
        ("sqrt", "rsqrt", "log", "log2", "log10", "pow", "gammaln", "digamma", "reciprocal"),
        POSITIVE,
    ),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), WITHIN_ONE),
    "log1p": (-0.9, 3.0),
    "acosh": (1.1, 3.0),
    "logit": (0.1, 0.9),
}
"""A range in which an operation and its derivative are finite, by operation."""


def advice(problem: Problem) -> str:
    """Advice for outputs that are not finite: the range to declare, if the operation has one."""
    otherwise = "choose another point"
    try:
        recording = problem.runs.recording(list(problem.inputs), keep_casts=True)
    except Exception:  # whatever a layer raises while it is recorded
        return otherwise
    for step in recording.steps if recording else ():
        read = [recording.arrays[edge] for edge in step.edges if edge >= 0]  # type: ignore[union-attr]
        if not finite(step.values) and finite(read):
            if step.name not in DOMAINS:
                return f"{step.name} gives it: {otherwise}"
            low, high = DOMAINS[step.name]
            return (
                f"{step.name} leaves its domain: give its inputs values inside it, "
                f"such as 'range: [{low:g}, {high:g}]' in a spec, "
                f"~{low:g}..{high:g} on the command line"
            )
    return otherwise
