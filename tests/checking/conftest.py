"""The verdict alone is tested here: a failure gets no fix, whose search takes longer than the check."""

from __future__ import annotations

from typing import Any

import pytest

from gradcheck.case import gradient_check
from gradcheck.checking.problem import no_fix


@pytest.fixture(autouse=True)
def no_fix_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(function: Any, settings: gradient_check.Settings) -> Any:
        return no_fix

    monkeypatch.setattr(gradient_check, "fix_search", search)
