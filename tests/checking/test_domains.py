"""Outputs that are not finite: the operation that left its domain, and the range to write."""

from __future__ import annotations

import numpy as np
import pytest

import gradcheck
from gradcheck.result import Status
from pylayer import paddle


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("log", "leaves its domain: give its inputs values inside it, such as 'range: [0.1, 3]' in a spec, ~0.1..3"),
        ("sqrt", "sqrt leaves its domain"),
        ("acosh", "'range: [1.1, 3]'"),
        ("asin", "'range: [-0.9, 0.9]'"),
    ],
)
def test_the_range_to_write_is_named(operation, said):
    found = gradcheck.check(lambda x: 2 * getattr(paddle, operation)(x - 1), np.array([-4.0, 0.5, -2.0]))
    assert found.verdict is Status.INCONCLUSIVE
    assert said in found.why


def test_another_operation_is_named_without_a_range():
    found = gradcheck.check(lambda x: paddle.exp(x), np.array([1e4, 1.0]))
    assert found.verdict is Status.INCONCLUSIVE
    assert found.why == "out[0] is not finite here: exp gives it: choose another point"
