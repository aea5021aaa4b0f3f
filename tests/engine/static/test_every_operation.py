"""Every row of the op table does in a program what it does at once: values, shapes, dtypes, gradients of two orders.

There is no list of static operations to hold against the table: a program's calls are calls of its rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from both_ways import CASES, at_once, in_a_program
from samples import SAMPLES

import pylayer.paddle as paddle
from pylayer.static.operators import Call, Gradient
from pylayer.tape.vjp import OPS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(("name", "k"), CASES)
def test_an_operation_in_a_program_does_what_it_does_at_once(name: str, k: int) -> None:
    expected = at_once(name, SAMPLES[name][k])
    does_what_was_done(name, k, expected, unknown=False)
    if name == "as_complex":  # of which the last size must be known
        return
    if name == "unbind":
        with pytest.raises(ValueError, match="the number of results depends on a size"):
            in_a_program(name, SAMPLES[name][k], unknown=True)
    else:
        does_what_was_done(name, k, expected, unknown=True)


def does_what_was_done(name: str, k: int, expected: list[Any], unknown: bool) -> None:
    """Hold an operation in a program, of known or unknown sizes, against what it did at once."""
    variables, values = in_a_program(name, SAMPLES[name][k], unknown)
    assert len(values) == len(expected)
    for variable, value, wanted in zip(variables, values, expected, strict=True):
        if wanted is None or value is None:
            assert value is None or not np.any(value)
            assert wanted is None or not np.any(wanted)
            continue
        np.testing.assert_array_equal(value, wanted)
        assert variable.dtype.numpy == value.dtype == wanted.dtype
        assert all(n in (m, -1) for m, n in zip(value.shape, variable.shape, strict=True))


def test_the_calls_of_a_program_are_rows_of_the_table(program: Any) -> None:
    x = paddle.static.data("X", [None, 3], "float64")
    x.stop_gradient = False
    loss = paddle.nn.functional.cross_entropy(paddle.tanh(x) @ x.T, paddle.argmax(x, 1))
    paddle.static.gradients(loss, x)
    rows = [
        op.op if isinstance(op, Call) else op.primal.op
        for op in program.operators()
        if isinstance(op, (Call, Gradient))
    ]
    assert len(rows) > 10
    assert all(row is OPS[row.name] for row in rows)
