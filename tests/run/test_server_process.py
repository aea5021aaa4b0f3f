"""The usual server is started before the command is known in full, and used if it fits."""

from __future__ import annotations

import sys
from itertools import count

import pytest

from gradcheck.__main__ import wants_server
from gradcheck.run import server_process
from gradcheck.run.runner import Runner
from gradcheck.run.server_process import USUAL_SERVER, start_ahead, take_process


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run", True),
        ("run a.grad.yaml --allow-code", True),
        ("check layers:Tanh -i x=3x4", True),
        ("run -b paddle@3.0.0", False),
        ("run --backend=torch", False),
        ("check --help", False),
        ("run --watch", False),
        ("run --executor dask:tcp://10.0.0.1:8786", False),
        ("validate a.grad.yaml", False),
        ("--help", False),
        ("", False),
    ],
)
def test_commands_that_run_cases_here_want_the_usual_server(line: str, expected: bool) -> None:
    assert wants_server(line.split()) is expected


def test_none_is_wanted_while_a_standard_stream_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert not wants_server(["run"])


def test_a_server_that_was_started_ahead_is_taken_once_by_the_run_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(server_process, "start_process", lambda kind: (next(numbers), kind))
    paddle = USUAL_SERVER._replace(backend="paddle")
    start_ahead()
    assert [take_process(kind) for kind in (paddle, USUAL_SERVER, USUAL_SERVER)] == [
        (1, paddle),
        (0, USUAL_SERVER),
        (2, USUAL_SERVER),
    ]


def test_leaving_the_run_ends_it(case, gone) -> None:
    start_ahead()
    with Runner(1) as runner:
        assert runner.run(case("assert True")).status.green
        [server] = runner.servers
    assert gone(server.process.pid)
