"""The result of a case: what its own process says of it, believed no further than a result can be, or how that ended.

The process runs the case's code, which can write any line in place of ours. What is known without it, the case itself,
is filled in. The rest has to fit `gradcheck.result`, whose types are the schema, and is cut to what reports can show in
a moment, however long it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from gradcheck.case.case import Case
from gradcheck.case.user_code import place_of_frames
from gradcheck.codes import CODES
from gradcheck.result import Result, Status
from gradcheck.run.child import TWO_ANSWERS, Outcome, how_it_ended, signal_of
from gradcheck.run.limits import shown_size

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
    """What `text`, a line of JSON from a process of `case` that took `seconds`, says of it; AnswerError: malformed."""
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
    """The result of `case` that `text` holds as JSON, as far as it can be one. Raises AnswerError: it is malformed."""
    try:
        data = from_json(text)
    except ValueError:
        raise AnswerError("it is no JSON") from None
    if not isinstance(data, dict):
        raise AnswerError("it is no object of JSON")
    return result_from_answer(case, data)


def result_from_answer(case: Case, data: dict[str, Any]) -> Result:
    """The result of `case` that has the fields `data`, bounded. Raises AnswerError: it is malformed."""
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


# ------------------------------------------------------------------------------------ from the end of its process
OUTPUT_SHOWN = 4_000
"""Characters of what a case prints that a result carries, from the end."""


def result_of(case: Case, outcome: Outcome) -> Result:
    """What the process answered, if that can be an answer of `case`; else CRASH or TIMEOUT, and where."""
    printed, at = cut_trace(outcome.printed, case.scenario.path)
    output, malformed = printed[-OUTPUT_SHOWN:], "its line is empty, or longer than one may be"
    if outcome.answer:
        try:
            return answer_of(case, outcome.answer, outcome.seconds).model_copy(update={"output": output})
        except AnswerError as error:
            malformed = TWO_ANSWERS if outcome.answer == TWO_ANSWERS else str(error)
    status = Status.TIMEOUT if outcome.stopped == "time" else Status.CRASH
    if outcome.stopped == "time":
        message = f"ran longer than {case.timeout:g} s and was stopped"
    elif outcome.stopped == "memory":
        message = f"used more than {shown_size(case.memory)} of memory and was stopped"
    elif outcome.answer or outcome.exit_code is None:  # it sent a line, or more than a line may have
        message = f"the process sent something that is no result: {malformed}"
    else:
        message = how_it_ended(outcome.exit_code)
    where = f", at {at}" if at else ""
    signal = "" if outcome.stopped else signal_of(outcome.exit_code)
    return case.result(status, message + where, output=output, seconds=outcome.seconds, signal=signal)


def cut_trace(printed: str, path: str) -> tuple[str, str]:
    """`printed` with the trace that faulthandler left in it cut to the user's frames, and where they were.

    The place is empty if no frame in the trace is the user's.
    """
    *before, trace = re.split(r"^Fatal Python error: .*\n\n?", printed, flags=re.MULTILINE)
    if not before:
        return printed, ""
    package = re.escape(str(Path(__file__).parent.parent))
    for ours in (rf'  File "(?:{package}/.*|<string>)".*', "Extension modules: .*"):
        trace = re.sub(rf"^{ours}\n?", "", trace, flags=re.MULTILINE)
    shown_path = path.encode("ascii", "backslashreplace").decode()  # as faulthandler writes it
    frames = re.findall(r'^  File "(.*)", line (\d+) in ', trace, re.MULTILINE)[::-1]
    at = place_of_frames([(file, int(line)) for file, line in frames], shown_path)
    return "".join(before) + trace.rstrip("\n"), at


# ----------------------------- where it is pinned what a backend does in place of what is documented (`observed`)
_HOLDS = (Status.PASS, Status.KINK)
_NO_ANSWER = (Status.SKIP, Status.UNSUPPORTED, Status.INCONCLUSIVE)
"""Statuses that say neither that the documents hold nor that they do not."""

NO_END = "no end"


def settled(case: Case, run: Callable[[Case], Result]) -> Result:
    """The result of `case`: where something is `observed`, after it was run as documented and, if need be, once more.

    XFAIL where it does not do what is documented, and does exactly what was observed; XPASS where it does what is
    documented. Each run is in a process of its own.
    """
    documented = run(case)
    entry = case.entry
    if entry is None or entry.observed is None or documented.status in _NO_ANSWER or documented.internal_error:
        return documented
    reason = f"{entry.why} ({entry.issue})" if entry.issue else entry.why
    if documented.status in _HOLDS:
        message = f"does what is documented, but something else was observed: {reason}. Remove the entry."
        return documented.model_copy(update={"status": Status.XPASS, "message": message})
    if wanted := entry.observed.crash or (NO_END,) * entry.observed.hang:  # how the process ends
        ended = NO_END if documented.status is Status.TIMEOUT else documented.signal
        again, holds, expected = documented, ended in wanted, f"expected {' or '.join(wanted)}, but "
    else:
        again = run(case.expecting(entry.observed))
        holds, expected = again.status in _HOLDS, ""
    details = (f"as documented: {documented.message}", *documented.details)
    if holds:
        return documented.model_copy(update={"status": Status.XFAIL, "message": reason, "details": details})
    if again.internal_error or again.status in _NO_ANSWER:
        return again
    message = f"does neither what is documented nor what was observed ({reason}): {expected}{again.message}"
    status = again.status if again.status in (Status.CRASH, Status.TIMEOUT) else Status.FAIL
    return again.model_copy(update={"status": status, "message": message, "details": (*again.details, *details)})
