"""Thirty Functions: right ones pass in both dtypes, and a mistake of each fails with the line of the forward, or with
the edit of backward that repairs it.

The bench `fresh.py` runs all mistakes, beside torch's own checker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gradcheck
from gradcheck.result import Status

from .fresh import DTYPES, names_line, variants
from .fresh_functions import INPUTS, MISTAKES


@pytest.mark.parametrize("function", INPUTS, ids=lambda function: function.__name__)
def test_a_right_function_passes_and_a_wrong_one_is_named(function: Any, tmp_path: Path) -> None:
    right, wrong, *_ = variants(function, tmp_path)
    for dtype in DTYPES:
        result = gradcheck.check(right.layer, *(array.astype(dtype) for array in right.inputs))
        assert result.verdict is Status.PASS, result
        assert result.marks == ()
    result = gradcheck.check(wrong.layer, *wrong.inputs)
    assert result.verdict is Status.FAIL
    is_edit = "GC127" in {cause.code for cause in result.diagnosis}  # its line is one of backward
    assert is_edit or names_line(result, wrong.line) or function.__name__ in WITHOUT_LINE, result


WITHOUT_LINE = {"Modulus", "RmsNorm", "Margin"}
"""Those whose first mistake gets no line, or that of another line which explains it as well."""


def test_each_has_five_mistakes() -> None:
    assert INPUTS.keys() == MISTAKES.keys()
    assert {len(mistakes) for mistakes in MISTAKES.values()} == {5}
    assert len(INPUTS) == 30
