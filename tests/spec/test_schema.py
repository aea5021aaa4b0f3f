"""The JSON Schema and the model are one thing."""

from __future__ import annotations

from gradcheck.spec.model import (
    READER_FIELDS,
    BackendExpectation,
    Expect,
    Input,
    Observed,
    Scenario,
    SpecFile,
    json_schema,
)


def properties() -> list[tuple[str, str, dict[str, object]]]:
    schema = json_schema()
    objects = {"SpecFile": schema, **schema["$defs"]}
    return [
        (kind, name, value) for kind, entry in objects.items() for name, value in entry.get("properties", {}).items()
    ]


def test_every_key_is_described():
    assert [(kind, name) for kind, name, value in properties() if not value.get("description")] == []


def test_the_reader_s_own_fields_are_no_part_of_the_format():
    assert {name for _, name, _ in properties()}.isdisjoint(READER_FIELDS)


def test_every_key_of_the_model_is_in_the_schema():
    found = {(kind, name) for kind, name, _ in properties()}
    for model in (SpecFile, Scenario, Input, Expect, BackendExpectation, Observed):
        for name, field in model.model_fields.items():
            assert ((model.__name__, field.alias or name) in found) is (name not in READER_FIELDS)


def test_it_is_closed_and_asks_for_what_the_reader_asks_for():
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert sorted(schema["required"]) == ["scenarios", "schema"]
    assert schema["properties"]["schema"]["const"] == "gradcheck/v1"
    assert all(entry["additionalProperties"] is False for entry in schema["$defs"].values() if "properties" in entry)
    assert schema["$defs"]["Scenario"]["required"] == ["id"]
