"""Functions of JAX with backwards by hand: right ones pass, and the lines of mistakes are named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
sys.path.append(str(Path(__file__).parent))

import functions  # noqa: E402

import gradcheck  # noqa: E402
from gradcheck.backends.jax import JaxBackend  # noqa: E402
from gradcheck.backends.jax_program import Equation  # noqa: E402

ROWS = functions.FUNCTIONS
CASES = {
    f"{name}: {what}": (row, backward, line)
    for name, row in ROWS.items()
    for what, (backward, line) in row.wrong.items()
}
LEAST_NAMED = 0.8
"""Share of the mistakes about a line of which that line must be named."""


def inputs_of(row: Any, dtype: str) -> Any:
    return jax.tree.map(lambda a: a.astype(dtype) if a.dtype.kind == "f" else a, row.inputs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_a_right_backward_passes(name: str, dtype: str) -> None:
    row = ROWS[name]
    result = gradcheck.check(functions.made(row.primal, row.right), *inputs_of(row, dtype))
    assert (result.verdict, result.marks) == ("PASS", ())


@pytest.mark.parametrize("name", ROWS)
def test_a_check_has_one_program_compiled_and_no_operation_by_itself(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling takes most of the time of a check, and an operation that JAX computes is compiled as well."""
    by_jax: list[str] = []
    compute = Equation.compute_by_jax
    monkeypatch.setattr(
        Equation, "compute_by_jax", lambda self, given: by_jax.append(self.name) or compute(self, given)
    )
    backends: list[JaxBackend] = []
    start = JaxBackend.__init__
    monkeypatch.setattr(JaxBackend, "__init__", lambda self: backends.append(self) or start(self))
    assert gradcheck.check(functions.made(ROWS[name].primal, ROWS[name].right), *ROWS[name].inputs)
    assert [backend.compiled_at.cache_info().currsize for backend in backends] == [1]
    assert by_jax == []


def named_line(backward: Any, row: Any, dtype: str) -> str:
    """The line that a check, which must fail, names; empty if it names none."""
    result = gradcheck.check(functions.made(row.primal, backward), *inputs_of(row, dtype))
    assert result.verdict == "FAIL"
    return next((cause.source_line for cause in result.diagnosis), "")


def is_right(line: str, wanted: str) -> bool:
    return any(part in line for part in wanted.split(" | "))


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_one_fails_and_no_other_line_is_named(name: str) -> None:
    row, backward, wanted = CASES[name]
    line = named_line(backward, row, "float64")
    assert not line or not wanted or is_right(line, wanted)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_most_lines_are_named(dtype: str) -> None:
    found = [is_right(named_line(backward, row, dtype), wanted) for row, backward, wanted in CASES.values() if wanted]
    assert np.mean(found) >= LEAST_NAMED
