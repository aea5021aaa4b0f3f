"""Errors for broken contracts (GC137): backward returned values that are not gradients, or a
framework rejects them.
"""

from __future__ import annotations

import dis
import inspect
import re
from contextlib import suppress
from types import CodeType
from typing import Any

from gradcheck.backends.paddle_api import APPLIED
from gradcheck.case.layer_calls import LayerCalls, written_backward
from gradcheck.case.user_code import is_users
from gradcheck.causes.words import SourcePlace, source_place
from gradcheck.result import Diagnosis, GradientSummary, Status

OF_WORLD = re.compile(r"applied at [^:]*world_call\.py:\d+$")
"""The note on the layer in which gradcheck runs the ranks of a world."""


class BrokenContract(Exception):  # noqa: N818 - it is what was found, not an error of the checker
    """A contract is broken, so that no gradient can be checked."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text)
        self.diagnosis = diagnosis


class NoGradient(BrokenContract):
    """Backward returned something that is not a gradient of its inputs."""

    def __init__(self, text: str, *inputs: str) -> None:
        super().__init__(Diagnosis.of("GC137", f"backward returns {text}", inputs))


def drop_library_place(error: BaseException, generated_call: str = "") -> None:
    """Remove a source position that is not the user's from the notes of an error: in gradcheck, or
    that of a call that gradcheck wrote.
    """
    with suppress(Exception):  # its notes may be anything
        notes = [note.removesuffix(f", applied at {generated_call}") for note in error.__notes__]
        notes = [note for note in notes if not OF_WORLD.search(note)]
        error.__notes__[:] = [re.sub(f", {APPLIED}$", "", note) for note in notes]


def refusal_summary(
    calls: LayerCalls, error: BaseException, generated_call: str
) -> GradientSummary | None:
    """A FAIL if an error of some calls means that backward returned values that are not gradients;
    otherwise None. The position of a call that gradcheck wrote is left out.
    """
    refusal = calls.backend.refusal(error)
    if isinstance(error, BrokenContract):
        diagnosis = error.diagnosis
    elif refusal is not None:
        place = dict[str, Any]()
        if (statement := return_of_backward(calls, refusal.layer)) is not None:
            place = {"detail": "returned here", **statement.fields}
        text = refusal.text.replace(f" (applied at {generated_call})", "")
        diagnosis = Diagnosis(code=refusal.code, text=text, inputs=refusal.inputs, **place)
    else:
        return None
    return GradientSummary(verdict=Status.FAIL, diagnosis=(diagnosis,))


def return_of_backward(calls: LayerCalls, name: str) -> SourcePlace | None:
    """The return statement of the user's backward of a layer that ran; None if it returns on
    several lines, or several layers have this name.
    """
    places = dict[int, SourcePlace]()
    for layer in calls.backwards:
        if isinstance(layer, type) and layer.__name__ == name:
            backward = inspect.unwrap(written_backward(layer))
            code: CodeType | None = getattr(backward, "__code__", None)
            if code is None or not is_users(code.co_filename):
                return None
            for step in dis.get_instructions(code):
                if step.opname in ("RETURN_VALUE", "RETURN_CONST"):
                    place = source_place((code, step.offset))
                    places[place.line] = place
    place, *others = [*places.values(), SourcePlace()]
    is_statement = place.text.startswith("return")  # the end of a function returns None
    return place if is_statement and len(others) == 1 else None
