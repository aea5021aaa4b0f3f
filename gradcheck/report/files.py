"""Reports that go to files: ``--report FORMAT:PATH``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcheck.result import Result


def as_json(results: Sequence[Result]) -> str:
    """A JSON list of results in spec order, strict JSON: Result reads the texts "NaN", "Infinity" and "-Infinity"."""
    plain = [finite(result.model_dump(mode="json")) for result in results]
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """`value` with text in place of the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


FORMATS: dict[str, Callable[[Sequence[Result]], str]] = {"json": as_json}
"""Name of a format → what writes it."""
