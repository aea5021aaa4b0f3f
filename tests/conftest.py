"""What every test gets: a home of its own, so that none reads or writes what the user has decided."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


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
