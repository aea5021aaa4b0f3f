"""How a run ends: reports that fail cost no others, and a second signal ends the command whatever it waits for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from gradcheck.report import files

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
OP = """\
  - id: tanh
    title: t
    source: {document: d}
    layer: {op: tanh}
    inputs: {x: {shape: [2]}}
"""


def test_a_report_that_cannot_be_drawn_costs_no_other(spec, gradcheck, folder, monkeypatch):
    spec(OP)
    monkeypatch.setitem(files.FORMATS, "html", "tests.commands.test_run_cases:broken")
    done = gradcheck("run", "a.grad.yaml", "--report", "html:r.html", "--report", "json:r.json")
    assert done.code == 3
    assert "gradcheck: --report html:r.html: not written, LookupError\n" in done.err
    assert "Traceback" not in done.err
    assert len(json.loads((folder / "r.json").read_text())["results"]) == 1
    assert not (folder / "r.html").exists()
    (kept,) = (folder / ".gradcheck").glob("bug-*.txt")
    assert "LookupError: ours" in kept.read_text()


def broken(report: object) -> str:
    raise LookupError("ours")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_report_for_which_there_is_no_room_costs_no_other(spec, gradcheck, folder):
    spec(OP)
    done = gradcheck("run", "a.grad.yaml", "--report", "json:/dev/full", "--report", "junit:r.xml")
    assert (done.code, done.err) == (2, "gradcheck: --report json:/dev/full: No space left on device\n")
    assert (folder / "r.xml").read_text().startswith("<?xml")


def appears(path: Path) -> None:
    """Wait until there is such a file."""
    end = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert path.exists()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_is_obeyed_while_a_report_is_written(spec, folder, name):
    spec(OP)
    os.mkfifo(folder / "pipe")  # nobody reads it
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml"]
    command += ["--report", "json:first.json", "--report", "json:pipe"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        appears(folder / "first.json")
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=PATIENCE)
    assert process.returncode == {"SIGINT": 130, "SIGTERM": -signal.SIGTERM}[name]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("second", ["SIGINT", "SIGTERM"])
def test_a_second_signal_ends_the_command_at_once(folder: Path, first: str, second: str) -> None:
    waits = """
        import contextlib, pathlib, signal, sys, time
        for name in ("SIGINT", "SIGTERM"):
            signal.signal(getattr(signal, name), signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
        from gradcheck.commands.run_cases import stopped_by_signals

        class Supervisor:
            def stop(self):
                pathlib.Path("stopping").touch()

        with stopped_by_signals(Supervisor()):
            pathlib.Path("begun").touch()
            while True:  # what it waits for does not end, and lets no exception through
                with contextlib.suppress(BaseException):
                    time.sleep(1000)
    """
    command = [sys.executable, "-c", dedent(waits)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}"}) as process:
        appears(folder / "begun")
        process.send_signal(getattr(signal, first))
        appears(folder / "stopping")
        process.send_signal(getattr(signal, second))
        assert process.wait(PATIENCE) == 128 + getattr(signal, second)
