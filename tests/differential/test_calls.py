"""The same calls on the engine and on Paddle 3.3.1: values, dtypes, shapes, flags, gradients, errors and repr."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bounds
import pytest
import table
from hypothesis import HealthCheck, assume, given, settings
from known import CRASHES, KNOWN, Crash, Known, crashes, excused, label, last_word
from outcome import Outcome, differences, outcome

import pylayer.paddle as engine

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "20"))
"""How many calls are drawn per name; a quarter of them of functions that few layers use."""


def profile(path: str) -> settings:
    """The settings for drawing calls of a path, the same in every run."""
    few = table.ENTRIES[path].few
    return settings(
        max_examples=max(2, EXAMPLES // 4) if few else EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def both(real: Any, path: str, arguments: Any) -> tuple[Outcome, Outcome, dict[str, Any]]:
    """What a call did on the engine and on Paddle, and the differences."""
    entry = table.ENTRIES[path]
    ours, theirs = (outcome(library, entry.function(library, path), arguments) for library in (engine, real))
    close = functools.partial(bounds.are_close, path, arguments)
    return ours, theirs, differences(ours, theirs, entry.values, close=close)


NEVER_ACCEPTED = {"Tensor.cuda", "Tensor.pin_memory", "Layer misuse", "nn.functional.rms_norm"}
"""What has no call here that Paddle accepts."""


@pytest.mark.parametrize("path", table.ENTRIES)
def test_calls_do_the_same(real: Any, path: str) -> None:
    accepted = 0

    @profile(path)
    @given(arguments=table.ENTRIES[path].arguments)
    def run(arguments: Any) -> None:
        nonlocal accepted
        assume(not crashes(path, arguments))
        ours, theirs, found = both(real, path, arguments)
        accepted += theirs.error is None
        unknown = {fact: pair for fact, pair in found.items() if not excused(path, arguments, fact, ours, theirs)}
        assert not unknown, f"{path}({arguments}): engine, Paddle: {unknown}"

    run()
    assert accepted or path in NEVER_ACCEPTED  # or the draws would show nothing


def path_of(row: Known | Crash) -> str:
    """Where a row's example is called: as it says, or at its first name."""
    if isinstance(row, Known) and row.path:
        return row.path
    name = row.names.split()[0]
    return next(path for path in table.ENTRIES if last_word(path) == name)


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: f"{row.names.split()[0]}: {row.facts}")
def test_a_known_difference_is_still_there(real: Any, row: Known) -> None:
    path = path_of(row)
    ours, theirs, found = both(real, path, row.example)
    named = [label(fact, ours, theirs) for fact in found]
    assert any(row.covers(path, fact, row.example, ours, theirs) for fact in named), f"no longer differs: {named}"


CRASHING = """
import json, os, resource, signal, sys
sys.path[:0] = {paths!r}
import warnings
warnings.simplefilter("ignore")
import paddle, table, test_calls
from known import CRASHES
from outcome import outcome


def call(row):
    resource.setrlimit(resource.RLIMIT_CPU, (3, 3))
    signal.alarm(30)  # for one that waits
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    path = test_calls.path_of(row)
    for _ in range(20):
        if outcome(paddle, table.ENTRIES[path].function(paddle, path), row.example).message:
            os._exit(1)


children = {{}}
for row in CRASHES:
    pid = os.fork()
    if pid == 0:
        try:
            call(row)
        finally:
            os._exit({survived})
    children[row.names + ": " + row.reason] = pid
found = {{name: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for name, pid in children.items()}}
print(json.dumps(found))
"""
"""Each call in a process forked from one that has imported Paddle; one that never ends is ended when its time is used.

A call that reads memory beyond its own ends the process in some runs and raises in others; it is not to succeed.
"""


SURVIVED = 77
"""The status of a process in which the calls returned: LAPACK ends one with status 0."""


def test_known_crashes_are_still_there(real: Any) -> None:
    assert all(row.when(row.example) for row in CRASHES)
    here = Path(__file__).parent
    code = CRASHING.format(survived=SURVIVED, paths=[str(here), str(here.parents[1] / "engine")])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    ended = json.loads(run.stdout.splitlines()[-1])
    assert {row: status for row, status in ended.items() if status == SURVIVED} == {}
