"""The input of a gradient check: a function on arrays, and its claimed vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from gradcheck.backends.base import Array, Cotangents, InputGradients
from gradcheck.backends.recording import Recording
from gradcheck.checking.precision import Change
from gradcheck.result import Diagnosis, Fix, Index, element


@dataclass(frozen=True)
class Observation:
    """Side effects of one forward and backward, by the names of inputs and cotangents."""

    changed_by_forward: tuple[str, ...] = ()
    """Inputs, and arguments of inner layers, that forward changed and did not return."""
    changed_in_place: tuple[str, ...] = ()
    """Inputs without a gradient that forward changed by in-place operations, which is allowed."""
    changed_by_backward: tuple[str, ...] = ()
    aliased: tuple[str, ...] = ()
    """Inputs whose memory a gradient shares."""
    outputs: Sequence[Array] | None = None
    gradients: Cotangents | None = None
    """Results of forward and backward, in the inputs' dtypes, if they were kept."""
    interrupted: bool = False
    """Whether forward ran at other values between the two."""


class Recomputation(Protocol):
    """Runs the function again, without casts to narrower dtypes, and with a `change` of every
    intermediate result; with `keep_casts`, in the user's precision, casts included.
    """

    @property
    def omitted_casts(self) -> AbstractSet[str]:
        """The names of the dtypes of casts that were left out so far."""

    @property
    def last_omitted_casts(self) -> AbstractSet[str]:
        """Casts that the last run left out."""

    @property
    def leaks(self) -> Sequence[str]:
        """Source positions that passed values to unrecorded code when `outputs` or `gradients` last
        ran with a change.
        """

    def outputs(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        """Implements `Problem.forward`."""

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Cotangents,
        change: Change | None = None,
        keep_casts: bool = False,
    ) -> InputGradients:
        """Implements `Problem.vjp`."""

    def recording(
        self,
        inputs: Sequence[Array],
        change: Change | None = None,
        keep_casts: bool = False,
        lines: bool = False,
    ) -> Recording | None:
        """The call, operation by operation, with the lines of the user's code if requested; None if
        nothing records.
        """


FixSearch = Callable[[], Fix | None]


def no_fix() -> Fix | None:
    """Return no fix, for checks that do not search for one."""
    return None


@dataclass(frozen=True)
class Problem:
    """The input of a gradient check, independent of any framework.

    ``forward(inputs)`` takes one array per entry of `inputs` (same shapes; any floating dtype, so
    that differences can run in float64) and returns the outputs as a flat list of arrays. It must
    not record a graph.

    ``vjp(inputs, cotangents)`` takes the inputs and one cotangent per output (None: that output
    takes no part) and returns one gradient per input: an array of the input's shape, or None for an
    undefined gradient, which counts as zero. Exceptions of the layer pass through both calls
    unchanged.

    `differentiable` says which inputs a gradient is claimed for; `output_names` and `names` are
    used in reports.
    """

    names: Sequence[str]
    inputs: Sequence[Array]
    differentiable: Sequence[bool]
    output_names: Sequence[str]
    forward: Callable[[Sequence[Array]], list[Array]]
    vjp: Callable[[Sequence[Array], Cotangents], InputGradients]
    observe: Callable[[Cotangents], Observation] = lambda cotangents: Observation()
    """Runs forward and backward once, with these cotangents, and reports side effects."""
    vjp_alone: Callable[[int, Sequence[Array], Cotangents], Array | None] | None = None
    """The gradient of one input, by its number, where no other input needs one; None where layers
    do not learn which inputs need gradients.
    """
    outputs: Sequence[Array] | None = None
    """Forward's outputs for `inputs`, if they are known."""
    reruns: Recomputation | None = None
    """None if intermediate results cannot be perturbed, because the code is not observed."""
    order: int = 1
    """2 if the function is itself a gradient, and its vjp a double backward."""
    causes: Callable[[], Sequence[Diagnosis]] | None = None
    """Searches for causes of a wrong gradient that are specific to this kind of function. If it
    finds any, no others are searched for.
    """
    find_fix: FixSearch = no_fix
    """Searches for a single edit of the user's backward that makes it right. If there is one, no
    far-fetched causes are searched for.
    """
    place_of: Callable[[BaseException], dict[str, Any]] = lambda error: {}
    """The fields of a `Diagnosis` that say on which line of the user's an error was raised."""
    located: Callable[[str, Index], tuple[str, Index]] = lambda name, index: (name, index)
    """The name and index by which reports name an element of an input or output."""
    nondet: float = 0.0
    """How far results of two identical runs may differ, as a share of the largest entry of each
    array. It widens the error bounds by as much.
    """
    ranked: frozenset[str] = frozenset()
    """The inputs and outputs whose first axis is that of the ranks of a world."""

    @property
    def runs(self) -> Recomputation:
        """Runs the function again; unperturbed if its operations are not observed."""
        return self.reruns or UnseenRuns(self)

    def element(self, name: str, index: Index) -> str:
        """The name in reports of an element of an input or output."""
        return element(*self.located(name, index))

    def axis(self, name: str, number: int) -> str:
        """The layer's number for an axis of an input or output."""
        ranked = name in self.ranked
        return "the ranks" if ranked and not number else f"axis {number - ranked}"


@dataclass(frozen=True)
class UnseenRuns:
    """The `Recomputation` of a function whose operations are not observed: it runs unperturbed."""

    problem: Problem
    omitted_casts = last_omitted_casts = frozenset[str]()
    leaks = ("the function itself",)

    def outputs(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        """`Problem.forward`; no intermediate result is changed."""
        return self.problem.forward(inputs)

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Cotangents,
        change: Change | None = None,
        keep_casts: bool = False,
    ) -> InputGradients:
        """`Problem.vjp`; no intermediate result is changed."""
        return self.problem.vjp(inputs, cotangents)

    def recording(
        self,
        inputs: Sequence[Array],
        change: Change | None = None,
        keep_casts: bool = False,
        lines: bool = False,
    ) -> None:
        """None, as nothing records."""
