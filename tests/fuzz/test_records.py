"""Whatever a journal, a baseline or a report holds: the commands that read it end soon, without a bug of ours."""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from passing import Passing

from gradcheck.case.case import Case
from gradcheck.commands import main, replay, run_cases
from gradcheck.run.plan import plan
from gradcheck.spec.read import read_bytes
from tests.fuzz.records import baseline, journal, report

INPUTS = [60, pytest.param(20_000, marks=pytest.mark.long)]
SECONDS = 2.0
"""Of processor time, for 100 kB."""
SPEC = b"""schema: gradcheck/v1
defaults: {source: {document: d}}
scenarios:
  - {id: one, title: t, layer: {op: tanh}, inputs: {x: {shape: [2]}}}
  - {id: two, title: t, layer: {op: tanh}, inputs: {x: {shape: [2]}}, seed: 3}
  - {id: three, title: t, layer: {op: tanh}, inputs: {x: {shape: [k]}}, matrix: {k: [1, 2]}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a spec file, where nothing is really run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_cases, "make_pool", Passing)
    monkeypatch.setattr(replay, "Pool", Passing)
    (tmp_path / "a.grad.yaml").write_bytes(SPEC)
    (tmp_path / ".gradcheck").mkdir()
    return tmp_path


def cases() -> list[Case]:
    return plan([read_bytes(SPEC, str(Path("a.grad.yaml")))], ["numpy"])


def ended(size: int, *arguments: str) -> int:
    """The exit code of a command that has read `size` bytes.

    Raises:
        AssertionError: it has found a bug of ours, or took too long.
    """
    started = time.process_time()
    done = CliRunner().invoke(main, arguments, prog_name="gradcheck", env={"GRADCHECK_TRACEBACK": "1"})
    spent = time.process_time() - started
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code in (0, 1, 2, 5), done.output
    assert spent < SECONDS * max(1, size / 100_000), f"{spent:.1f} s for {size} bytes"
    return done.exit_code


def tried(inputs: int, attempt: Callable[[random.Random], int]) -> Counter[int]:
    """How often each exit code came of as many attempts."""
    codes: Counter[int] = Counter()
    for seed in range(inputs):
        try:
            codes[attempt(random.Random(seed))] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        if seed % 500 == 499:
            gc.unfreeze()  # a command leaves its garbage to the end of the process, which does not come here
            gc.collect()
            print(seed + 1, dict(codes), flush=True)
    print(dict(codes))
    return codes


@pytest.mark.parametrize("inputs", INPUTS)
def test_a_journal(folder: Path, inputs: int) -> None:
    commands = [
        ["run", "a.grad.yaml", "--resume", "--report", "html:r.html", "-v"],
        ["run", "a.grad.yaml", "--lf", "-q"],
        ["run", "--lf", "-q", "a.grad.yaml", "-b", "numpy"],
        ["replay"],
        ["replay", "one"],
    ]

    def attempt(random: random.Random) -> int:
        raw = journal(random, cases())
        (folder / ".gradcheck" / "last.jsonl").unlink(missing_ok=True)
        (folder / ".gradcheck" / "last.jsonl").write_bytes(raw)
        return ended(len(raw), *random.choice(commands))

    codes = tried(inputs, attempt)
    assert codes[0] > inputs / 20, codes
    assert codes[2] > inputs / 20, codes


@pytest.mark.parametrize("inputs", INPUTS)
def test_a_baseline(folder: Path, inputs: int) -> None:
    def attempt(random: random.Random) -> int:
        raw = baseline(random, cases())
        (folder / "known.json").write_bytes(raw)
        more = random.choice([[], ["--baseline-update"], ["--baseline-prune"]])
        return ended(len(raw), "run", "a.grad.yaml", "-q", "--baseline", "known.json", *more)

    codes = tried(inputs, attempt)
    assert codes[0] > inputs / 20, codes
    assert codes[2] > inputs / 20, codes


@pytest.mark.parametrize("inputs", INPUTS)
def test_a_report(folder: Path, inputs: int) -> None:
    def attempt(random: random.Random) -> int:
        sizes = []
        for name, sound in (("before.json", random.random() < 0.8), ("after.json", random.random() < 0.3)):
            raw = report(random, cases(), sound)
            sizes.append(len(raw))
            (folder / name).write_bytes(raw)
        return ended(sum(sizes), "compare", "before.json", "after.json")

    codes = tried(inputs, attempt)
    assert codes[0] + codes[1] > inputs / 20, codes
    assert codes[2] > inputs / 20, codes
