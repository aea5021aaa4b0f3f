"""Values read as numbers of another kind leave the tape: the differences decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import factor, in_numpy, in_paddle, judging, normal

import pylayer.paddle as paddle

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.clause(id="V6")]

MAGIC = 0x5FE6EB50C7B537A9


def positive(seed: int) -> list[Any]:
    return [abs(np.random.default_rng(seed).standard_normal(5)) + 0.1]


def inverse_root(x: Any) -> Any:
    """By the bits of x, and five steps of Newton's."""
    y = (MAGIC - (x.view(np.int64) >> 1)).view(np.float64)
    for _ in range(5):
        y = y * (1.5 - 0.5 * x * y * y)
    return y


def inverse_root_of_tensor(x: Any) -> Any:
    y = (MAGIC - x.view("int64") // 2).view("float64")
    for _ in range(5):
        y = y * (1.5 - 0.5 * x * y * y)
    return y


def of_inverse_root(x: Any, y: Any, g: Any) -> Any:
    return -0.5 * g * y**3


def logarithm(x: Any) -> Any:
    bits = x.view(np.int64)
    mantissa = (bits & (2**52 - 1) | (1023 << 52)).view(np.float64)
    return np.log2(mantissa) + ((bits >> 52) - 1023)


def absolute(x: Any) -> Any:
    """Without the bit of the sign, written into a copy."""
    y = x.copy()
    bits = y.view(np.int64)
    bits &= 2**63 - 1
    return y * y * y


def pieces(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return np.log(mantissa) + exponent * np.log(2)


def doubled(right: Any) -> list[Any]:
    return [factor(2, right), factor(-1, right), factor(0, right)]


def case(make: Any, name: str, forward: Any, right: Any, inputs: Any) -> list[Any]:
    return make(name, forward, right, doubled(right), inputs)  # type: ignore[no-any-return]


BITS = [
    case(in_numpy, "there and back", lambda x: np.sin(x.view(np.int64).view(np.float64)),
         lambda x, y, g: g * np.cos(x), normal((5,))),
    case(in_numpy, "halves", lambda x: np.sin(x.view(np.float32).copy().view(np.float64)),
         lambda x, y, g: g * np.cos(x), normal((5,))),
    case(in_numpy, "the sign's bit", lambda x: x * x * ((x.view(np.int64) >> 63) * 2 + 1),
         lambda x, y, g: 2 * g * abs(x), normal((5,))),
    case(in_numpy, "inverse root", inverse_root, of_inverse_root, positive),
    case(in_numpy, "logarithm", logarithm, lambda x, y, g: g / x / np.log(2), positive),
    case(in_numpy, "absolute", absolute, lambda x, y, g: 3 * g * x * abs(x), normal((5,))),
    case(in_numpy, "mantissa", pieces, lambda x, y, g: g / x, positive),
    case(in_paddle, "there and back", lambda x: paddle.sin(x.view("int64").view("float64")),
         lambda x, y, g: g * paddle.cos(x), normal((5,))),
    case(in_paddle, "float32, there and back", lambda x: paddle.sin(x.view("int32").view("float32")),
         lambda x, y, g: g * paddle.cos(x), normal((5,), dtype="float32")),
    case(in_paddle, "halves", lambda x: paddle.sin(x.view("float32").view("float64")),
         lambda x, y, g: g * paddle.cos(x), normal((5,))),
    case(in_paddle, "inverse root", inverse_root_of_tensor, of_inverse_root, positive),
]  # fmt: skip

test_a_right_gradient_passes, test_a_wrong_gradient_fails = judging(*BITS)
