"""The record of which layers, with hand-written backwards, the evaluations of a function call."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import IntEnum
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend, flat_tensors, package_of


class Way(IntEnum):
    """How the forward of a layer was called, outside of any other layer; the most informative about
    the backward is last.
    """

    IDLE = 1
    """The layer was applied, but no input needed a gradient."""
    APPLIED = 2
    DIRECT = 3
    """The forward was called directly, not through apply."""


class LayerCalls:
    """The layers that evaluations applied, those whose backward ran, and how forwards were called.

    A layer is a class of the backend's layers, such as PyLayer, or a function with a backward: the
    `backward_fn` of a ``static_pylayer``. Its key is the class that defines its backward, or the
    name of that class.

    Args:
        backend: of the layers.
        by_name: whether classes of the same name count as one layer, because each rank of a world
            has its own.
    """

    def __init__(self, backend: Backend, by_name: bool = False) -> None:
        self.backend, self.by_name = backend, by_name
        self.base: Any = backend.layer_type
        self.libraries = ("gradcheck", "pylayer", *backend.packages)
        """Packages whose layers are not the user's."""
        self.forwards = Counter[Any]()
        self.backwards = Counter[Any]()
        self.ways: dict[Any, Way] = {}
        """How layers are called in the evaluations that are watched, by the layers' keys."""
        self.wrap: Callable[[Any], None] | None = None
        """Wraps a layer that is applied while forwards are watched; without this, contexts are not
        kept.
        """
        self.latest: tuple[Any, Any] = (None, None)
        """The layer that was applied last, and its context, until the layer's forward begins."""

    @np.errstate()
    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the user's code, and record the layers that it runs.

        Process-wide settings, which a layer may change, are restored afterwards. These are NumPy's
        error handling, the warning filters, and the backend's settings: the layer's changes apply
        while it runs, not while gradcheck computes.
        """
        settings = self.backend.settings()
        filters = list(warnings.filters)
        try:
            with self.backend.observing(self):
                return function(*arguments)
        finally:
            self.backend.restore_settings(settings)
            if warnings.filters != filters:
                warnings.filters[:] = filters  # type: ignore[index]
                with warnings.catch_warnings():  # makes Python check the filters again
                    pass

    # ------------------------------------------------------------------- reports of the backend
    def applied(self, layer: Any, context: Any) -> None:
        """Record that the forward of a layer is about to run, with this context."""
        self.forwards[layer] += 1
        if self.wrap is not None:
            self.latest = layer, context
            self.wrap(layer)
        if not isinstance(layer, type):  # a backward_fn: nobody calls it directly
            self.add_way(self.key(layer), Way.APPLIED)

    def pulled_back(self, layer: Any) -> None:
        """Record that the backward of a layer is about to run."""
        self.backwards[layer] += 1

    # -------------------------------------------------------------- the identity of a layer
    def key(self, layer: Any) -> Any:
        """A layer's key; None for a layer whose backward belongs to a library."""
        owner = layer
        if isinstance(layer, type):
            owner = definer(layer, "backward") or self.base
            if package_of(owner) in self.libraries:
                return None
        return label(owner) if self.by_name else owner

    def ran(self) -> set[Any]:
        """The keys of the layers whose backward ran."""
        return {self.key(layer) for layer in self.backwards} - {None}

    def count(self, counter: Counter[Any]) -> int:
        """The sum of a counter over the user's layers."""
        return sum(
            times for layer, times in counter.items() if package_of(layer) not in self.libraries
        )

    # ----------------------------------------------------------------- how forwards are called
    @contextmanager
    def watching_forwards(self, only_applied: bool = False) -> Iterator[None]:
        """A block in which each call of a forward, outside of another layer's, is added to `ways`.

        Args:
            only_applied: whether to watch only layers that are applied; see `wrapped_methods`.
        """
        wraps: dict[str, Wrap] = {"forward": self.watched_forward}
        try:
            with wrapped_methods(self.backend, wraps, only_applied) as self.wrap:
                yield
        finally:
            self.wrap, self.latest = None, (None, None)

    def watched_forward(
        self, owner: type, forward: Callable[..., Any], position: int
    ) -> Callable[..., Any]:
        """Wrap the forward of a class to record how it is called.

        Its context is the argument at `position`. Layers of libraries, such as a recomputation or
        a world, are not watched: the layers in them count instead.
        """
        if package_of(owner) in self.libraries:
            return forward

        @functools.wraps(forward)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if inside_a_layer.get():
                return forward(*args, **kwargs)
            (layer, context), self.latest = self.latest, (None, None)
            is_applied = context is not None
            if is_applied and self.backend.takes_context(layer):
                is_applied = id(context) in map(id, args[position : position + 1])
            if not is_applied:
                self.add_way(self.key(owner), Way.DIRECT)
            else:
                values = [*args[position + 1 :], *kwargs.values()]
                is_needed = any_needs_gradient(self.backend, values)
                self.add_way(self.key(layer), Way.APPLIED if is_needed else Way.IDLE)
            token = inside_a_layer.set(True)
            try:
                return forward(*args, **kwargs)
            finally:
                inside_a_layer.reset(token)

        return watched

    def add_way(self, key: Any, way: Way) -> None:
        """Record how a layer was called; the most informative way is kept."""
        if key is not None:
            self.ways[key] = max(way, self.ways.get(key, way))

    # ----------------------------------------------------------------- the ranks of a world
    def rows(self) -> list[tuple[str, bool, Way | None]]:
        """Each layer in a form that another process can send: its name, whether its backward ran,
        how it was called.
        """
        ran = self.ran()
        return [(key, key in ran, self.ways.get(key)) for key in {*ran, *self.ways}]

    def add_rows(self, rows: Iterable[tuple[str, bool, Way | None]]) -> None:
        """Add the calls that a rank in another process recorded."""
        for key, ran, way in rows:
            if ran:
                self.backwards[key] += 1
            if way:
                self.add_way(key, way)


inside_a_layer: ContextVar[bool] = ContextVar("inside_a_layer", default=False)
"""Whether the forward of a layer is running, in this thread and on this rank."""


def definer(layer: type, method: str) -> type | None:
    """The class from which a layer has a method; None if the class has no method of that name."""
    return next((cls for cls in layer.__mro__ if method in vars(cls)), None)


def written_backward(layer: Any) -> Any:
    """The user's hand-written backward, of a layer or for a function of arrays."""
    return layer.pair[1] if hasattr(layer, "pair") else layer.backward


def label(layer: Any) -> str:
    """The dotted name of a layer."""
    return layer if isinstance(layer, str) else f"{layer.__module__}.{layer.__qualname__}"


def any_needs_gradient(backend: Backend, arguments: list[Any]) -> bool:
    """Whether a Tensor among arguments, or in lists, tuples and dicts among them, needs a
    gradient.
    """
    with suppress(Exception):  # a user's object may raise at any access
        tensors = flat_tensors(arguments, lambda value: isinstance(value, backend.tensor_type))
        return any(map(backend.needs_gradient, tensors))
    return False


Wrap = Callable[[type, Callable[..., Any], int], Callable[..., Any]]
"""Makes the replacement of a method of a class, given the class, the method, and the position of
the context among the arguments; a method without a context has the position before the first.
"""


@contextmanager
def wrapped_methods(
    backend: Backend, wraps: dict[str, Wrap], only_applied: bool = False
) -> Iterator[Callable[[Any], None]]:
    """A block in which methods of the backend's layers are wrapped.

    Wraps a layer and all its base classes.

    Args:
        only_applied: wrap only layers that are applied, as a process may have thousands of layers;
            this requires a backend that reports a layer before it looks up the forward.
    """
    originals, base = list[tuple[Any, str, Any]](), backend.layer_type
    known = set[type]()

    def wrap(layer: Any) -> None:
        for owner in getattr(layer, "__mro__", ()):  # a backward_fn has none
            if owner in known or not issubclass(owner, base):
                continue
            known.add(owner)
            for name in wraps.keys() & vars(owner).keys():
                method = vars(owner)[name]
                originals.append((owner, name, method))
                by_class = isinstance(method, classmethod)
                function = getattr(method, "__func__", method)
                without_context = name == "forward" and not backend.takes_context(owner)
                function = wraps[name](owner, function, by_class - without_context)
                setattr(owner, name, (classmethod if by_class else staticmethod)(function))

    known.add(base)
    try:
        for layer in () if only_applied else [*subclasses(base)]:
            wrap(layer)
        yield wrap
    finally:
        for owner, name, method in originals:
            setattr(owner, name, method)


def subclasses(layer: Any) -> Iterator[Any]:
    """All classes that inherit from `layer`."""
    for child in layer.__subclasses__():
        yield child
        yield from subclasses(child)
