"""A call of a layer or function with its arguments, and variants of it with other sizes, values and
options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from gradcheck.backends.base import Array, Backend, PlayedLayer
from gradcheck.deriving.graph import NotDerived
from gradcheck.deriving.static import StaticFunctions
from gradcheck.spec.literals import Placement
from pylayer.distributed.rank import current_rank
from pylayer.distributed.world import World
from pylayer.layer.py_layer import PyLayer, PyLayerContext
from pylayer.ops.creation import to_tensor
from pylayer.tape.grad_mode import grad_mode
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import from_numpy_hook
from pylayer.watch.numpy_array import RecordedArray

CHECKED_DTYPES = ("float64", "float32")
NO_SUCH_CALL = "forward takes other arguments"
POINT_FACTORS = 0.6, 1.4
"""Bounds of the factors that give values at another point: near enough to 1 to stay in most
domains.
"""


AppliedCall = tuple[Any, Sequence[Any], Mapping[str, Any]]
"""A layer or function, the arguments of its forward, and those by name."""


@dataclass(frozen=True)
class CallWorld:
    """The world of ranks in which a layer is called, with functions that read and make the caller's
    type for an argument with a placement.
    """

    size: int
    outputs: Sequence[str]
    """The placement of all outputs, or one placement for each."""
    unmarked: Callable[[Any], tuple[Any, Placement]]
    """Return the value and the placement of an argument."""
    marked: Callable[[Any, Placement], Any]
    """Make an argument from a value and a placement: the inverse of `unmarked`."""
    placements: Mapping[str, Placement] = field(default_factory=dict)
    """The placements of the inputs, by name."""

    def is_same_output(self, number: int) -> bool:
        """Whether an output is declared to be the same on all ranks."""
        return self.outputs[number % len(self.outputs)] == "replicated"


@dataclass(frozen=True)
class LayerCall:
    """A layer or function, and how it is called."""

    subject: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    """Arguments that can only be given by name."""
    takes_arrays: bool = False
    """Whether it is a function of NumPy arrays."""
    world: CallWorld | None = None
    """The world in which the layer is called; the arguments are then those of one rank."""

    @classmethod
    def of(
        cls,
        subject: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        takes_arrays: bool = False,
    ) -> LayerCall:
        """A call with all positional arguments in order, defaults included; a function of arrays
        gets only the given arguments, like its backward.

        Raises:
            NotDerived: forward takes other arguments.
        """
        call = cls(subject, (), {}, takes_arrays)
        try:
            bound = inspect.signature(call.function).bind(*call.context(), *args, **kwargs)
        except (TypeError, ValueError) as error:
            raise NotDerived(f"{NO_SUCH_CALL}: {error}") from None
        if not takes_arrays:
            bound.apply_defaults()
        return replace(call, args=bound.args[len(call.context()) :], kwargs=bound.kwargs)

    @property
    def is_layer(self) -> bool:
        """Whether the subject is a PyLayer class."""
        return is_layer_class(self.subject)

    @property
    def function(self) -> Any:
        """The function of forward."""
        return self.subject.forward if self.is_layer else self.subject

    @property
    def named(self) -> dict[str, Any]:
        """All arguments by name, defaults too."""
        bound = inspect.signature(self.function).bind(*self.context(), *self.args, **self.kwargs)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[self.is_layer :])

    @property
    def names(self) -> list[str]:
        """The names of the arguments in order."""
        return list(inspect.signature(self.function).parameters)[self.is_layer :]

    def context(self) -> list[PyLayerContext]:
        """A new context, which a layer's forward takes first."""
        return [PyLayerContext(self.subject.__name__)] if self.is_layer else []

    def in_world(self, world: CallWorld) -> LayerCall:
        """The call on one rank of a world; the arguments of this call have their placements."""
        pairs = {name: world.unmarked(value) for name, value in self.named.items()}
        args = [
            value[-1] if is_array(value) and placement == "split" else value
            for value, placement in map(world.unmarked, self.args)
        ]
        placements = {name: placement for name, (_, placement) in pairs.items()}
        return replace(self.at(args), world=replace(world, placements=placements))

    def at(self, args: Sequence[Any]) -> LayerCall:
        """Return the call with other arguments."""
        return replace(self, args=tuple(args))

    def fresh_args(self, copied: Callable[[Array], Any]) -> list[Any]:
        """The arguments, with each array replaced by a new value from `copied`."""
        return [copied(value) if isinstance(value, np.ndarray) else value for value in self.args]

    def run(self, *context: PyLayerContext) -> Any:
        """Call forward on fresh Tensors or arrays."""
        args = self.fresh_args(np.copy if self.takes_arrays else as_tensor)
        with grad_mode_as(False), np.errstate(all="ignore"):
            return self.function(*context, *args, **self.kwargs)

    def runs(self) -> bool:
        """Whether forward runs and is finite."""
        try:
            returned = self.run_on_ranks()
        except Exception:
            return False
        floats = filter(has_floats, values_in(returned))
        return all(bool(np.isfinite(raw_array(value)).all()) for value in floats)

    def run_on_ranks(self) -> Any:
        """Call forward and return its result. In a world, call it on all ranks with the same
        arguments, and return the last rank's result.
        """
        if self.world is None:
            return self.run(*self.context())
        return World(self.world.size).run(lambda rank: self.run(*self.context()))[-1]

    def shapes(self) -> str:
        """The shapes of the arguments as in ``x=3x4, w=4``, and the number of ranks in a world."""
        named = zip(self.names, self.args, strict=False)
        shapes = {name: raw_array(value).shape for name, value in named if is_array(value)}
        text = ", ".join(f"{name}={'x'.join(map(str, s))}" for name, s in shapes.items())
        return text if self.world is None else f"{text} on {self.world.size} ranks"

    def in_dtype(self, dtype: str) -> tuple[Any, ...]:
        """The arguments for a check, with floating ones cast to a dtype."""
        return tuple(value_in_dtype(value, dtype) for value in self.args)

    def for_ranks(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Arguments for the check of all ranks, made from those of one rank: with different values
        on each rank, or marked as the same on all ranks.
        """
        if self.world is None:
            return tuple(args)
        random = np.random.default_rng(0)
        checked = []
        for name, value in zip(self.names, args, strict=False):
            placement = self.world.placements[name]
            if placement != "split":
                value = self.world.marked(value, placement)
            elif is_array(value):
                shape = (self.world.size, *raw_array(value).shape)
                value = resize_argument(value, shape, random)
            checked.append(value)
        return tuple(checked)

    # ----------------------------------------------------------------- static layers
    @property
    def static(self) -> StaticFunctions | None:
        """The functions of a static layer, if the subject is its forward."""
        return getattr(self.subject, "static", None)

    @property
    def readable_arguments(self) -> Sequence[str] | None:
        """The arguments that a backward without a context reads by name; None if it takes a
        context.
        """
        if self.static is not None:
            return self.static.readable
        return self.names if self.takes_arrays else None

    # ----------------------------------------------------------------- other frameworks
    @property
    def played(self) -> PlayedLayer | None:
        """The layer of another framework, if its operations are replayed on the engine."""
        return getattr(self.subject, "played", None)

    @property
    def written_forward(self) -> Any:
        """The function of forward as the user wrote it."""
        if self.static is not None:
            return self.static.forward_fn
        return self.function if self.played is None else self.played.written_forward

    @property
    def written_backward(self) -> Any:
        """The backward that the user wrote; None if there is none, or if it is given separately."""
        if self.static is not None:
            return self.static.backward_fn
        has_backward = self.is_layer and "backward" in vars(self.subject)
        return self.subject.backward if has_backward else None

    @property
    def runs_in_steps(self) -> bool:
        """Whether the statements of a backward can run one by one, without rerunning forward."""
        return self.played is None and self.static is None

    @property
    def numpy_sources(self) -> Sequence[Any]:
        """The functions whose NumPy code is recorded."""
        return (self.function,) if self.runs_in_steps else ()

    def engine_value(self, value: Any) -> Any:
        """The engine's counterpart of a value from the user's forward, after it has run."""
        if self.played is not None:
            return self.played.engine_value(value)
        return recorded_tensor(value)

    # ----------------------------------------------------------------- other calls
    def others(self, seed: int = 0) -> Iterator[LayerCall]:
        """The call at other sizes, one for each way to change sizes; forward may fail there."""
        random = np.random.default_rng(seed)
        places = [k for k, value in enumerate(self.args) if is_array(value)]
        shapes = [tuple(raw_array(self.args[k]).shape) for k in places]
        for changed in changes_of_shapes(shapes):
            point = list(self.args)
            for k, shape in zip(places, changed, strict=True):
                point[k] = resize_argument(self.args[k], shape, random)
            yield self.at(point)

    def in_other_world(self) -> list[LayerCall]:
        """The call in a world of another size in which forward runs; empty outside of a world.

        Raises:
            NotDerived: there is no such size.
        """
        if self.world is None:
            return []
        for size in (self.world.size + 1, 2 * self.world.size, self.world.size - 1):
            other = replace(self, world=replace(self.world, size=size))
            if size > 1 and other.runs():
                return [other]
        raise NotDerived("forward does not run on another number of ranks")

    def with_other_values(self, count: int, seed: int) -> Iterator[LayerCall]:
        """The call at other values of the floats."""
        random = np.random.default_rng(seed)
        for _ in range(count):
            yield self.at(
                [
                    resize_argument(v, raw_array(v).shape, random) if has_floats(v) else v
                    for v in self.args
                ]
            )

    def with_other_options(self) -> dict[str, list[LayerCall]]:
        """The calls with another value of one option, by its name."""
        return {
            name: [self.with_option(position, name, other) for other in other_options(value)]
            for position, (name, value) in enumerate(self.named.items())
        }

    def with_option(self, position: int, name: str, value: Any) -> LayerCall:
        """The call with another value of one option."""
        if position < len(self.args):
            return self.at([*self.args[:position], value, *self.args[position + 1 :]])
        return replace(self, kwargs={**self.kwargs, name: value})


def static_call(
    forward_fn: Any, inputs: Sequence[Any], backward_fn: Any, variables: Mapping[str, Tensor]
) -> LayerCall:
    """The call of a static layer's forward, in float64; see `StaticFunctions.of`."""
    functions = StaticFunctions.of(forward_fn, inputs, backward_fn, variables)

    def forward(*values: Any) -> list[Any]:
        return functions.forward(*values)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in functions.parameters]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    forward.static = functions  # type: ignore[attr-defined]
    # no gradient flows to Variables that are not inputs
    constants = [Tensor(variables[name].array) for name in functions.others]
    call = LayerCall.of(forward, [*inputs, *constants], {})
    return call.at(call.in_dtype("float64"))


def layer_on_engine(played: PlayedLayer) -> Any:
    """The engine's layer that represents a layer of another framework."""

    def forward(ctx: PyLayerContext, *args: Any) -> Any:
        return played.forward(ctx, *args)

    forward.__signature__ = played.signature()  # type: ignore[attr-defined]
    methods = {"forward": staticmethod(forward)}
    if played.written_backward is not None:
        methods["backward"] = staticmethod(played.written_backward)
    return type(played.layer.__name__, (PyLayer,), {**methods, "played": played})


def on_engine(
    backend: Backend, layer: Any, args: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]] | None:
    """A layer of another framework as a layer of the engine, with the arguments of a call; None if
    its operations cannot be replayed.
    """
    played = backend.played_layer(layer)
    if played is None:
        return None

    def engine_value(value: Any) -> Any:
        if not isinstance(value, backend.tensor_type):
            return value
        return Tensor(np.array(backend.array(value)), None, not backend.needs_gradient(value))

    return layer_on_engine(played), mapped(tuple(args), engine_value)


def recorded_tensor(value: Any) -> Any:
    """The Tensor that a recorded array represents; anything else unchanged."""
    return from_numpy_hook(value, True) if is_recorded(value) else value


def is_recorded(value: Any) -> bool:
    """Whether a value is a recorded array."""
    return type(value) is RecordedArray


def is_layer_class(subject: Any) -> bool:
    """Whether a subject is a PyLayer class of the engine."""
    return isinstance(subject, type) and issubclass(subject, PyLayer)


@contextmanager
def grad_mode_as(is_on: bool) -> Iterator[None]:
    """A block in which grad mode is on or off."""
    token = grad_mode.set(is_on)
    try:
        yield
    finally:
        grad_mode.reset(token)


class NoRank:
    """The rank for a forward that is being derived: it can neither count nor call other ranks."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotDerived("forward is one of several ranks: give their number, as in world=4")


@contextmanager
def on_rank(rank: Any) -> Iterator[None]:
    """A block in which code runs as a rank."""
    token = current_rank.set(rank)
    try:
        yield
    finally:
        current_rank.reset(token)


# --------------------------------------------------------------------------- values
def values_in(returned: Any) -> Sequence[Any]:
    """The values that a function returns, as a sequence."""
    return returned if isinstance(returned, (list, tuple)) else [returned]


def as_input(array: np.ndarray[Any, Any]) -> Any:
    """A Tensor from an array; it needs a gradient if it is floating."""
    tensor = to_tensor(array)
    tensor.stop_gradient = array.dtype.kind not in "fc"
    return tensor


def is_array(value: Any) -> bool:
    """Whether an argument is a Tensor or an array."""
    return isinstance(value, (np.ndarray, Tensor))


def raw_array(value: Any) -> Array:
    """The array of an argument."""
    array: Array = value.array if isinstance(value, Tensor) else value
    return array


def has_floats(value: Any) -> bool:
    """Whether an argument is floating."""
    return is_array(value) and raw_array(value).dtype.kind == "f"


def as_tensor(array: Array) -> Any:
    """An array as `apply` gets it: a fresh Tensor."""
    return as_input(array.copy())


def value_in_dtype(value: Any, dtype: str) -> Any:
    """An argument, cast to a dtype if it is floating."""
    return like(value, raw_array(value).astype(dtype)) if has_floats(value) else value


def like(value: Any, array: Array) -> Any:
    """An array converted to the kind of another argument."""
    if not isinstance(value, Tensor):
        return array
    tensor = as_input(array)
    tensor.stop_gradient = value.stop_gradient
    return tensor


def resize_argument(value: Any, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """An argument in another shape, with other values; floating values keep both signs if both
    occur.
    """
    old = raw_array(value)
    array = np.resize(random.permutation(old.ravel()), shape).astype(old.dtype)
    if array.dtype.kind == "f":
        signs = [-1.0, 1.0] if old.min(initial=0) < 0 < old.max(initial=0) else [1.0]
        array = array * random.uniform(*POINT_FACTORS, shape) * random.choice(signs, shape)
    return like(value, np.asarray(array, old.dtype))


def changes_of_shapes(shapes: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Other shapes: all sizes one larger, or doubled; then equal sizes together; then a single axis
    of a single shape, which separates sizes that are equal by chance.
    """
    sizes = sorted({size for shape in shapes for size in shape if size > 1})
    larger = [{n: n + 1 for n in sizes}, {n: 2 * n for n in sizes}]
    larger += [{n: m} for n in sizes[: len(sizes) * (len(sizes) > 1)] for m in (n + 1, 2 * n)]
    if sizes:
        for change in larger:
            yield [tuple(change.get(n, n) for n in shape) for shape in shapes]
    for number, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if size > 1:
                changed = (*shape[:axis], size + 1, *shape[axis + 1 :])
                yield [*shapes[:number], changed, *shapes[number + 1 :]]


def other_options(value: Any) -> list[Any]:
    """Other values that an option may have."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value]
    if isinstance(value, float):
        return [value * 1.5 + 0.1 * (value == 0), value / 2]
    return []
