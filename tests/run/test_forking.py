"""What a worker process may do wrong is the result of one case, and the next case has a new process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gradcheck.result import Status
from gradcheck.run import interpreter, pool, worker_process
from gradcheck.run.pool import Worker
from gradcheck.run.supervisor import ExecutorError
from gradcheck.run.worker_process import started_ahead

EXECUTE = "fake_execute:execute"
WRONG = """
import json, os, signal, socket, sys, time
channel = socket.socket(fileno=int(sys.argv[3]))
def message(body):
    return len(body).to_bytes(8, "big") + body
def received():
    length = int.from_bytes(channel.recv(8, socket.MSG_WAITALL), "big")
    return channel.recv(length, socket.MSG_WAITALL)
channel.sendall(message(json.dumps([os.getpid(), True]).encode()))
request, word = received(), received().decode()
result = dict(name="one@numpy", scenario="one", backend="numpy", path="p", line=1, column=1, status="PASS",
              message="forged")
answer = json.dumps([word, [json.dumps(result), "", 0, "", 0.1]]).encode()
{do}
time.sleep(1000)
"""
"""A worker that does something else than answer once."""
MISDEEDS = {
    "another word": "message(answer.replace(word.encode(), b'0' * 32))",
    "an answer to an earlier request first": "message(answer.replace(word.encode(), b'')) + message(answer)",
    "two answers": "message(answer) * 2",
    "an answer and a half": "message(answer) + b'{'",
    "no JSON": "message(b'no')",
    "no list": "message(b'1')",
    "too few fields": "message(json.dumps([word]).encode())",
    "fields of other types": "message(json.dumps([word, [1, [], {}, None, 'soon']]).encode())",
    "no text": "message(b'\\xff')",
    "JSON without an end": "message(b'[' * 100_000)",
    "a length beyond all bounds": "b'\\xff' * 8",
}


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    one = Worker("fork", EXECUTE, "numpy")
    yield one
    one.end()


def first_is(monkeypatch, program: str) -> None:
    """Have the first process that is started run `program`, and the others what they should."""
    real, programs = worker_process.python, [program]

    def python(module: str, interpreter: str = "") -> list[str]:
        if programs:
            path = f"import sys; sys.path[:] = {sys.path!r}\n"
            return [sys.executable, "-c", path + programs.pop()]
        return real(module, interpreter)

    monkeypatch.setattr(worker_process, "python", python)


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_what_is_no_answer_to_the_request_is_a_crash_and_the_process_is_replaced(worker, case, monkeypatch, misdeed):
    first_is(monkeypatch, WRONG.format(do=f"channel.sendall({MISDEEDS[misdeed]})"))
    result = worker.run(case("pass"))
    assert (result.status, result.message) == (
        Status.CRASH,
        "the worker process sent something that is no answer, and was ended",
    )
    assert worker.process is None


def test_after_such_a_process_the_next_case_has_a_new_one(worker, case, monkeypatch):
    first_is(monkeypatch, WRONG.format(do="channel.sendall(message(answer) * 2)"))
    assert worker.run(case("pass")).status is Status.CRASH
    assert worker.run(case("said = 'next'")).message == "next"


@pytest.mark.parametrize("half", [20, 0])
@pytest.mark.parametrize("then", ["time.sleep(1000)", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_an_answer_that_does_not_come_to_its_end_is_not_waited_for(worker, case, monkeypatch, half, then):
    monkeypatch.setattr(worker_process, "GRACE", 0.3)
    first_is(monkeypatch, WRONG.format(do=f"channel.sendall(message(answer)[:{half}])\n{then}"))
    result = worker.run(case("pass", timeout=0.1))
    assert (result.status, result.message) == (
        Status.TIMEOUT,
        "the worker process had come to a stop, and was ended",
    )
    assert worker.process is None


def test_what_came_between_two_cases_costs_neither(worker, case, monkeypatch):
    late = "channel.sendall(message(answer)); time.sleep(0.3); channel.sendall(message(answer))"
    first_is(monkeypatch, WRONG.format(do=late))
    assert worker.run(case("pass")).message == "forged"
    assert worker.process is not None
    worker.process.channel.socket.settimeout(30)
    worker.process.channel.socket.recv(1, socket.MSG_PEEK)  # until it is there
    assert worker.run(case("said = 'next'")).message == "next"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_the_word_of_a_request_is_never_in_the_process_of_its_case(worker, case, monkeypatch):
    words = iter(range(10, 99))
    monkeypatch.setattr(worker_process.secrets, "token_hex", lambda size: f"the-word-{next(words)}-of-the-request")
    look = (
        "import re\nfound = set()\n"
        "memory = open('/proc/self/mem', 'rb', buffering=0)\n"
        "for line in open('/proc/self/maps'):\n"
        "    first, last = (int(one, 16) for one in line.split()[0].split('-'))\n"
        "    if ' rw' in line and last - first < 1 << 28:\n"
        "        memory.seek(first)\n"
        "        found |= {int(one) for one in re.findall(rb'the-word-(\\d\\d)-of-the', memory.read(last - first))}\n"
        "said = sorted(found)"
    )
    for word in range(10, 14):
        said = worker.run(case(look))
        assert said.status is Status.PASS, said.message
        assert str(word) not in said.message


# -------------------------------------------------------------------------------------------------- the start
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def test_a_process_that_is_killed_while_it_starts_is_started_again(worker, case, monkeypatch):
    first_is(monkeypatch, DIES)
    assert worker.run(case("said = 'fine'")).message == "fine"


def test_one_that_is_killed_whenever_it_starts_costs_its_case_if_it_ever_started(worker, case, monkeypatch):
    assert worker.run(case("pass")).status is Status.PASS
    os.kill(worker.pid, signal.SIGKILL)
    worker.process.popen.wait(30)
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "python", lambda module, interpreter: [sys.executable, "-c", DIES])
        result = worker.run(case("pass"))
    assert result.status is Status.CRASH
    assert result.message == (
        "the worker process was killed by SIGKILL (the system does that when memory runs out) while it started, "
        "3 times one after the other"
    )
    assert worker.run(case("said = 'next'")).message == "next"


def test_one_that_has_never_started_and_is_killed_whenever_it_does_ends_the_run(worker, case, monkeypatch):
    monkeypatch.setattr(pool, "_started", set())
    monkeypatch.setattr(worker_process, "python", lambda module, interpreter: [sys.executable, "-c", DIES])
    with pytest.raises(ExecutorError, match=r"was killed by SIGKILL .* while it started, 3 times"):
        worker.run(case("pass"))


def test_one_that_is_stopped_while_it_starts_is_not_waited_for(worker, case, monkeypatch):
    monkeypatch.setattr(worker_process, "START_LIMIT", 0.5)
    stops = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    monkeypatch.setattr(pool, "_started", set())
    monkeypatch.setattr(worker_process, "python", lambda module, interpreter: [sys.executable, "-c", stops])
    with pytest.raises(ExecutorError, match="the worker process was not ready after"):
        worker.run(case("pass"))


# ----------------------------------------------------------------------------------------- started ahead
ahead_here = pytest.mark.skipif(interpreter.START != "fork", reason="none is started ahead")


@ahead_here
def test_a_worker_started_ahead_runs_the_first_case_of_its_backend(make_pool, case):
    with started_ahead(EXECUTE, "numpy") as ahead, make_pool(ahead=ahead) as pool:
        above_its_worker = "import os\nsaid = open(f'/proc/{os.getppid()}/stat').read().split()[3]"
        assert pool.run(case(above_its_worker)).message == str(ahead.popen.pid)
    assert ahead.ended


@ahead_here
def test_one_that_nobody_asks_ends_with_the_block(gone):
    with pytest.raises(KeyError), started_ahead(EXECUTE, "numpy") as ahead:
        raise KeyError
    assert gone(ahead.popen.pid)


@ahead_here
def test_one_that_dies_as_it_starts_is_started_again(make_pool, case, monkeypatch):
    first_is(monkeypatch, DIES)
    with started_ahead(EXECUTE, "numpy") as ahead, make_pool(ahead=ahead) as pool:
        assert pool.run(case("said = 'fine'")).message == "fine"


@pytest.mark.parametrize("backend", ["", "paddle@3.0.0", "no such thing"])
def test_none_is_started_ahead_for_what_is_no_backend_of_this_interpreter(backend):
    with started_ahead(EXECUTE, backend) as ahead:
        assert ahead is None


# ----------------------------------------------------------------------------------------- the user's own processes
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the system hands orphans to init")
KILLS_ITS_WORKER = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass"


@linux_only
def test_a_lost_worker_costs_no_child_of_this_process(make_pool, case):
    with make_pool() as pool:
        own = subprocess.Popen(["sleep", "1000"])
        try:
            assert pool.run(case(KILLS_ITS_WORKER)).status is Status.CRASH
            assert pool.run(case("said = 'next'")).message == "next"
            assert own.poll() is None
        finally:
            own.kill()
            assert own.wait() == -signal.SIGKILL  # nobody else has waited for it


@linux_only
def test_a_daemon_that_this_process_starts_is_not_handed_back_to_it(make_pool, case):
    with make_pool() as pool:
        pool.run(case("pass"))
        daemon = int(subprocess.check_output(["sh", "-c", "sleep 1000 > /dev/null & echo $!"]))
        try:
            assert int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]) != os.getpid()
        finally:
            os.kill(daemon, signal.SIGKILL)
