"""A scenario's code: where its errors point."""

from __future__ import annotations

import pytest

from gradcheck.case.user_code import compile_expression, frames_of, run_source
from gradcheck.support.foreign import describe_error


def test_errors_point_into_the_spec() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run_source("a = 1\nb = a / 0\n", "x.grad.yaml", 10, {})
    assert frames_of(raised.value)[-1] == ("x.grad.yaml", 11)


def test_an_expression_points_into_the_spec_too() -> None:
    with pytest.raises(NameError) as raised:
        eval(compile_expression("nothing", "x.grad.yaml", 7), {})
    assert frames_of(raised.value)[-1] == ("x.grad.yaml", 7)


def test_notes_are_part_of_the_description() -> None:
    error = ValueError("bad")
    error.add_note("in backward of Layer")
    assert describe_error(error) == "ValueError: bad · in backward of Layer"
