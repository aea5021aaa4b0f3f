"""What a process for every case costs: the bundled scenarios in a loop in one process, and through workers.

    python tests/bench/overhead.py [--backend numpy|paddle] [--rounds N] [--many N] [--json FILE]

Prints milliseconds a case on the wall: in a loop, through one worker (there also of processor time, for processes that
end are counted by the system, and pages of memory that a case's process had to copy or make), and of whole runs with
one job and with two. With ``--many N`` the time and memory of a run of N cases. All is the least of some rounds, but of
whole runs the median.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextvars import copy_context
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from gradcheck.case.case import Case  # noqa: E402
from gradcheck.case.execute import execute  # noqa: E402
from gradcheck.commands.specs import read_bundled  # noqa: E402
from gradcheck.result import Status  # noqa: E402
from gradcheck.run.in_child import run_here  # noqa: E402
from gradcheck.run.plan import plan  # noqa: E402
from gradcheck.run.pool import Pool  # noqa: E402


def in_a_loop(cases: list[Case], rounds: int) -> float:
    """Milliseconds a case in one process, in which imports and first uses are done: the best of some rounds."""
    reading, writing = os.pipe()
    if os.fork() == 0:  # cases change their process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        times = []
        for _ in range(1 + rounds):
            began = time.perf_counter()
            for case in cases:
                copy_context().run(run_here, execute, case)  # static mode and programs are those of a context
            times.append(time.perf_counter() - began)
        os.write(writing, str(min(times[1:])).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    os.wait()
    return 1000 * float(text or "nan") / len(cases)


def children_of(pid: int) -> tuple[float, int]:
    """Milliseconds of processor time, and page faults, of the processes that `pid` has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick = 1000 / os.sysconf("SC_CLK_TCK")
    return tick * (int(fields[13]) + int(fields[14])), int(fields[8])


def through_workers(cases: list[Case]) -> tuple[float, float, float]:
    """Of one worker, a case: milliseconds on the wall, of processor time of its process, and page faults."""
    with Pool(1) as pool:
        pool.run(cases[0])
        worker = pool.workers[0].pid
        assert worker is not None
        before, began = children_of(worker), time.perf_counter()
        for case in cases:
            pool.run(case)
        seconds, after = time.perf_counter() - began, children_of(worker)
    count = len(cases)
    return 1000 * seconds / count, (after[0] - before[0]) / count, (after[1] - before[1]) / count


def seconds_of(folder: Path, *options: str) -> tuple[float, float]:
    """Seconds of a whole run, start included, and the peak of the command's own memory in MiB."""
    began, peak = time.perf_counter(), 0
    command = [sys.executable, str(ROOT / "cli.py"), "run", "-q", "--allow-code", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        match = re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        peak = int(match[1]) if match else peak
        time.sleep(0.02)
    return time.perf_counter() - began, peak / 1024


def many(folder: Path, count: int) -> tuple[float, float]:
    """The same for `count` cases of one line of code."""
    scenario = "  - {{id: many-{k}, title: t, source: {{document: d}}, script: x = k, matrix: {{k: {values}}}}}\n"
    lines = [scenario.format(k=k, values=list(range(250))) for k in range(count // 250)]
    (folder / "a.grad.yaml").write_text("schema: gradcheck/v1\nscenarios:\n" + "".join(lines))
    return seconds_of(folder, "a.grad.yaml")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--rounds", type=int, default=2, help="each runs all cases five times")
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    cases = [case for case in plan(read_bundled(), [options.backend]) if case.not_run() is None]
    with Pool(2) as pool:  # what fails on an installed Paddle may end the process of the loop
        cases = [case for case in cases if pool.run(case).status in (Status.PASS, Status.KINK)]

    loop = in_a_loop(cases, options.rounds)  # the best of the rounds: what else the machine does only adds
    rounds = [through_workers(cases) for _ in range(options.rounds)]
    wall, processor, faults = min(one[0] for one in rounds), min(one[1] for one in rounds), rounds[0][2]
    print(f"{len(cases)} bundled cases on {options.backend}, best of {options.rounds}, milliseconds a case")
    print(f"  in one process       {loop:6.2f}")
    print(
        f"  through one worker   {wall:6.2f}   ({wall - loop:+.2f}; its process {processor:.2f}, {faults:.0f} faults)"
    )
    whole: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            run = whole[jobs] = statistics.median(
                seconds_of(Path(folder), "--bundled", "-b", options.backend, "-j", str(jobs))[0]
                for _ in range(options.rounds)
            )
            print(f"  whole run, -j {jobs}      {1000 * run / len(cases):6.2f}   ({run:.1f} s, start included)")
        if options.many:
            few, lots = many(Path(folder), 250), many(Path(folder), options.many)
            print(f"  {options.many} cases          {lots[0]:6.1f} s, peak {lots[1]:.0f} MiB (250: {few[1]:.0f})")
    if options.json:
        figures = {"cases": len(cases), "backend": options.backend, "loop": loop, "worker": wall, "whole": whole}
        options.json.write_text(json.dumps(figures), encoding="utf-8")
    print(f"  peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
