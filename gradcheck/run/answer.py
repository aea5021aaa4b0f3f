"""What a case's own process says of it, believed no further than a result can be.

The process runs the case's code, which can write any line in place of ours. What is known without it, the case itself,
is filled in. The rest has to fit `gradcheck.result`, whose types are the schema, and is cut to what reports can show in
a moment, however long it is.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from gradcheck.case.case import Case
from gradcheck.codes import CODES
from gradcheck.result import Result, Status

MOST_TEXT = 4_000
"""Characters of a text that are kept: a layer may raise an error of any length."""
MOST_ALTOGETHER = 100_000
"""Characters of all texts of a result together, so that every report shows it within a moment."""
MOST_ITEMS = 1_000
"""Items of a list that are kept. A check lists 20 wrong entries for each input."""

SUPERVISED = (Status.CRASH, Status.TIMEOUT)
"""What only those can say who see a process from outside."""
VERDICTS = (Status.PASS, Status.FAIL, Status.KINK, Status.INCONCLUSIVE)
"""What a gradient check can find."""
KNOWN_FIELDS = ("scenario", "backend", "path", "line", "column", "beside")
"""What is known of a result without the case's process; its name has to be right."""
OUR_FRAME = re.compile(r'^  File ".*[/\\]gradcheck[/\\].*\.py", line \d+, in ', re.MULTILINE)
"""A line of a traceback that passed through our own code."""

_MORE = " … and {:,} more characters"


class AnswerError(ValueError):
    """A text is no answer of a case; the message says what about it is malformed."""


def answer_of(case: Case, text: str, seconds: float) -> Result:
    """What `text`, a line of JSON from the process of `case`, says of it; the process took `seconds`.

    Raises:
        AnswerError: it is malformed.
    """
    result = result_in(case, text)
    if result.status in SUPERVISED:
        raise AnswerError(f"status: {result.status} is not for a case to say of itself")
    return result.model_copy(update={"output": "", "signal": "", "seconds": min(result.seconds, seconds)})


def relayed(case: Case, text: str) -> Result:
    """The result of `case` as JSON from a supervisor elsewhere, whose word on a crash counts; a CRASH if it is none."""
    try:
        return result_in(case, text)
    except AnswerError as error:
        return case.result(Status.CRASH, f"what came back is no result: {error}")


def result_in(case: Case, text: str) -> Result:
    """The result of `case` that `text` holds as JSON, as far as it can be one.

    Raises:
        AnswerError: it is malformed.
    """
    try:
        data = from_json(text)
    except ValueError:
        raise AnswerError("it is no JSON") from None
    if not isinstance(data, dict):
        raise AnswerError("it is no object of JSON")
    return result_from_answer(case, data)


def result_from_answer(case: Case, data: dict[str, Any]) -> Result:
    """The result of `case` that has the fields `data`, bounded.

    Raises:
        AnswerError: it is malformed.
    """
    data, known = bounded(data), case.result(Status.PASS, "")
    if data.get("name") != known.name:
        raise AnswerError("name: this is not the case that was run")
    data |= {name: getattr(known, name) for name in KNOWN_FIELDS}
    try:
        result = Result.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise AnswerError(f"{where[:80]}: {first['msg'].removeprefix('Value error, ')[:160]}") from None
    if result.internal_error and (result.status is not Status.ERROR or not OUR_FRAME.search(result.internal_error)):
        raise AnswerError("internal_error: this is no traceback of gradcheck's")
    gradient = result.gradient
    if gradient is not None and gradient.verdict not in VERDICTS:
        raise AnswerError(f"gradient.verdict: {gradient.verdict} is none of a gradient")
    if gradient is not None and any(found.code not in CODES for found in gradient.diagnosis):
        raise AnswerError("gradient.diagnosis: there is no such code")
    if not case.compared:
        return result.model_copy(update={"values": ()}) if result.values else result
    from gradcheck.case.values import is_whole  # it needs NumPy, which is not imported where nothing is compared

    if not all(map(is_whole, result.values)):
        raise AnswerError("values: these are not the bytes of an array")
    return result


def answer_line(result: Result) -> bytes:
    """The line that a case's process answers with."""
    return to_json(bounded(result.model_dump(exclude_defaults=True)), inf_nan_mode="constants") + b"\n"


def bounded(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a result with texts and lists that are not too long, also taken together.

    Values are left as they are: half the bytes of an array are none.
    """
    error, values = data.get("internal_error"), data.get("values")
    ends = {"internal_error": ends_of(error)} if isinstance(error, str) else {}
    whole = {"values": values[:MOST_ITEMS]} if isinstance(values, (list, tuple)) else {}
    left = MOST_ALTOGETHER

    def text(value: str) -> str:
        nonlocal left
        short = cut(value, max(0, min(MOST_TEXT, left)))
        left -= len(short)
        return short

    def part(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, (list, tuple)):
            return [part(item) for item in value[:MOST_ITEMS]]
        if isinstance(value, dict):
            return {text(key): part(value[key]) for key in list(value)[:MOST_ITEMS]}
        return value

    return {**part({name: value for name, value in data.items() if name != "values"} | ends), **whole}


def ends_of(traceback: str) -> str:
    """A traceback, or where it begins and what it ends with."""
    half = MOST_TEXT // 2 - 5
    return traceback if len(traceback) <= MOST_TEXT else f"{traceback[:half]}\n…\n{traceback[-half:]}"


def cut(text: str, most: int) -> str:
    """`text` in at most `most` characters: its beginning and, where there is room to say it, how many more it has."""
    if len(text) <= most:
        return text
    kept = most - len(_MORE.format(len(text)))
    return text[:kept] + _MORE.format(len(text) - kept) if kept > 0 else text[:most]
