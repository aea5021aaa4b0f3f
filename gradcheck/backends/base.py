"""What a backend is: a module with Paddle's names, and the few things that differ between its implementations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any, NamedTuple, Protocol, runtime_checkable

UserCode = Any
"""The user's code as a backend knows it (see `Backend.code`); None for none."""
Array = Any
"""An array of the backend at hand (NumPy, CuPy); its own module computes with it."""
Tensor = Any

Mover = Callable[[str, Array, int], None]
"""Changes the fresh output of an operation in place, given its name, the output, and that one's number on the tape, or
-1 where nothing is recorded."""

Spot = tuple[CodeType, int]
"""Where code stands: a code object, and the offset of an instruction in it (a frame's ``f_lasti``)."""


# --------------------------------------------------------------------------- a recorded call
@runtime_checkable
class Step(Protocol):
    """One operation of a recording."""

    name: str
    values: Sequence[Array]
    """Its outputs."""
    first: int
    """The number of the first of them."""
    edges: Sequence[int]
    """The numbers of its inputs, -1 for a constant."""
    spot: Spot | None

    def pull(self, cotangents: Sequence[Array | None]) -> Iterable[tuple[int, int, Array]]:
        """Per input that is no constant: its position, its number, and its cotangent, in double precision."""

    def given(self, cotangents: Sequence[Array | None]) -> Any:
        """The cotangents of its outputs as its rules take them: one, or a list without gaps."""

    def operands(self) -> dict[str, Any]:
        """What its rules read, by the name of the argument; ``out`` is the output."""

    def replaced(self, position: int, cotangents: Sequence[Array | None], values: Mapping[str, Array]) -> Array:
        """The cotangent of one input if its rule read `values`, by name, in place of those of the call."""

    def again(self, cotangent: Array) -> Array | None:
        """The operation itself on a cotangent in place of its first input; None where that is not possible."""


class Decision(Protocol):
    """Something chosen by the values: a comparison, the truth of a value, a sort, a cast to an integer."""

    name: str
    arguments: Sequence[str]
    inputs: Sequence[Any]
    """What it read, arrays and numbers, by the names in `arguments`."""
    edges: Sequence[int]
    at: int
    """How many values there were before it."""
    spot: Spot | None


class Recording(Protocol):
    """What a backend gives for a call. Values are numbered: the inputs first, then the outputs of each operation."""

    inputs: int
    arrays: Sequence[Array]
    steps: Sequence[Step]
    decisions: Sequence[Decision]
    layers: Sequence[type]
    """The PyLayers whose forward was recorded in place of their backward."""
    outputs: Sequence[Array]
    ends: Sequence[int]
    """The numbers of the outputs, -1 where one does not depend on the inputs."""
    leaks: Sequence[str]
    """What took values out of the graph, which may have found their way into an output."""
    error: Exception | None
    """What the call raised while it was recorded, if it did."""


class WorldRanks(Protocol):
    """The ranks of a world. What a rank raises comes through, the first of them."""

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of each rank's own object gives for its arguments."""

    def apart(self, function: Callable[[], Any]) -> Any:
        """What a function gives that belongs to no rank: no code of the user's stands behind what it computes."""

    def close(self) -> None:
        """End them: nothing is asked of them any more."""


# --------------------------------------------------------------------------- a backend
class Backend(Protocol):
    """An implementation of Paddle's API. Everything else is done through `paddle`, the same way for all.

    Implementations derive from it; what has a body here is that of a release, which says nothing of what it computes.
    """

    name: str
    records: bool = False
    """Whether it can say what it computes, and compute it in another precision."""

    paddle: ModuleType
    """The module that ``import paddle`` gives in a scenario's code."""

    def tensor(self, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """A leaf Tensor of the named dtype, or the array's own, with a copy of the array, NumPy's or the backend's."""

    def grad(
        self,
        outputs: list[Tensor],
        inputs: list[Tensor],
        cotangents: list[Tensor],
        held: Sequence[Tensor] = (),
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """As ``paddle.grad`` gives them for `inputs`, leaves made for this; None where no output depends on one.

        `held` are the other leaves that need a gradient; their ``grad`` stays as it is.
        """

    def as_releases(self) -> AbstractContextManager[None]:
        """A block in which backward may return what every release takes, and the documents do not; `grad` is one."""
        return nullcontext()

    def static_gradients(
        self, outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor]
    ) -> list[Tensor | None]:
        """In a static program: as ``paddle.static.gradients`` gives them."""
        return self.paddle.static.gradients(outputs, inputs, cotangents)  # type: ignore[no-any-return]

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Whether two Tensors share memory; False where the backend cannot tell."""

    def lacks_kernel(self, error: Exception) -> bool:
        """Whether an error says that an operation is not there for a dtype on this device."""
        return False

    def lacks(self, error: BaseException) -> str:
        """The name of Paddle's that the backend does not have, if that is what an error was raised for; else empty."""
        return ""

    def array(self, tensor: Tensor, /) -> Array:
        """The values of a Tensor as an array of the backend: no copy where it needs none."""

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        """A leaf Tensor in the memory of an array, where the backend can share it; else with a copy."""
        return self.tensor(array, None, stop_gradient)

    def stacked(self, arrays: Sequence[Array]) -> Array:
        """Arrays of one shape along a new first axis."""

    def ranks(self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]) -> WorldRanks:
        """The ranks of a world; `work`, called on each with its number, makes the object whose methods it runs.

        Args:
            degrees: ranks along the axes of fleet's topology; none to leave it alone.
            same_random: whether all ranks draw the same random numbers.
        """

    def recording_all(self) -> bool:
        """Whether all that is computed now becomes one graph."""
        return False

    def watched(self) -> bool:
        """Whether something may change what is computed now."""
        return False

    def for_ranks(self, tensor: Tensor, size: int) -> list[Tensor]:
        """A Tensor that all ranks have, one for each, as one operation of the graph. Only where it can record."""
        raise RuntimeError("nothing is recorded here")

    def unwaited(self) -> list[str]:
        """On a rank: the calls of its that nobody has waited for, in words; they are forgotten."""

    def between_ranks(self, error: BaseException) -> str:
        """The code of the contract between ranks that an error says was broken; empty if it says another thing."""

    def code(self, functions: Sequence[Any]) -> UserCode:
        """The code that can be reached from some functions, in which NumPy may be recorded, or seen to change."""
        return None

    def recorded(
        self,
        call: Callable[[], Sequence[Tensor]],
        inputs: Sequence[Tensor],
        lines: bool,
        move: Mover | None = None,
        numpy: UserCode = None,
        backwards: bool = False,
    ) -> tuple[Recording, bool] | None:
        """The recording of a call with the leaves `inputs`, with the user's lines
        if wanted, and whether something was changed in place; None where the backend cannot record.

        `move` changes the output of each operation, given with its name and number, in place. NumPy code that can be
        reached from `numpy` is recorded as well. With `backwards` the call takes gradients, of which everything is
        recorded.
        """
        return None

    def moving(self, change: Mover, leaks: list[str]) -> AbstractContextManager[Any]:
        """A block in which `change` is told of the output of each operation, recorded or not, and `leaks` of what hands
        values to code that nothing sees. Only where the backend can record."""
        return nullcontext()

    def moving_numpy(self, code: UserCode) -> AbstractContextManager[Any]:
        """A block within that, in which NumPy code that can be reached from `code` is seen as well."""
        return nullcontext()

    def casts_left_out(self, noted: set[str]) -> AbstractContextManager[None]:
        """A block in which casts to floating dtypes of fewer digits are left out, and `noted` told which. Only where
        the backend can record."""
        return nullcontext()


class BackendRow(NamedTuple):
    """The class that a backend is, and what that is called with; what it needs, and how to get that.

    `distributions` are the packages that may bring it: their version is the backend's.
    `preload` are modules that a worker imports before it forks the first case of the backend: they cost a case nothing.
    `warm_up`: a worker may run it before it forks, which a device forbids.
    """

    implementation: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...]
    extra: str
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
        "gradcheck.backends.bundled:BundledBackend", ("cupy", "gpu"), ("cupy", "pylayer"), "cupy",
        ("cupy", "cupy-cuda12x", "cupy-cuda13x"), ENGINE, False,
    ),
    "paddle": BackendRow(
        "gradcheck.backends.paddle:PaddleBackend", (), ("paddle",), "paddle",
        ("paddlepaddle", "paddlepaddle-gpu"), ("paddle", *ENGINE), False,
    ),
}  # fmt: skip
"""The table of backends, by the name that the command line and specs use.

Where it has a version, as ``paddle@3.0.0``, it is a release in an environment of its own, see `backends.environments`.
"""


def kind_of(name: str) -> str:
    """The row of the table that a backend belongs to: ``paddle`` for ``paddle@3.0.0``."""
    return name.partition("@")[0]


def version_of(name: str) -> str:
    """The version of a backend: the one in its name, or else that of what is installed here; empty if none is."""
    return name.partition("@")[2] or installed_version(*BACKENDS[name].distributions)


@functools.cache
def installed_version(*distributions: str) -> str:
    """The version of the first of some distributions that is installed; empty if none is."""
    from importlib.metadata import PackageNotFoundError, version  # here: it takes as long as all else that this loads

    for distribution in distributions:
        with suppress(PackageNotFoundError):
            return version(distribution)
    return ""


@functools.cache  # asked once for every case, and what is installed does not change during a run
def missing(name: str) -> str:
    """Why the backend cannot be used by this interpreter, in one line; empty if it can. Imports nothing."""
    entry = BACKENDS[kind_of(name)]
    absent = [module for module in entry.needs if find_spec(module) is None]
    return f'not installed: {", ".join(absent)}; pip install "gradcheck[{entry.extra}]"' if absent else ""


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
