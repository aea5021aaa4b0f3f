"""Writes the JSON Schemas that come with the package from the models: ``python tests/commands/schemas.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import FloatSchema

from gradcheck.conformance.matrix_record import MatrixRecord
from gradcheck.conformance.releases import RELEASE_FORMAT, ReleaseFile
from gradcheck.report.record import Report
from gradcheck.spec import model

FOLDER = Path(__file__).parents[2] / "gradcheck" / "schemas"


def texts() -> dict[str, str]:
    """The content of each file, by its name."""
    found = {
        "spec": model.json_schema(),
        "report": schema_of(Report, "A report of gradcheck", mode="serialization", schema_generator=WithTexts),
        "matrix": schema_of(MatrixRecord, "gradcheck-matrix/3", mode="serialization"),
        "release": schema_of(ReleaseFile, RELEASE_FORMAT),
    }
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in found.items()}


def schema_of(kind: type[BaseModel], title: str, **options: Any) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what a model writes or reads."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **kind.model_json_schema(by_alias=True, **options), "title": title}


class WithTexts(GenerateJsonSchema):
    """A generator that allows the texts which stand for numbers that JSON cannot represent."""

    def float_schema(self, schema: FloatSchema) -> JsonSchemaValue:
        limits = super().float_schema(schema)
        number = {"type": limits.pop("type")}
        return {**limits, "anyOf": [number, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
