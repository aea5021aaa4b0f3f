"""Plots of the HTML report: wrong entries of a Jacobian, and the error of an entry by differences
against the step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

from gradcheck.report.wrong_entries import number, told_apart, worst_first
from gradcheck.result import GradientSummary, Index, StepScan, WrongEntry, absolute_error, element

MOST_CELLS = 40
"""The most rows and columns of a map: more would be too small to see."""
CELL = 14
"""Pixels of a cell."""
LETTER = 7
"""The most pixels that a letter of a label takes."""


class HeatMapCell(NamedTuple):
    """An entry of a map, with its column and row from 0."""

    x: int
    y: int
    shade: float
    """The darkness: 0.15 if the error is just above its bound, 1 if it is a billion times that or
    not a number; 0 if the entry is not among the wrong ones.
    """
    right: bool
    title: str


class HeatMap(NamedTuple):
    """The Jacobian of one output with respect to one input, with the indices along its sides."""

    input: str
    output: str
    columns: list[str]
    rows: list[str]
    cells: list[HeatMapCell]

    @property
    def left(self) -> int:
        """Pixels that the labels of the rows take."""
        return max(map(len, self.rows)) * LETTER + LETTER

    @property
    def top(self) -> int:
        """Pixels that the vertical labels of the columns take."""
        return max(map(len, self.columns)) * LETTER + LETTER


def heat_maps(gradient: GradientSummary) -> list[HeatMap]:
    """A map for each pair of input and output with more than one listed wrong entry."""
    by_pair: dict[tuple[str, str], list[WrongEntry]] = {}
    for entry in worst_first(gradient.wrong):
        by_pair.setdefault((entry.input, entry.output), []).append(entry)
    return [
        heat_map(gradient, *pair, entries) for pair, entries in by_pair.items() if len(entries) > 1
    ]


def heat_map(
    gradient: GradientSummary, input: str, output: str, entries: list[WrongEntry]
) -> HeatMap:
    """The wrong entries of one output and one input, on a grid up to the last of them."""
    wrong, total = gradient.wrong_counts.get(input, (0, 0))
    listed = {entry.index for entry in gradient.wrong if entry.input == input}
    all_listed = gradient.exhaustive and len(listed) == wrong
    columns = side({entry.index for entry in entries}, total)
    rows = side({entry.output_index for entry in entries}, 0)
    by_place = {(entry.index, entry.output_index): entry for entry in reversed(entries)}
    cells = []
    for (x, column), (y, row) in itertools.product(enumerate(columns), enumerate(rows)):
        entry, is_right = by_place.get((column, row)), all_listed and column not in listed
        words = "right" if is_right else "not among the listed wrong entries"
        if entry is not None:
            analytic, numeric = told_apart(entry)
            words = f"analytic {analytic}, numeric {numeric} ± {entry.error_bound:.0e}"
        title = f"d {element(output, row)} / d {element(input, column)}: {words}"
        cells.append(HeatMapCell(x, y, shade(entry), is_right, title))
    return HeatMap(input, output, labels(columns), labels(rows), cells)


def labels(indices: list[Index]) -> list[str]:
    """The labels along a side."""
    return [",".join(map(str, index)) for index in indices]


def side(indices: set[Index], total: int) -> list[Index]:
    """The indices along a side: all up to the largest listed one if there is room, otherwise only
    the listed ones.

    `total` is the number of elements if they are in one row.
    """
    sizes = [max(coordinates) + 1 for coordinates in zip(*indices, strict=False)]
    if len(sizes) == 1:
        sizes = [max(*sizes, total)]
    if math.prod(sizes) <= MOST_CELLS:
        indices = indices.union(itertools.product(*map(range, sizes)))
    return sorted(indices)[:MOST_CELLS]


def shade(entry: WrongEntry | None) -> float:
    """The darkness of an entry, by the number of decades between its error and its bound."""
    if entry is None:
        return 0.0
    if not 0 < entry.error_bound < math.inf or not 0 < entry.error < math.inf:
        return 1.0
    decades = math.log10(entry.error) - math.log10(entry.error_bound)
    return min(1.0, 0.15 + 0.85 * max(0.0, decades) / 9)


# --------------------------------------------------------------------------- the step plot
FRAME = {"width": 480, "height": 260, "left": 64, "right": 468, "top": 12, "bottom": 220}
"""The size of the plot in pixels, and the positions of its axes, for the template."""
MOST_TICKS = 6
LEAST, LARGEST = -300, 308
"""The most decades of an axis; values beyond are shown at its end."""


class Mark(NamedTuple):
    """A tick or a point: its position and its label."""

    at: float
    text: str
    y: float = 0.0


class Plot(NamedTuple):
    """The plot in pixels."""

    entry: str
    points: list[Mark]
    rounding: str
    """The line of the rounding error of each difference: its points in SVG notation."""
    columns: list[Mark]
    rows: list[Mark]
    chosen: float
    error_bound: float
    backward: float
    caption: str


class LogAxis:
    """A logarithmic axis: the decades of `values` laid out from pixel `start` to pixel `end`."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        exponents = [decade(value) for value in values]
        self.low = min(math.floor(min(exponents)), LARGEST - 1)
        self.high = max(math.ceil(max(exponents)), self.low + 1)
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        """The pixel of a value; values beyond an end are shown at that end."""
        share = (decade(value) - self.low) / (self.high - self.low)
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    def ticks(self) -> list[Mark]:
        """The marks of the axis at whole decades, as many as there is room for."""
        every = math.ceil((self.high - self.low) / MOST_TICKS)
        return [Mark(self.at(10.0**k), f"1e{k}") for k in range(self.low, self.high + 1, every)]


def decade(value: float) -> float:
    """The logarithm of a value; NaN counts as infinite."""
    if value <= 0:
        return LEAST
    return min(max(math.log10(value), LEAST), LARGEST) if value < math.inf else LARGEST


def plot(scan: StepScan) -> Plot:
    """The plot of a scan, for the template to draw."""
    errors = [absolute_error(difference, scan.value) for difference in scan.differences]
    rows = zip(scan.steps, errors, scan.rounding, strict=True)
    finite = [row for row in rows if all(map(math.isfinite, row))]
    backward_error = absolute_error(scan.analytic, scan.value)
    errors = [*(error for _, error, _ in finite), scan.error_bound, backward_error]
    shown = [error for error in errors if error > 0]
    x = LogAxis(scan.steps, FRAME["left"], FRAME["right"])
    y = LogAxis([e for e in shown if e < math.inf] or [1.0], FRAME["bottom"], FRAME["top"])
    return Plot(
        scan.derivative,
        [Mark(x.at(h), f"step {h:.1e}: off by {error:.1e}", y.at(error)) for h, error, _ in finite],
        " ".join(f"{x.at(h)},{y.at(rounding)}" for h, _, rounding in finite),
        x.ticks(),
        y.ticks(),
        x.at(scan.chosen),
        y.at(scan.error_bound),
        y.at(backward_error),
        f"taken: {number(scan.value)} ± {scan.error_bound:.0e}, from the step {scan.chosen:.1e}; "
        f"backward: {number(scan.analytic)}, off by {backward_error:.1e}",
    )
