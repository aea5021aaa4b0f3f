"""Errors for broken contracts (GC137): backward returned values that are not gradients, or a
framework rejects them.
"""

from __future__ import annotations

import re
from contextlib import suppress

from gradcheck.backends.base import Backend
from gradcheck.backends.paddle_api import APPLIED
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
        diagnosis = Diagnosis.of(refusal.code, refusal.text, refusal.inputs)
    else:
        return None
    return GradientSummary(verdict=Status.FAIL, diagnosis=(diagnosis,))
