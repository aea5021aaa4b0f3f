"""The dtype of a Tensor beside a number is that of Paddle 3.3.1, whatever the number's class."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as engine


class Derived(int):
    pass


class DerivedFloat(float):
    pass


class Member(enum.IntEnum):
    A = 2


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "int": lambda p, x: 2,
    "float": lambda p, x: 2.5,
    "bool": lambda p, x: True,
    "subclass of int": lambda p, x: Derived(2),
    "subclass of float": lambda p, x: DerivedFloat(2.5),
    "member": lambda p, x: Member.A,
    "size": lambda p, x: x.size,
    "float64": lambda p, x: np.float64(2.5),
    "float32": lambda p, x: np.float32(2.5),
    "int64": lambda p, x: np.int64(2),
    "int8": lambda p, x: np.int8(2),
    "bool of NumPy": lambda p, x: np.bool_(True),
}
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{n: lambda p, x, v, n=n: getattr(operator, n)(x, v) for n in ("add", "sub", "mul", "truediv", "floordiv", "pow")},
    **{f"r{n}": lambda p, x, v, n=n: getattr(operator, n)(v, x) for n in ("add", "sub", "mul", "truediv", "floordiv")},
    **{n: lambda p, x, v, n=n: getattr(operator, n)(x, v) for n in ("lt", "ge")},
    "scale": lambda p, x, v: p.scale(x, v),
    "where": lambda p, x, v: p.where(x > 0, x, v),
    "clip": lambda p, x, v: p.clip(x, v),
    "full_like": lambda p, x, v: p.full_like(x, v),
    "leaky_relu": lambda p, x, v: p.nn.functional.leaky_relu(x, v),
    "hardtanh": lambda p, x, v: p.nn.functional.hardtanh(x, -1.0, v),
    "set": lambda p, x, v: x.__setitem__(0, v) or x,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("number", NUMBERS)
def test_the_dtype_beside_a_number_is_that_of_paddle(real: Any, dtype: str, number: str) -> None:
    def found(paddle: Any, name: str) -> str | None:
        x = paddle.to_tensor(np.array([1.0, 3.0]), dtype)
        try:
            return str(FUNCTIONS[name](paddle, x, NUMBERS[number](paddle, x)).dtype).removeprefix("paddle.")
        except Exception:  # which calls are refused other tests compare
            return None

    for name in FUNCTIONS:
        ours, theirs = found(engine, name), found(real, name)
        assert None in (ours, theirs) or ours == theirs, name
