"""What running in processes costs, on two idle cores: `pytest -m long tests/case/test_speed.py -s` tells it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradcheck.case.execute import execute
from gradcheck.run.plan import plan
from gradcheck.spec.read import load

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CASES = 2000
WORK = """\
  - id: work-{k}
    title: Ten milliseconds of work
    source: {{document: d}}
    script: |
      import time
      end = time.perf_counter() + 0.01
      while time.perf_counter() < end:
          pass
"""
MATRIX = """\
  - id: many-{k}
    title: Two hundred and fifty cases
    source: {{document: d}}
    script: x = k
    matrix: {{k: {values}}}
"""


def run(folder: Path, jobs: int) -> tuple[float, float]:
    """Seconds and the command's own peak of memory in MiB, of a run of ``a.grad.yaml``."""
    command = [sys.executable, str(ROOT / "cli.py"), "run", "-q", "--allow-code", "-j", str(jobs), "a.grad.yaml"]
    began, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        match = re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        peak = int(match[1]) if match else peak
        time.sleep(0.02)
    assert process.returncode == 0
    return time.perf_counter() - began, peak / 1024


def write(folder: Path, *scenarios: str) -> Path:
    path = folder / "a.grad.yaml"
    path.write_text("schema: gradcheck/v1\nscenarios:\n" + "".join(scenarios))
    return path


def test_a_case_costs_little_more_than_itself_and_two_jobs_share_the_work(tmp_path):
    path = write(tmp_path, *(WORK.format(k=k) for k in range(CASES)))
    execute(plan(load([path]), ["numpy"])[0])
    times = []
    for _ in range(2):  # the better of two: what else the machine does only adds
        began = time.perf_counter()
        for case in plan(load([path]), ["numpy"]):
            execute(case)
        times.append((time.perf_counter() - began, run(tmp_path, 1)[0], run(tmp_path, 2)[0]))
    bare, alone, together = map(min, zip(*times, strict=True))
    overhead = (alone - bare) / CASES
    print(
        f"\n{CASES} cases: bare loop {bare:.1f} s, -j 1 {alone:.1f} s ({overhead * 1000:.2f} ms a case), "
        f"-j 2 {together:.1f} s ({alone / together:.2f} times faster)"
    )
    assert overhead < 0.003
    assert alone / together > 1.7


def test_a_case_takes_no_more_of_the_commands_memory_than_its_result(tmp_path):
    megabytes = {}
    for scenarios in (1, 8, 40):
        write(tmp_path, *(MATRIX.format(k=k, values=list(range(250))) for k in range(scenarios)))
        megabytes[250 * scenarios] = run(tmp_path, 2)[1]
    print("\ncases: MiB ", {count: round(size) for count, size in megabytes.items()})
    assert (megabytes[10_000] - megabytes[250]) / (10_000 - 250) < 4 / 1024  # 4 KiB, with its name and place


def test_the_bundled_scenarios_take_less_than_five_seconds(tmp_path):
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, ROOT / "cli.py", "run"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    print(f"\nbundled: {seconds:.1f} s, {done.stdout.splitlines()[-1]}")
    assert re.search(r"\d+ PASS\b", done.stdout)
    assert seconds < 5
