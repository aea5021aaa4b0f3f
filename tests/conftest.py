"""What every test gets: a home of its own, so that none reads or writes what the user has decided, and drawn inputs
that are the same in every run, so that a failure is of the change at hand. To hunt with many inputs, drawn anew:

    pytest --hypothesis-profile=hunt

Where Python was told to write no bytecode (PYTHONDONTWRITEBYTECODE), each of the hundreds of processes that the tests
start would compile all it imports, which takes it longer than what is tested. There, bytecode goes into pytest's cache.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings
from warm import WARM

from gradcheck.run import server_process

MadeOnce = Callable[[str, Callable[[], Any]], Any]

settings.register_profile("suite", derandomize=True, database=None, deadline=None)
settings.register_profile("hunt", max_examples=2000, deadline=None)
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Have this process and those below it share the bytecode of modules, and leave none beside any source."""
    cache = getattr(config, "cache", None)  # not there with `-p no:cacheprovider`
    if sys.dont_write_bytecode and cache is not None:
        folder = cache.mkdir("bytecode")
        shutil.rmtree(f"{folder}{tempfile.gettempdir()}", ignore_errors=True)  # of the modules that earlier tests made
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from looking through the tests, again and again while there come to be more of them.

    Nothing that is there after they were collected goes away before the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The home of this run of the tests, also for the processes that they start."""
    place = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.delenv("GRADCHECK_ALLOW_CODE", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def signals() -> None:
    """Processes that tests start get these signals as from a terminal, also where the tests run in the background.

    A signal that is ignored stays so in a new program; one with a handler has its default there. This process goes on
    to do nothing about those that it was started to ignore.
    """
    for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


@pytest.fixture(autouse=True, scope="session")
def warm_servers(home: None) -> Iterator[None]:
    """The servers of cases that commands start in this process are ready at once (`warm.py`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_process, "subprocess", WARM)
        yield
    WARM.close()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """``made_once(name, make)`` is what `make` returns, as JSON has it: the first process makes it, others wait."""

    def once(name: str, make: Callable[[], Any]) -> Any:
        own = tmp_path_factory.getbasetemp()
        shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # the folder of this run of the tests
        with (shared / f"{name}.json").open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if not (text := file.read()):
                text = json.dumps(make())
                file.write(text)
                file.flush()
            return json.loads(text)

    return once
