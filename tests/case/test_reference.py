"""Layers by their name, and modules that say ``import paddle`` where none is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from square import module
from warm import python

from gradcheck.case.user_code import import_reference

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package of layers, and a folder below it."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "right.py").write_text(module(2))
    (tmp_path / "mine" / "wrong.py").write_text(module(3))
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    return tmp_path


def run(code: str, folder: Path) -> str:
    """What a program prints that runs in `folder`, with no Paddle to be found."""
    hidden = "import sys\nsys.path = [p for p in sys.path if 'site-packages/paddle' not in p]\n"
    done = python("-c", hidden + code, folder=folder, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}", "PATH": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("layer", "verdict"), [("mine.right:Square", "PASS"), ("mine.wrong:Square", "FAIL")])
@pytest.mark.parametrize("folder", [".", "docs/deep"])
def test_a_layer_is_checked_by_its_name_from_any_folder_of_the_project(
    project: Path, layer: str, verdict: str, folder: str
) -> None:
    code = f"import gradcheck, numpy as np\nprint(gradcheck.check({layer!r}, np.ones(3)).verdict)"
    assert run(code, project / folder) == verdict


def test_a_layer_below_src_is_found(project: Path) -> None:
    (project / "src" / "own").mkdir(parents=True)
    (project / "src" / "own" / "__init__.py").touch()
    (project / "mine" / "right.py").rename(project / "src" / "own" / "layers.py")
    code = "import gradcheck, numpy as np\nprint(gradcheck.check('own.layers:Square', np.ones(3)).verdict)"
    assert run(code, project / "docs") == "PASS"


def test_within_the_block_a_module_finds_the_engine_and_afterwards_nobody_else_does(project: Path) -> None:
    code = (
        "import gradcheck, numpy as np, importlib.util\n"
        "with gradcheck.engine():\n    from mine.right import Square\n"
        "print(gradcheck.check(Square, np.ones(3)).verdict, importlib.util.find_spec('paddle'))"
    )
    assert run(code, project) == "PASS None"


def test_a_reference_names_an_object_in_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_layers_module.py").write_text("class Outer:\n    class Inner:\n        pass\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert import_reference("own_layers_module:Outer.Inner", tmp_path).__name__ == "Inner"
    with pytest.raises(ImportError, match="has no 'Missing'"):
        import_reference("own_layers_module:Missing", tmp_path)
    with pytest.raises(ImportError):
        import_reference("no_such_module_here:X", tmp_path)
