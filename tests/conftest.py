"""What every test gets: a home of its own, so that none reads or writes what the user has decided, and drawn inputs
that are the same in every run, so that a failure is of the change at hand. To hunt with inputs drawn anew:

    pytest --hypothesis-profile=hunt
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("suite", derandomize=True, database=None, deadline=None)
settings.register_profile("hunt", deadline=None)
settings.load_profile("suite")


@pytest.fixture(autouse=True, scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Home, configuration and state of this run of the tests, also for the processes that they start."""
    place = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.setenv("XDG_CONFIG_HOME", str(place / "config"))
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
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
