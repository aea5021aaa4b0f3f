"""What a backend is: a module with Paddle's names, and the few things that differ between its implementations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple, Protocol

Array = Any
Tensor = Any


class Backend(Protocol):
    """An implementation of Paddle's API. Everything else is done through `paddle`, the same way for all."""

    name: str

    @property
    def paddle(self) -> ModuleType:
        """The module that ``import paddle`` gives in a scenario's code."""

    def tensor(self, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """A leaf Tensor of the named dtype, or the array's own, with a copy of the array, NumPy's or the backend's."""

    def grad(
        self,
        outputs: list[Tensor],
        inputs: list[Tensor],
        cotangents: list[Tensor],
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """As ``paddle.grad`` gives them; None for an input that no output depends on."""

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Whether two Tensors share memory; False where the backend cannot tell."""

    def lacks_kernel(self, error: Exception) -> bool:
        """Whether an error says that an operation is not there for a dtype on this device."""

    def array(self, tensor: Tensor) -> Array:
        """The values of a Tensor as an array of the backend: no copy where it needs none."""

    def recorded(
        self,
        call: Callable[[], Sequence[Tensor]],
        inputs: Sequence[Tensor],
        lines: bool,
        move: Callable[[str, Array, int], None] | None = None,
    ) -> tuple[Any, bool] | None:
        """The recording (`gradcheck.witness.graph.Recording`) of a call with the leaves `inputs`, with the user's lines
        if wanted, and whether something was changed in place; None where the backend cannot record.

        `move` changes the output of each operation, given with its name and number, in place.
        """

    def moving(self, move: Callable[[str, Array, int], None]) -> AbstractContextManager[Any]:
        """A block in which `move` changes the output of each operation, recorded or not; of no effect where the backend
        cannot record."""


class Entry(NamedTuple):
    """Where a backend is implemented, what it needs, and how to get that.

    `preload` are modules that a worker imports before it forks the first case of the backend: they cost a case nothing.
    `shared`: all its state is in Python, so that cases that only compute may run in one process.
    `warm_up`: a worker may run it before it forks, which a device forbids.
    """

    implementation: str
    needs: tuple[str, ...]
    extra: str
    preload: tuple[str, ...]
    shared: bool
    warm_up: bool


ENGINE = ("gradcheck.backends.bundled", "pylayer.paddle")

BACKENDS: dict[str, Entry] = {
    "numpy": Entry("gradcheck.backends.bundled:numpy_backend", ("numpy", "pylayer"), "", ENGINE, True, True),
    "cupy": Entry("gradcheck.backends.bundled:cupy_backend", ("cupy", "pylayer"), "cupy", ENGINE, True, False),
    "paddle": Entry(
        "gradcheck.backends.paddle:paddle_backend", ("paddle",), "paddle", ("paddle", *ENGINE), False, False
    ),
}
"""The table of backends, by the name that the command line and specs use."""


@functools.cache  # asked once for every case, and what is installed does not change during a run
def missing(name: str) -> str:
    """Why the backend cannot be used here, in one line; empty if it can. Imports nothing."""
    entry = BACKENDS[name]
    absent = [module for module in entry.needs if find_spec(module) is None]
    return f'not installed: {", ".join(absent)}; pip install "gradcheck[{entry.extra}]"' if absent else ""


def unsupported(name: str) -> str:
    """Why this version has no such backend although what it needs may be installed; empty if it has."""
    return "" if BACKENDS[name].implementation else f"this version does not run scenarios on {name} yet"


def load(name: str) -> Backend:
    """The backend, ready in this process: ``import paddle`` gives it from now on."""
    module, _, attribute = BACKENDS[name].implementation.partition(":")
    make: Callable[[], Backend] = getattr(import_module(module), attribute)
    return make()


def flat_tensors(value: Any, is_tensor: Callable[[Any], bool]) -> list[Tensor]:
    """The Tensors in what a layer returned, in order, at any depth of lists, tuples and dicts."""
    if is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [tensor for item in value for tensor in flat_tensors(item, is_tensor)]
    return []


def package_of(value: Any) -> str:
    """The top-level package that a class or function says it is from; empty if it does not say."""
    return str(getattr(value, "__module__", None) or "").partition(".")[0]
