"""The same run on a Dask cluster: results in order, and right whatever happens to the cluster's workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from gradcheck.run import dask
from gradcheck.run.dask import DaskExecutor
from gradcheck.run.runner import RunnerError

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask")

ROOT = Path(__file__).parents[2]
LITTLE = """\
  - id: little-{k}
    title: A little work
    source: {{document: d}}
    layer: {{op: tanh}}
    inputs: {{x: {{shape: [{n}]}}}}
"""
SCRIPT = """\
  - id: {id}
    title: A script
    source: {{document: d}}
    script: |
      import os, signal
      {line}
"""
KILLS_ITS_DASK_WORKER = (
    "above = lambda pid: int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n"
    "      os.kill(above(os.getppid()), signal.SIGKILL)"
)
"""Above a case are its server and the Dask worker."""


class Cluster(NamedTuple):
    """A scheduler and two workers on this machine."""

    address: str
    workers: list[subprocess.Popen[bytes]]
    scheduler: subprocess.Popen[bytes] | None = None


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "engine")]),
    }
    with (folder / "dask.log").open("ab") as log:
        command = [sys.executable, "-m", "dask", *arguments, "--scheduler-file", str(folder / "scheduler.json")]
        return subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Starts a cluster; `nanny` says whether lost workers are replaced."""
    processes: list[subprocess.Popen[bytes]] = []

    def make(*, nanny: bool) -> Cluster:
        local = ["--host", "127.0.0.1"]
        processes.append(start(tmp_path, "scheduler", "--port", "0", "--no-dashboard", *local))
        file = tmp_path / "scheduler.json"
        end = time.monotonic() + 60
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        options = ["--nthreads", "1", "--no-dashboard", *local, "--nanny" if nanny else "--no-nanny"]
        workers = [start(tmp_path, "worker", *options) for _ in range(2)]
        processes.extend(workers)
        address = json.loads(file.read_text())["address"]
        wait = f"from distributed import Client; Client({address!r}).wait_for_workers(2, timeout=60)"
        subprocess.run([sys.executable, "-c", wait], check=True)
        return Cluster(address, workers, processes[0])

    yield make
    for process in reversed(processes):  # the scheduler last
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(cluster: Cluster, folder: Path, *scenarios: str) -> subprocess.Popen[str]:
    (folder / "a.grad.yaml").write_text("schema: gradcheck/v1\nscenarios:\n" + "".join(scenarios))
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml", "--allow-code"]
    command += ["--executor", f"dask:{cluster.address}", "--report", "json:r.json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("cases", [150, pytest.param(2000, marks=pytest.mark.long)])
def test_a_worker_lost_midway_costs_nothing(cluster, tmp_path, cases):
    some = cluster(nanny=False)
    lines = []
    with run(some, tmp_path, *(LITTLE.format(k=k, n=k % 4 + 1) for k in range(cases))) as process:
        for line in process.stdout:
            lines.append(line)
            if len(lines) == cases // 3:
                some.workers[0].kill()
        heartbeats = process.stderr.read()
    assert process.returncode == 0, heartbeats
    assert [line.split("@")[0] for line in lines[:-1]] == [f"PASS little-{k}" for k in range(cases)]
    assert lines[-1].startswith(f"{cases} PASS in ")


def test_what_a_case_breaks_costs_that_case_alone(cluster, tmp_path):
    hostile = [
        SCRIPT.format(id="exits", line="os._exit(3)"),
        SCRIPT.format(id="segfaults", line="import ctypes; ctypes.string_at(0)"),
        SCRIPT.format(id="kills-its-worker", line="os.kill(os.getppid(), signal.SIGKILL)"),
        SCRIPT.format(id="kills-the-dask-worker", line=KILLS_ITS_DASK_WORKER),
    ]
    good = [LITTLE.format(k=k, n=2) for k in range(40)]
    process = run(cluster(nanny=True), tmp_path, *(text for k in range(4) for text in (hostile[k], *good[k::4])))
    out, err = process.communicate(timeout=120)
    said = [line for line in err.splitlines() if "cases done after" not in line]  # on a busy machine
    assert (process.returncode, said) == (1, [])
    results = {result["scenario"]: result for result in json.loads((tmp_path / "r.json").read_text())["results"]}
    bad = {name: result["status"] for name, result in results.items() if result["status"] != "PASS"}
    assert bad.pop("kills-the-dask-worker") == "ERROR"
    assert results["kills-the-dask-worker"]["message"] == "the Dask worker that ran it was lost"
    assert bad == {"exits": "CRASH", "kills-its-worker": "CRASH", "segfaults": "CRASH"}
    assert out.splitlines()[-1].startswith("1 ERROR, 3 CRASH, 40 PASS in ")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_scheduler_lost_midway_is_told_and_what_had_finished_is_kept(cluster, tmp_path, ending):
    some = cluster(nanny=False)
    slow = [SCRIPT.format(id=f"slow-{k}", line="import time; time.sleep(0.1)") for k in range(60)]
    with run(some, tmp_path, *slow) as process:
        shown = [process.stdout.readline() for _ in range(5)]
        some.scheduler.send_signal(ending)
        shown += process.stdout.readlines()
        err = process.stderr.read()
    assert process.returncode == 2
    assert [line.split("@")[0] for line in shown] == [f"PASS slow-{k}" for k in range(len(shown))]
    lost = f"gradcheck: --executor dask:{some.address}: the scheduler was lost"
    assert err == f"{lost}; finished results are kept; --resume continues\n"
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml", "--allow-code", "--resume"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert int(done.stderr.split()[1]) >= len(shown)
    assert done.stdout.splitlines()[-1].startswith("60 PASS in ")


def test_a_cluster_that_is_not_there_is_told(tmp_path):
    process = run(Cluster("tcp://127.0.0.1:1", []), tmp_path, LITTLE.format(k=0, n=1))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "--executor dask:tcp://127.0.0.1:1: no scheduler answers there" in err


@pytest.mark.parametrize("submitted_first", [True, False])
def test_a_cluster_whose_workers_are_all_lost_is_told_and_not_waited_for(cluster, case, monkeypatch, submitted_first):
    some = cluster(nanny=False)
    monkeypatch.setattr(dask, "ALONE", 1.0)
    with DaskExecutor(some.address) as executor:
        futures = [executor.submit(case("import time; time.sleep(50)")) for _ in range(3 * submitted_first)]
        for worker in some.workers:
            worker.kill()
            worker.wait()
        futures.append(executor.submit(case("x = 1", id="two")))
        for future in futures:
            with pytest.raises(RunnerError, match="there has been no worker for 1 s"):
                future.result(45)


def test_a_scheduler_without_workers_is_told_apart_from_none(tmp_path):
    scheduler = start(tmp_path, "scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")
    try:
        file = tmp_path / "scheduler.json"
        end = time.monotonic() + 60
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        process = run(Cluster(json.loads(file.read_text())["address"], []), tmp_path, LITTLE.format(k=0, n=1))
        out, err = process.communicate(timeout=120)
    finally:
        scheduler.kill()
        scheduler.wait()
    assert (process.returncode, out) == (2, "")
    assert "no worker has come after" in err
