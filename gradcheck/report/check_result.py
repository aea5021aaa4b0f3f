"""The result of `gradcheck.check`: the verdict with its details."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradcheck.report.result_text import gradient_lines, marks
from gradcheck.result import Diagnosis, Fix, GradientSummary, Status, StepScan, WrongEntry
from gradcheck.support.escape import one_line, safe

if TYPE_CHECKING:
    from rich.panel import Panel


COLORS = {Status.PASS: "#116329", Status.KINK: "#0b6476"}
"""The background behind the verdict, in white, in a notebook; red for other verdicts."""


@dataclass(frozen=True, repr=False)
class CheckResult:
    """The result of a gradient check.

    It is true if the verdict is PASS or KINK. Its ``repr`` is one line, ``str`` and notebooks show
    the panel of the command line.
    """

    verdict: Status
    """PASS, FAIL, KINK or INCONCLUSIVE."""
    wrong: tuple[WrongEntry, ...]
    """Wrong entries of the Jacobian: 20 of each input at most, or all with ``effort="full"``.
    `wrong_counts` counts all in any case.
    """
    diagnosis: tuple[Diagnosis, ...]
    """Broken contracts first, then the likely causes of wrong numbers."""
    fix: Fix | None
    """The edit that makes backward right, if one was found for a FAIL."""
    why: str
    """Why the verdict is INCONCLUSIVE or KINK, or which expectation of the gradient is not met."""
    where: str
    """The point or dtype, among several, at which this was found; empty on a PASS."""
    wrong_counts: Mapping[str, tuple[int, int]]
    """The numbers of wrong elements and of all elements, by input; without inputs for which they
    are not known.
    """
    exhaustive: bool
    """Whether these counts are exact; if not, they are lower bounds."""
    patterns: tuple[str, ...]
    """Whole slices that are wrong, such as ``all of x[:, 3]``."""
    scan: StepScan | None
    """Differences of the worst wrong entry at steps of all sizes, where they were taken."""
    marks: tuple[str, ...]
    """Marks on how the verdict was reached, such as ``by the tape``."""
    certified: bool
    """Whether every entry of the Jacobian was compared with a numerical value."""
    worst_error: float
    """The largest error divided by its bound: at most 1 on a PASS."""
    seed: int
    """Seed of the directions and cotangents."""
    evaluations: int
    """The number of evaluations of the forward."""

    @classmethod
    def of(cls, record: GradientSummary) -> CheckResult:
        """Return the result from the record of a check."""
        return cls(**vars(record))

    def summary(self) -> str:
        """Return one line: which gradients are wrong or right, or why the check is undecided."""
        return self._record.headline() or f"gradient of {', '.join(self.wrong_counts)} right"

    @property
    def _record(self) -> GradientSummary:
        return GradientSummary.model_construct(**vars(self))

    @property
    def _title(self) -> str:
        return " ".join([str(self.verdict), *marks(self._record)])

    @property
    def _details(self) -> list[str]:
        return [] if self else gradient_lines(self._record, [self.summary()])

    def __bool__(self) -> bool:
        return self.verdict.green

    def __repr__(self) -> str:
        return one_line(f"{self._title}: {self.summary()}")

    def __str__(self) -> str:
        return safe("\n".join([f"{self._title}: {self.summary()}", *self._details]))

    def _repr_html_(self) -> str:
        """HTML for notebooks; as they may be light or dark, the text has their colour."""
        color = COLORS.get(self.verdict, "#b3261e")
        title = html.escape(self._title)
        body = html.escape(safe("\n".join([self.summary(), *self._details])))
        border = f"border: 1px solid {color}; border-left-width: 6px"
        return (
            f'<div style="{border}; padding: 6px 10px; overflow-x: auto">'
            f'<b style="color: #fff; background: {color}; padding: 1px 6px">{title}</b>'
            f'<pre style="color: inherit; background: none; margin: 6px 0 0">{body}</pre></div>'
        )

    def __rich__(self) -> Panel:
        """The rendering for rich's console, and its output in notebooks."""
        from rich.panel import Panel
        from rich.text import Text

        color = "green" if self else "red"
        title = Text(self._title, f"bold {color}")
        body = Text(safe("\n".join([self.summary(), *self._details])))
        return Panel(body, title=title, title_align="left", border_style=color)
