"""Cases made of scripts, and a runner for them without an engine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent, indent

import pytest
from cases import case_of

from gradcheck.backends.base import missing
from gradcheck.case.case import Case
from gradcheck.run import server_process
from gradcheck.run.interpreter import START
from gradcheck.run.runner import Runner
from gradcheck.spec.model import SpecFile
from gradcheck.spec.read import read_bytes

SCRIPT_LINE = 7
"""The line of the spec on which a script of `make_case` begins."""


def make_case(script: str, id: str = "one", timeout: float = 60.0, path: str = "t.grad.yaml") -> Case:
    """The case of a spec with one script."""
    text = (
        f"schema: gradcheck/v1\nscenarios:\n  - id: {id}\n    title: t\n    source: {{document: d}}\n    script: |\n"
        + indent(script, "      ")
        + f"\n    timeout: {timeout}\n"
    )
    return case_of(text, path=path)


@pytest.fixture
def real_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are started as `gradcheck.run.server_process` starts them: an interpreter each."""
    monkeypatch.setattr(server_process, "subprocess", subprocess)


def is_gone(pid: int, patience: float = 20.0) -> bool:
    """Whether the process ends, or is a zombie that nobody waits for, before the patience does."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        stat = Path(f"/proc/{pid}/stat")
        try:
            os.kill(pid, 0)
            if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def wait_for(path: Path, patience: float = 20.0) -> str:
    """The content of a file as soon as it has a whole line."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with suppress(FileNotFoundError):
            if (text := path.read_text()).endswith("\n"):
                return text
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


@pytest.fixture
def case() -> Callable[..., Case]:
    return make_case


@pytest.fixture
def script_line() -> int:
    return SCRIPT_LINE


@pytest.fixture
def gone() -> Callable[[int], bool]:
    return is_gone


@pytest.fixture
def appears() -> Callable[[Path], str]:
    return wait_for


@pytest.fixture(scope="module")
def make_runner() -> Iterator[Callable[..., Runner]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield lambda jobs=1, start=START: Runner(jobs, "fake_execute:execute", start)


@pytest.fixture(scope="module")
def runner(make_runner: Callable[..., Runner]) -> Iterator[Runner]:
    """One server for all tests of a module: cases cannot disturb each other."""
    with make_runner() as one:
        yield one


@pytest.fixture(autouse=True)
def _what_is_installed_is_looked_up_anew() -> Iterator[None]:
    missing.cache_clear()
    yield
    missing.cache_clear()


SPEC = """
    schema: gradcheck/v1
    scenarios:
      - id: tanh
        title: t
        source: {document: d}
        tags: [apply, smooth]
        layer: {op: tanh}
        call: paddle.tanh(x) * flag
        inputs: {x: {shape: [2]}}
        matrix: {dtype: [float32, float64], flag: [true, false]}
        seed: 7
        timeout: 5
      - id: skipped
        title: t
        source: {document: d}
        tags: [slow]
        layer: {op: exp}
        inputs: {x: {shape: [2]}}
        expect: {grads: {x: [.nan, .inf]}}
        backends: {numpy: {skip: {reason: not yet}}}
    """


@pytest.fixture(scope="module")
def specs() -> list[SpecFile]:
    return [read_bytes(dedent(SPEC).encode(), "a.grad.yaml")]
