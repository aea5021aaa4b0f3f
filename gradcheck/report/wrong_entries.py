"""The table of wrong entries in a report: how many are shown, in which order, in which columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradcheck.result import GradientSummary, WrongEntry
from gradcheck.support.display_paths import align_columns

ENTRIES_SHOWN = 5
ALL_ENTRIES = 1_000_000
"""The number of wrong entries that ``-v`` shows: more than a result lists."""
COLUMN_TITLES = ("", "analytic", "numeric ± bound", "rel. error")


def wrong_entry_lines(gradient: GradientSummary, width: int, shown: int) -> list[str]:
    """The `shown` worst wrong entries, and the number of further ones.

    A table, or three lines for each entry if the table is wider than `width`.
    """
    entries = worst_first(gradient.wrong)[:shown]
    if not entries:
        return []
    rows = [cells_of(entry) for entry in entries]
    lines = table_lines(rows, entries[0].error, width) or separate_lines(rows)
    elements = {(entry.input, entry.index) for entry in entries}
    more = sum(wrong for wrong, _ in gradient.wrong_counts.values()) - len(elements)
    if more > 0:
        lines.append(f"  … and {'' if gradient.exhaustive else 'at least '}{more} more")
    return lines


def worst_first(entries: Iterable[WrongEntry]) -> list[WrongEntry]:
    """The entries, largest absolute errors first: a tiny entry may be off by twice its size."""
    return sorted(entries, key=lambda entry: -entry.error)


def number(value: float, digits: int = 8) -> str:
    """A derivative's value."""
    return f"{value + 0.0:.{digits}g}"  # no -0


def told_apart(entry: WrongEntry) -> tuple[str, str]:
    """The analytic and the numeric value, with all digits of a float64 if the usual ones agree."""
    analytic, numeric = number(entry.analytic), number(entry.numeric)
    if analytic == numeric:
        return number(entry.analytic, 17), number(entry.numeric, 17)
    return analytic, numeric


def cells_of(entry: WrongEntry) -> tuple[str, ...]:
    """The columns of an entry, in the order of `COLUMN_TITLES`."""
    analytic, numeric = told_apart(entry)
    bounded = f"{numeric} ± {entry.error_bound:.0e}"
    return entry.derivative, analytic, bounded, f"{entry.relative_error:.1e}"


def table_lines(rows: Sequence[tuple[str, ...]], worst: float, width: int) -> list[str]:
    """A line for each row, the first with its error `worst`; empty if a line is wider than
    `width`.
    """
    lines = [f"  {line}" for line in align_columns([COLUMN_TITLES, *rows])]
    if max(map(len, lines)) > width:
        return []
    marks = (f"  ◀ worst: off by {worst:.2g}", "  ◀ worst")
    lines[1] += next((mark for mark in marks if len(lines[1] + mark) <= width), "")
    return lines


def separate_lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Three lines for each row."""
    form = "  {}\n    analytic {}\n    numeric {}, rel. error {}"
    return "\n".join(form.format(*row) for row in rows).split("\n")
