"""What a process for every case costs: the bundled scenarios in one process, through a server, and as whole runs.

    python tests/bench/overhead.py [--backend numpy|paddle] [--rounds N] [--keywords TEXT] [--many N] [--json FILE]

Prints milliseconds a case on the wall: in one process, without what earlier cases leave; with a process for each,
forked one after the other by one server. Of the first it prints CPU as well: mean, median, worst, and the share of
scenarios about worlds of ranks. Then seconds of whole runs with one job and with two, start included. With ``--many N``
the time and memory of a run of N cases. Loops are the least of the rounds, whole runs the (upper) median.

An installed gradcheck has the bytecode of its modules. So has this, also where Python was told to write none
(PYTHONDONTWRITEBYTECODE): it is kept in a folder of its own while this runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from gradcheck.case.case import Case  # noqa: E402
from gradcheck.case.execute import execute  # noqa: E402
from gradcheck.commands.specs import read_bundled  # noqa: E402
from gradcheck.result import Status  # noqa: E402
from gradcheck.run.in_case import execute_safely  # noqa: E402
from gradcheck.run.plan import plan  # noqa: E402
from gradcheck.run.runner import Runner  # noqa: E402
from gradcheck.run.select import select  # noqa: E402


class InOneProcess(NamedTuple):
    """The least of some rounds over all cases in one process."""

    seconds: float
    """On the wall, of a whole round."""
    cpu: dict[str, float]
    """Seconds of the processor, by case."""

    def summary(self) -> str:
        """The mean, the median and the worst case, and the share of scenarios about worlds of ranks."""
        milliseconds = sorted(1000 * seconds for seconds in self.cpu.values())
        total = sum(milliseconds)
        of_worlds = sum(1000 * seconds for name, seconds in self.cpu.items() if name.startswith("worlds-"))
        return (
            f"CPU: mean {total / len(milliseconds):.2f} ms, median {milliseconds[len(milliseconds) // 2]:.2f}, "
            f"worst {milliseconds[-1]:.0f} ({max(self.cpu, key=self.cpu.__getitem__)}), "
            f"worlds {of_worlds / total:.0%} of all"
        )


def time_in_one_process(cases: Sequence[Case], rounds: int) -> InOneProcess:
    """Time all cases in a process in which imports and first uses are done."""
    reading, writing = os.pipe()
    if os.fork() == 0:  # cases change their process
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        totals, cpu = list[float](), dict[str, float]()
        gc.collect()
        gc.freeze()  # the process of a case does not hold the other scenarios
        for number in range(1 + rounds):  # the first round warms up
            total = 0.0
            for case in cases:
                gc.enable()  # a case may have changed this
                gc.collect()  # what a case leaves must not slow down the next one
                began, used = time.perf_counter(), time.process_time()
                copy_context().run(execute_safely, execute, case)  # static mode and programs belong to a context
                total += time.perf_counter() - began
                if number:
                    cpu[case.name] = min(time.process_time() - used, cpu.get(case.name, math.inf))
            totals.append(total)
        with open(writing, "w") as pipe:
            json.dump([min(totals[1:]), cpu], pipe)
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    os.wait()
    return InOneProcess(*json.loads(text))


def time_through_a_server(cases: Sequence[Case], rounds: int) -> float:
    """Return seconds for all cases, each in a process of its own, one at a time."""
    totals = []
    with Runner(1) as runner:
        runner.run(cases[0])  # starts the server
        for _ in range(rounds):
            began = time.perf_counter()
            for case in cases:
                runner.run(case)
            totals.append(time.perf_counter() - began)
    return min(totals)


class WholeRun(NamedTuple):
    """A run of the command, its start included."""

    seconds: float
    peak: float
    """The most memory of the command itself, in MiB; 0 where /proc does not tell."""


def time_whole_run(folder: Path, *options: str) -> WholeRun:
    """Run the command once."""
    command = [sys.executable, str(ROOT / "cli.py"), "run", "-q", "--allow-code", *options]
    began, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        match = re.search(r"^VmHWM:\s+(\d+)", status.read_text(), re.MULTILINE) if status.exists() else None
        peak = int(match[1]) if match else peak
        time.sleep(0.02)
    return WholeRun(time.perf_counter() - began, peak / 1024)


def time_many(folder: Path, count: int) -> WholeRun:
    """Run `count` cases of one line of code."""
    scenario = "  - {{id: many-{k}, title: t, source: {{document: d}}, script: x = k, matrix: {{k: {values}}}}}\n"
    lines = [scenario.format(k=k, values=list(range(250))) for k in range(count // 250)]
    (folder / "a.grad.yaml").write_text("schema: gradcheck/v1\nscenarios:\n" + "".join(lines))
    return time_whole_run(folder, "a.grad.yaml")


def passing_cases(backend: str, keywords: str) -> list[Case]:
    """Return the bundled cases that pass: a failing one may end the process of the loop."""
    cases = [case for case in plan(read_bundled(), [backend]) if case.not_run() is None]
    cases = list(select(cases, (), keywords or None, None))
    with Runner(2) as runner:
        return [case for case in cases if runner.run(case).status in (Status.PASS, Status.KINK)]


def measure(options: argparse.Namespace) -> None:
    """Measure and print."""
    cases = passing_cases(options.backend, options.keywords)
    figures: dict[str, object] = {"cases": len(cases), "backend": options.backend}
    print(f"{len(cases)} bundled cases on {options.backend}")

    in_one_process = time_in_one_process(cases, options.rounds)
    loops = {"loop": in_one_process.seconds, "worker": time_through_a_server(cases, options.rounds)}
    for name, seconds in loops.items():
        figures[name] = 1000 * seconds / len(cases)
        where = "in one process" if name == "loop" else "a process for each"
        print(f"  {where:18} {figures[name]:6.2f} ms a case")
    print(f"  {in_one_process.summary()}")

    selection = ["-k", options.keywords] if options.keywords else []
    whole: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            arguments = ["--bundled", "-b", options.backend, "-j", str(jobs), *selection]
            runs = sorted(time_whole_run(Path(folder), *arguments) for _ in range(options.rounds))
            whole[jobs] = runs[len(runs) // 2].seconds
            print(f"  whole run, -j {jobs}    {whole[jobs]:6.1f} s, start included")
        if options.many:
            few, many = time_many(Path(folder), 250), time_many(Path(folder), options.many)
            print(f"  {options.many} cases: {many.seconds:.1f} s, peak {many.peak:.0f} MiB (250: {few.peak:.0f})")
    if options.json:
        options.json.write_text(json.dumps({**figures, "whole": whole}), encoding="utf-8")


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keywords", default="", help="only cases that `gradcheck run -k` selects")
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        if sys.dont_write_bytecode:
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        measure(options)


if __name__ == "__main__":
    main()
