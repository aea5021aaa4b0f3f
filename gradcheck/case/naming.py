"""How a case is called. Loads nothing that a command would wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def case_name(scenario: str, parameters: Mapping[str, Any], backend: str) -> str:
    """``id@backend``, or ``id/dtype=float32@backend``: no brackets, no colons, no spaces."""
    point = ",".join(f"{key}={value}" for key, value in parameters.items())
    return f"{scenario}{'/' if point else ''}{point}@{backend}"
