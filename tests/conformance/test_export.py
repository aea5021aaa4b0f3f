"""The documents' scenarios as plain pytest files."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from installed import variables

from gradcheck.backends.base import version_of
from gradcheck.commands import main
from gradcheck.conformance.releases import read_release
from gradcheck.spec.read import load
from gradcheck.support.resources import bundled_specs, release_paths

NEWEST = [*release_paths()][-1]
DOCUMENTS = {scenario.id for spec in load([bundled_specs() / "documents"]) for scenario in spec.scenarios}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    done = CliRunner().invoke(main, ["export", "--pytest", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def functions(folder: Path) -> dict[str, str]:
    """The tests that were written, with their marks as source."""
    found = {}
    for file in folder.glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = " ".join(map(ast.unparse, node.decorator_list))
    return found


def test_nothing_of_gradcheck_is_needed(folder: Path) -> None:
    assert not any("gradcheck" in file.read_text(encoding="utf-8") for file in folder.glob("*.py"))


def test_every_scenario_of_the_documents_is_a_test(folder: Path) -> None:
    written = functions(folder)
    for scenario in DOCUMENTS:
        assert any(name.startswith(f"test_{scenario.replace('-', '_')}") for name in written), scenario


def test_what_is_recorded_of_the_release_is_xfail_with_its_reason(folder: Path) -> None:
    written = functions(folder)
    for scenario, entry in read_release(release_paths()[NEWEST]).deviates.items():
        if scenario in DOCUMENTS and entry.observed is not None:
            mark = written[f"test_{scenario.replace('-', '_')}"]
            assert entry.why in ast.literal_eval(ast.parse(mark, mode="eval").body.keywords[-1].value)  # type: ignore[attr-defined]
            assert ("run=False" in mark) == bool(entry.observed.crash or entry.observed.hang)


def test_another_release_has_its_own_marks(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["export", "--pytest", str(tmp_path), "--as-version", "2.6.2"])
    assert done.exit_code == 0
    assert "for Paddle 2.6.2" in (tmp_path / "test_static.py").read_text(encoding="utf-8")
    assert CliRunner().invoke(main, ["export", "--pytest", str(tmp_path), "--as-version", "9.9"]).exit_code == 2


@pytest.mark.long
def test_they_pass_on_the_installed_release(folder: Path) -> None:
    if version_of("paddle") != NEWEST:
        pytest.skip(f"paddle {NEWEST} is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables(), check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "xfailed" in done.stdout
