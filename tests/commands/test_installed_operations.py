"""A package adds an operation with an entry point, and `{op: …}` in a scenario names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcheck.support.entry_points import installed_operations

CODE = """\
import paddle
from paddle.autograd import PyLayer


class Cube(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return FACTOR * dy * x**2


def cube(x):
    return Cube.apply(x)
"""
ENTRIES = "[gradcheck.operations]\ncube = lab_operations:cube\nlab.cube = lab_operations:cube\nabsent = no_lab:cube\n"
SCENARIO = "  - {id: own-cube, title: t, source: {document: d}, layer: {op: OP}, inputs: {x: [2, 3]}}\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module of an installed distribution, as pip leaves one."""
    info = tmp_path / "lab_operations-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-operations\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    module = tmp_path / "lab_operations.py"
    module.write_text(CODE.replace("FACTOR", "3"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return module


@pytest.mark.parametrize("name", ["cube", "lab.cube"])
def test_an_operation_of_an_installed_package_is_checked(package: Path, spec: Any, gradcheck: Any, name: str) -> None:
    spec(SCENARIO.replace("OP", name))
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("PASS own-cube@numpy ")


def test_a_wrong_one_fails(package: Path, spec: Any, gradcheck: Any) -> None:
    package.write_text(CODE.replace("FACTOR", "2"))
    spec(SCENARIO.replace("OP", "cube"))
    done = gradcheck("run", "a.grad.yaml")
    assert done.code == 1
    assert "gradient of x: 6 of 6 entries wrong" in done.out


def test_validating_imports_nothing_of_the_package(package: Path, spec: Any, gradcheck: Any) -> None:
    package.write_text("raise SystemExit('imported')\n")
    spec(SCENARIO.replace("OP", "cube"))
    assert gradcheck("validate", "a.grad.yaml").code == 0


def test_one_that_is_not_there_is_an_error(package: Path, spec: Any, gradcheck: Any) -> None:
    assert installed_operations()["absent"] == "no_lab:cube"
    spec(SCENARIO.replace("OP", "absent"))
    done = gradcheck("run", "a.grad.yaml")
    assert done.code == 1
    assert "there is no module no_lab" in done.out
