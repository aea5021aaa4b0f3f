"""A folder for environments that is the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcheck.backends import environments


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which environments are made."""
    monkeypatch.setenv(environments.FOLDER, str(tmp_path / "environments"))
    return tmp_path / "environments"
