"""The pool: order, replacement of workers, and an end that leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradcheck.result import Status
from gradcheck.run.pool import Pool
from gradcheck.run.supervisor import Supervisor

SLEEPER = """
import os, time
with open({path!r}, 'w') as file: print(os.getpid(), os.getppid(), file=file)
time.sleep(1000)
"""


def test_results_come_in_the_order_of_the_cases_whatever_finishes_first(make_pool, case, tmp_path):
    path = str(tmp_path / "second-is-done")
    waits = f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.01)"
    cases = [case(waits, "first"), case("pass", "second")]
    done: list[str] = []

    def on_done(case, result, known):
        done.append(result.scenario)
        if result.scenario == "second":
            Path(path).touch()

    with make_pool(2) as pool:
        results = [result.scenario for result in Supervisor(pool, on_done).run(cases)]
    assert results == ["first", "second"]
    assert done == ["second", "first"]


def test_workers_are_used_again(make_pool, case):
    with make_pool(2) as pool:
        parents = {
            future.result().message
            for future in [pool.submit(case("import os\nsaid = os.getppid()", f"c{k}")) for k in range(12)]
        }
    assert len(parents) <= 2


def test_a_worker_that_dies_costs_its_case_and_is_replaced(make_pool, case):
    kill = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass"
    with make_pool() as pool:
        first, second = pool.run(case(kill, "kills")), pool.run(case("said = 'fine'", "next"))
    assert first.status is Status.CRASH
    assert first.message == "the worker process was killed by SIGKILL (the system does that when memory runs out)"
    assert (second.status, second.message) == (Status.PASS, "fine")


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_worker_that_cannot_start_says_why(case, start):
    with (
        Pool(1, "no_such_module:execute", start) as pool,
        pytest.raises(RuntimeError, match="No module named 'no_such_module'"),
    ):
        pool.run(case("pass"))


def test_a_case_that_is_not_run_needs_no_worker(case):
    skipped = case("pass").model_copy(update={"backend": "cupy"})
    if skipped.not_run() is None:
        pytest.skip("cupy is installed")
    with Pool(1, "no_such_module:execute") as pool:
        assert pool.submit(skipped).result().status is Status.SKIP
        assert pool.workers == []


def test_leaving_the_pool_ends_what_still_runs(make_pool, case, tmp_path, appears, gone):
    file = tmp_path / "pids"
    with make_pool() as pool:
        for one in [case(SLEEPER.format(path=str(file))), *(case("pass", f"later-{k}") for k in range(50))]:
            pool.submit(one)
        child, worker = map(int, appears(file).split())
    assert gone(child)
    assert gone(worker)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_and_cases_do_not_outlive_the_command(case, tmp_path, appears, gone, how):
    file = tmp_path / "pids"
    program = (
        "import sys\n"
        f"sys.path[:] = {[str(Path(__file__).parent), *sys.path]!r}\n"
        "from gradcheck.run.plan import Case\nfrom gradcheck.run.pool import Pool\n"
        "with Pool(1, 'fake_execute:execute') as pool: pool.run(Case.model_validate_json(sys.argv[1]))\n"
    )
    text = case(SLEEPER.format(path=str(file))).model_dump_json()
    command = subprocess.Popen([sys.executable, "-c", program, text], stderr=subprocess.DEVNULL)
    try:
        child, worker = map(int, appears(file).split())
    finally:
        os.kill(command.pid, how)
        command.wait()
    assert gone(worker)
    assert gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="the system hands orphans to init")
def test_what_a_case_hides_from_its_worker_ends_after_the_worker(make_pool, case, tmp_path, appears, gone):
    file = tmp_path / "pid"
    orphan = f"import os, time; print(os.getpid(), file=open({str(file)!r}, 'w'), flush=True); time.sleep(1000)"
    script = (
        "import os, signal, subprocess, sys, time\n"
        f"program = {orphan!r}\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.fork() and os._exit(0)\n"
        "    os.execve(sys.executable, [sys.executable, '-c', program], {})\n"
        f"while not os.path.exists({str(file)!r}): time.sleep(0.01)\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
        "time.sleep(1000)"
    )
    with make_pool() as pool:
        assert pool.run(case(script)).status is Status.CRASH
        assert gone(int(appears(file)))
        assert pool.run(case("said = 'next'")).message == "next"


def test_where_nothing_can_be_forked_each_case_has_an_interpreter_of_its_own(make_pool, case, script_line):
    with make_pool(start="spawn") as pool:
        first = pool.run(case("import os, json\njson.left = 1\nprint('out')\nsaid = os.getpid()"))
        assert (first.status, first.output) == (Status.PASS, "out\n")
        after = pool.run(case("import os, json\nsaid = os.getpid(), hasattr(json, 'left')"))
        assert first.message not in after.message
        assert after.message.endswith(", False)")
        stopped = pool.run(case("print('before')\nwhile True: pass", timeout=1.0))
        assert stopped.status is Status.TIMEOUT
        assert stopped.output.startswith("before\n")
        assert stopped.message == f"ran longer than 1 s and was stopped, at line {script_line + 1} of the spec"
        crashed = pool.run(case("import os\nos._exit(3)"))
        assert crashed.message == "the process exited with status 3 before the case was done"
        forged = pool.run(
            case(
                "import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'{}\\n')\n  except OSError: pass\nos._exit(0)"
            )
        )
        assert forged.status is Status.CRASH
