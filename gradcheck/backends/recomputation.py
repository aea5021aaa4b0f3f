"""Repeated runs of a function on the bundled engine: plain, perturbed, or recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from gradcheck.backends.base import Array, Computed, Cotangents, InputGradients, Recordable
from gradcheck.backends.recording import (
    NOT_THE_USERS,
    Perturbation,
    PerturbingWatch,
    Recording,
    recorded,
)
from pylayer.watch import watched
from pylayer.watch.casts import casts
from pylayer.watch.numpy_recording import Code, recording_numpy


@dataclass(eq=False)
class Half:
    """The forward of a function, or its vjp."""

    compute: Callable[..., Any]
    original: Callable[..., Any] | None = None
    """The user's function, if `compute` belongs to its reference run on the engine."""
    was_watched: bool = False
    """Whether the arrays that it passes to NumPy code are known."""
    makes_casts: bool | None = None
    """Whether casts are left out; None until a plain reference run needs it."""
    refuses_recorded_numpy: bool = False
    """Whether it raises when NumPy code is recorded, as code that calls a C extension may."""


class Recomputation:
    """Runs a function again, perturbed or recorded.

    A perturbation changes the result of every operation on the way. Casts to fewer digits are left
    out, except in `own` runs, which keep the user's precision.

    Args:
        function: on the engine.
        sources: objects from which the user's code can be reached; its NumPy code is recorded.
        original: the user's function, where `function` is its copy on the engine. It runs if
            nothing has to be perturbed and the copy leaves no cast out.
        takes_gradients: whether `function` takes gradients itself.
    """

    def __init__(
        self,
        function: Recordable,
        sources: Sequence[Any],
        original: Computed | None = None,
        takes_gradients: bool = False,
    ) -> None:
        self.function, self.takes_gradients = function, takes_gradients
        self.code = Code(sources, NOT_THE_USERS)
        self.forward, self.vjp = Half(function.forward), Half(function.vjp)
        if original is not None:
            self.forward.original, self.vjp.original = original.forward, original.vjp
        self.uses_numpy = False
        """Whether the function was observed to pass values to NumPy code."""
        self.leaks: list[str] = []
        """Source positions at which the last watched run passed values to unrecorded code."""
        self.left_out = set[str]()
        """The dtypes of the casts that were left out so far."""
        self.left_out_last = set[str]()
        """Casts left out in the last run."""

    def outputs(
        self, inputs: Sequence[Array], perturbation: Perturbation | None = None
    ) -> list[Array]:
        """Implements `Problem.forward`."""
        return self.run(self.forward, perturbation, False, inputs)  # type: ignore[no-any-return]

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Cotangents,
        perturbation: Perturbation | None = None,
        own: bool = False,
    ) -> InputGradients:
        """Implements `Problem.vjp`."""
        return self.run(self.vjp, perturbation, own, inputs, cotangents)  # type: ignore[no-any-return]

    def recording(
        self,
        inputs: Sequence[Array],
        perturbation: Perturbation | None = None,
        own: bool = False,
        lines: bool = False,
    ) -> Recording | None:
        """The call, operation by operation, with the lines of the user's code if requested.

        None if the function has no call that can be recorded.
        """
        recordable = self.function.recordable_call(inputs)
        if recordable is None:
            return None
        leaves, call = recordable
        code = self.code if self.uses_numpy else None
        options = call, leaves, lines, perturbation, code, self.takes_gradients
        found: Recording = self.without_casts(own, recorded, *options)[0]
        knew = self.uses_numpy
        self.uses_numpy |= found.uses_numpy or bool(found.leaks)
        if found.leaks and not knew:
            return self.recording(inputs, perturbation, own, lines)
        # The forward has now been seen; but one that raises where NumPy code is recorded has not.
        self.forward.was_watched |= found.error is None and not own
        return found

    # ----------------------------------------------------------------- forward or vjp
    def run(self, half: Half, perturbation: Perturbation | None, own: bool, *given: Any) -> Any:
        """The values that the forward or the vjp returns."""
        if perturbation is None:
            if half.original is not None and (own or not self.leaves_casts_out(half, *given)):
                return half.original(*given)
            if half.was_watched and (own or not (self.left_out and self.uses_numpy)):
                return self.without_casts(own, half.compute, *given)
        half.was_watched = True
        if self.uses_numpy:
            return self.watch(half, perturbation, own, True, *given)
        found = self.watch(half, perturbation, own, False, *given)
        if not self.leaks:
            return found
        # The first run that hands values to NumPy code: what is done there is seen in one more.
        self.uses_numpy = True
        in_numpy = self.watch(half, perturbation, own, True, *given)
        is_changed = perturbation is not None or (self.left_out and not own)
        return in_numpy if is_changed else found

    def leaves_casts_out(self, half: Half, *given: Any) -> bool:
        """Whether the forward or the vjp of a reference run leaves casts out; one run determines
        it.
        """
        if half.makes_casts is None:
            self.watch(half, None, False, self.uses_numpy, *given)
            half.makes_casts = bool(self.left_out_last)
        return half.makes_casts

    def watch(
        self,
        half: Half,
        perturbation: Perturbation | None,
        own: bool,
        in_numpy: bool,
        *given: Any,
    ) -> Any:
        """One watched run, NumPy code recorded if `in_numpy`.

        The plain run is kept if recording raises an error that a plain run does not.
        """
        in_numpy = in_numpy and not half.refuses_recorded_numpy
        self.leaks.clear()
        numpy = recording_numpy(self.code, False) if in_numpy else nullcontext()
        try:
            with watched(PerturbingWatch(perturbation, self.leaks)), numpy:
                return self.without_casts(own, half.compute, *given)
        except Exception:
            if not in_numpy:
                raise
        found = self.watch(half, perturbation, own, False, *given)
        half.refuses_recorded_numpy = True
        return found

    def without_casts(self, own: bool, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function with casts to fewer digits left out and noted; if `own`, the casts are
        made.
        """
        noted = self.left_out_last = set[str]()
        before = casts.left_out
        casts.left_out = before if own else noted
        try:
            return function(*given)
        finally:
            casts.left_out = before
            self.left_out |= noted
