"""The protocol of a backend: what checks gradients knows of no framework, and packages add backends."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gradcheck.backends import base
from gradcheck.backends.base import BackendRow, backend_row, load_backend
from gradcheck.backends.bundled import BundledBackend
from gradcheck.backends.environments import name_problem

HARNESS = Path(base.__file__).parents[1]
OF_FRAMEWORKS = {"paddle", "torch", "jax", "stop_gradient", "requires_grad", "inplace_version", "is_leaf"}
"""Names of frameworks and of what is theirs."""
OF_PADDLE = {
    "static_layer.py": "static programs",
    "static_calls.py": "static programs",
    "world.py": "ranks",
    "world_call.py": "ranks",
    "engine_twin.py": "Paddle's code on the engine",
    "of_arrays.py": "NumPy pairs, which are layers of the engine",
    "values.py": "values compared between backends of Paddle's API",
    "user_code.py": "the engine in the place of Paddle",
    "instead.py": "what a release of Paddle does in place of what is expected",
    "execute.py": "random numbers compared between backends of Paddle's API",
}
"""The files of case/ that are of what only Paddle or the engine has."""


def names_of_frameworks(file: Path) -> Iterator[str]:
    """Attributes, imports and texts in the code of a file that are of a framework; keywords and docstrings are not."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in OF_FRAMEWORKS:
            yield f"{node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Constant) and node.value in OF_FRAMEWORKS:
            yield f"{node.lineno}: {node.value!r}"
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            yield from (f"{node.lineno}: import {m}" for m in modules if m.partition(".")[0] in OF_FRAMEWORKS)


@pytest.mark.parametrize("room", ["checking", "causes"])
def test_what_checks_gradients_knows_no_framework(room: str) -> None:
    assert {f.name: found for f in (HARNESS / room).glob("*.py") if (found := [*names_of_frameworks(f)])} == {}


def test_a_case_knows_none_but_for_what_only_paddle_has() -> None:
    found = {f.name: [*names_of_frameworks(f)] for f in (HARNESS / "case").glob("*.py") if f.name not in OF_PADDLE}
    assert {name: names for name, names in found.items() if names} == {}


def test_an_attribute_a_text_and_an_import_are_found(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text('import torch.nn\nx.stop_gradient\nname == "paddle"\nf(stop_gradient=True)\n')
    assert len([*names_of_frameworks(file)]) == 3


ROW = BackendRow(
    "gradcheck.backends.bundled:BundledBackend", ("numpy", "cpu"), ("numpy",), "", ("numpy",), (), True, ("own",)
)


@pytest.fixture
def own_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entry = EntryPoint("own", f"{__name__}:ROW", "gradcheck.backends")
    monkeypatch.setattr(EntryPoint, "load", lambda self: ROW)
    monkeypatch.setattr(base, "entry_points_of", lambda group: [entry] if group == entry.group else [])
    base.installed_rows.cache_clear()
    yield
    base.installed_rows.cache_clear()


@pytest.mark.usefixtures("own_backend")
def test_an_installed_package_adds_a_backend_by_an_entry_point() -> None:
    assert backend_row("own") is ROW
    assert name_problem("own") == ""
    assert isinstance(load_backend("own"), BundledBackend)


def test_there_is_no_row_of_another_name() -> None:
    with pytest.raises(KeyError):
        backend_row("ours")


def test_the_engine_in_place_of_paddle_is_no_installed_paddle() -> None:
    program = (
        "import pylayer; from gradcheck.backends.base import is_installed; before = is_installed('paddle'); "
        "pylayer.install_paddle(); assert is_installed('paddle') == before; assert is_installed('numpy')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
