"""Something that was not as a scenario expects, and what a gradient check means for one that says what backward is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gradcheck.codes import CODES
from gradcheck.result import GradientSummary, Status

if TYPE_CHECKING:
    from gradcheck.spec.model import Expect


SEVERITY = (Status.ERROR, Status.FAIL, Status.INCONCLUSIVE, Status.KINK, Status.PASS)
"""What a case with several findings, or several points, is reported as: the first of these among them."""


class Finding(NamedTuple):
    """Something that was not as expected (or, a KINK, worth marking)."""

    status: Status
    message: str


def judge(gradient: GradientSummary, expect: Expect) -> list[Finding]:
    """What the gradient check means for a scenario that says what backward is."""
    verdict = gradient.verdict
    if verdict is Status.INCONCLUSIVE:
        return [Finding(verdict, gradient.why)]
    if expect.gradient == "differs":
        if verdict is not Status.FAIL:
            return [
                Finding(Status.FAIL, "expected a backward that is not the derivative, but it is (gradient: differs)")
            ]
        return differs_otherwise(gradient, expect)
    if verdict is Status.FAIL:
        return [Finding(verdict, gradient.headline())]
    return [Finding(verdict, gradient.why)] if verdict is Status.KINK else []


def differs_otherwise(gradient: GradientSummary, expect: Expect) -> list[Finding]:
    """What is not as `differs` pins it."""
    wanted, found = expect.differs, []
    if wanted is None:
        return []
    codes = [d.code for d in gradient.diagnosis]
    if wanted.code is not None and wanted.code not in codes:
        given = ", ".join(codes) or "no cause that it knows"
        found.append(
            Finding(Status.FAIL, f"expected {wanted.code} ({CODES[wanted.code].title}), but the check names {given}")
        )
    wrong = {name for name, (count, _) in gradient.wrong_counts.items() if count}
    wrong |= {name for d in gradient.diagnosis for name in d.inputs}
    if wanted.inputs and wrong != set(wanted.inputs):
        others = ", ".join(sorted(wrong)) or "none"
        text = f"expected wrong gradients of {', '.join(wanted.inputs)}, but those of {others} are"
        found.append(Finding(Status.FAIL, text))
    return found
