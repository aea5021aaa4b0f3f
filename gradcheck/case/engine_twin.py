"""A copy on the bundled engine of a layer or function for the installed Paddle: the same code, with
the engine behind its names.

The engine records what it computes (lines, operations, rounding); Paddle does not. If everything
that the code names has a counterpart of the same dotted name, and the outputs agree, the copy may
replace the original.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Backend, is_differentiable, package_of
from gradcheck.backends.bundled import BundledBackend
from gradcheck.case.arguments import WorldOf, tensor_function
from gradcheck.case.function import TensorFunction
from gradcheck.case.reachable import closure_of, frameworks_of, globals_of, reachable
from gradcheck.checking.precision import EPSILON, distance, largest, wide
from gradcheck.checking.tape import Tape

UNKNOWN_EPSILON = EPSILON["bfloat16"]
"""The epsilon that is assumed if the coarsest intermediate dtype is not known."""


class NoTwin(Exception):  # noqa: N818 - an answer, not an error
    """Something that the code uses has no counterpart in the engine."""


def twin_of(
    original: TensorFunction,
    function: Any,
    inputs: Sequence[Any],
    world: WorldOf | None = None,
    keywords: Mapping[str, Any] = {},
) -> TensorFunction | None:
    """The engine's version of the call of `function` on `inputs`, from which `original` was made;
    None if there is none.
    """

    def make(engine: Backend) -> TensorFunction:
        translated = Translation(original.backend, engine).translate(
            [dict(keywords), function, *inputs]
        )
        keywords_, function_, *inputs_ = translated
        return tensor_function(engine, function_, inputs_, world, keywords=keywords_)

    return matching_twin(original, make)


def matching_twin(
    original: TensorFunction, make: Callable[[Backend], TensorFunction]
) -> TensorFunction | None:
    """The function that `make` gives for the engine.

    None if that raises, or its outputs are not those of the original.
    """
    # Paddle's code may run on the engine's ranks, in turns.
    with original.backend.paddle.set_grad_enabled(True):
        try:
            twin = make(recording_engine(original.backend))
            twin.knows_leaves |= original.knows_leaves
            ours = twin.problem()
            if not original.knows_leaves:  # the leaves that the reference run reads are known
                leaves = original.named_leaves()
                original.close_over({name: leaves[name] for name in twin.closed_over})
            theirs = original.first_call
            assert ours.reruns is not None
            # NumPy code is recorded once it is known to take part.
            outputs = ours.reruns.outputs(ours.inputs)
            zeros = [y * 0 if is_differentiable(y) else None for y in outputs]
            ours.reruns.gradients(ours.inputs, zeros)
            recording = ours.reruns.recording(ours.inputs, keep_casts=True)
            assert recording is not None
        except Exception:  # the code raises on the engine only, so it has no copy there
            return None
    tape = Tape(recording)
    coarsest = UNKNOWN_EPSILON if tape.incomplete else tape.coarsest
    if twin.first_call.claimed != theirs.claimed:
        return None
    rows = zip(twin.first_call.outputs, theirs.outputs, theirs.claimed, strict=True)
    return twin if all(outputs_agree(a, b, coarsest) for a, b, claims in rows if claims) else None


def recording_engine(backend: Backend) -> Backend:
    """The engine that records in place of a backend: the backend itself if it records."""
    return backend if backend.records else BundledBackend("numpy", "cpu", install=False)


def outputs_agree(a: Array, b: Array, epsilon: float) -> bool:
    """Whether outputs agree up to rounding: to half of the digits, relative to the largest element;
    outputs without a derivative must be equal. `epsilon` is the spacing at 1 of the coarsest
    intermediate dtype.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not is_differentiable(a):
        return bool((a == b).all())
    x, y = wide(a), wide(b)
    close = distance(x, y) <= epsilon**0.5 * largest(y)
    return bool((close | (np.isnan(x) & np.isnan(y))).all())


class Translation:
    """Translates the values that code refers to from one library into another."""

    def __init__(self, original: Backend, other: Backend) -> None:
        self.original, self.other = original, other
        self.known = dict(counterparts(original.paddle, other.paddle))
        """The counterparts, by the id of the original. `originals` keeps those alive, so that no
        other object gets the id.
        """
        self.originals: list[Any] = []
        self.unfilled: list[tuple[FunctionType, FunctionType]] = []

    def translate(self, value: Any) -> Any:
        """The counterpart of a value, complete: all functions created for it have their globals and
        closures.

        Raises:
            NoTwin: there is none.
        """
        translated = self.of(value)
        while self.unfilled:
            old, new = self.unfilled.pop()
            new.__globals__.update(self.items(globals_of(old)))
            cells = dict(zip(new.__code__.co_freevars, new.__closure__ or (), strict=True))
            for name, value in closure_of(old).items():
                cells[name].cell_contents = self.of(value)
            new.__defaults__, new.__kwdefaults__ = (
                self.of(old.__defaults__),
                self.of(old.__kwdefaults__),
            )
        return translated

    def of(self, value: Any) -> Any:
        """The counterpart of a value; the value itself if it does not involve the library.
        Functions are still empty, because they may refer to one another. Raises NoTwin.
        """
        if id(value) not in self.known:
            self.known[id(value)] = self.translate_new(value)
            self.originals.append(value)
        return self.known[id(value)]

    def translate_new(self, value: Any) -> Any:
        """The counterpart of a value that `of` has not seen before."""
        if isinstance(value, self.original.paddle.Tensor):
            array, is_stopped = self.original.array(value), value.stop_gradient
            return self.other.tensor(array, None, stop_gradient=is_stopped)
        if isinstance(value, self.original.paddle.nn.Layer):
            return self.module(value)
        if isinstance(value, (staticmethod, classmethod, functools.partial, MethodType)):
            return self.bound_function(value)
        if isinstance(value, BuiltinFunctionType) and inspect.isclass(value.__self__):
            return getattr(self.of(value.__self__), value.__name__)  # `apply` of a PyLayer
        if type(value) in (list, tuple, dict):
            return self.container(value)
        if is_paddles_own(value):
            raise NoTwin(repr(value))
        if "paddle" not in frameworks_of(reachable(value)):
            return value
        if isinstance(value, FunctionType):
            return self.function(value)
        return self.class_(value) if inspect.isclass(value) else self.instance(value)

    def instance(self, value: Any) -> Any:
        """An object of a user's class. Raises NoTwin for a Paddle class."""
        if "paddle" in frameworks_of([value]) or not hasattr(value, "__dict__"):
            raise NoTwin(repr(value))
        translated = object.__new__(self.of(type(value)))
        translated.__dict__.update(self.items(vars(value)))
        return translated

    def items(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """The counterparts of objects that have names."""
        return {name: self.of(item) for name, item in values.items()}

    def bound_function(self, value: Any) -> Any:
        """A bound or wrapped function, rebuilt from the counterparts of its parts."""
        if isinstance(value, functools.partial):
            arguments = map(self.of, value.args)
            return functools.partial(self.of(value.func), *arguments, **self.items(value.keywords))
        if isinstance(value, MethodType):
            return MethodType(self.of(value.__func__), self.of(value.__self__))
        return type(value)(self.of(value.__func__))

    def container(self, value: Any) -> Any:
        """A list, tuple or dict of the counterparts; the same object if nothing changed."""
        pairs = value if isinstance(value, dict) else dict(enumerate(value))
        items = self.items(pairs)
        if all(items[key] is item for key, item in pairs.items()):
            return value
        return items if isinstance(value, dict) else type(value)(items.values())

    def module(self, value: Any) -> Any:
        """An ``nn.Layer`` with its members; for one of Paddle's own classes without sublayers, the
        code of its forward.

        Raises:
            NoTwin: it has hooks.
        """
        theirs, ours = self.original.paddle.nn.Layer, self.other.paddle.nn.Layer
        cls = type(value)
        if value._forward_pre_hooks or value._forward_post_hooks:
            raise NoTwin("an nn.Layer with hooks")
        translated: Any
        if is_paddles_own(cls) and not value._sub_layers:
            translated = object.__new__(
                type(cls.__name__, (ours,), {"forward": self.function(cls.forward)})
            )
        else:
            translated = object.__new__(self.of(cls))
        ours.__init__(translated)
        self.known[id(value)] = translated  # its members may refer back to it
        for name in vars(value).keys() - vars(theirs()).keys():
            setattr(translated, name, self.of(vars(value)[name]))
        for register in ("_parameters", "_buffers", "_sub_layers"):
            vars(translated)[register].update(self.items(vars(value)[register]))
        translated.training = value.training
        return translated

    def class_(self, value: type) -> type:
        """A class with the counterparts of its bases and attributes, except the attributes that
        Paddle's metaclass adds.
        """
        attributes = {
            name: item
            for name, item in vars(value).items()
            if name not in ("__dict__", "__weakref__")
            and not (inspect.isclass(item) and is_paddles_own(item))
        }
        return type(value.__name__, tuple(map(self.of, value.__bases__)), self.items(attributes))

    def function(self, value: FunctionType) -> FunctionType:
        """A function with the same code, its globals and closure still to be filled."""
        cells = tuple(CellType() for _ in value.__closure__ or ())
        beginning = {"__name__": value.__module__, "__builtins__": builtins_of(self.other)}
        code = value.__code__
        # The user's line is the one that calls it, as with the engine's own code.
        if is_paddles_own(value):
            code = code.replace(co_filename=str(self.other.paddle.nn.__file__))
        translated = FunctionType(code, beginning, value.__name__, None, cells)
        translated.__dict__.update(vars(value))
        translated.__qualname__, translated.__module__ = value.__qualname__, value.__module__
        self.unfilled.append((value, translated))
        return translated


def builtins_of(other: Backend) -> dict[str, Any]:
    """Builtins with which ``import paddle`` gives another library."""

    def import_counterpart(name: str, *args: Any, **kwargs: Any) -> ModuleType:
        if name.partition(".")[0] != "paddle":
            return __import__(name, *args, **kwargs)
        module = import_module(other.paddle.__name__ + name.removeprefix("paddle"))
        named = args[2] if len(args) > 2 else kwargs.get("fromlist")
        return module if named else other.paddle

    return {**vars(builtins), "__import__": import_counterpart}


def is_paddles_own(value: Any) -> bool:
    """Whether a value is a module, class or function of Paddle itself."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == "paddle"
    defined = inspect.isclass(value) or isinstance(value, (FunctionType, BuiltinFunctionType))
    return defined and package_of(value) == "paddle"


@functools.cache
def counterparts(original: ModuleType, other: ModuleType) -> dict[int, Any]:
    """The objects of `other`, by the id of the object that `original` has under the same dotted
    name.
    """
    by_id = {id(original): other}
    for name, theirs in vars(other).items():
        ours = getattr(original, name, None) if not name.startswith("_") else None
        if isinstance(theirs, ModuleType) and isinstance(ours, ModuleType):
            by_id = {**counterparts(ours, theirs), **by_id}
        elif is_paddles_own(ours) or "dtype" in type(ours).__name__:
            by_id.setdefault(id(ours), theirs)
    return by_id
