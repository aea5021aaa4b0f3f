"""``--report sarif:PATH``: for code scanning and editors (SARIF 2.1.0, OASIS)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradcheck.codes import CODES
from gradcheck.report.record import Report
from gradcheck.report.result_text import by_cause, failure_block, places_of
from gradcheck.result import Result
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
NO_CODE = "gradcheck"
"""The SARIF rule for a failure without a diagnosis: an error, a crash, an unexplained
difference.
"""


def as_sarif(report: Report) -> str:
    """A result for each cause of failures, with the code of the cause as the rule.

    Its location is the line of the layer that the cause names, with the scenario as a related
    location. Without such a line, the location is the scenario's.
    """
    groups = by_cause(report.results)
    used = sorted({code_of_result(first) for first, *_ in groups})
    driver = {
        "name": "gradcheck",
        "version": report.gradcheck,
        "rules": [rule(code) for code in used],
    }
    run = {
        "tool": {"driver": driver},
        "properties": {"suite": report.suite},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": not report.not_run, "arguments": [*map(safe, report.command)]}
        ],
        "results": [result(group, used, report.again) for group in groups],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def code_of_result(result: Result) -> str:
    """The code of the first diagnosis."""
    return next((cause.code for cause in result.checked.diagnosis), NO_CODE)


def rule(code: str) -> dict[str, Any]:
    """A code of `gradcheck.codes` as a SARIF rule."""
    if code not in CODES:
        return {"id": code, "shortDescription": {"text": "not as the scenario expects"}}
    known = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.cause},
        "help": {"text": f"{known.tell}\n{known.fix}\n{known.example}"},
    }


def result(group: list[Result], rules: list[str], again: str) -> dict[str, Any]:
    """A failure, and the number of failures with the same cause."""
    first, *same_cause = group
    places = []
    for place in places_of(first):
        text = {"text": safe(place.text)}
        places.append({**location(place.file, place.line, place.column), "message": text})
    main, *related = places
    return {
        "ruleId": code_of_result(first),
        "ruleIndex": rules.index(code_of_result(first)),
        "level": "error",
        "kind": "fail",
        "message": {"text": "\n".join(failure_block(first, again, same_cause=same_cause))},
        "locations": [{"physicalLocation": main["physicalLocation"]}],
        "occurrenceCount": len(group),
        "partialFingerprints": {"case/v1": safe(first.name)},
        **({"relatedLocations": related} if related else {}),
        **fixes(first),
    }


def fixes(failure: Result) -> dict[str, Any]:
    """The edit of backward that repairs a failure, if one is known."""
    fix = failure.checked.fix
    if fix is None:
        return {}
    artifact = location(fix.path, fix.line, fix.column + 1)["physicalLocation"]
    region = {**artifact["region"], "endLine": fix.end_line, "endColumn": fix.end_column + 1}
    replacement = {"deletedRegion": region, "insertedContent": {"text": safe(fix.replacement)}}
    change = {"artifactLocation": artifact["artifactLocation"], "replacements": [replacement]}
    return {
        "fixes": [{"description": {"text": "the edit of backward"}, "artifactChanges": [change]}]
    }


def location(path: str, line: int, column: int) -> dict[str, Any]:
    """A location in a file, relative to the current folder if it is below it."""
    shown = shown_path(path)
    uri = Path(path).absolute().as_uri() if Path(shown).is_absolute() else quote(shown)
    region = {"startLine": max(line, 1), "startColumn": max(column, 1)}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
