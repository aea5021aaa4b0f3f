"""The step plot: how far the differences of an entry lie from the value that was taken, against their step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from gradcheck.report.result_text import number
from gradcheck.result import StepScan, absolute_error

FRAME = {"width": 480, "height": 260, "left": 64, "right": 468, "top": 12, "bottom": 220}
"""The size of the plot in pixels, and where its axes lie; the template draws by it."""
MOST_TICKS = 6
LEAST, LARGEST = -300, 308
"""Decades of an axis: what lies beyond is shown at its end."""


class Mark(NamedTuple):
    """A tick or a point: where it is, and what it says."""

    at: float
    text: str
    y: float = 0.0


class Plot(NamedTuple):
    """The plot in pixels."""

    entry: str
    points: list[Mark]
    rounding: str
    """The line of how far rounding alone may put each difference off: its points, as SVG has them."""
    columns: list[Mark]
    rows: list[Mark]
    chosen: float
    bar: float
    claim: float
    said: str


class LogAxis:
    """A logarithmic axis: the decades of `values` laid out from pixel `start` to pixel `end`."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        exponents = [decade(value) for value in values]
        self.low = min(math.floor(min(exponents)), LARGEST - 1)
        self.high = max(math.ceil(max(exponents)), self.low + 1)
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        """The pixel of a value; what lies beyond an end is shown at that end."""
        share = (decade(value) - self.low) / (self.high - self.low)
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    def ticks(self) -> list[Mark]:
        """The marks of the axis at whole decades, as many as there is room for."""
        every = math.ceil((self.high - self.low) / MOST_TICKS)
        return [Mark(self.at(10.0**k), f"1e{k}") for k in range(self.low, self.high + 1, every)]


def decade(value: float) -> float:
    """The logarithm of a value; what is no number counts as infinite."""
    return min(max(math.log10(value), LEAST), LARGEST) if 0 < value < math.inf else LEAST if value <= 0 else LARGEST


def plot(scan: StepScan) -> Plot:
    """The plot of a scan, for the template to draw."""
    rows = [
        (step, absolute_error(difference, scan.value), rounding)
        for step, difference, rounding in zip(scan.steps, scan.differences, scan.rounding, strict=True)
    ]
    rows = [row for row in rows if all(map(math.isfinite, row))]
    off = absolute_error(scan.analytic, scan.value)
    shown = [error for _, error, _ in rows if error > 0] + [one for one in (scan.bar, off) if 0 < one < math.inf]
    x = LogAxis(scan.steps, FRAME["left"], FRAME["right"])
    y = LogAxis(shown or [1.0], FRAME["bottom"], FRAME["top"])
    return Plot(
        scan.derivative,
        [Mark(x.at(h), f"step {h:.1e}: off by {error:.1e}", y.at(error)) for h, error, _ in rows],
        " ".join(f"{x.at(h)},{y.at(rounding)}" for h, _, rounding in rows),
        x.ticks(),
        y.ticks(),
        x.at(scan.chosen),
        y.at(scan.bar),
        y.at(off),
        f"taken: {number(scan.value)} ± {scan.bar:.0e}, from the step {scan.chosen:.1e}; "
        f"backward: {number(scan.analytic)}, off by {off:.1e}",
    )
