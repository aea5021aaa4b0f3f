"""The result of a case from what became of the process that ran it."""

from __future__ import annotations

import re
from pathlib import Path

from gradcheck.case.case import Case
from gradcheck.case.user_code import place_of_frames
from gradcheck.result import Result, Status
from gradcheck.run.answer import AnswerError, answer_of
from gradcheck.run.child import TWO_ANSWERS, Outcome, how_it_ended, signal_of
from gradcheck.run.limits import shown_size

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
