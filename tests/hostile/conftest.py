"""What takes seconds to make is made once, however many processes share the tests (``pytest -n``)."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

MadeOnce = Callable[[str, Callable[[], Any]], Any]


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
