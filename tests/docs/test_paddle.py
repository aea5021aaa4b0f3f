"""The findings in Paddle: the page is what the programs say that they print, and they print it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from installed import variables
from pages import ROOT
from releases import FACADE

from gradcheck.backends.base import version_of
from gradcheck.conformance.programs import PlainProgram, read_program
from gradcheck.support.resources import release_paths

FOLDER = ROOT / "docs/examples/paddle_programs"
PROGRAMS = {path.stem: read_program(path) for path in sorted((FOLDER / "programs").glob("*.py"))}
NOT_ON_THE_ENGINE = {
    "c-split": "dist.spawn starts interpreters without it",
    "grid-sample-of-the-grid-alone": "it has no grid_sample",
    "moe-scatter-float64": "it has no MoEScatter",
    "moe-scatter-top-2": "it has no MoEScatter",
    "recompute-without-a-gradient": "it raises ValueError, as it unpacks the Tensor with stop_gradient True too",
    "recompute-without-a-gradient-of-a-product": "it raises ValueError, as it unpacks the Tensor so too",
    "set-value-is-not-noticed": "its set_value is no change in place either",
    "static-layer-in-a-loop": "it has no while_loop",
}
MOST_LINES = 13
"""Lines of code of the longest program; most have fewer than 12."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that writes the page."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "run", raising=False)
    return import_module("run")


def outputs(*paths: Path, first: str = "") -> dict[str, str]:
    """What programs print on the Paddle of this interpreter, or on that of a folder that comes first."""
    environment = variables()
    environment["PYTHONPATH"] = f"{first}:{environment['PYTHONPATH']}"
    command = [sys.executable, FOLDER / "runner.py", *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    printed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return {name.removesuffix(".py"): text for name, text in printed.items()}


def test_the_page_has_what_the_programs_record(run: ModuleType) -> None:
    assert run.PAGE.read_text(encoding="utf-8") == run.page(), "run.py --page writes it"


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_each_was_run_on_every_release_and_can_be_read_at_a_glance(program: PlainProgram) -> None:
    assert [*program.prints] == [*release_paths()]
    assert program.expected
    assert len([line for line in program.code.splitlines() if not line.startswith("#")]) <= MOST_LINES


@pytest.fixture(scope="module")
def on_the_engine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the programs print where ``import paddle`` is the engine."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "paddle.py").write_text(FACADE, encoding="utf-8")
    programs = [PROGRAMS[name].path for name in PROGRAMS if name not in NOT_ON_THE_ENGINE]
    return outputs(*programs, first=str(folder))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_ON_THE_ENGINE])
def test_the_engine_prints_what_is_right(on_the_engine: dict[str, str], name: str) -> None:
    assert on_the_engine[name] == PROGRAMS[name].expected


def test_the_installed_release_prints_what_is_recorded() -> None:
    release = version_of("paddle")
    if release not in release_paths():
        pytest.skip(f"paddle {release or 'is not installed, so nothing'} is recorded here")
    recorded = {name: program.prints[release] for name, program in PROGRAMS.items()}
    assert outputs(*(program.path for program in PROGRAMS.values())) == recorded


def test_the_end_of_a_program_is_told_from_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("")
    ends = {
        "prints": "print('early')\nprint('last')",
        "raises": "print('early')\nraise KeyError('mine')",
        "dies": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    }
    for name, code in ends.items():
        (tmp_path / f"{name}.py").write_text(code)
    printed = outputs(*(tmp_path / f"{name}.py" for name in ends), first=str(tmp_path))
    assert printed == {"prints": "last", "raises": "KeyError", "dies": "SIGSEGV"}


def test_a_record_is_written_anew_and_names_the_release_that_mended(run: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("# Title\n#\n# Text.\nimport paddle\n# right: 1\n# 2.0: SIGSEGV\n")
    run.record_prints(path, {"2.6.2": "2", "3.0.0": "2", "3.1.0": "1", "3.1.1": "1"})
    assert path.read_text().endswith("import paddle\n# right: 1\n# 2.6.2, 3.0.0: 2\n# 3.1.0, 3.1.1: 1\n")
    program = read_program(path)
    assert (run.affected(program), run.fixed_in(program)) == ("2.6.2 to 3.0.0", "3.1.0")
    run.record_prints(path, {"2.6.2": "1", "3.0.0": "1"})
    with pytest.raises(LookupError, match="found no more"):
        run.group_of(read_program(path))
