"""Rules of the tables: what a pattern matches, and that each text of a rule is one of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcheck.deriving.dialects import HELPERS, NUMPY, PADDLE
from gradcheck.deriving.graph import Node
from gradcheck.deriving.numbers import Argument, with_source
from gradcheck.deriving.ranks import RANK_OPS
from gradcheck.deriving.rewrites import SCOPE, SIMPLER_FORMS
from gradcheck.deriving.rules import rules_of
from pylayer.tape.vjp import OPS

MADE_FOR_TEXT = {"zeros"}
"""Operations that only rules of a dialect use."""


def value(operation: str = "input", *arguments: Any) -> Any:
    """A value of a trace that an operation made."""
    return Node(operation, arguments, np.ones(2)).tensor


def bindings(line: str, name: str, *values: Any, opens: bool = True) -> list[dict[str, Any]]:
    (rule,) = rules_of(line)[name]
    return list(rule.bindings(name, values, SCOPE, lambda node: opens))


X, Y = value(), value()


def test_names_stand_for_numbers_tensors_or_anything() -> None:
    assert bindings("k * x -> x", "multiply", 2, X) == [{"k": 2, "x": X}]
    assert bindings("k * n -> k", "multiply", 2, X) == []
    assert len(bindings("a * b -> a", "multiply", 2, X)) == 2


def test_factors_and_terms_match_in_either_order_and_others_do_not() -> None:
    assert bindings("k * x -> x", "multiply", X, 2) == [{"k": 2, "x": X}]
    assert bindings("k + x -> x", "add", X, 2) == [{"k": 2, "x": X}]
    assert bindings("k - x -> x", "subtract", X, 2) == []


def test_a_name_that_comes_twice_stands_for_one_value() -> None:
    assert bindings("(x - y) + y -> x", "add", value("subtract", X, Y), Y) == [{"x": X, "y": Y}]
    assert bindings("(x - y) + y -> x", "add", value("subtract", X, Y), X) == []


def test_a_value_that_has_a_name_is_not_opened() -> None:
    line = "- -x -> x"
    assert bindings(line, "neg", value("neg", X)) == [{"x": X}]
    assert bindings(line, "neg", value("neg", X), opens=False) == []


def test_a_number_with_a_source_is_not_a_constant() -> None:
    assert bindings("1 * x -> x", "multiply", 1, X) == [{"x": X}]
    assert bindings("1 * x -> x", "multiply", with_source(1, Argument("k")), X) == []


def test_the_arguments_that_are_left_are_one_name() -> None:
    assert bindings("sum(-x, *rest) -> x", "sum", value("neg", X), 0, None, True) == [{"x": X, "rest": (0, None, True)}]


def test_a_condition_decides() -> None:
    line = "reshape(x, shape) -> x  if tuple(shape) == traced_shape(x)"
    assert len(bindings(line, "reshape", X, [2])) == 1
    assert bindings(line, "reshape", X, [1, 2]) == []


ALL_OPS = OPS | RANK_OPS


@pytest.mark.parametrize(
    "table",
    [SIMPLER_FORMS[False], SIMPLER_FORMS[True], PADDLE.rules, NUMPY.rules],
    ids=["copies", "rewrites", "paddle", "numpy"],
)
def test_each_rule_is_for_an_operation_with_so_many_arguments(table: Any) -> None:
    for name, rules in table.items():
        if name in MADE_FOR_TEXT:
            continue
        for rule in rules:
            patterns = rule.pattern.arguments
            is_open = any(type(pattern).__name__ == "Starred" for pattern in patterns)
            assert is_open or len(patterns) == len(ALL_OPS[name].arguments) or name == "zeros_like"


def test_helpers_of_the_dialects_are_functions() -> None:
    assert all(callable(helper) for helper in HELPERS.values())
