"""The interface of a backend to a framework, and the table of all backends."""

from __future__ import annotations

import functools
import inspect
import random
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib.util import find_spec
from pkgutil import resolve_name
from types import BuiltinFunctionType, CodeType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gradcheck.spec import containers
from gradcheck.support.entry_points import entry_points_of

if TYPE_CHECKING:
    from pylayer.watch import LayerObserver

Array = Any
"""An array of the current backend's array module (NumPy, CuPy)."""
Tensor = Any
Tensors = list[Tensor]
Cotangents = Sequence[Array | None]
"""One cotangent per output; None for an unused output."""
InputGradients = list[Array | None]
"""One gradient per input; None for an input without one."""

Spot = tuple[CodeType, int]
"""A place in code: a code object, and the offset of an instruction in it (a frame's ``f_lasti``).
"""


class WorldRanks(Protocol):
    """The ranks of a world. The first exception of a rank is raised."""

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of each rank's object with that rank's arguments; return the results."""

    def call_outside(self, function: Callable[[], Any]) -> Any:
        """Call a function outside of all ranks; it runs no user code."""

    def close(self) -> None:
        """End the processes that were started for the ranks."""


class Computed(Protocol):
    """A function on arrays and its vjp; see `gradcheck.checking.problem.Problem`."""

    def forward(self, arrays: Sequence[Array], /) -> list[Array]:
        """The outputs."""

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents, /) -> InputGradients:
        """The gradients of the inputs."""


RecordableCall = tuple[list[Tensor], Callable[[], list[Tensor]]]
"""A call that can be recorded, and its leaves."""


class Recordable(Computed, Protocol):
    """A function whose call can also be recorded."""

    def recordable_call(self, arrays: Sequence[Array], /) -> RecordableCall:
        """The recordable call at some arrays."""


class FrameworkWords(NamedTuple):
    """The terms that messages use for a framework."""

    framework: str
    layer: str
    """The framework's name for a function with a hand-written backward."""
    module: str
    """The framework's name for a class that holds parameters."""
    takes_gradient: str
    """The framework's expression for "this Tensor needs a gradient"."""
    takes_none: str
    """The framework's expression for "no gradient flows through these outputs"."""
    rules: str
    """The name of the operations whose derivatives are checked where no backward is written by
    hand.
    """


class Refusal(NamedTuple):
    """A framework's error message for gradients that it does not accept."""

    text: str
    inputs: tuple[str, ...] = ()
    code: str = "GC137"
    """The code of the contract that is broken."""
    layer: str = ""
    """The name of the layer; empty if the message does not tell it."""


class LibraryNames(NamedTuple):
    """How derived code is written with the names of a library."""

    library: str
    calls: str
    """A table of operations of the engine and their texts; see `gradcheck.deriving.dialects`."""
    modules: Mapping[str, ModuleType]
    """The modules in which other functions are looked up, by the name that code uses for them."""
    element_count: str = "{}.size"
    """The expression for the number of elements of a Tensor."""
    saved: str = "ctx.saved_tensor()"
    """The expression by which backward reads the Tensors that forward saved."""


class PlayedLayer(Protocol):
    """A layer whose operations are replayed on the engine, with the interface that the repair of
    its backward needs.
    """

    layer: Any
    """The user's layer."""
    names: LibraryNames

    @property
    def written_forward(self) -> Callable[..., Any]:
        """The function that the user wrote."""

    @property
    def written_backward(self) -> Callable[..., Any] | None:
        """The backward that the user wrote, if any."""

    def signature(self) -> inspect.Signature:
        """The parameters of forward, the context first."""

    def forward(self, context: Any, *args: Any) -> Any:
        """Call forward on the engine's Tensors and return Tensors of the engine; `context` gets the
        values that forward keeps for backward.
        """

    def engine_value(self, value: Any) -> Any:
        """The engine's Tensor for a tensor of the last forward; anything else unchanged."""

    def pull_back(
        self, backward: Callable[..., Any], args: Sequence[Any], cotangents: Cotangents
    ) -> list[Any]:
        """The gradients that a backward gives at some arguments, one per argument."""

    def array(self, value: Any) -> Any:
        """The array of a tensor; anything else unchanged."""


Generator = tuple[Callable[[], Any], Callable[[Any], None]]
"""A generator of random numbers: the functions that read and set its state."""
GeneratorStates = list[tuple[Callable[[Any], None], Any]]
"""The function that sets the state of each generator, and that state."""


class Backend(Protocol):
    """The interface of a framework to the rest of this package.

    Implementations derive from it; the methods with a body here are for backends that do not record
    what they compute. Backends with Paddle's API derive from
    `gradcheck.backends.paddle_api.PaddleApi`.
    """

    name: str
    records: bool = False
    """Whether the framework can report its operations and repeat them in another precision, and
    notifies an observer of a layer before it looks up the layer's forward.
    """
    tells_needs: bool = False
    """Whether a layer can learn which of its inputs need gradients."""
    translates: bool = False
    """Whether code of the framework is recorded by running it on the bundled engine; see
    `case.engine_twin`.
    """

    tensor_type: Any
    layer_type: Any
    """The framework's class of functions with a hand-written backward."""
    module_type: Any
    """The class, or the classes, of modules that hold parameters."""
    packages: tuple[str, ...] = ()
    """The top-level packages whose code and layers are not the user's."""
    words: FrameworkWords
    documents: str = ""
    """The framework whose documents say what a backward must return, if any is known."""
    lacks_kernel: re.Pattern[str] = re.compile("(?!)")
    """The framework's message for an operation that it lacks in a dtype of 16 bits."""
    submodules: str = ""
    """The attribute of a module that holds the modules in it, by name."""

    paddle: Any = None
    """The module that ``import paddle`` gives in a scenario's code, on backends with Paddle's API:
    static programs and worlds of ranks need it, which no other framework has.
    """

    def names(self) -> dict[str, Any]:
        """Names that a scenario's code can use without importing them, next to ``np``."""

    def seed(self, seed: int) -> None:
        """Seed the framework's random numbers."""

    def generators(self) -> list[Generator]:
        """The generators that a forward may draw from."""
        from numpy.random import get_state, set_state  # not for commands that run nothing

        return [(get_state, set_state), (random.getstate, random.setstate)]

    def generator_states(self) -> GeneratorStates:
        """The present states of the `generators`."""
        return [(set_state, state()) for state, set_state in self.generators()]

    def settings(self) -> Any:
        """Settings of the whole process that a layer may change."""

    def restore_settings(self, before: Any) -> None:
        """Restore settings that `settings` returned."""

    def call(self, function: Callable[[dict[str, Tensor]], Any], tensors: dict[str, Tensor]) -> Any:
        """Call a function of named Tensors so that `grad` can take gradients of the result."""
        return function(tensors)

    def map_leaves(self, name: str, value: Any, leaf: Callable[[str, Any], Any]) -> Any:
        """An argument with each leaf replaced by `leaf(name, value)`: the leaves of lists, tuples
        and dicts, and of other containers of Tensors that the framework has.
        """
        return containers.map_leaves(name, value, leaf)

    def needs_gradient(self, tensor: Tensor) -> bool:
        """Whether a gradient flows to a Tensor."""

    def is_parameter(self, tensor: Tensor) -> bool:
        """Whether a Tensor that a function reads, other than its inputs, gets a gradient."""
        return bool(tensor.is_leaf) and self.needs_gradient(tensor)

    def claims(self, output: Tensor) -> bool:
        """Whether a function gives an output a gradient, even a zero one."""

    def version(self, tensor: Tensor) -> int:
        """How often a Tensor was changed in place."""

    def layer_of(self, value: Any) -> Any:
        """The layer, given the layer or its ``apply``; None for any other value."""
        if isinstance(value, (MethodType, BuiltinFunctionType)) and value.__name__ == "apply":
            value = value.__self__
        return value if inspect.isclass(value) and issubclass(value, self.layer_type) else None

    def takes_context(self, layer: Any) -> bool:
        """Whether the first parameter of a layer's forward is a context."""
        return True

    def played_layer(self, layer: Any) -> PlayedLayer | None:
        """The layer as a `PlayedLayer`, for the repair of its backward; None if it cannot be
        replayed.
        """
        return None

    def may_change(self, context: Any, returned: Tensors) -> Tensors:
        """The returned Tensors that a forward may write into; `context` is None if it has none."""

    def refusal(self, error: BaseException) -> Refusal | None:
        """The framework's refusal of the values that backward returned, if it caused an error;
        otherwise None.
        """

    def backward(self, outputs: Tensors, cotangents: list[Tensor | None]) -> None:
        """Take gradients into the ``grad`` of leaves, like user code; a missing cotangent counts as
        ones.
        """

    def starts(self, outputs: Tensors, cotangents: list[Tensor | None]) -> Tensors:
        """The cotangents of outputs, with ones for missing cotangents."""
        from numpy import ones_like  # slow to import, and commands read the table below

        def ones(output: Tensor) -> Tensor:
            return self.tensor(ones_like(self.array(output)), None, stop_gradient=True)

        pairs = zip(outputs, cotangents, strict=True)
        return [ones(output) if cotangent is None else cotangent for output, cotangent in pairs]

    def alias(self, tensor: Tensor, stop_gradient: bool) -> Tensor:
        """A leaf in the memory of a Tensor."""

    def reverse_axes(self, tensor: Tensor) -> Tensor:
        """A view of a Tensor with its axes in reverse order."""

    def strided_view(self, tensor: Tensor, shape: list[int], strides: list[int]) -> Tensor:
        """A view of the memory of a Tensor."""

    def tensor(self, array: Array, /, dtype: str | None, *, stop_gradient: bool) -> Tensor:
        """A leaf Tensor with a copy of an array, NumPy's or the backend's: in the named dtype, or
        with None in the array's own.
        """

    def grad(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        existing_leaves: Sequence[Tensor],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """The gradients of `inputs`; None where no output depends on one.

        `existing_leaves` are the leaves that need a gradient and existed before this call, whether
        or not they are inputs; their ``grad`` stays as it is.
        """

    def share(self, leaf: Tensor, other: Tensor) -> None:
        """Let a leaf take the values, memory and dtype of another Tensor."""

    def collect_leaves(self, call: Callable[[], Any]) -> tuple[Any, Tensors]:
        """The result of a call, and the leaves it used that need a gradient, if known."""
        return call(), []

    def recomputation(
        self,
        function: Recordable,
        sources: Sequence[Any],
        original: Computed | None,
        takes_gradients: bool,
    ) -> Any:
        """The function computed again, perturbed or recorded; None where the backend cannot.

        See `gradcheck.backends.recomputation.Recomputation`.
        """
        return None

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Whether two Tensors share memory; False if the backend cannot determine it."""

    ranks_are_processes: bool = False
    """Whether each rank of a world is a separate process."""

    def observing(self, observer: LayerObserver) -> AbstractContextManager[None]:
        """A block in which `observer` learns of the layers that are applied, and of those whose
        backward runs.
        """

    def session(self) -> AbstractContextManager[None]:
        """A block around all evaluations of a check, for preparations that are better made once."""
        return nullcontext()

    def lacks(self, error: BaseException) -> str:
        """The name of the framework that the backend lacks, if that caused an error; otherwise
        empty.
        """
        return ""

    def array(self, tensor: Tensor, /) -> Array:
        """The values of a Tensor as an array of the backend, without a copy where possible."""

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        """A leaf Tensor in the memory of an array, where the backend can share it; otherwise with a
        copy.
        """
        return self.tensor(array, None, stop_gradient=stop_gradient)

    def ranks(
        self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]
    ) -> WorldRanks:
        """The ranks of a world; `work`, given a rank's number, makes the object that it runs.

        Args:
            degrees: ranks along the axes of fleet's topology; none to leave the topology unchanged.
            same_random: whether all ranks draw the same random numbers.
        """


class ObserverBlock:
    """A block in which a backend also reports layers to an observer.

    It is a class because every evaluation enters one, and a generator would take twice the calls.
    """

    def __init__(self, observers: list[LayerObserver], observer: LayerObserver) -> None:
        self.observers, self.observer = observers, observer

    def __enter__(self) -> None:
        self.observers.append(self.observer)

    def __exit__(self, *error: object) -> None:
        self.observers.remove(self.observer)


class BackendRow(NamedTuple):
    """A row of the table of backends: the class and its arguments, and how to install its
    requirement.

    `requirement` is the requirement for pip; empty if gradcheck itself needs it. `distributions`
    are the packages that may bring it: their version is the backend's. `preload` are modules that a
    server imports before it forks the first case of the backend, so that cases do not import them
    again. `warm_up`: whether a server may run the backend before it forks; not allowed for backends
    that use a device. `packages` are the framework's import packages: an object of one of them
    identifies a call as the framework's. `framework` names the framework whose spec files it runs,
    as these files write it.
    """

    implementation: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...]
    requirement: str
    distributions: tuple[str, ...]
    preload: tuple[str, ...]
    warm_up: bool
    packages: tuple[str, ...] = ()
    framework: str = "paddle"


ENGINE = ("gradcheck.backends.bundled", "pylayer.paddle")

BACKENDS: dict[str, BackendRow] = {
    "numpy": BackendRow(
        "gradcheck.backends.bundled:BundledBackend", ("numpy", "cpu"), ("numpy", "pylayer"), "",
        ("numpy",), ENGINE, True, ("pylayer",),
    ),
    "cupy": BackendRow(
        "gradcheck.backends.bundled:BundledBackend", ("cupy", "gpu"), ("cupy", "pylayer"),
        "cupy-cuda12x", ("cupy", "cupy-cuda12x", "cupy-cuda13x"), ENGINE, False,
    ),
    "paddle": BackendRow(
        "gradcheck.backends.paddle:PaddleBackend", (), ("paddle",), "paddlepaddle",
        ("paddlepaddle", "paddlepaddle-gpu"), ("paddle", *ENGINE), False, ("paddle",),
    ),
    "torch": BackendRow(
        "gradcheck.backends.torch:TorchBackend", (), ("torch",), "torch",
        ("torch",), ("gradcheck.backends.torch", *ENGINE), False, ("torch", "functorch"),
        "torch",
    ),
    "jax": BackendRow(
        "gradcheck.backends.jax:JaxBackend", (), ("jax",), "jax", ("jax",), (), False,
        ("jax", "jaxlib"), "jax",
    ),
}  # fmt: skip
"""The table of backends, by the name that the command line and specs use.

Where it has a version, as ``paddle@3.0.0``, it is a release in a separate environment, see
`backends.environments`.
"""


FRAMEWORK_PACKAGES = frozenset(package for row in BACKENDS.values() for package in row.packages)
"""The top-level packages of all frameworks of the table."""


@functools.cache
def installed_rows() -> dict[str, BackendRow]:
    """The backends that installed packages add, by name: the entry points of the group
    ``gradcheck.backends``, each a `BackendRow`. They are imported.
    """
    return {entry.name: entry.load() for entry in entry_points_of("gradcheck.backends")}


def backend_row(name: str) -> BackendRow:
    """The row of a backend. Raises KeyError: the name is unknown."""
    kind = kind_of(name)
    return BACKENDS.get(kind) or installed_rows()[kind]


def framework_of_backend(name: str) -> str:
    """The framework whose spec files a backend runs. Raises KeyError: there is no such backend."""
    return backend_row(name).framework


def usual_backend(framework: str) -> str:
    """The default backend for the spec files of a framework."""
    return next(name for name, row in BACKENDS.items() if row.framework == framework)


def backend_of_packages(packages: Collection[str]) -> str:
    """The backend for code that uses some packages; empty for the engine, which has Paddle's
    API.
    """
    if "paddle" in packages:
        return ""
    for name, row in BACKENDS.items():
        if "pylayer" not in row.packages and not set(row.packages).isdisjoint(packages):
            return name
    return ""


def kind_of(name: str) -> str:
    """The row of the table that a backend belongs to: ``paddle`` for ``paddle@3.0.0``."""
    return name.partition("@")[0]


def version_of(name: str) -> str:
    """The version of a backend: the one in its name, otherwise the installed version; empty if it
    is not installed.
    """
    return name.partition("@")[2] or installed_version(*backend_row(name).distributions)


@functools.cache
def installed_version(*distributions: str) -> str:
    """The version of the first installed distribution of several; empty if none is installed."""
    # Imported here, as it takes as long as everything else that this module loads.
    from importlib.metadata import PackageNotFoundError, version

    for distribution in distributions:
        with suppress(PackageNotFoundError):
            return version(distribution)
    return ""


@functools.cache  # called for every case; installed packages do not change during a run
def missing(name: str) -> str:
    """Why the backend cannot be used by this interpreter, in one line; empty if it can. Imports
    nothing.
    """
    entry = backend_row(name)
    absent = [module for module in entry.needs if not is_installed(module)]
    return f"not installed: {', '.join(absent)}; pip install {entry.requirement}" if absent else ""


def is_installed(module: str) -> bool:
    """Whether a new process can import a module. One that this process has put in its place, as
    the engine is for Paddle, does not count.
    """
    return any(finder.find_spec(module, None) for finder in sys.meta_path)


def load_backend(name: str) -> Backend:
    """The backend, ready in this process: ``import paddle`` imports it from now on if it has
    Paddle's API.

    Raises:
        RuntimeError: the backend is CuPy, which finds no GPU.
    """
    row = backend_row(name)
    make: Callable[..., Backend] = resolve_name(row.implementation)
    return make(*row.arguments)


def flat_tensors(value: Any, is_tensor: Callable[[Any], bool]) -> list[Tensor]:
    """The Tensors in the result of a layer, in order, at any depth of lists, tuples and dicts."""
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
    """The top-level package in the ``__module__`` of a class or function; empty if it has none."""
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def folders_of(packages: Iterable[str]) -> list[str]:
    """The folders of the packages that are installed. Nothing is imported."""
    specs = [find_spec(package) for package in sorted(packages)]
    return [folder for spec in specs if spec for folder in spec.submodule_search_locations or ()]
