"""The result of a case, from the answer of its process or from how the process ended."""

from __future__ import annotations

import re
import signal
from itertools import islice
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json

from gradcheck.case.case import Case
from gradcheck.case.user_code import Frame, innermost_place, is_users, place_of_frames
from gradcheck.result import Result, Status
from gradcheck.run.limits import shown_size

MOST_TEXT = 4_000
"""The most characters of a text that are kept: a layer may raise an error of any length."""
MOST_ALTOGETHER = 100_000
"""The most characters of all texts of a result together, so that reports can show it quickly."""
MOST_ITEMS = 1_000
"""The most items of a list that are kept; a check lists 20 wrong entries for each input."""
OUTPUT_SHOWN = 4_000
"""The most characters of a case's output that a result contains, counted from the end."""

Stopped = Literal["", "time", "memory"]
"""The limit that stopped a case; empty if the case ended by itself."""


class Outcome(NamedTuple):
    """How the process of a case ended."""

    answer: bytes
    """The Result as JSON; empty if it was not written completely."""
    printed: str
    """The end of the process's output."""
    exit_code: int
    """The exit code, negative for a signal as in subprocess."""
    stopped: Stopped
    seconds: float


_MORE = " … and {:,} more characters"


# --------------------------------------------------------- the answer of the process of a case
def answer_line(result: Result) -> bytes:
    """Return the answer of a case's process: the result as JSON, shortened to the size that reports
    can show.
    """
    return to_json(
        shorten_fields(result.model_dump(exclude_defaults=True)), inf_nan_mode="constants"
    )


def shorten_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a result with texts and lists shortened, individually and in total.

    Values of outputs and gradients are not cut: half of an array's bytes are useless.
    """
    remaining = MOST_ALTOGETHER

    def shorten_value(value: Any) -> Any:
        nonlocal remaining
        if isinstance(value, str):
            short = cut(value, max(0, min(MOST_TEXT, remaining)))
            remaining -= len(short)
            return short
        if isinstance(value, (list, tuple)):
            return [shorten_value(item) for item in value[:MOST_ITEMS]]
        if isinstance(value, dict):
            return {
                shorten_value(key): shorten_value(item)
                for key, item in islice(value.items(), MOST_ITEMS)
            }
        return value

    values = data.pop("values", ())
    data["internal_error"] = ends_of(data.get("internal_error", ""))
    return {**shorten_value(data), "values": values}


def ends_of(traceback: str) -> str:
    """Return the beginning and the end of a traceback."""
    half = MOST_TEXT // 2 - 5
    if len(traceback) <= MOST_TEXT:
        return traceback
    return f"{traceback[:half]}\n…\n{traceback[-half:]}"


def cut(text: str, most: int) -> str:
    """Return the first `most` characters of `text`, and the number of further ones."""
    if len(text) <= most:
        return text
    length = most - len(_MORE.format(len(text)))
    return text[:length] + _MORE.format(len(text) - length) if length > 0 else text[:most]


# ------------------------------------------------------------ results from the end of a process
def result_of(case: Case, outcome: Outcome) -> Result:
    """Return the result that the process of a case sent; CRASH or TIMEOUT if it sent none."""
    printed, frames = cut_trace(outcome.printed, case.scenario.path)
    output = printed[-OUTPUT_SHOWN:]
    if outcome.answer and not outcome.stopped and outcome.exit_code == 0:
        try:
            return Result.model_validate_json(outcome.answer).model_copy(update={"output": output})
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
            return case.result(
                Status.CRASH,
                f"the process sent something that is not a result: {where}",
                output=output,
            )
    status, message, signal_name = Status.CRASH, how_it_ended(outcome.exit_code), ""
    if outcome.stopped == "time":
        status, message = Status.TIMEOUT, f"ran longer than {case.timeout:g} s and was stopped"
    elif outcome.stopped == "memory":
        message = f"used more than {shown_size(case.memory)} of memory and was stopped"
    else:
        signal_name = signal_of(outcome.exit_code)
    if place := place_of_frames(frames, case.scenario.path):
        message = f"{message}, at {place}"
    return case.result(
        status,
        message,
        output=output,
        seconds=outcome.seconds,
        signal=signal_name,
        raised_at=innermost_place(frames, case.scenario.path),
    )


def how_it_ended(exit_code: int) -> str:
    """Describe the end of a process; `exit_code` is negative for a signal."""
    name = signal_of(exit_code)
    if not name:
        return f"the process exited with status {exit_code} before the case was done"
    cause = " (the system does that when memory runs out)" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{cause}"


def signal_of(exit_code: int) -> str:
    """Return the name of the signal that killed a process; empty if it ended otherwise."""
    if exit_code >= 0:
        return ""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def cut_trace(printed: str, path: str) -> tuple[str, list[Frame]]:
    """Return `printed` with faulthandler's trace reduced to the user's frames, and these frames,
    the outermost first.

    `path` is the file of the scenario.
    """
    *before, trace = re.split(r"^Fatal Python error: .*\n\n?", printed, flags=re.MULTILINE)
    if not before:
        return printed, []
    trace = re.sub(r"^Extension modules: .*\n?", "", trace, flags=re.MULTILINE)
    shown_path = path.encode("ascii", "backslashreplace").decode()  # as faulthandler writes it
    lines, frames = [], list[Frame]()
    for line in trace.rstrip("\n").split("\n"):
        frame = re.match(r'  File "(.*)", line (\d+) in ', line)
        if frame and (frame[1] == shown_path or is_users(frame[1])):
            frames.append((path if frame[1] == shown_path else frame[1], int(frame[2])))
        elif frame:
            continue
        lines.append(line)
    return "".join(before) + "\n".join(lines), frames[::-1]
