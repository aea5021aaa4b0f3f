"""What `gradcheck show ID --reproduce` prints fails on the releases that it names, and on no other, nor on the engine."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import run_programs
from installed import FOLDER, RELEASES, lacking, variables

from gradcheck.backends.base import version_of
from gradcheck.case.case import Case
from gradcheck.commands.specs import read_bundled
from gradcheck.conformance.releases import with_deviation
from gradcheck.conformance.reproduce import NoProgramError, is_visible, write_program
from gradcheck.run.plan import plan

ENGINE = "import runpy, sys, pylayer; pylayer.install_paddle(); del sys.argv[0]; runpy.run_path(sys.argv[0], None, '__main__')"
"""Runs a program where ``import paddle`` is the engine."""


@cache
def cases() -> dict[str, Case]:
    """The first case of each scenario of which there is a program."""
    found: dict[str, Case] = {}
    for case in plan(read_bundled(), ["numpy"]):
        try:
            if case.scenario.id not in found:
                write_program(case)
                found[case.scenario.id] = case
        except NoProgramError:
            continue
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs, in files of a folder."""
    folder = tmp_path_factory.mktemp("programs")
    for name, case in cases().items():
        (folder / f"{name}.py").write_text(write_program(case), encoding="utf-8")
    return {name: folder / f"{name}.py" for name in cases()}


def ends(python: str, files: dict[str, Path], *before: str, path: str = "") -> dict[str, int]:
    """How each program ends under an interpreter."""
    command = [python, *before, run_programs.__file__, *map(str, files.values())]
    environment = {**variables(), "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = (line.split(maxsplit=1) for line in done.stdout.splitlines() if line.endswith(".py"))
    found = {Path(path).stem: int(status) for status, path in lines}
    assert set(found) == set(files)
    return found


def otherwise(found: dict[str, int], release: str) -> list[str]:
    """The programs that do not end as what is recorded of a release says."""
    wrong = []
    for name, status in found.items():
        scenario = cases()[name].scenario
        entry = with_deviation(scenario, f"paddle@{release}").on("paddle", release)
        observed = entry.observed if entry.observed and is_visible(scenario.expect, entry) else None
        dies = observed is not None and bool(observed.crash)
        if (status < 0) != dies or (status == 0) != (observed is None):
            wrong.append(f"{name}: {status}")
    return wrong


def test_there_is_a_program_for_what_kills_or_gives_another_gradient() -> None:
    assert {
        "backward-rules-grad-of-some-outputs", "backward-rules-twice-with-retain-graph", "backward-rules-hook-on-output",
        "inplace-saved-input-changed-raises", "apply-list-of-tensors-input",
    } <= set(cases())  # fmt: skip
    assert len(cases()) >= 80


def test_a_program_is_short() -> None:
    lengths = sorted(len(write_program(case).splitlines()) for case in cases().values())
    assert lengths[len(lengths) // 2] <= 25
    assert all("gradcheck" not in write_program(case) for case in cases().values())


def test_on_the_release_that_is_installed(real: Any, files: dict[str, Path]) -> None:
    found = ends(sys.executable, files)
    assert otherwise(found, version_of("paddle")) == []


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_on_each_release(release: str, files: dict[str, Path]) -> None:
    if problem := lacking(release):
        pytest.skip(problem)
    found = ends(str(FOLDER / f"paddle@{release}" / "bin" / "python"), files)
    assert otherwise(found, release) == []


def test_the_engine_does_what_is_asked_for(files: dict[str, Path]) -> None:
    found = ends(sys.executable, files, "-c", ENGINE, path=variables()["PYTHONPATH"])
    assert [name for name, status in found.items() if status] == []
