"""The verdict alone is tested here: a failure gets no fix, whose search takes longer than the check."""

from __future__ import annotations

from typing import Any

import pytest

from gradcheck.case import gradient_check


@pytest.fixture(autouse=True)
def no_fix_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(function: Any, summary: gradient_check.GradientSummary, settings: gradient_check.Settings) -> Any:
        return summary

    monkeypatch.setattr(gradient_check, "with_fix", unchanged)
