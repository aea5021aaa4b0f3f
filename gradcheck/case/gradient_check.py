"""The verdict on a function of Tensors at its inputs, of first and second order."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from gradcheck.case.function import TensorFunction
from gradcheck.case.no_gradient import refused
from gradcheck.causes.summary import MOST_LISTED, Effort, Mode, check_gradient
from gradcheck.checking.problem import Problem
from gradcheck.checking.verdict import Precision
from gradcheck.result import GradientSummary, Status

GAVE_LESS = "the documents ask for one gradient per Tensor input"
"""Marks a verdict on a backward that left gradients out, or returned None for one: it was read as releases read it."""


@dataclass(frozen=True)
class Settings:
    """How a gradient is checked; see `gradcheck.causes.summary.check_gradient`.

    `order` 2: the derivative of the gradient as well, if the gradient itself is right.
    """

    seed: int = 0
    rtol: float | None = None
    mode: Mode = "auto"
    order: int = 1
    listed: int = MOST_LISTED
    effort: Effort = "usual"
    precision: Precision = "strict"
    seconds: float = inf


def gradient_summary(function: TensorFunction, settings: Settings) -> GradientSummary:
    """What the gradient check finds: INCONCLUSIVE where nothing is claimed, FAIL where backward returns no gradients.

    Raises:
        Exception: whatever else the function raises.
    """
    try:
        problem = function.problem()
        if function.unchecked:
            return GradientSummary(verdict=Status.INCONCLUSIVE, why=f"nothing was checked: {function.unchecked}")
        summary = checked_problem(problem, settings)
        if settings.order == 2 and summary.verdict in (Status.PASS, Status.KINK):
            summary = checked_problem(function.second_order(problem), settings).second()
    except Exception as error:
        found = refused(error)
        if found is None:
            raise
        return found
    summary = summary.model_copy(update={"marks": (*summary.marks, GAVE_LESS)}) if function.gave_less else summary
    return function.told(summary)


def checked_problem(problem: Problem, settings: Settings) -> GradientSummary:
    """The gradient check of one problem."""
    options = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name != "order"}
    return check_gradient(problem, **options)
