"""What all reports say alike: the lines of one result, safe to print, and which failures are of one cause."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gradcheck.codes import is_cause
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, StepScan, WrongEntry
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import escape, one_line, safe
from gradcheck.support.resources import bundled_specs

ENTRIES_SHOWN = 5
ALL_ENTRIES = 1_000_000
"""Wrong entries that ``-v`` shows: more than a result lists."""
OUTPUT_LINES_SHOWN = 15
LABELS = {"GC120": "kink", "GC125": "also"}
"""Before what is certain and is not a contract: a kink, and the second backward that never ran."""
LEAST_EXCERPT = 20
"""Columns that the line of an excerpt gets on the narrowest screen."""


def place(result: Result) -> str:
    """Where the scenario stands: ``file:line:col``."""
    return f"{shown_path(result.path)}:{result.line}:{result.column}"


def number(value: float) -> str:
    """A derivative's value, to 8 digits."""
    return f"{value + 0.0:.8g}"  # no -0


def marks(gradient: GradientSummary | None) -> list[str]:
    """The marks of a verdict in one pair of brackets, to stand beside the status; empty if it has none."""
    return (
        [f"[{one_line(', '.join(gradient.marks))}]"]
        if gradient is not None and gradient.marks
        else []
    )


def worst_first(entries: Iterable[WrongEntry]) -> list[WrongEntry]:
    """The entries, those that carry most of the error first: a tiny one may be off by twice itself and not matter."""
    return sorted(entries, key=lambda entry: -entry.error)


def gradient_lines(
    gradient: GradientSummary | None,
    said: Sequence[str] = (),
    width: int | None = None,
    shown: int = ENTRIES_SHOWN,
) -> list[str]:
    """What there is to say about a gradient: its wrong entries, `shown` of them, and what the cause is.

    Args:
        said: lines that stand above; a diagnosis that is in one of them is not repeated.
        width: of the screen, if there is one; only the table of entries minds it.
    """
    if gradient is None:
        return []
    lines = entry_table(gradient, width, shown)
    for label, found in told_causes(gradient, said):
        lines += [f"{label}: {found.text}"] if label else []
        lines += excerpt(found, width)
    if shown > ENTRIES_SHOWN and gradient.scan is not None:
        lines += step_lines(gradient.scan)
    return [*lines, *(f"why: {command}" for command in explaining(gradient))]


def told_causes(gradient: GradientSummary, said: Sequence[str]) -> Iterator[tuple[str, Diagnosis]]:
    """Each cause with its label: that of `LABELS`, ``broken`` for a contract, or ``likely``; with nothing where it is
    in one of the lines `said`."""
    for found in gradient.diagnosis:
        if (
            found.code != "GC120" or gradient.verdict is Status.FAIL
        ):  # the headline of a KINK says it
            label = LABELS.get(found.code, "likely" if is_cause(found.code) else "broken")
            yield ("" if any(found.text in line for line in said) else label), found


def explaining(gradient: GradientSummary) -> list[str]:
    """The command that explains what was found; none for a kink, or where nothing has a code."""
    codes = " ".join(dict.fromkeys(found.code for found in gradient.diagnosis))
    return [f"gradcheck explain {codes}"] if codes and gradient.verdict is not Status.KINK else []


def entry_table(
    gradient: GradientSummary, width: int | None = None, shown: int = ENTRIES_SHOWN
) -> list[str]:
    """The worst of a gradient's wrong entries: analytic, numeric with its bar, and the relative error.

    A table, or, where that is wider than `width`, two lines for each.
    """
    if not gradient.wrong:
        return []
    entries = worst_first(gradient.wrong)[:shown]
    rows = [("", "analytic", "numeric ± bar", "rel. error")]
    for entry in entries:
        numeric = f"{number(entry.numeric)} ± {entry.bar:.0e}"
        rows.append(
            (entry.derivative, number(entry.analytic), numeric, f"{entry.relative_error:.1e}")
        )
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    lines = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d}" for a, b, c, d in rows]
    marked = [f"{lines[1]}  ◀ worst: off by {entries[0].error:.2g}", f"{lines[1]}  ◀ worst"]
    fitting = [line for line in marked if width is None or len(line) <= width]
    if fitting:
        lines[1] = fitting[0]
    elif width is not None and max(map(len, lines)) > width:
        lines = [
            part
            for a, b, c, d in rows[1:]
            for part in (f"  {a}", f"    analytic {b}", f"    numeric {c}, rel. error {d}")
        ]
    elements = {(entry.input, entry.index) for entry in entries}
    more = sum(wrong for wrong, _ in gradient.wrong_counts.values()) - len(elements)
    at_least = "" if gradient.exhaustive else "at least "
    return [*lines, *([f"  … and {at_least}{more} more"] if more > 0 else [])]


def step_lines(scan: StepScan) -> list[str]:
    """The differences of an entry, a line for each step, and which one the numerical value was taken from."""
    lines = [
        f"{scan.derivative} by central differences:",
        f"  {'step':<8} {'difference':<15} rounding",
    ]
    for step, difference, rounding in zip(scan.steps, scan.differences, scan.rounding, strict=True):
        chosen = "  ◀ chosen" if step == scan.chosen else ""
        lines.append(f"  {step:<8.1e} {number(difference):<15} ± {rounding:.0e}{chosen}")
    return [*lines, f"  extrapolated from there: {number(scan.value)} ± {scan.bar:.0e}"]


def excerpt(found: Diagnosis, width: int | None = None) -> list[str]:
    """The line of the forward that a cause names, as compilers show one; nothing if it names none."""
    if not found.line or not found.source_line.strip():
        return [f"  {found.line}: {found.detail}"] if found.line else []
    where, above = f"  {shown_line(found)} │ ", list[str]()
    if width is not None and width - len(where) < LEAST_EXCERPT:  # the place has a line of its own
        where, above = "  │ ", [f"  {shown_line(found)}"]
    source, start, end = window(
        found, len(found.source_line) if width is None else width - len(where)
    )
    carets = "^" * max(end - start, 1)
    return [
        *above,
        where + source,
        f"{' ' * (len(where) - 2)}│ {' ' * start}{carets} {found.detail}",
    ]


def shown_line(found: Diagnosis) -> str:
    """``file:line`` of a cause."""
    file, _, line = found.line.rpartition(":")
    return f"{shown_source(file)}:{line}" if file else escape(line)


def window(found: Diagnosis, room: int) -> tuple[str, int, int]:
    """What of the line of a cause fits, from a little before its marked part, and where that part is in it."""
    source, room = found.source_line.strip(), max(room, LEAST_EXCERPT)
    indent = len(found.source_line) - len(found.source_line.lstrip())
    start, end = (min(max(at - indent, 0), len(source)) for at in (found.column, found.end_column))
    if len(source) <= room:
        return source, start, end
    first = max(min(start - 2, len(source) - room), 0)
    shown = source[first : first + room]
    shown = f"…{shown[1:]}" if first else shown
    shown = f"{shown[:-1]}…" if first + room < len(source) else shown
    return shown, start - first, min(end - first, room)


def shown_source(file: str) -> str:
    """A file of the user's code: as other paths if it lies below the current folder or is bundled, else its name."""
    shown = shown_path(file)
    outside = shown.startswith(os.pardir + os.sep) or os.path.isabs(shown)
    return escape(os.path.basename(file)) if outside else shown


def folded(line: str, width: int) -> list[str]:
    """A line cut between words where it is too long, its rest indented by two, or in an excerpt below its text."""
    gutter = re.match(r"([^│]*)│( *)", line)
    rests = [" " * (len(line) - len(line.lstrip(" ")) + 2), ""]
    if gutter is not None:
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
    width: int | None = None,
    entries: int = ENTRIES_SHOWN,
    others: Sequence[Result] = (),
) -> list[str]:
    """What there is to say about a result that is not as expected, line by line, and how to run it again.

    Args:
        options: those of this run that running it again needs too, such as ``--seed 3``.
        width: of the screen, if lines are to be cut for one.
        entries: how many wrong entries are shown.
        others: further failures of the same cause, to be named in a last line.
    """
    said = [result.message, *result.details]
    found = gradient_lines(None if result.status.green else result.gradient, said, width, entries)
    lines = [*said, *found, *further_lines(result, [*said, *found])]
    shown = [part for line in lines if line for part in safe(line).split("\n")]
    shown.append(f"again: {escape(again(result, options))}")
    if width is not None:
        shown = [part for line in shown for part in folded(line, width) or [""]]
    return [*shown, *filter(None, [others_line(others, width)])]


def further_lines(result: Result, said: Sequence[str]) -> list[str]:
    """What else there is to say about a failure: why it cannot be told, what it printed, whose bug it is."""
    why = result.gradient.why if result.gradient is not None and not result.status.green else ""
    lines = [why] if why and why not in said else []
    printed = result.output.strip("\n")
    if printed.strip():
        lines += [
            "the last it printed:",
            *(f"  {line}" for line in printed.split("\n")[-OUTPUT_LINES_SHOWN:]),
        ]
    return [
        *lines,
        *["this is a bug in gradcheck, not in the scenario"] * bool(result.internal_error),
    ]


def again(result: Result, options: str) -> str:
    """The command that runs this case alone. It names the backend in the case, and the file unless it is bundled.

    `options` are those that it needs, or the whole command where there is no file to name.
    """
    if options.startswith("gradcheck "):
        return options
    bundled = Path(result.path).absolute().is_relative_to(bundled_specs())
    words = [*([] if bundled else [shown_path(result.path)]), *result.cases]
    return " ".join(["gradcheck run", *map(shlex.quote, words), *filter(None, [options]), "-v"])


def summary(results: Iterable[Result], seconds: float, not_run: int = 0) -> str:
    """The last line: how many of each status, the failures first, the time, and how many cases have no result."""
    words = (
        ", ".join(f"{count} {status}" for status, count in counts_of(results).items())
        or "no results"
    )
    left = f"; stopped before the end, {not_run} without a result" if not_run else ""
    return f"{words} in {seconds:.1f} s{left}"


def counts_of(results: Iterable[Result]) -> dict[Status, int]:
    """How many there are of each status that there is, the failures first: the order in which all reports tell them."""
    counts = Counter(result.status for result in results)
    return {
        status: counts[status]
        for status in sorted(Status, key=lambda one: one.green)
        if counts[status]
    }


# ------------------------------------------------------------------------------------- failures of one cause
LONGEST_LINE = 1_000
"""Characters of the line that names them where no screen sets its width: GitHub takes 65,536 for all of a page."""


def cause_with_line(result: Result) -> Diagnosis | None:
    """The first cause that names a line of a file, if one does."""
    found = result.gradient.diagnosis if result.gradient is not None else ()
    return next((one for one in found if re.fullmatch(r".+:[0-9]{1,9}", one.line)), None)


def by_cause(results: Iterable[Result]) -> list[list[Result]]:
    """The failures among `results`, those of one cause together, in the order of the first of each.

    One cause is one diagnosis at one line of a layer, or one error in the same words from one file. What has neither
    stands alone.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for one in results:
        if not one.status.green:
            groups.setdefault(key_of(one), []).append(one)
    return list(groups.values())


def key_of(result: Result) -> tuple[str, ...]:
    """What failures of one cause have in common, and no others."""
    if (cause := cause_with_line(result)) is not None:
        return cause.code, cause.line
    if result.status is Status.ERROR:
        return "", result.path, result.message, *result.details
    return (result.name,)


def others_line(others: Sequence[Result], width: int | None = None) -> str:
    """``and 29 more with this cause: id, id, …``, cut between names to `width`; empty if there are none."""
    names = ", ".join(one_line(one.name) for one in others)
    said = f"and {len(others)} more with this cause: {names}"
    return (
        textwrap.shorten(said, width or LONGEST_LINE, placeholder=" …", break_on_hyphens=False)
        if others
        else ""
    )
