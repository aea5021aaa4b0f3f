"""What a program leaves to be compared with what it leaves on other backends."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from cases import case_of, cases_of

from gradcheck.case.execute import execute
from gradcheck.case.values import elements, value_of
from gradcheck.result import Result, Status
from gradcheck.run.results import SideBySide

pytestmark = pytest.mark.usefixtures("process_as_before")


def run(folder: Path, script: str, *keys: str, backends: tuple[str, ...] = ("numpy", "paddle")) -> Result:
    """The result on the first of the backends."""
    file = folder / "mine.grad.yaml"
    lines = ["schema: gradcheck/v1", "scenarios:", "  - id: mine", "    script: |", indent(script, " " * 6)]
    file.write_text("\n".join([*lines, *(f"    {key}" for key in keys)]) + "\n", encoding="utf-8")
    return execute(case_of(file, backends))


def left(folder: Path, script: str, *keys: str) -> dict[str, list[float]]:
    """What it leaves, by name."""
    result = run(folder, script, *keys)
    assert result.status is Status.PASS, result.message
    return {value.name: elements(value).reshape(-1).tolist() for value in result.values}


LEAF = "x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)\n"


def test_names_of_tensors_gradients_of_leaves_and_what_lists_hold(tmp_path: Path) -> None:
    script = (
        LEAF + "y = x * 3\ny.sum().backward()\nboth, text = [x + 1, (y,), 'no'], 'no'\nhost, _own = y.numpy(), x * 5\n"
    )
    assert left(tmp_path, script) == {
        "x": [1.0, 2.0], "x.grad": [3.0, 3.0], "y": [3.0, 6.0], "both[0]": [2.0, 3.0], "host": [3.0, 6.0],
    }  # fmt: skip


def test_what_is_fetched_from_a_static_program_and_none_of_its_variables(tmp_path: Path) -> None:
    script = (
        "paddle.enable_static()\nx = paddle.static.data('X', [2], 'float64')\ny = x * 3\n"
        "got, = paddle.static.Executor().run(feed={'X': np.array([1.0, 2.0])}, fetch_list=[y])\n"
    )
    assert left(tmp_path, script) == {"got": [3.0, 6.0]}


@pytest.mark.parametrize("draw", ["paddle.rand([2])", "paddle.randn([2])", "paddle.nn.functional.dropout(x, 0.5)"])
def test_nothing_of_a_program_that_draws_random_numbers(tmp_path: Path, draw: str) -> None:
    assert left(tmp_path, f"{LEAF}y = {draw}\n") == {}


def test_nothing_where_nobody_compares_or_what_is_expected_is_an_exception_or_not_met(tmp_path: Path) -> None:
    assert run(tmp_path, LEAF, backends=("numpy",)).values == ()
    assert run(tmp_path, f"{LEAF}raise KeyError('k')\n", "expect: {raises: {type: KeyError}}").values == ()
    assert run(tmp_path, LEAF, "expect: {values: {'float(x.sum())': 4.0}}").values == ()


def test_programs_that_do_as_asked_and_leave_something_else_differ(tmp_path: Path) -> None:
    """As an operation would that is another on one of the backends."""
    script = LEAF + "y = (x * 3).sum()\n"
    file = tmp_path / "mine.grad.yaml"
    one = run(tmp_path, script, "expect: {values: {x.stop_gradient: false}}")
    cases = cases_of(file, ["numpy", "paddle"])
    for change, differ in ((1.0, 0), (1.0 + 1e-3, 1)):
        [y] = [value for value in one.values if value.name == "y"]
        scaled = (elements(y) * np.float32(change)).astype(np.float32)
        values = tuple(value_of("y", scaled.reshape(())) if value.name == "y" else value for value in one.values)
        other = cases[1].result(Status.PASS, "", values=values)
        found = [result for result in SideBySide().with_comparisons([one, other]) if result.compared_with]
        assert len(found) == differ
        assert all("both behave as documented, but y: 9 on numpy" in result.message for result in found)
