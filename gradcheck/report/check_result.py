"""The result of a check from Python: the verdict and its findings, true if it is green."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from gradcheck.report.result_text import gradient_lines, marks
from gradcheck.result import GradientSummary, Status
from gradcheck.support.escape import one_line, safe

if TYPE_CHECKING:
    from rich.panel import Panel


COLORS = {Status.PASS: "#116329", Status.KINK: "#0b6476"}
"""The background of white letters in a notebook; red for other verdicts."""


class CheckResult(GradientSummary):
    """The summary of a gradient check as users hold it.

    Its truth is whether the verdict is green: PASS and KINK are, FAIL and INCONCLUSIVE are not. Its
    ``repr`` is one line, ``str`` and notebooks show the panel of the command line.
    """

    @classmethod
    def of(cls, summary: GradientSummary) -> CheckResult:
        """Return a summary as a `CheckResult`."""
        return cls.model_construct(summary.model_fields_set, **dict(summary))

    def status(self) -> str:
        """The verdict, and its marks in brackets."""
        return " ".join([str(self.verdict), *marks(self)])

    def said(self) -> str:
        """One line: which gradients are wrong, or right, or why it cannot be decided."""
        return self.headline() or f"gradient of {', '.join(self.wrong_counts)} right"

    def lines(self) -> list[str]:
        """The lines of the panel below the verdict."""
        said = self.said()
        return [said] if self.verdict.green else [said, *gradient_lines(self, [said])]

    def __bool__(self) -> bool:
        return self.verdict.green

    def __repr__(self) -> str:
        return one_line(f"{self.status()}: {self.said()}")

    def __str__(self) -> str:
        return safe("\n".join([f"{self.status()}: {self.said()}", *self.lines()[1:]]))

    def _repr_html_(self) -> str:
        """For notebooks, light or dark: only the verdict has colours of its own."""
        color = COLORS.get(self.verdict, "#b3261e")
        status, text = html.escape(self.status()), html.escape(safe("\n".join(self.lines())))
        border = f"border: 1px solid {color}; border-left-width: 6px"
        return (
            f'<div style="{border}; padding: 6px 10px; overflow-x: auto">'
            f'<b style="color: #fff; background: {color}; padding: 1px 6px">{status}</b>'
            f'<pre style="color: inherit; background: none; margin: 6px 0 0">{text}</pre></div>'
        )

    def __rich__(self) -> Panel:
        """For rich's console, and its output in notebooks."""
        from rich.panel import Panel
        from rich.text import Text

        color = "green" if self.verdict.green else "red"
        title = Text(self.status(), f"bold {color}")
        body = Text(safe("\n".join(self.lines())))
        return Panel(body, title=title, title_align="left", border_style=color)

    def __rich_repr__(self) -> None:  # type: ignore[override]
        """None: within lists and dicts rich then takes the `repr`, not pydantic's fields."""
