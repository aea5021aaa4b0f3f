"""Primitives of HIPS autograd are checked as they are given, and their mistakes named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcheck

pytest.importorskip("autograd")
sys.path.append(str(Path(__file__).parent))

from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads
from primitives import PRIMITIVES, W, X, made

DTYPES = {"f": ("float64", "float32"), "c": ("complex128", "complex64")}
CASES = [
    pytest.param(row, vjps, line, id=f"{name}, {what}")
    for name, row in PRIMITIVES.items()
    for what, (vjps, line) in row.wrong.items()
]


def inputs_of(row: Any, narrow: bool) -> list[Any]:
    """The inputs in double precision, or half of that."""
    given = map(np.asarray, row.inputs)
    return [a.astype(DTYPES.get(a.dtype.kind, (a.dtype,) * 2)[narrow]) for a in given]


@pytest.mark.parametrize("narrow", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("row", PRIMITIVES.values(), ids=PRIMITIVES)
def test_a_right_primitive_passes(row: Any, narrow: bool) -> None:
    inputs = inputs_of(row, narrow)
    result = gradcheck.check(made(row.function, row.right), *inputs)
    assert (result.verdict, result.marks) == ("PASS", ())


@pytest.mark.parametrize("narrow", [False, True], ids=["double", "single"])
@pytest.mark.parametrize(("row", "vjps", "line"), CASES)
def test_a_wrong_one_fails_and_its_line_is_right(row: Any, vjps: Any, line: str, narrow: bool) -> None:
    result = gradcheck.check(made(row.function, vjps), *inputs_of(row, narrow))
    assert result.verdict == "FAIL"
    if line:
        assert line in result.diagnosis[0].source_line
        assert "primitives.py:" in result.diagnosis[0].line


@pytest.mark.parametrize("row", PRIMITIVES.values(), ids=PRIMITIVES)
def test_autograd_itself_agrees_in_double_precision(row: Any) -> None:
    """The expectations above are autograd's."""
    inputs = inputs_of(row, narrow=False)
    places = [k for k, a in enumerate(inputs) if a.dtype.kind in "fc"]

    def accepts(vjps: Any) -> bool:
        function = made(row.function, vjps)

        def of_floats(*given: Any) -> Any:
            values = list(inputs)
            for k, value in zip(places, given, strict=True):
                values[k] = value
            return function(*values)

        try:
            every = tuple(range(len(places)))
            check_grads(of_floats, every, modes=["rev"], order=1)(*[inputs[k] for k in places])
        except AssertionError:
            return False
        return True

    assert accepts(row.right)
    assert not any(accepts(vjps) for vjps, _ in row.wrong.values())


def test_operations_of_autograd_are_primitives() -> None:
    anp = pytest.importorskip("autograd.numpy")
    assert gradcheck.check(anp.tanh, X).verdict == "PASS"
    assert gradcheck.check(anp.logaddexp, X, X[::-1]).verdict == "PASS"


@primitive
def scaled(x: Any, w: Any) -> Any:
    return x * w


defvjp(scaled, lambda ans, x, w: lambda g: g * w, argnums=(0,))


def test_a_vjp_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeError, match="scaled has no vjp of argument 1, whose gradient is needed"):
        gradcheck.check(scaled, X, W)
    assert gradcheck.check(scaled, X, 2.0)
    assert gradcheck.check(scaled, X, np.arange(4))


def test_a_primitive_without_vjps_is_refused() -> None:
    bare = primitive(lambda x: 2 * x)
    with pytest.raises(TypeError, match=r"is a primitive without vjps: give it some by defvjp"):
        gradcheck.check(bare, X)


def test_the_command_line_checks_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from gradcheck.commands import main

    source = Path(__file__).with_name("primitives.py").read_text()
    (tmp_path / "own_primitives.py").write_text(
        source + "\n\n@primitive\ndef cube(x):\n    return x**3\n\n\n"
        "defvjp(cube, lambda ans, x: lambda g: 2 * x**2 * g)\n"
    )
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["check", "own_primitives:cube", "-i", "x=3"])
    assert done.exit_code == 1
    assert "return x**3" in done.stdout
