"""``--report json:PATH`` and ``jsonl:PATH``: everything that is known, for programs."""

from __future__ import annotations

import json
import math
from typing import Any

from gradcheck.report.record import Report


def as_json(report: Report) -> str:
    """An object with the versions, the command and the results; `gradcheck.report.record.report_schema` describes it.

    It is strict JSON in ASCII: numbers that JSON does not have are the texts ``NaN``, ``Infinity`` and ``-Infinity``.
    """
    return json.dumps(json_data(report), indent=1, allow_nan=False) + "\n"


def as_json_lines(report: Report) -> str:
    """The same in lines: the first is the object without its results, each other one is a result."""
    whole = json_data(report)
    lines = [{key: value for key, value in whole.items() if key != "results"}, *whole["results"]]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def json_data(report: Report) -> dict[str, Any]:
    """The report as JSON can hold it."""
    found: dict[str, Any] = finite_or_text(report.model_dump(mode="json"))
    return found


def finite_or_text(value: Any) -> Any:
    """`value` with text in place of the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: finite_or_text(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_text(item) for item in value]
    return value
