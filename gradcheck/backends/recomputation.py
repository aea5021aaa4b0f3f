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
    record_call,
)
from pylayer.watch import observe
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
    out, except in runs that keep them, as the user's do.

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
        self.omitted_casts = set[str]()
        """The dtypes of the casts that were left out so far."""
        self.last_omitted_casts = set[str]()
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
        keep_casts: bool = False,
    ) -> InputGradients:
        """Implements `Problem.vjp`."""
        return self.run(self.vjp, perturbation, keep_casts, inputs, cotangents)  # type: ignore[no-any-return]

    def recording(
        self,
        inputs: Sequence[Array],
        perturbation: Perturbation | None = None,
        keep_casts: bool = False,
        lines: bool = False,
    ) -> Recording:
        """The call, operation by operation, with the lines of the user's code if requested."""
        leaves, call = self.function.recordable_call(inputs)
        code = self.code if self.uses_numpy else None
        options = call, leaves, lines, perturbation, code, self.takes_gradients
        recording: Recording = self.without_casts(keep_casts, record_call, *options)
        knew = self.uses_numpy
        self.uses_numpy |= recording.uses_numpy or bool(recording.leaks)
        if recording.leaks and not knew:
            return self.recording(inputs, perturbation, keep_casts, lines)
        # The forward has now been watched, unless it raised because its NumPy code was recorded.
        self.forward.was_watched |= recording.error is None and not keep_casts
        return recording

    # ----------------------------------------------------------------- forward or vjp
    def run(
        self, half: Half, perturbation: Perturbation | None, keep_casts: bool, *arguments: Any
    ) -> Any:
        """The values that the forward or the vjp returns."""
        if perturbation is None:
            if half.original is not None and (
                keep_casts or not self.leaves_casts_out(half, *arguments)
            ):
                return half.original(*arguments)
            if half.was_watched and (keep_casts or not (self.omitted_casts and self.uses_numpy)):
                return self.without_casts(keep_casts, half.compute, *arguments)
        half.was_watched = True
        if self.uses_numpy:
            return self.watch(half, perturbation, keep_casts, True, *arguments)
        result = self.watch(half, perturbation, keep_casts, False, *arguments)
        if not self.leaks:
            return result
        # This is the first run that passes values to NumPy code; one more run records that code.
        self.uses_numpy = True
        in_numpy = self.watch(half, perturbation, keep_casts, True, *arguments)
        is_changed = perturbation is not None or (self.omitted_casts and not keep_casts)
        return in_numpy if is_changed else result

    def leaves_casts_out(self, half: Half, *arguments: Any) -> bool:
        """Whether the forward or the vjp of a reference run leaves casts out; one run determines
        it.
        """
        if half.makes_casts is None:
            self.watch(half, None, False, self.uses_numpy, *arguments)
            half.makes_casts = bool(self.last_omitted_casts)
        return half.makes_casts

    def watch(
        self,
        half: Half,
        perturbation: Perturbation | None,
        keep_casts: bool,
        in_numpy: bool,
        *arguments: Any,
    ) -> Any:
        """One watched run, NumPy code recorded if `in_numpy`.

        The plain run is kept if recording raises an error that a plain run does not.
        """
        in_numpy = in_numpy and not half.refuses_recorded_numpy
        self.leaks.clear()
        numpy = recording_numpy(self.code, False) if in_numpy else nullcontext()
        try:
            with observe(PerturbingWatch(perturbation, self.leaks)), numpy:
                return self.without_casts(keep_casts, half.compute, *arguments)
        except Exception:
            if not in_numpy:
                raise
        result = self.watch(half, perturbation, keep_casts, False, *arguments)
        half.refuses_recorded_numpy = True
        return result

    def without_casts(self, keep_casts: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with casts to fewer digits omitted and noted, or made if `keep_casts`."""
        noted: set[str] = set()
        self.last_omitted_casts = noted
        before = casts.left_out
        casts.left_out = before if keep_casts else noted
        try:
            return function(*arguments)
        finally:
            casts.left_out = before
            self.omitted_casts |= noted
