"""The engine beside Paddle 3.3.1. Without an installed Paddle these tests are skipped, visibly."""

from __future__ import annotations

import inspect
import warnings
from importlib.util import find_spec

import pytest

LACKING = "Paddle is not installed: pip install paddlepaddle==3.3.1"


def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: object) -> pytest.Function | None:
    """Without a Paddle a test that takes it is skipped once, and not with each of its parameters."""
    if not (inspect.isfunction(obj) and name.startswith("test_") and "real" in inspect.signature(obj).parameters):
        return None
    if find_spec("paddle"):
        return None
    return pytest.Function.from_parent(collector, name=name, callobj=skipped)


def skipped() -> None:
    pytest.skip(LACKING)


@pytest.fixture(scope="session")
def real():
    """The real Paddle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("paddle", reason=LACKING)
