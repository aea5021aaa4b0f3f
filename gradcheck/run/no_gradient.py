"""What backward returns and is no gradient of its inputs: of another number, shape or dtype (GC137)."""

from __future__ import annotations

import re

from gradcheck.backends.base import Array
from gradcheck.checker.outputs import is_differentiable
from gradcheck.result import Diagnosis, GradientSummary, Status

REFUSED = re.compile(r"^(?:\(InvalidArgument\) )?GradNodePyLayer_(\w+?)(?: : |'s backward function,? )(.*)", re.DOTALL)
"""How both the engine and Paddle begin to say that they do not take what a PyLayer's backward returned."""
TAIL = re.compile(
    r"\s*(?:\[Hint: .*|\(at /.*|, please check your PyLayer code.*|\(applied at [^)]*arguments\.py:\d+\))", re.DOTALL
)
"""What Paddle adds that is about its own source, and the place of a call that is this package's own."""
INPUT = re.compile(r"\(input `(\w+)`\)")


class NoGradient(Exception):  # noqa: N818 - it is what was found, not an error of the checker
    """Backward returned something that is no gradient of its inputs."""

    def __init__(self, text: str, *inputs: str) -> None:
        super().__init__(text)
        self.diagnosis = Diagnosis.of("GC137", f"backward returns {text}", inputs)


def misfit(gradient: Array, x: Array) -> str:
    """In which way an array cannot be the gradient of `x`; empty if it can be."""
    if gradient.shape != x.shape:
        return f"a gradient of shape {list(gradient.shape)} for an input of shape {list(x.shape)}"
    if not is_differentiable(gradient) or (gradient.dtype.kind == "c" and x.dtype.kind != "c"):
        return f"a gradient of dtype {gradient.dtype} for an input of {x.dtype}"
    return ""


def refused(error: BaseException) -> GradientSummary | None:
    """The verdict that an error stands for, if it says that what backward returned are no gradients."""
    if isinstance(error, NoGradient):
        return GradientSummary(verdict=Status.FAIL, diagnosis=(error.diagnosis,))
    found = REFUSED.match(str(error)) if isinstance(error, ValueError) else None
    if found is None:
        return None
    text = f"backward of {found[1]}: {TAIL.sub('', found[2])}"
    return GradientSummary(verdict=Status.FAIL, diagnosis=(Diagnosis.of("GC137", text, tuple(INPUT.findall(text))),))
