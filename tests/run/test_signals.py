"""Signals that whoever starts gradcheck ignores or blocks change no result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "good": "x = 1",
    "wrong": "raise ValueError('no')",
    "exits": "import os; os._exit(3)",
    "asks-a-program": "import subprocess; assert subprocess.run(['false']).returncode == 1",
    "stops-its-child": """\
import signal, subprocess
child = subprocess.Popen(['sleep', '60'])
child.terminate()
assert child.wait(20) == -signal.SIGTERM""",
    "kills-itself": "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)",
    "hangs-up": "import os, signal; os.kill(os.getpid(), signal.SIGHUP)",
    "interrupts": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "alarm": "import signal, time; signal.setitimer(signal.ITIMER_REAL, 0.1); time.sleep(20)",
    "writes-to-nobody": """\
import os
r, w = os.pipe()
os.close(r)
try:
    os.write(w, b'x')
except BrokenPipeError:
    pass""",
    "has-no-end": "import time\nwhile True: time.sleep(1)",
}
FEW = ("asks-a-program", "kills-itself", "has-no-end")
"""Those of them that run where each takes a new interpreter."""
STARTER = """\
import os, signal, sys
how, names, *command = sys.argv[1:]
numbers = [getattr(signal, name) for name in names.split()]
numbers = numbers or [*signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}]
if "ignored" in how:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
if "blocked" in how:
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.execv(command[0], command)
"""


def results(folder: Path, start: str, how: str, names: str) -> dict[str, tuple[str, str]]:
    """The status and message of each case, run by a command that was started with these signals."""
    lines = ["schema: gradcheck/v1", "defaults: {source: {document: own}}", "scenarios:"]
    for name in SCRIPTS if start == "fork" else FEW:
        lines += [f"  - id: {name}", "    title: t", "    script: |"]
        lines += [f"      {line}" for line in SCRIPTS[name].splitlines()]
        lines += ["    timeout: 0.8"] if name == "has-no-end" else []
    folder.mkdir(exist_ok=True)
    (folder / "a.grad.yaml").write_text("\n".join(lines) + "\n")
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml", "--allow-code", "--report", "json:a.json"]
    environment = {**os.environ, "GRADCHECK_START": start}
    subprocess.run(
        [sys.executable, "-c", STARTER, how, names, *command],
        cwd=folder, env=environment, capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    report = json.loads((folder / "a.json").read_text())
    return {one["scenario"]: (one["status"], one["message"]) for one in report["results"]}


@pytest.fixture(scope="module")
def from_a_terminal(tmp_path_factory):
    """The results by how processes start, where signals are as a terminal has them."""
    return {start: results(tmp_path_factory.mktemp(start), start, "default", "SIGINT") for start in ("fork", "spawn")}


LATER = [
    pytest.param(*one, marks=pytest.mark.long)
    for one in [
        ("fork", "ignored", ""),
        ("fork", "blocked", ""),
        ("fork", "ignored", "SIGCHLD"),
        ("fork", "ignored", "SIGUSR1 SIGALRM"),
        ("fork", "blocked", "SIGTERM SIGABRT"),
    ]
]
"""Ignored or blocked alone, and some of the signals: the usual tests take all of them, ignored and blocked."""


@pytest.mark.parametrize(
    ("start", "how", "names"),
    [
        ("fork", "ignored and blocked", ""),
        ("spawn", "ignored and blocked", ""),
        *LATER,
    ],
)
def test_signals_of_the_starter_change_no_result(tmp_path, from_a_terminal, start, how, names):
    assert results(tmp_path, start, how, names) == from_a_terminal[start]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_from_a_terminal_each_case_ends_as_it_does_by_itself(from_a_terminal, start):
    killed = dict.fromkeys(("exits", "kills-itself", "hangs-up", "interrupts", "alarm"), "CRASH")
    expected = {**dict.fromkeys(SCRIPTS, "PASS"), **killed, "wrong": "ERROR", "has-no-end": "TIMEOUT"}
    found = from_a_terminal[start]
    assert {name: status for name, (status, _) in found.items()} == {name: expected[name] for name in found}
    assert found["kills-itself"][1] == "the process was killed by SIGUSR1"
