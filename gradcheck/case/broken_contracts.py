"""Errors for broken contracts (GC137): backward returned values that are not gradients, or a
framework rejects them.
"""

from __future__ import annotations

import dis
import inspect
import re
from contextlib import suppress
from typing import Any

from gradcheck.backends.base import Backend, Spot
from gradcheck.backends.paddle_api import APPLIED
from gradcheck.case.layer_calls import subclasses, written_backward
from gradcheck.causes.words import source_place
from gradcheck.result import Diagnosis, GradientSummary, Status


class BrokenContract(Exception):  # noqa: N818 - it is what was found, not an error of the checker
    """A contract is broken, so that no gradient can be checked."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text)
        self.diagnosis = diagnosis


class NoGradient(BrokenContract):
    """Backward returned something that is not a gradient of its inputs."""

    def __init__(self, text: str, *inputs: str) -> None:
        super().__init__(Diagnosis.of("GC137", f"backward returns {text}", inputs))


def drop_library_place(error: BaseException) -> None:
    """Remove a source position that is not the user's from the notes of an error."""
    with suppress(Exception):  # its notes may be anything
        error.__notes__[:] = [re.sub(f", {APPLIED}$", "", note) for note in error.__notes__]


def refusal_summary(backend: Backend, error: BaseException) -> GradientSummary | None:
    """A FAIL if an error means that backward returned values that are not gradients; otherwise
    None.
    """
    refusal = backend.refusal(error)
    if isinstance(error, BrokenContract):
        diagnosis = error.diagnosis
    elif refusal is not None:
        place = dict[str, Any]()
        if (spot := return_of_backward(backend, refusal.layer)) is not None:
            place = {"detail": "returned here", **source_place(spot).fields}
        diagnosis = Diagnosis(code=refusal.code, text=refusal.text, inputs=refusal.inputs, **place)
    else:
        return None
    return GradientSummary(verdict=Status.FAIL, diagnosis=(diagnosis,))


def return_of_backward(backend: Backend, name: str) -> Spot | None:
    """The instruction by which the hand-written backward of a layer returns; None if there are
    several lines of such instructions, or several layers of this name.
    """
    spots = dict[int, Spot]()
    for layer in subclasses(backend.layer_type) if name else ():
        if layer.__name__ == name:
            code = getattr(inspect.unwrap(written_backward(layer)), "__code__", None)
            for step in dis.get_instructions(code) if code else ():
                if step.opname in ("RETURN_VALUE", "RETURN_CONST"):
                    spot = code, step.offset
                    spots[source_place(spot).line] = spot
    return next(iter(spots.values())) if len(spots) == 1 else None
