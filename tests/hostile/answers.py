"""Answers that a case may write in place of its own, drawn from the schema of a result: right ones, partly forged."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcheck.case.case import Case
from gradcheck.case.values import value_of
from gradcheck.codes import CODES
from gradcheck.result import Result

Random = random.Random
SCHEMA = Result.model_json_schema()

WORDS = ["x", "W_hh", "out", "a.b", "", "line 3 of the spec", "layers/own.py:7", "    y = a - b", "all of x[:, 3]"]
TEXTS = [
    "x" * 5_000, "é" * 3_000, "a\u0300" * 2_000, "\n" * 5_000, "`" * 5_000, "|" * 2_000, "x" * 1_000_000,
    "日本語 " * 30_000, "\x1b[31m\x1b]0;t\x07", "\u202e\u2066" * 100, "\x00", "\ud800", "\udfff\ud800", "%0A::error::y",
    "\n::warning::z", "##[group]", "]]>", "<script>alert(1)</script>", "{{ 7 * 7 }}{% raw %}", "[red]x[/red]", "\ufffe",
    "../" * 1_000, "/etc/passwd:3", "a:99999999999999999999", "a:" + "9" * 5_000, "a:٣", "a\x00b:7", ":", "C:\\a:7",
    "Traceback (most recent call last):\n", "bug in gradcheck", "a b'c\"d$(e)`f`;g", "-" * 400, "word " * 2_000,
    "FAIL one@numpy", "CRASH", "PASS", "GC999", "GC120", "=" * 90, "│" * 500, "  " * 2_000 + "x", "\t" * 500, "\r\n\r",
]  # fmt: skip
WHOLE = [
    -1, 0, 1, 7, 255, 10**6, 10**9, -(10**9), 2**31, 2**53, 2**53 + 1, 2**63, -(2**63), 10**30, 10**400, 10**4_200,
]  # fmt: skip
NUMBERS = [
    float("nan"), float("inf"), -float("inf"), 1.7e308, -1.7e308, 5e-324, -5e-324, -0.0, 0.0, -1.0, 1e-300, 1e-323, 2.5,
]  # fmt: skip
DTYPES = [
    "float64",
    "object",
    "O",
    "f8,f8",
    "(9999999,9999999)f8",
    "V8",
    "void64",
    "datetime64",
    "U9",
    "bfloat16",
    "S0",
]
ODD_JSON = [
    b"", b"null", b"[]", b"{", b"1", b'"x"', b"{}", b"[" * 100_000, b"9" * 100_000, b'{"name":' * 5_000, b"\xff\xfe",
    b'{"a":NaN}', b"-", b"[1,]" * 100, b"{}" * 10,
]  # fmt: skip


def answer(random: Random, case: Case) -> str:
    """The line that a case writes, as its supervisor reads it."""
    if random.random() < 0.02:
        return random.choice(ODD_JSON).decode("utf-8", "replace")
    data = right(SCHEMA, random, random.choice([0, 1, 1, 2, 3, 30]))
    known = case.result(random.choice(["PASS", "FAIL", "KINK", "ERROR"]), "").model_dump(mode="json")
    data |= {name: known[name] for name in ("name", "scenario", "backend", "path", "line", "column", "status")}
    data |= {"signal": "", "beside": "", "internal_error": "", "values": values(random)}
    if data["gradient"]:
        data["gradient"]["verdict"] = random.choice(["PASS", "FAIL", "KINK"])
    there = [*places(data)]
    forged = random.sample(there, random.choice([0, 1, 1, 1, 2, 3, 8]))
    for at, (where, key) in enumerate(forged):
        if not at and isinstance(where[key], (dict, list)) and random.random() < 0.5:
            where[key] = many(where[key], random)
        else:
            forge(where, key, random)
    text = json.dumps(data)
    if random.random() < 0.02:
        at = random.randrange(len(text))
        text = text[:at] + random.choice(["", '"', "}", "9" * 5_000, "[" * 300, "\\u0000"]) + text[at + 1 :]
    return text


def right(schema: dict[str, Any], random: Random, size: int, name: str = "") -> Any:
    """A value that fits `schema`; lists in it have `size` items."""
    if "$ref" in schema:
        return right(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], random, size, name)
    if "anyOf" in schema:
        return right(random.choice(schema["anyOf"]), random, size, name)
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {key: right(part, random, size, key) for key, part in schema["properties"].items()}
        case "object":
            return {f"x{k}": right(schema["additionalProperties"], random, size) for k in range(size)}
        case "array" if "prefixItems" in schema:
            return sorted(right(part, random, size) for part in schema["prefixItems"])
        case "array":
            least = int(schema["items"].get("type") == "number")  # those of a scan are equally many, and one at least
            return [right(schema["items"], random, size) for _ in range(max(size, least))]
        case "integer":
            return random.randrange(50)
        case "number":
            return random.choice([1e-12, 0.25, 3.0, 1e9, 1e-300, 1e300])
        case "boolean":
            return random.random() < 0.5
        case "null":
            return None
        case _:
            return random.choice(sorted(CODES)) if name == "code" else random.choice(WORDS)


def values(random: Random) -> list[dict[str, Any]]:
    """Values as a backend gives them."""
    arrays = [np.arange(3.0), np.zeros((0, 2)), np.array(1j), np.float32([[random.choice([1.0, np.nan])]]), None]
    found = [value_of(f"y{k}", random.choice(arrays)).model_dump(mode="json") for k in range(random.randrange(3))]
    for value in found:
        if random.random() < 0.1:
            value["dtype"] = random.choice(DTYPES)
        if random.random() < 0.05:
            value["data"] = random.choice(["", "AAAA", "=", "é", "A" * 100_000])
    return found


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in `data`, with every key of it."""
    for key in data if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], (dict, list)):
            yield from places(data[key])


def forge(where: Any, key: Any, random: Random) -> None:
    """Put something else in the place of one part of an answer: of the same kind, mostly, or of another."""
    old = where[key]
    same = TEXTS if isinstance(old, str) else NUMBERS if isinstance(old, float) else WHOLE
    new: Any
    if random.random() < 0.75 and not isinstance(old, (dict, list, bool)) and old is not None:
        new = random.choice(same)
    else:
        new = random.choice([None, True, [], {}, deep(), *TEXTS[:3], *WHOLE, *NUMBERS, *WORDS])
    where[key] = new
    if isinstance(where, dict) and random.random() < 0.05:
        where[random.choice(TEXTS)] = new


def many(old: Any, random: Random) -> Any:
    """A list or an object of very many items, the same ones or others."""
    number = random.choice([2, 65, 1_001, 20_000])
    number = min(number, 200_000 // len(json.dumps(old)))  # a line has an end as well
    if isinstance(old, list):
        return (old or [random.choice(WHOLE)]) * number
    return {f"{key}{k}": value for k in range(number // max(len(old), 1)) for key, value in old.items()}


def deep() -> Any:
    """A list in a list, more than a parser follows."""
    found: Any = []
    for _ in range(300):
        found = [found]
    return found
