"""Broken contracts as errors: values that are not gradients, and what Paddle raises then."""

from __future__ import annotations

import re
from contextlib import suppress

from gradcheck.result import Diagnosis, GradientSummary, Status
from gradcheck.support.foreign import text_of

REFUSED = re.compile(
    r"^(?:\(InvalidArgument\) )?GradNodePyLayer_(\S+?)(?: : |'s backward function,? )(.*)",
    re.DOTALL,
)
"""How both the engine and Paddle begin to say that they do not take what a PyLayer's backward
returned."""
APPLIED = r"applied at (?:[^):]*(?:arguments|of_arrays)\.py|[^):]*[/\\][\w.]+:[A-Za-z_][\w.]*):\d+"
"""The place of a call that is this package's own, or of a scenario that ``gradcheck check`` makes
up."""
TAIL = re.compile(
    rf"\s*(?:\[Hint: .*|\(at /.*|, please check your PyLayer code.*|\({APPLIED}\))",
    re.DOTALL,
)
"""What Paddle adds that is about its own source, and a place that is not the user's."""
INPUT = re.compile(r"\(input `(\w+)`\)")


class Broken(Exception):  # noqa: N818 - it is what was found, not an error of the checker
    """A contract is broken, so that there is no gradient to check."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text)
        self.diagnosis = diagnosis


class NoGradient(Broken):
    """Backward returned something that is not a gradient of its inputs."""

    def __init__(self, text: str, *inputs: str) -> None:
        super().__init__(Diagnosis.of("GC137", f"backward returns {text}", inputs))


def leave_out_own_place(error: BaseException) -> None:
    """Take a place that is not the user's out of the notes of an error."""
    with suppress(Exception):  # its notes may be anything
        error.__notes__[:] = [re.sub(f", {APPLIED}$", "", note) for note in error.__notes__]


def refused(error: BaseException) -> GradientSummary | None:
    """FAIL for an error that says that backward returned no gradients; None for any other."""
    match = REFUSED.match(text_of(error)) if isinstance(error, ValueError) else None
    if isinstance(error, Broken):
        diagnosis = error.diagnosis
    elif match is not None:
        text = f"backward of {match[1]}: {TAIL.sub('', match[2])}"
        diagnosis = Diagnosis.of("GC137", text, tuple(INPUT.findall(text)))
    else:
        return None
    return GradientSummary(verdict=Status.FAIL, diagnosis=(diagnosis,))
