"""No fix is searched for a failure: for rooms whose tests look at the verdict and its causes, which come before it.

The search takes longer than the check. A folder of tests requests it in its `conftest.py`; a file
about fixes overrides the fixture.
"""

from __future__ import annotations

from typing import Any

import pytest

from gradcheck.case import gradient_check


@pytest.fixture(autouse=True)
def no_fix_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure gets no fix."""

    def no_edit(function: Any, settings: gradient_check.Settings, deadline: float) -> None:
        return None

    monkeypatch.setattr(gradient_check, "find_edit", no_edit)
