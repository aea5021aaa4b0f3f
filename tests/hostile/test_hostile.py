"""Hostile and well-behaved cases in one run: each hostile one costs itself alone, and nothing is left of it."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gradcheck.result import Status
from gradcheck.spec.read import read

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SHARED = Path("/dev/shm")
PROGRAM = f"""
import sys
sys.path[:0] = {[str(ROOT), str(ROOT / "engine")]}
from gradcheck.__main__ import main
from gradcheck.run import worker_process
worker_process.GRACE = 2.0  # seconds that the two cases which stop their worker are waited for, in place of 5
main()
"""
"""The command, less patient; those 2 s are more than the 1 s that a worker gives a case after its time."""
OPTIONS = ["--allow-code", "--memory", "256M", "-j", "4", "--report", "json:report.json"]
"""Four jobs, as much of the time is waiting for time-outs, which then wait together."""
COPIES = 8
"""Of each of the four well-behaved cases."""
PATIENCE = 240.0
"""Seconds within which the run must have ended; it takes about 6 on two cores."""


def scenarios_of(name: str) -> list[str]:
    """The scenarios of a file beside this one, each as its text."""
    body = (HERE / name).read_text(encoding="utf-8").partition("scenarios:\n")[2]
    return re.findall(r"^  - id: .*\n(?:(?:    .*)?\n)*", body, re.MULTILINE)


@cache
def expected() -> dict[str, set[str]]:
    """Hostile scenario → the statuses that are right for it."""
    return {one.id: set(one.tags) for one in read(HERE / "layers.grad.yaml").scenarios}


def mixed_spec() -> str:
    """A spec file with all hostile scenarios, and well-behaved ones between them."""
    copies = [
        one.replace("- id: ", f"- id: good-{k}-", 1) for k in range(COPIES) for one in scenarios_of("good.grad.yaml")
    ]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(copies, scenarios_of("layers.grad.yaml"), fillvalue=""))
    head = "schema: gradcheck/v1\ndefaults: {source: {document: SECURITY.md}}\nscenarios:\n"
    return head + "".join(mixed)


def processes_with(mark: str) -> list[str]:
    """What runs in the processes that have `mark` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return found


class Run(NamedTuple):
    """What the run of everything gave."""

    code: int
    out: str
    results: dict[str, dict[str, Any]]
    processes: list[str]
    files: list[str]
    shared_is_kept: bool
    """Whether a file of the machine's ``/dev/shm`` is still there."""


@pytest.fixture(scope="module")
def done(made_once: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All hostile scenarios and well-behaved ones between them, in one run."""
    return Run(*made_once("run", lambda: run_everything(tmp_path_factory)))


def run_everything(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run, and what it left."""
    folder, temporary, mark = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("temporary"), uuid.uuid4().hex
    (folder / "a.grad.yaml").write_text(mixed_spec(), encoding="utf-8")
    (folder / "asleep.py").write_text((HERE / "asleep.py").read_text())
    kept = SHARED / f"gradcheck-{mark}"
    if SHARED.is_dir():
        kept.touch()
    process = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, "run", "a.grad.yaml", *OPTIONS],
        cwd=folder,
        env={**os.environ, "MARK": mark, "TMPDIR": str(temporary)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    results = {result["scenario"]: result for result in json.loads((folder / "report.json").read_text())["results"]}
    files = [*(str(path.relative_to(folder)) for path in folder.rglob("*")), *(one.name for one in temporary.iterdir())]
    shared_is_kept = kept.exists() == SHARED.is_dir()
    kept.unlink(missing_ok=True)
    return Run(process.returncode, process.stdout.decode(), results, processes_with(mark), files, shared_is_kept)


def test_there_are_enough_of_them():
    assert len(expected()) >= 40
    assert {"timeout", "crash", "error", "pass", "fail"} <= set.union(*expected().values())


@pytest.mark.parametrize("name", expected())
def test_a_hostile_case_has_the_status_that_is_right_for_it(done, name):
    result = done.results[name]
    assert result["status"].lower() in expected()[name], result["message"]
    assert not result["internal_error"]


def test_every_well_behaved_case_passes(done):
    good = {name: result for name, result in done.results.items() if name.startswith("good-")}
    assert len(good) == 4 * COPIES
    assert {name: result["message"] for name, result in good.items() if result["status"] != Status.PASS} == {}


def test_the_run_exits_with_1_and_every_case_has_its_line(done):
    assert done.code == 1
    lines = re.findall(r"^([A-Z]+) (\S+)@numpy ", done.out, re.MULTILINE)
    assert [name for _, name in lines] == list(done.results)
    assert all(done.results[name]["status"] == status for status, name in lines)


def test_no_process_and_no_file_is_left(done):
    assert done.processes == []
    left = {".gradcheck", ".gradcheck/.gitignore", ".gradcheck/last.jsonl", "a.grad.yaml", "asleep.py", "report.json"}
    assert {name for name in done.files if not name.startswith("__pycache__")} == left


def test_the_machines_shared_memory_is_as_it_was(done):
    assert done.shared_is_kept


def test_nothing_that_a_case_says_steers_a_terminal(done):
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.out) is None


def test_no_message_is_longer_than_a_screen_can_show(done):
    assert max(len(result["message"]) for result in done.results.values()) < 5000


def test_where_a_case_stands_and_how_long_it_took_is_not_its_own_word(done):
    result = done.results["answers-for-another-file"]
    assert (result["path"], result["backend"], result["column"]) == ("a.grad.yaml", "numpy", 5)
    assert result["seconds"] < PATIENCE


def test_the_place_in_the_spec_is_told(done):
    for name in ("loops-in-forward", "segfaults", "allocates-a-terabyte"):
        assert re.search(r"line \d+ of the spec", done.results[name]["message"])
