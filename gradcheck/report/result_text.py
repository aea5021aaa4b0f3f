"""The text that all reports share: the lines about one result, safe to print, and failures grouped
by cause.
"""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from gradcheck.codes import is_cause
from gradcheck.report.wrong_entries import ENTRIES_SHOWN, number, wrong_entry_lines
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, StepScan
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import escape, one_line, safe
from gradcheck.support.resources import bundled_specs

OUTPUT_LINES_SHOWN = 15
LABELS = {"GC120": "kink", "GC125": "also"}
"""Labels of findings that are certain but not contracts: a kink, and a second backward that never
ran.
"""
NO_SCREEN = 1_000_000
"""The width if no screen limits the lines."""
LEAST_EXCERPT = 20
"""The width of an excerpt's line on the narrowest screen."""


def place(result: Result) -> str:
    """The position of the scenario: ``file:line:col``."""
    return f"{shown_path(result.path)}:{result.line}:{result.column}"


def marks(gradient: GradientSummary) -> list[str]:
    """The marks of a verdict in one pair of brackets; empty if it has none."""
    return [f"[{one_line(', '.join(gradient.marks))}]"] if gradient.marks else []


def gradient_lines(
    gradient: GradientSummary,
    lines_above: Sequence[str] = (),
    width: int = NO_SCREEN,
    shown: int = ENTRIES_SHOWN,
) -> list[str]:
    """The lines about a gradient: its wrong entries, `shown` of them, and their causes.

    Args:
        lines_above: a diagnosis that is in one of them is not repeated.
        width: of the screen; it limits the table of entries and the excerpts.
    """
    lines = wrong_entry_lines(gradient, width, shown)
    for label, cause in labelled_causes(gradient, lines_above):
        if label:
            lines.append(f"{label}: {cause.text}")
        lines += excerpt(cause, width)
    lines += fix_lines(gradient)
    if shown > ENTRIES_SHOWN and gradient.scan is not None:
        lines += step_lines(gradient.scan)
    return [*lines, *(f"why: {command}" for command in explaining(gradient))]


def fix_lines(gradient: GradientSummary) -> list[str]:
    """The corrected line of backward, and its position; empty without a fix."""
    fix = gradient.fix
    if fix is None:
        return []
    return [f"fix: {shown_source(fix.path)}:{fix.line} │ {fix.source_line}"]


def labelled_causes(
    gradient: GradientSummary, lines_above: Sequence[str]
) -> Iterator[tuple[str, Diagnosis]]:
    """Each cause with its label: from `LABELS`, ``broken`` for a contract, or ``likely``.

    The label is empty if the cause is in one of `lines_above`.
    """
    for cause in gradient.diagnosis:
        # The headline of a KINK says where it is.
        if cause.code != "GC120" or gradient.verdict is Status.FAIL:
            label = LABELS.get(cause.code, "likely" if is_cause(cause.code) else "broken")
            yield ("" if any(cause.text in line for line in lines_above) else label), cause


def explaining(gradient: GradientSummary) -> list[str]:
    """The command that explains the diagnoses; empty for a kink, or without a diagnosis."""
    codes = " ".join(dict.fromkeys(diagnosis.code for diagnosis in gradient.diagnosis))
    return [f"gradcheck explain {codes}"] if codes and gradient.verdict is not Status.KINK else []


def step_lines(scan: StepScan) -> list[str]:
    """The differences of an entry, a line per step, and the step of the numerical value."""
    lines = [
        f"{scan.derivative} by central differences:",
        f"  {'step':<8} {'difference':<15} rounding",
    ]
    for step, difference, rounding in zip(scan.steps, scan.differences, scan.rounding, strict=True):
        chosen = "  ◀ chosen" if step == scan.chosen else ""
        lines.append(f"  {step:<8.1e} {number(difference):<15} ± {rounding:.0e}{chosen}")
    return [*lines, f"  extrapolated from there: {number(scan.value)} ± {scan.error_bound:.0e}"]


def excerpt(cause: Diagnosis, width: int) -> list[str]:
    """The line of the forward that a cause names, if any, as an excerpt like a compiler's."""
    if not cause.line:
        return []
    if not cause.source_line.strip():
        return [f"  {cause.line}: {cause.detail}"]
    where, above = f"  {shown_line(cause)} │ ", list[str]()
    if width - len(where) < LEAST_EXCERPT:  # the place takes a separate line
        where, above = "  │ ", [f"  {shown_line(cause)}"]
    source, start, end = window(cause, width - len(where))
    carets = "^" * max(end - start, 1)
    below = f"{' ' * (len(where) - 2)}│ {' ' * start}{carets} {cause.detail}"
    return [*above, where + source, below]


def shown_line(cause: Diagnosis) -> str:
    """``file:line`` of a cause."""
    file, _, line = cause.line.rpartition(":")
    return f"{shown_source(file)}:{line}" if file else escape(line)


def window(cause: Diagnosis, room: int) -> tuple[str, int, int]:
    """The part of a cause's line that fits, and the position of the marked part in it."""
    source, room = cause.source_line.strip(), max(room, LEAST_EXCERPT)
    indent = len(cause.source_line) - len(cause.source_line.lstrip())
    start, end = (min(max(c - indent, 0), len(source)) for c in (cause.column, cause.end_column))
    first = max(min(start - 2, len(source) - room), 0)
    shown = source[first : first + room]
    if first:
        shown = f"…{shown[1:]}"
    if first + room < len(source):
        shown = f"{shown[:-1]}…"
    return shown, start - first, min(end - first, room)


def shown_source(file: str) -> str:
    """The display name of a file of the user's code: only its name if it is neither bundled nor
    below the folder.
    """
    shown = shown_path(file)
    outside = shown.startswith(os.pardir + os.sep) or os.path.isabs(shown)
    return escape(os.path.basename(file)) if outside else shown


def wrap_line(line: str, width: int) -> list[str]:
    """A line wrapped between words; further lines are indented by two, or, in an excerpt, aligned
    with its text.
    """
    gutter = re.match(r"([^│]*)│( *)", line)
    rests = [" " * (len(line) - len(line.lstrip(" ")) + 2), ""]
    if gutter:
        bar = " " * len(gutter[1]) + "│"
        rests = [bar + gutter[2], bar + " ", *rests]
    rest = next(rest for rest in rests if len(rest) <= width // 2)  # so that words have room
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=rest,
        expand_tabs=False,
        replace_whitespace=False,
        break_on_hyphens=False,
    )


def failure_block(
    result: Result,
    options: str = "",
    width: int = NO_SCREEN,
    entries: int = ENTRIES_SHOWN,
    same_cause: Sequence[Result] = (),
) -> list[str]:
    """The lines about a result that is not as expected, and how to run it again.

    Args:
        options: the options of this run that a repetition needs too, such as ``--seed 3``.
        width: of the screen, if lines are to be wrapped for one.
        entries: how many wrong entries are shown.
        same_cause: further failures of the same cause, named in a last line.
    """
    lines = [result.message, *result.details]
    lines += gradient_lines(result.checked, lines, width, entries)
    lines += further_lines(result, lines)
    lines = [row for line in lines if line for row in safe(line).split("\n")]
    lines.append(f"again: {escape(again(result, options))}")
    if width < NO_SCREEN:
        lines = [row for line in lines for row in wrap_line(line, width) or [""]]
    if same_cause:
        lines.append(same_cause_line(same_cause, min(width, LONGEST_LINE)))
    return lines


def further_lines(result: Result, lines_above: Sequence[str]) -> list[str]:
    """Further lines about a failure: why it is undecided, its output, whether it is a bug in
    gradcheck.
    """
    lines = [] if result.checked.why in ("", *lines_above) else [result.checked.why]
    printed = result.output.strip("\n")
    if printed.strip():
        lines.append("last output:")
        lines += [f"  {line}" for line in printed.split("\n")[-OUTPUT_LINES_SHOWN:]]
    if result.internal_error:
        lines.append("this is a bug in gradcheck, not in the scenario")
    return lines


def again(result: Result, options: str) -> str:
    """The command that runs only this case; it names the file unless that is bundled.

    `options` are the options that it needs, or the whole command if the case has no file.
    """
    if options.startswith("gradcheck "):
        return options
    words = [*result.cases]
    if not Path(result.path).absolute().is_relative_to(bundled_specs()):
        words.insert(0, shown_path(result.path))
    return " ".join(["gradcheck run", *map(shlex.quote, words), f"{options} -v".lstrip()])


def summary(results: Iterable[Result], seconds: float, not_run: int = 0) -> str:
    """The last line: the number of results per status, the time, and the number of cases without a
    result.
    """
    counts = [f"{count} {status}" for status, count in counts_of(results).items()]
    ending = f"; stopped before the end, {not_run} without a result" if not_run else ""
    return f"{', '.join(counts) or 'no results'} in {seconds:.1f} s{ending}"


def counts_of(results: Iterable[Result]) -> dict[Status, int]:
    """The number of results per status, in the order that all reports use: failures first."""
    counts = Counter(result.status for result in results)
    order = [*Status]
    return dict(sorted(counts.items(), key=lambda item: (item[0].green, order.index(item[0]))))


def by_file(results: Iterable[Result]) -> list[tuple[str, list[Result]]]:
    """The results by the file of their scenario, in their order."""
    groups = groupby(results, key=lambda result: result.path)
    return [(path, list(group)) for path, group in groups]


# --------------------------------------------------------------------------- failures of one cause
LONGEST_LINE = 1_000
"""The most characters of the line that names further failures if no screen limits it: GitHub
accepts 65,536 for a whole page.
"""


class MarkedPlace(NamedTuple):
    """A place in a file that a failure is about, and what is there."""

    file: str
    line: int
    column: int
    text: str


def places_of(result: Result) -> list[MarkedPlace]:
    """The places of a failure: the lines of its causes, otherwise where it raised or crashed; the
    scenario is the last.
    """
    places = []
    for cause in result.checked.diagnosis:
        if line := file_and_line(cause.line):
            places.append(MarkedPlace(*line, cause.column + 1, cause.detail or cause.text))
    if not places and (raised := file_and_line(result.raised_at)):
        places.append(MarkedPlace(*raised, 1, result.message))
    return [*places, MarkedPlace(result.path, result.line, result.column, "the scenario")]


def file_and_line(place: str) -> tuple[str, int] | None:
    """The two parts of ``file:line``; None if a text is not of this form."""
    match = re.fullmatch(r"(.+):([0-9]{1,9})", place)
    return (match[1], int(match[2])) if match else None


def cause_with_line(result: Result) -> Diagnosis | None:
    """The first cause that names a line of a file, if any."""
    return next((cause for cause in result.checked.diagnosis if file_and_line(cause.line)), None)


def by_cause(results: Iterable[Result]) -> list[list[Result]]:
    """The failures among `results`, grouped by cause, in the order of each group's first.

    Failures have the same cause if they have the same diagnosis at the same line of a layer, or the
    same error message from the same file. A failure with neither forms its own group.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        if not result.status.green:
            groups.setdefault(key_of(result), []).append(result)
    return list(groups.values())


def key_of(result: Result) -> tuple[str, ...]:
    """A key that is equal exactly for failures with the same cause."""
    if (cause := cause_with_line(result)) is not None:
        return cause.code, cause.line
    if result.status is Status.ERROR:
        return "", result.path, result.message, *result.details
    return (result.name,)


def same_cause_line(same_cause: Sequence[Result], width: int) -> str:
    """The line ``and 29 more with this cause: id, id, …``, cut between names to `width`."""
    names = ", ".join(one_line(other.name) for other in same_cause)
    text = f"and {len(same_cause)} more with this cause: {names}"
    return textwrap.shorten(text, width, placeholder=" …", break_on_hyphens=False)
