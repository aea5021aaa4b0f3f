"""The bundled engine as a backend, on NumPy or CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np

import pylayer
from gradcheck.backends.base import Backend, Tensors, WorldRanks
from pylayer.array import Array, default_module, set_device
from pylayer.autograd import gradients_of
from pylayer.distributed.topology import lay_out
from pylayer.distributed.world import World, apart
from pylayer.dtype import as_dtype
from pylayer.missing import missing_name
from pylayer.reading import as_releases
from pylayer.tensor import Tensor


class RanksInTurns(WorldRanks):
    """The ranks of a world in this process, each with what `work` makes for it."""

    def __init__(self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]) -> None:
        self.world = World(size, same_random)

        def begin(rank: int) -> Any:
            lay_out(degrees)
            return work(rank)

        self.work = self.world.run(begin)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self.world.run(lambda rank: getattr(self.work[rank], method)(*arguments[rank]))

    apart = staticmethod(apart)

    def close(self) -> None:
        """Nothing is left of them."""


class BundledBackend(Backend):
    """The engine, with ``import paddle`` in this process resolved to its facade unless `install` is False."""

    records = True

    def __init__(self, name: str, device: str, install: bool = True) -> None:
        self.name = name
        set_device(device)
        if install:
            pylayer.install_paddle()
        self.paddle: ModuleType = import_module("paddle" if install else "pylayer.paddle")

    def tensor(self, array: Any, dtype: str | None, stop_gradient: bool) -> Tensor:
        wanted = None if dtype is None else as_dtype(dtype).numpy
        return Tensor(default_module().array(array, dtype=wanted), None, stop_gradient)

    def grad(
        self, outputs: Tensors, inputs: Tensors, cotangents: Tensors, held: Sequence[Any], create_graph: bool
    ) -> list[Tensor | None]:
        """As ``backward`` would, which asks every layer for all of its gradients."""
        with as_releases():
            return gradients_of(outputs, inputs, cotangents, create_graph, allow_unused=True)

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Told of arrays on the host."""
        x, y = a.array, b.array
        return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.shares_memory(x, y)

    lacks = staticmethod(missing_name)

    array = staticmethod(attrgetter("array"))

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        return Tensor(array, None, stop_gradient)

    ranks = staticmethod(RanksInTurns)
