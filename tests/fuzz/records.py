"""Journals, baselines and reports that somebody has written by hand, or damaged: right ones, partly forged."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from gradcheck.case.case import Case
from gradcheck.result import Status
from gradcheck.run.journal import AFTER, BEFORE, BETWEEN, Seal, key
from tests.fuzz.documents import FRAGMENTS
from tests.hostile.answers import SCHEMA, forge, many, places, right, values

Random = random.Random


def forged(data: Any, random: Random) -> Any:
    """`data` with a few of its parts replaced or multiplied."""
    there = [*places(data)]
    for number, (where, at) in enumerate(random.sample(there, min(len(there), random.choice([0, 0, 1, 1, 2, 4])))):
        if not number and isinstance(where[at], (dict, list)) and random.random() < 0.3:
            where[at] = many(where[at], random)
        else:
            forge(where, at, random)
    return data


def damaged(raw: bytes, random: Random) -> bytes:
    """`raw` with pieces replaced, cut off, or put elsewhere, now and then."""
    for _ in range(random.choice([0, 0, 0, 0, 0, 0, 1, 2, 5])):
        start = random.randrange(len(raw) + 1)
        end = start + random.choice([0, 1, 8, 200])
        piece = random.choice([*FRAGMENTS, b"", raw[start:end] * 3, b"[" * 2_000, b"9" * 5_000, b"\n" * 300])
        raw = raw[:start] + piece + raw[end:]
    return raw


def result(random: Random, case: Case) -> dict[str, Any]:
    """A result of `case` with any fields."""
    data: dict[str, Any] = right(SCHEMA, random, random.choice([0, 1, 1, 3]))
    known = case.result(random.choice([Status.PASS, Status.FAIL, Status.CRASH]), "said").model_dump(mode="json")
    data |= {name: known[name] for name in ("name", "scenario", "backend", "path", "line", "column", "status")}
    data |= {"values": values(random), "beside": "", "internal_error": ""}
    return data


def journal(random: Random, cases: Sequence[Case]) -> bytes:
    """The record of a run of some of `cases`. Most of its lines have the seal that they should have."""
    seal, lines = Seal(), []
    for case in random.sample([*cases], random.randint(0, len(cases))):
        record = {
            "run": random.choice(["one", "one", "one", "two"]), "key": key(case), "seed": case.seed,
            "timeout": case.timeout, "memory": case.memory, "result": result(random, case),
        }  # fmt: skip
        text = json.dumps(forged(record, random)).encode()
        digest = seal.digest(text) if random.random() < 0.9 else b"0" * 64
        lines.append(b"".join((BEFORE, digest, BETWEEN, text, AFTER, b"\n")))
    return damaged(b"".join(lines), random)


def baseline(random: Random, cases: Sequence[Case]) -> bytes:
    """The known failures among `cases`."""
    version = random.choice([1, 2])
    known: dict[str, Any] = {case.name: str(random.choice([*Status])) for case in cases if random.random() < 0.7}
    if version == 2:
        whole = {"codes": ["GC134"], "wrong": {"x": ["out"], "w": []}}
        known = {name: {"status": status, **random.choice([{}, whole])} for name, status in known.items()}
    data = {"format": f"gradcheck-baseline/{version}", "failures": known}
    return damaged(json.dumps(forged(data, random)).encode(), random)


def report(random: Random, cases: Sequence[Case], sound: bool) -> bytes:
    """A report in JSON of the results of `cases`; a `sound` one is neither forged nor damaged."""
    data = {
        "format": "gradcheck-report/1", "gradcheck": "1", "python": "3", "platform": "p", "versions": {"numpy": "2"},
        "command": ["run"], "again": "", "seeds": [0], "started": "", "seconds": 1.5, "not_run": 0,
        "results": [result(random, case) for case in cases],
    }  # fmt: skip
    if sound:
        return json.dumps(data).encode()
    return damaged(json.dumps(forged(data, random)).encode(), random)
