"""The bundled engine as a backend, on NumPy or CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np

import pylayer
from gradcheck.backends.base import Tensors, WorldRanks
from gradcheck.backends.paddle_api import PaddleApi
from gradcheck.backends.recomputation import Recomputation
from gradcheck.backends.recording import LeafWatch
from pylayer.distributed.topology import lay_out
from pylayer.distributed.world import World, run_separately
from pylayer.layer.py_layer import reads_as_releases
from pylayer.ops.creation import to_tensor
from pylayer.release import missing_name, refusal
from pylayer.tape.autograd import gradients_of
from pylayer.tape.symbol import at_once
from pylayer.tape.symbol import recording as recorder
from pylayer.tensor.array import Array, default_module, set_device, to_numpy
from pylayer.tensor.dtype import BY_NUMPY
from pylayer.tensor.tensor import Tensor
from pylayer.watch import LayerObserver, layer_observers, observe


class Observing:
    """A block in which an observer is notified of layers, and stand-ins are refused.

    A class, because every evaluation enters such a block, and a generator takes twice the calls.
    """

    def __init__(self, observer: LayerObserver) -> None:
        self.observer, self.refused_before = observer, refusal.is_active

    def __enter__(self) -> None:
        layer_observers.append(self.observer)
        refusal.is_active = True

    def __exit__(self, *error: Any) -> None:
        refusal.is_active = self.refused_before
        layer_observers.remove(self.observer)


class RanksInTurns(WorldRanks):
    """The ranks of a world in this process, each with the object that `work` makes for it."""

    def __init__(
        self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]
    ) -> None:
        self.world = World(size, same_random)

        def begin(rank: int) -> Any:
            lay_out(degrees)
            return work(rank)

        self.work = self.world.run(begin)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self.world.run(lambda rank: getattr(self.work[rank], method)(*arguments[rank]))

    call_outside = staticmethod(run_separately)


class BundledBackend(PaddleApi):
    """The engine, with ``import paddle`` in this process resolved to its facade unless `install` is
    False.
    """

    records = True
    words = PaddleApi.words._replace(rules="the engine's")

    def __init__(self, name: str, device: str, install: bool = True) -> None:
        self.name = name
        if set_device(device) != "cpu":
            self.array = lambda tensor: to_numpy(tensor.array)
        self.module = default_module()
        """The array module of its device."""
        if install:
            pylayer.install_paddle()
        super().__init__(import_module("paddle" if install else "pylayer.paddle"))

    def tensor(self, array: Array, dtype: str | None, *, stop_gradient: bool) -> Tensor:
        known = BY_NUMPY.get(array.dtype) if type(array) is np.ndarray else None
        if known is not None and dtype in (None, known.name):
            # the same result as `to_tensor`, but faster: most evaluations begin here
            return Tensor(self.module.array(array, order="C"), None, stop_gradient)
        return self.to_tensor(array, dtype, stop_gradient=stop_gradient)

    to_tensor = staticmethod(at_once(to_tensor))

    recomputation = staticmethod(Recomputation)

    observing = Observing

    settings = staticmethod(recorder.get)
    """The recorder of operations in static mode; None in dynamic mode."""

    restore_settings = staticmethod(recorder.set)  # type: ignore[assignment]

    def grad(
        self,
        outputs: Tensors,
        inputs: Tensors,
        cotangents: Tensors,
        existing_leaves: Sequence[Any],
        create_graph: bool,
    ) -> list[Tensor | None]:
        """Take gradients like ``backward``, which needs all gradients of every layer: including
        those that a backward, such as that of `recompute`, adds to leaves itself.
        """
        before = [leaf.grad for leaf in existing_leaves]
        for leaf in existing_leaves:
            leaf.clear_grad(False)
        reading = reads_as_releases.set(True)
        try:
            gradients = gradients_of(outputs, inputs, cotangents, create_graph, allow_unused=True)
        finally:
            reads_as_releases.reset(reading)
        existing_ids = set(map(id, existing_leaves))
        for k, leaf in enumerate(inputs):
            if id(leaf) in existing_ids and leaf.grad is not None:
                gradients[k] = (
                    leaf.grad.detach()
                    if gradients[k] is None
                    else gradients[k] + leaf.grad.detach()
                )
        for leaf, gradient in zip(existing_leaves, before, strict=True):
            leaf.grad = gradient
        return gradients

    def share(self, leaf: Tensor, other: Tensor) -> None:
        leaf.array, leaf.node = other.array, None

    def collect_leaves(self, call: Callable[[], Any]) -> tuple[Any, Tensors]:
        watch = LeafWatch()
        with observe(watch):
            returned = call()
        return returned, list(watch.leaves.values())

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Observes arrays on the host."""
        x, y = a.array, b.array
        return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.shares_memory(x, y)

    lacks = staticmethod(missing_name)

    array = staticmethod(attrgetter("array"))

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        return Tensor(self.module.asarray(array), None, stop_gradient)

    ranks = staticmethod(RanksInTurns)
