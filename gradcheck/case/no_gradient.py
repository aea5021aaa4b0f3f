"""What cannot be checked: calls that claim no gradient, and what backward returns and is none (GC137)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gradcheck.backends.base import Array, is_differentiable
from gradcheck.result import Diagnosis, GradientSummary, Status
from gradcheck.support.foreign import text_of

REFUSED = re.compile(r"^(?:\(InvalidArgument\) )?GradNodePyLayer_(\S+?)(?: : |'s backward function,? )(.*)", re.DOTALL)
"""How both the engine and Paddle begin to say that they do not take what a PyLayer's backward returned."""
TAIL = re.compile(
    r"\s*(?:\[Hint: .*|\(at /.*|, please check your PyLayer code.*|\(applied at [^)]*arguments\.py:\d+\))", re.DOTALL
)
"""What Paddle adds that is about its own source, and the place of a call that is this package's own."""
INPUT = re.compile(r"\(input `(\w+)`\)")


class Broken(Exception):  # noqa: N818 - it is what was found, not an error of the checker
    """A contract is broken, so that there is no gradient to check."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text)
        self.diagnosis = diagnosis


class NoGradient(Broken):
    """Backward returned something that is no gradient of its inputs."""

    def __init__(self, text: str, *inputs: str) -> None:
        super().__init__(Diagnosis.of("GC137", f"backward returns {text}", inputs))


def nothing_claimed(returned: Any, outputs: Sequence[Array], claimed: Sequence[bool], inputs: Sequence[Array]) -> str:
    """Why a call leaves nothing to check; empty if an element of an output claims a gradient of one of an input."""
    if not outputs:
        kinds = sorted({type(v).__name__ for v in returned}) if isinstance(returned, (list, tuple)) else []
        of = f" of {' and '.join(kinds)}" if kinds else ""
        what = "None" if returned is None else f"a {type(returned).__name__}{of}"
        return f"the call returned {what}, and no Tensor"
    if not any(claimed):
        return "no output has a gradient: stop_gradient is True for all of them"
    kept = [a for a, claim in zip(outputs, claimed, strict=True) if claim]
    if not any(is_differentiable(a) for a in kept):
        return f"no output has a derivative: they are of dtype {', '.join(sorted({str(a.dtype) for a in kept}))}"
    if not any(a.size for a in kept if is_differentiable(a)):
        return f"no output has an element: they are of shape {', '.join(str(list(a.shape)) for a in kept)}"
    if not any(x.size for x in inputs):
        return "no input that needs a gradient has an element"
    return ""


def misfit(gradient: Array, x: Array) -> str:
    """In which way an array cannot be the gradient of `x`; empty if it can be."""
    if gradient.shape != x.shape:
        return f"a gradient of shape {list(gradient.shape)} for an input of shape {list(x.shape)}"
    if not is_differentiable(gradient) or (gradient.dtype.kind == "c" and x.dtype.kind != "c"):
        return f"a gradient of dtype {gradient.dtype} for an input of {x.dtype}"
    return ""


def refused(error: BaseException) -> GradientSummary | None:
    """The verdict that an error stands for, if it says that what backward returned are no gradients."""
    if isinstance(error, Broken):
        return GradientSummary(verdict=Status.FAIL, diagnosis=(error.diagnosis,))
    found = REFUSED.match(text_of(error)) if isinstance(error, ValueError) else None
    if found is None:
        return None
    text = f"backward of {found[1]}: {TAIL.sub('', found[2])}"
    return GradientSummary(verdict=Status.FAIL, diagnosis=(Diagnosis.of("GC137", text, tuple(INPUT.findall(text))),))
