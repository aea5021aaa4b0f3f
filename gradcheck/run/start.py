"""The start of a process for cases, which may be killed before it is ready by whatever kills processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from gradcheck.run.child import how_it_ended
from gradcheck.run.supervisor import ExecutorError

START_LIMIT = 300.0
"""Seconds that a process has to be ready: importing a backend for the first time, from a slow disk, takes a minute."""
STARTS = 3
"""How often a process is started for a case."""

_started: set[tuple[str, ...]] = set()
"""What has been ready before: it starts, unless something ends it."""


class StartError(Exception):
    """A process that has been ready before did not come so far now; the message is that of the case's result."""


class Starting(Protocol):
    """A process that was started."""

    @property
    def printed(self) -> str:
        """The end of what it printed, once it has ended."""

    def wait_until_ready(self) -> bool:
        """Wait until it can be given a case; False if it ended before.

        Raises:
            TimeoutError: it was not ready after `START_LIMIT`.
        """

    def kill(self) -> int:
        """End it, with all that it has started; its exit status, negative for a signal."""


P = TypeVar("P", bound=Starting)


def started(what: tuple[str, ...], make: Callable[[], P], name: str) -> P:
    """A process from `make` that is ready; `what` tells what is started, `name` is for messages.

    Raises:
        RuntimeError: it ended by itself, and has never been ready.
        ExecutorError: it was killed each time, or did not become ready, and has never been.
        StartError: it did not become ready, but has been before.
    """
    how = ""
    for _ in range(STARTS):
        process = make()
        try:
            ready = process.wait_until_ready()
        except TimeoutError:
            ready, how = False, f"{name} was not ready after {START_LIMIT:g} s"
            process.kill()
        else:
            if ready:
                _started.add(what)
                return process
            code = process.kill()
            how = how_it_ended(code).replace("the process", name)
            if code >= 0 and what not in _started:
                raise RuntimeError(f"{how}:\n{process.printed}")
            how += " while it started"
    raise (StartError if what in _started else ExecutorError)(f"{how}, {STARTS} times one after the other")
