"""The protocol of a backend: a module with Paddle's names, and what differs beside it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from pylayer.watch.layers import LayerObserver

Array = Any
"""An array of the backend at hand (NumPy, CuPy); its own module computes with it."""
Tensor = Any
Tensors = list[Tensor]
Cotangents = Sequence[Array | None]
"""One per output, None for an output that takes no part."""
InputGradients = list[Array | None]
"""One per input, None where there is none."""

Spot = tuple[CodeType, int]
"""Where code stands: a code object, and the offset of an instruction in it (a frame's ``f_lasti``).
"""


class WorldRanks(Protocol):
    """The ranks of a world. What a rank raises comes through, the first of them."""

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of each rank's own object gives for its arguments."""

    def apart(self, function: Callable[[], Any]) -> Any:
        """What a function gives that belongs to no rank: no code of the user's stands behind what
        it computes."""

    def close(self) -> None:
        """End what was started for them: nothing is asked of them any more."""


class Computed(Protocol):
    """A function on arrays and its vjp; see `gradcheck.checking.problem.Problem`."""

    def forward(self, arrays: Sequence[Array], /) -> list[Array]:
        """The outputs."""

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents, /) -> InputGradients:
        """The gradients of the inputs."""


RecordableCall = tuple[list[Tensor], Callable[[], list[Tensor]]]
"""The leaves of a call that can be recorded, and that call."""


class Recordable(Computed, Protocol):
    """One whose call can be recorded as well."""

    def recordable_call(self, arrays: Sequence[Array], /) -> RecordableCall | None:
        """The call at some arrays; None if there is none."""


class Backend(Protocol):
    """An implementation of Paddle's API; everything else is done through `paddle`.

    Implementations derive from it; what has a body here is that of a release, which says nothing of
    what it computes.
    """

    name: str
    records: bool = False
    """Whether it can say what it computes, and compute it in another precision."""

    paddle: ModuleType
    """The module that ``import paddle`` gives in a scenario's code."""

    def tensor(self, array: Array, /, dtype: str | None, *, stop_gradient: bool) -> Tensor:
        """A leaf Tensor of the named dtype, or the array's own, with a copy of the array, NumPy's
        or the backend's."""

    def grad(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        held: Sequence[Tensor],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """As ``paddle.grad`` gives them for `inputs`; None where no output depends on one.

        `held` are the leaves that need a gradient and were not made for this, be they among the
        inputs or not; their ``grad`` stays as it is.
        """

    def share(self, leaf: Tensor, other: Tensor) -> None:
        """Have a leaf stand for the values of another Tensor, in that one's memory and dtype."""

    def reached(self, call: Callable[[], Any]) -> tuple[Any, Tensors]:
        """What a call returns, and the leaves that need a gradient and that it computes with, if
        known."""
        return call(), []

    def recomputation(
        self,
        function: Recordable,
        sources: Sequence[Any],
        original: Computed | None = None,
        takes_gradients: bool = False,
    ) -> Any:
        """The function computed again, perturbed or recorded; None where the backend cannot.

        See `gradcheck.backends.recomputation.Recomputation`.
        """
        return None

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Whether two Tensors share memory; False where the backend cannot tell."""

    ranks_are_processes: bool = False
    """Whether each rank of a world is a process of its own."""

    def observing(self, observer: LayerObserver) -> AbstractContextManager[None]:
        """A block in which `observer` learns of the layers that are applied, and of those whose
        backward runs."""

    def lacks(self, error: BaseException) -> str:
        """The name of Paddle's that the backend does not have, if that is what an error was raised
        for; else empty."""
        return ""

    def array(self, tensor: Tensor, /) -> Array:
        """The values of a Tensor as an array of the backend: no copy where it needs none."""

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        """A leaf Tensor in the memory of an array, where the backend can share it; else with a
        copy."""
        return self.tensor(array, None, stop_gradient=stop_gradient)

    def ranks(
        self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]
    ) -> WorldRanks:
        """The ranks of a world; `work`, given a rank's number, makes the object that it runs.

        Args:
            degrees: ranks along the axes of fleet's topology; none to leave it alone.
            same_random: whether all ranks draw the same random numbers.
        """


class BackendRow(NamedTuple):
    """The class of a backend with its arguments; what it needs, and how to get that.

    `package` is what pip installs for it; empty where gradcheck itself needs it. `distributions`
    are the packages that may bring it: their version is the backend's. `preload` are modules that a
    server imports before it forks the first case of the backend: they cost a case nothing.
    `warm_up`: a server may run it before it forks, which a device forbids.
    """

    implementation: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...]
    package: str
    distributions: tuple[str, ...]
    preload: tuple[str, ...]
    warm_up: bool


ENGINE = ("gradcheck.backends.bundled", "pylayer.paddle")

BACKENDS: dict[str, BackendRow] = {
    "numpy": BackendRow(
        "gradcheck.backends.bundled:BundledBackend", ("numpy", "cpu"), ("numpy", "pylayer"), "",
        ("numpy",), ENGINE, True,
    ),
    "cupy": BackendRow(
        "gradcheck.backends.bundled:BundledBackend", ("cupy", "gpu"), ("cupy", "pylayer"),
        "cupy-cuda12x", ("cupy", "cupy-cuda12x", "cupy-cuda13x"), ENGINE, False,
    ),
    "paddle": BackendRow(
        "gradcheck.backends.paddle:PaddleBackend", (), ("paddle",), "paddlepaddle",
        ("paddlepaddle", "paddlepaddle-gpu"), ("paddle", *ENGINE), False,
    ),
}  # fmt: skip
"""The table of backends, by the name that the command line and specs use.

Where it has a version, as ``paddle@3.0.0``, it is a release in an environment of its own, see
`backends.environments`.
"""


def kind_of(name: str) -> str:
    """The row of the table that a backend belongs to: ``paddle`` for ``paddle@3.0.0``."""
    return name.partition("@")[0]


def version_of(name: str) -> str:
    """The version of a backend: the one in its name, or else that of what is installed here; empty
    if none is."""
    return name.partition("@")[2] or installed_version(*BACKENDS[name].distributions)


@functools.cache
def installed_version(*distributions: str) -> str:
    """The version of the first of some distributions that is installed; empty if none is."""
    # Imported here, as it takes as long as everything else that this module loads.
    from importlib.metadata import PackageNotFoundError, version

    for distribution in distributions:
        with suppress(PackageNotFoundError):
            return version(distribution)
    return ""


@functools.cache  # asked once for every case, and what is installed does not change during a run
def missing(name: str) -> str:
    """Why the backend cannot be used by this interpreter, in one line; empty if it can. Imports
    nothing."""
    entry = BACKENDS[kind_of(name)]
    absent = [module for module in entry.needs if find_spec(module) is None]
    return f"not installed: {', '.join(absent)}; pip install {entry.package}" if absent else ""


def load_backend(name: str) -> Backend:
    """The backend, ready in this process: ``import paddle`` gives it from now on.

    Raises:
        RuntimeError: it is CuPy, which finds no GPU.
    """
    row = BACKENDS[kind_of(name)]
    module, _, attribute = row.implementation.partition(":")
    make: Callable[..., Backend] = getattr(import_module(module), attribute)
    return make(*row.arguments)


def flat_tensors(value: Any, is_tensor: Callable[[Any], bool]) -> list[Tensor]:
    """The Tensors in what a layer returned, in order, at any depth of lists, tuples and dicts."""
    if is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [tensor for item in value for tensor in flat_tensors(item, is_tensor)]
    return []


def is_differentiable(array: Array) -> bool:
    """Whether an array holds real floating-point or complex numbers; NumPy's kind V is bfloat16."""
    return array.dtype.kind in "fcV"


def package_of(value: Any) -> str:
    """The top-level package that a class or function says it is from; empty if it does not say."""
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def without_our_paths() -> dict[str, str]:
    """The variables of this process, without those that would show another interpreter the packages
    of this one."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME")
    }
