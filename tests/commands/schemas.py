"""Writes the JSON Schemas that come with the package from the models: ``python tests/commands/schemas.py``."""

from __future__ import annotations

import json
from pathlib import Path

from gradcheck.conformance.matrix_record import matrix_schema
from gradcheck.conformance.releases import release_schema
from gradcheck.report import record
from gradcheck.spec import model

FOLDER = Path(__file__).parents[2] / "gradcheck" / "schemas"


def texts() -> dict[str, str]:
    """The content of each file, by its name."""
    found = {
        "spec": model.json_schema(),
        "report": record.report_schema(),
        "matrix": matrix_schema(),
        "release": release_schema(),
    }
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in found.items()}


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
