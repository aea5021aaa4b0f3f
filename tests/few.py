"""Parameters of which the first few run by default: more of them would repeat the proof, with ``-m long`` they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(values: Iterable[Any], kept: int = 2) -> list[Any]:
    """The values, those after the first `kept` marked `long`."""
    return [value if k < kept else pytest.param(value, marks=pytest.mark.long) for k, value in enumerate(values)]


def seeds(number: int) -> Any:
    """A test runs for each seed below a number, by default for two."""
    return pytest.mark.parametrize("seed", few(range(number)))
