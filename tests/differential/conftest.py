"""The engine beside Paddle 3.3.1. Without an installed Paddle these tests are skipped, visibly."""

from __future__ import annotations

import warnings

import pytest


@pytest.fixture(scope="session")
def real():
    """The real Paddle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("paddle", reason="Paddle is not installed: pip install 'gradcheck[paddle]'")
