"""Programs that use gradcheck and the engine have types: mypy --strict accepts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

import gradcheck

PROGRAM = """
from __future__ import annotations

from typing import Any

import numpy as np

import gradcheck
import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer, PyLayerContext


class Double(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: PyLayerContext, dy: paddle.Tensor) -> paddle.Tensor:
        return dy * 2


result = gradcheck.check(Double, np.ones(3), order=1, precision="loose")
assert result, result.summary()
gradcheck.assert_gradients(Double, gradcheck.replicated(np.ones(3)), world=2, outputs="replicated")
found = gradcheck.explore(Double, {"x": "B C"}, seconds=1.0)
checked: int = found.checked
shapes: dict[str, np.ndarray[Any, Any]] | None = found.inputs


def describe(result: gradcheck.CheckResult, search: gradcheck.Explored) -> str:
    causes: tuple[gradcheck.Diagnosis, ...] = result.diagnosis
    verdict: gradcheck.Status = result.verdict
    return f"{verdict} {[cause.code for cause in causes]} {search.checked}"
"""


@pytest.mark.long
def test_a_program_with_a_layer_of_its_own_passes_mypy_strict(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(PROGRAM)
    said, errors, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "user.py")])
    assert status == 0, said + errors


def test_a_misspelt_name_of_gradcheck_is_a_type_error(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text("import gradcheck\n\ngradcheck.check\ngradcheck.chekc\n")
    ours_alone = ["--no-site-packages", "--ignore-missing-imports"]  # the types of others take most of the time
    arguments = ["--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "user.py")]
    shown, _, status = api.run([*ours_alone, *arguments])
    assert status == 1
    assert [line.split(":")[1] for line in shown.splitlines() if ": error: " in line] == ["4"]
    assert 'Module has no attribute "chekc"' in shown


def test_every_public_name_can_be_imported() -> None:
    for name in gradcheck.__all__:
        assert getattr(gradcheck, name) is not None
    with pytest.raises(AttributeError, match="module 'gradcheck' has no attribute 'chekc'"):
        gradcheck.chekc  # type: ignore[attr-defined]  # noqa: B018
