"""A worker: what a case does harms that case alone, and whatever happens becomes a result."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from gradcheck.result import Status

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the system hands orphans to init")


def test_a_case_gives_its_result_and_what_it_printed(runner, case):
    result = runner.run(
        case("import sys, os\nprint('out ü')\nprint('err', file=sys.stderr)\nos.system('echo sub')\nsaid = 5")
    )
    assert (result.status, result.message) == (Status.PASS, "5")
    assert result.output == "out ü\nerr\nsub\n"
    assert (result.name, result.path, result.line, result.column) == ("one@numpy", "t.grad.yaml", 3, 5)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import os; os._exit(0)", "the process exited with status 0 before the case was done"),
        ("import os; os._exit(3)", "the process exited with status 3 before the case was done"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "the process was killed by SIGKILL (the system does that when memory runs out)",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "the process was killed by SIGTERM"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", "the process was killed by SIGINT"),
    ],
)
def test_a_process_that_ends_early_is_a_crash_that_says_how(runner, case, script, message):
    result = runner.run(case(f"print('before')\n{script}"))
    assert (result.status, result.message, result.output) == (Status.CRASH, message, "before\n")


def test_a_segmentation_fault_is_a_crash_at_a_line_of_the_spec(runner, case, script_line):
    result = runner.run(case("import ctypes\nprint('before')\nctypes.string_at(0)"))
    assert result.status is Status.CRASH
    assert result.message == f"the process was killed by SIGSEGV, at line {script_line + 2} of the spec"
    assert result.output.startswith("before\n")
    assert f'File "t.grad.yaml", line {script_line + 2} in <module>' in result.output
    assert "gradcheck" not in result.output  # its own frames help nobody


def test_the_line_is_found_in_a_file_with_any_name(runner, case, script_line):
    result = runner.run(case("import ctypes\nctypes.string_at(0)", path="ünï (1)/日本 +.grad.yaml"))
    assert result.message == f"the process was killed by SIGSEGV, at line {script_line + 1} of the spec"


@pytest.mark.parametrize("loop", ["while True: pass", "import time; time.sleep(1000)"])
def test_a_case_without_an_end_is_stopped_and_says_where_it_was(runner, case, script_line, loop):
    result = runner.run(case(f"print('before')\n{loop}", timeout=0.5))
    assert result.status is Status.TIMEOUT
    assert result.message == f"ran longer than 0.5 s and was stopped, at line {script_line + 1} of the spec"
    assert result.output.startswith("before\n")


def test_a_case_that_ignores_signals_is_stopped_too(runner, case):
    ignore = (
        "import signal\nfor s in (signal.SIGABRT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\nwhile True: pass"
    )
    assert runner.run(case(ignore, timeout=0.5)).status is Status.TIMEOUT


def test_only_the_end_of_what_a_case_prints_is_kept(runner, case):
    result = runner.run(case("for k in range(300_000): print('line', k)\nsaid = 'done'"))
    assert (result.status, result.message) == (Status.PASS, "done")
    assert result.output.endswith("line 299998\nline 299999\n")
    assert len(result.output) < 10_000


def test_a_case_that_floods_its_output_is_stopped_like_any_other(runner, case):
    assert runner.run(case("while True: print('x' * 1000)", timeout=0.5)).status is Status.TIMEOUT


def test_a_flood_that_does_not_end_with_its_case_is_cut_off(runner, case):
    flood = (
        "import os, signal\nsignal.signal(signal.SIGABRT, signal.SIG_IGN)\n"
        "for _ in range(3): os.fork()\nwhile True: os.write(1, b'x' * (1 << 16))"
    )
    result = runner.run(case(flood, timeout=0.5))
    assert (result.status, result.message) == (Status.TIMEOUT, "ran longer than 0.5 s and was stopped")


def test_output_that_is_no_text_is_shown_as_well_as_can_be(runner, case):
    result = runner.run(case("import os\nos.write(1, b'\\xff ok\\n')\nprint('\\udc80')"))
    assert result.status is Status.PASS
    assert result.output == "� ok\n\\udc80\n"


def test_a_case_has_nothing_to_read(runner, case):
    assert runner.run(case("import sys\nsaid = repr(sys.stdin.read())")).message == "''"


@pytest.mark.parametrize(
    ("change", "look"),
    [
        ("import math\nmath.pi = 3", "import math\nsaid = math.pi"),
        ("import os\nos.chdir('/')", "import os\nsaid = os.getcwd()"),
        ("import os\nos.environ['LEFT'] = 'over'", "import os\nsaid = os.environ.get('LEFT')"),
        ("import random\nrandom.seed(3)", "import random\nsaid = random.random()"),
        ("import sys\nsys.modules['json'] = None", "import json\nsaid = json.__name__"),
    ],
)
def test_nothing_of_a_case_is_left_for_the_next(runner, case, change, look):
    before = runner.run(case(look)).message
    assert runner.run(case(change)).status is Status.PASS
    after = runner.run(case(look))
    assert (after.status, after.message) == (Status.PASS, before)


def test_random_numbers_depend_on_the_seed_alone(make_runner, runner, case):
    draw = case("import random, numpy as np\nsaid = random.random(), np.random.rand()")
    first = runner.run(draw)
    with make_runner() as other:
        assert other.run(draw).message == first.message
    assert runner.run(draw.model_copy(update={"seed": 1})).message != first.message


def test_a_case_that_forks_gives_one_result(runner, case):
    fork = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nsaid = 'parent' if pid else 'child'"
    assert runner.run(case(fork)).message == "parent"
    assert runner.run(case("said = 'next'")).message == "next"


def test_a_crash_is_one_although_a_copy_of_the_process_holds_its_pipes(runner, case):
    script = "import os, time\nif os.fork() == 0: time.sleep(1000)\nos._exit(7)"
    result = runner.run(case(script))
    assert result.message == "the process exited with status 7 before the case was done"


@linux_only
def test_processes_that_a_case_started_end_with_it(runner, case, gone):
    script = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nsaid = child.pid"
    result = runner.run(case(script))
    assert result.status is Status.PASS
    assert gone(int(result.message))


@pytest.mark.parametrize(
    "mischief",
    [
        "for fd in range(3, 50):\n  try: os.write(fd, b'no result\\n')\n  except OSError: pass\nos._exit(0)",
        "os.closerange(0, 100)",
        "for fd in range(3, 50):\n  try: os.write(fd, b'half')\n  except OSError: pass\nos._exit(0)",
    ],
)
def test_a_case_that_meddles_with_its_pipes_harms_only_itself(runner, case, mischief):
    worker = runner.run(case("import os\nsaid = os.getppid()")).message
    assert runner.run(case(f"import os\n{mischief}")).status is Status.CRASH
    assert runner.run(case("import os\nsaid = os.getppid()")).message == worker


def test_an_exception_of_ours_is_an_error_with_a_report(runner, case):
    result = runner.run(case("bug = 'ours'"))
    assert (result.status, result.message) == (Status.ERROR, "bug in gradcheck: LookupError: ours")
    assert result.internal_error.startswith("Traceback (most recent call last):\n")
    assert result.internal_error.endswith("LookupError: ours\n")


@pytest.mark.usefixtures("real_servers")
def test_cases_run_with_one_thread_and_fixed_hashes_unless_the_user_says_otherwise(make_runner, case, monkeypatch):
    look = "import os\nsaid = os.environ['OMP_NUM_THREADS'], os.environ['PYTHONHASHSEED']"
    for name in ("OMP_NUM_THREADS", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    with make_runner() as one:
        assert one.run(case(look)).message == "('1', '0')"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with make_runner() as one:
        assert one.run(case(look)).message == "('3', '0')"


def test_a_case_leaves_no_file_descriptors_open_in_its_worker(runner, case):
    wait = "import os, time\ntime.sleep(0.1)\n"  # until the worker has closed its ends of the pipes
    count = wait + "said = len(os.listdir(f'/proc/{os.getppid()}/fd')) if os.path.exists('/proc') else 0"
    first = runner.run(case(count)).message
    for script in ("pass", "import os; os._exit(1)"):
        runner.run(case(script))
    assert runner.run(case(count)).message == first


def test_this_process_is_not_the_one_that_runs_cases(runner, case):
    assert runner.run(case("import os\nsaid = os.getpid()")).message != str(os.getpid())


@linux_only
@pytest.mark.usefixtures("real_servers")
def test_signals_that_the_command_was_started_to_ignore_do_in_a_case_what_they_do_elsewhere(make_runner, case):
    names = ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT")
    before = {name: signal.signal(getattr(signal, name), signal.SIG_IGN) for name in names}
    try:
        with make_runner() as one:
            for name in names:
                result = one.run(case(f"import os, signal; os.kill(os.getpid(), signal.{name})"))
                assert result.message == f"the process was killed by {name}"
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
