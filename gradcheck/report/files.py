"""Reports that go to files: ``--report FORMAT:PATH``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from gradcheck.result import Result


def as_json(results: Sequence[Result]) -> str:
    """A JSON list of results, in spec order."""
    return json.dumps([json.loads(result.model_dump_json()) for result in results], indent=1, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[Result]], str]] = {"json": as_json}
"""The table of formats."""
