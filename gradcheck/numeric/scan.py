"""The samples of a line, at steps that are powers of 4."""

from __future__ import annotations

from collections.abc import Sequence

from gradcheck.numeric.line import Line, Sample

EPS = 2.0**-52
RATIO = 4.0
"""Of one step to the next: a power of two, so that steps are exact, and coarse enough for 16 decades in 28 steps."""
SMALLEST, USUAL_LARGEST, LARGEST = -17, -1, 13
"""Steps are RATIO ** k, relative to the scale of the inputs. x + h·d is exact in float64 down to -17; up to 1/4 the
function is seen at the scale of its inputs; larger steps are for what does not stand out of its noise there
(cos at 1e-6)."""


class Scan:
    """The samples of a line at all steps taken so far."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.samples: dict[int, tuple[Sample, Sample]] = {}

    def extend(self, steps: Sequence[int]) -> None:
        """Take the samples ahead and behind at these steps."""
        for k in steps:
            if k not in self.samples:
                h = RATIO**k
                self.samples[k] = self.line.at(h), self.line.at(-h)
