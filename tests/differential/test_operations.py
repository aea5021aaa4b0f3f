"""What ``layer: {op: …}`` may name is there on Paddle too, and is a function."""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, FunctionType
from typing import Any

from gradcheck.spec.model import OPERATIONS


def test_every_operation_that_may_be_named_is_a_function_of_paddle(real: Any) -> None:
    found = {name: functools.reduce(getattr, name.split("."), real) for name in OPERATIONS}
    assert {n for n, value in found.items() if not isinstance(value, (FunctionType, BuiltinFunctionType))} == set()
