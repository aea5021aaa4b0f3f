"""The runner: order, replacement of workers, and an end that leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradcheck.result import Status
from gradcheck.run import runner as runner_module
from gradcheck.run import server_process
from gradcheck.run.runner import Runner, RunnerError

real_servers = pytest.mark.usefixtures("real_servers")

SLEEPER = """
import os, time
with open({path!r}, 'w') as file: print(os.getpid(), os.getppid(), file=file)
time.sleep(1000)
"""


def test_results_come_in_the_order_of_the_cases_whatever_finishes_first(make_runner, case, tmp_path):
    path = str(tmp_path / "second-is-done")
    waits = f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.01)"
    cases = [case(waits, "first"), case("pass", "second")]
    done: list[str] = []

    def on_done(case, result, known):
        done.append(result.scenario)
        if result.scenario == "second":
            Path(path).touch()

    with make_runner(2) as runner:
        results = [result.scenario for result in runner.results(cases, {}, on_done)]
    assert results == ["first", "second"]
    assert done == ["second", "first"]


def test_workers_are_used_again(make_runner, case):
    with make_runner(2) as runner:
        parents = {
            future.result().message
            for future in [runner.submit(case("import os\nsaid = os.getppid()", f"c{k}")) for k in range(12)]
        }
    assert len(parents) <= 2


def test_a_worker_that_dies_costs_its_case_and_is_replaced(make_runner, case):
    kill = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass"
    with make_runner() as runner:
        first, second = runner.run(case(kill, "kills")), runner.run(case("said = 'fine'", "next"))
    assert first.status is Status.CRASH
    assert first.message == "the server process was killed by SIGKILL (the system does that when memory runs out)"
    assert (second.status, second.message) == (Status.PASS, "fine")


@real_servers
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_server_that_cannot_start_says_why(case, start):
    with (
        Runner(1, "no_such_module:execute", start) as runner,
        pytest.raises(RunnerError, match="No module named 'no_such_module'"),
    ):
        runner.run(case("pass"))


@real_servers
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the server process was killed by SIGKILL"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "the server process was not ready after"),
    ],
)
def test_a_server_that_does_not_become_ready_ends_the_run(case, monkeypatch, program, message):
    monkeypatch.setattr(runner_module, "START_LIMIT", 0.5)
    monkeypatch.setattr(server_process, "python", lambda module, interpreter: [sys.executable, "-c", program])
    with Runner(1) as runner, pytest.raises(RunnerError, match=message):
        runner.run(case("pass"))


def test_a_lost_server_costs_no_child_of_this_process(make_runner, case):
    own = subprocess.Popen(["sleep", "1000"])
    try:
        with make_runner() as runner:
            assert runner.run(case("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)")).status is Status.CRASH
            assert runner.run(case("said = 'next'")).message == "next"
        assert own.poll() is None
    finally:
        own.kill()
        assert own.wait() == -signal.SIGKILL  # nobody else has waited for it


def test_a_case_that_is_not_run_needs_no_worker(case):
    skipped = case("pass").model_copy(update={"backend": "cupy"})
    if skipped.not_run() is None:
        pytest.skip("cupy is installed")
    with Runner(1, "no_such_module:execute") as runner:
        assert runner.submit(skipped).result().status is Status.SKIP
        assert runner.servers == []


def test_leaving_the_pool_ends_what_still_runs(make_runner, case, tmp_path, appears, gone):
    file = tmp_path / "pids"
    with make_runner() as runner:
        for one in [case(SLEEPER.format(path=str(file))), *(case("pass", f"later-{k}") for k in range(50))]:
            runner.submit(one)
        child, worker = map(int, appears(file).split())
    assert gone(child)
    assert gone(worker)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_and_cases_do_not_outlive_the_command(case, tmp_path, appears, gone, how):
    file = tmp_path / "pids"
    program = (
        "import sys\n"
        f"sys.path[:] = {[str(Path(__file__).parent), *sys.path]!r}\n"
        "from gradcheck.run.plan import Case\nfrom gradcheck.run.runner import Runner\n"
        "with Runner(1, 'fake_execute:execute') as runner: runner.run(Case.model_validate_json(sys.argv[1]))\n"
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


@real_servers
def test_where_nothing_can_be_forked_each_case_has_an_interpreter_of_its_own(make_runner, case, script_line):
    with make_runner(start="spawn") as runner:
        first = runner.run(case("import os, json\njson.left = 1\nprint('out')\nsaid = os.getpid()"))
        assert (first.status, first.output) == (Status.PASS, "out\n")
        after = runner.run(case("import os, json\nsaid = os.getpid(), hasattr(json, 'left')"))
        assert first.message not in after.message
        assert after.message.endswith(", False)")
        stopped = runner.run(case("print('before')\nwhile True: pass", timeout=1.0))
        assert stopped.status is Status.TIMEOUT
        assert stopped.output.startswith("before\n")
        assert stopped.message == f"ran longer than 1 s and was stopped, at line {script_line + 1} of the spec"
        crashed = runner.run(case("import os\nos._exit(3)"))
        assert crashed.message == "the process exited with status 3 before the case was done"
