"""A differentiable function as the checker sees it: arrays in, arrays out, and its claimed vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Recording
from gradcheck.checking.precision import Change
from gradcheck.result import Diagnosis, Fix, Index, element


@dataclass(frozen=True)
class Observation:
    """Side effects of one forward and backward, by the names of inputs and cotangents."""

    changed_by_forward: tuple[str, ...] = ()
    """Inputs, and arguments of layers on the way, that forward changed and did not return."""
    changed_in_place: tuple[str, ...] = ()
    """Inputs without a gradient that forward changed by in-place operations: allowed, but good to
    know."""
    changed_by_backward: tuple[str, ...] = ()
    aliased: tuple[str, ...] = ()
    """Inputs whose memory a gradient shares."""
    outputs: Sequence[Array] | None = None
    gradients: Sequence[Array | None] | None = None
    """Results of forward and backward, in the inputs' dtypes, if they were kept."""
    interrupted: bool = False
    """Whether forward ran at other values between the two."""


class Recomputation(Protocol):
    """The function computed again, without casts to narrower dtypes, and with a `change` of every
    result on the way; with `own`, as the user runs it, casts included.
    """

    @property
    def left_out(self) -> AbstractSet[str]:
        """The names of the dtypes of casts that were left out so far."""

    @property
    def left_out_last(self) -> AbstractSet[str]:
        """Casts that the last run left out."""

    @property
    def leaks(self) -> Sequence[str]:
        """Places that passed values to unrecorded code when `outputs` or `gradients` last ran with
        a change."""

    def outputs(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        """Implements `Problem.forward`."""

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Sequence[Array | None],
        change: Change | None = None,
        own: bool = False,
    ) -> list[Array | None]:
        """Implements `Problem.vjp`."""

    def recording(
        self,
        inputs: Sequence[Array],
        change: Change | None = None,
        own: bool = False,
        lines: bool = False,
    ) -> Recording | None:
        """The call, operation by operation, with the lines of the user's code if wanted; None where
        nothing records."""


FixSearch = Callable[[], Fix | None]


def no_fix() -> Fix | None:
    """Return no fix, for checks that do not search for one."""
    return None


@dataclass(frozen=True)
class Problem:
    """Input of a gradient check, whatever computes the function.

    ``forward(inputs)`` takes one array per entry of `inputs` (same shapes; any floating dtype, so
    that the numeric side can run in float64) and returns the outputs as a flat list of arrays. It
    must not record a graph.

    ``vjp(inputs, cotangents)`` takes the inputs and one cotangent per output (None: that output
    takes no part) and returns one gradient per input: an array of the input's shape, or None for an
    undefined gradient, which counts as zero. Whatever the layer raises comes through both calls
    unchanged.

    `differentiable` says which inputs a gradient is claimed for; `output_names` and `names` are
    used in reports."""

    names: Sequence[str]
    inputs: Sequence[Array]
    differentiable: Sequence[bool]
    output_names: Sequence[str]
    forward: Callable[[Sequence[Array]], list[Array]]
    vjp: Callable[[Sequence[Array], Sequence[Array | None]], list[Array | None]]
    observe: Callable[[Sequence[Array | None]], Observation] = lambda cotangents: Observation()
    """Runs forward and backward once, with these cotangents, and reports what they change."""
    vjp_alone: Callable[[int, Sequence[Array], Sequence[Array | None]], Array | None] | None = None
    """The gradient of one input, by its number, where no other input needs one; None where layers
    do not learn which inputs need gradients."""
    outputs: Sequence[Array] | None = None
    """Forward's outputs for `inputs`, if they are known."""
    reruns: Recomputation | None = None
    """None where results cannot be changed on the way, as the code cannot be observed."""
    order: int = 1
    """2 if the function is itself a gradient, and its vjp a double backward."""
    causes: Callable[[], Sequence[Diagnosis]] | None = None
    """Looks for the causes of a wrong gradient that this kind of function invites. Where it finds
    any, no others are sought."""
    find_fix: FixSearch = no_fix
    """Looks for the one edit of the user's backward that makes it right. Where there is one, no
    far-fetched causes are sought."""
    place_of: Callable[[BaseException], dict[str, Any]] = lambda error: {}
    """The fields of a `Diagnosis` that say on which line of the user's an error was raised."""
    located: Callable[[str, Index], tuple[str, Index]] = lambda name, index: (name, index)
    """The name and index by which reports name an element of an input or output."""
    nondet: float = 0.0
    """How far results of two equal runs may be apart, as a share of the largest entry of each
    array."""
    ranked: frozenset[str] = frozenset()
    """The inputs and outputs along whose first axis the ranks of a world are."""

    @property
    def runs(self) -> Recomputation:
        """The function computed again, unchanged if its operations are not observed."""
        return self.reruns or UnseenRuns(self)

    def element(self, name: str, index: Index) -> str:
        """An element of an input or output, as reports name it."""
        return element(*self.located(name, index))

    def axis(self, name: str, number: int) -> str:
        """An axis of an input or output, as the layer names it."""
        ranked = name in self.ranked
        return "the ranks" if ranked and not number else f"axis {number - ranked}"


@dataclass(frozen=True)
class UnseenRuns:
    """The `Recomputation` of a function that nothing sees into: it is computed as it is."""

    problem: Problem
    left_out = left_out_last = frozenset[str]()
    leaks = ("the function itself",)

    def outputs(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        """`Problem.forward`; no result on the way is changed."""
        return self.problem.forward(inputs)

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Sequence[Array | None],
        change: Change | None = None,
        own: bool = False,
    ) -> list[Array | None]:
        """`Problem.vjp`; no result on the way is changed."""
        return self.problem.vjp(inputs, cotangents)

    def recording(
        self,
        inputs: Sequence[Array],
        change: Change | None = None,
        own: bool = False,
        lines: bool = False,
    ) -> None:
        """None, as nothing records."""
