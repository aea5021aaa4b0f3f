"""The bundled engine as a backend, on NumPy or CuPy. With `recording`, all of the harness that imports the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np

import pylayer
from gradcheck.backends.base import Backend, Mover, WorldRanks
from gradcheck.backends.rank_errors import EngineRanks
from gradcheck.backends.recording import NOT_THE_USERS, Moving, recorded
from pylayer.array import XP, Array, default_module, set_device
from pylayer.autograd import gradients_of
from pylayer.distributed.rows import broadcast_ranks
from pylayer.distributed.topology import lay_out
from pylayer.distributed.world import World, apart
from pylayer.dtype import as_dtype
from pylayer.install import missing_name
from pylayer.py_layer import as_releases
from pylayer.tensor import Tensor
from pylayer.watch import records_all, watched, watching
from pylayer.watch.casts import casts_left_out
from pylayer.watch.numpy_proxy import Code
from pylayer.watch.numpy_recording import recording_numpy


class BundledBackend(EngineRanks, Backend):
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
        self,
        outputs: list[Tensor],
        inputs: list[Tensor],
        cotangents: list[Tensor],
        held: Sequence[Tensor] = (),
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """As ``backward`` would, which asks every layer for all of its gradients."""
        with as_releases():
            return gradients_of(outputs, inputs, cotangents, create_graph, allow_unused=True)

    as_releases = staticmethod(as_releases)

    def overlap(self, a: Tensor, b: Tensor) -> bool:
        """Told of arrays on the host."""
        x, y = a.array, b.array
        return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.shares_memory(x, y)

    lacks = staticmethod(missing_name)

    array = staticmethod(attrgetter("array"))

    def leaf(self, array: Array, stop_gradient: bool) -> Tensor:
        return Tensor(array, None, stop_gradient)

    def stacked(self, arrays: Sequence[Array]) -> Array:
        return XP[type(arrays[0])].stack(list(arrays))

    # ----------------------------------------------------------------- worlds
    def ranks(
        self, size: int, degrees: Mapping[str, int], same_random: bool, work: Callable[[int], Any]
    ) -> RanksInTurns:
        return RanksInTurns(size, degrees, same_random, work)

    recording_all = staticmethod(records_all)

    def watched(self) -> bool:
        return bool(watching)

    def for_ranks(self, tensor: Tensor, size: int) -> list[Tensor]:
        if tensor.stop_gradient:
            return [Tensor(tensor.array.copy()) for _ in range(size)]
        return list(broadcast_ranks(tensor, size))

    def code(self, functions: Sequence[Any]) -> Code:
        """The code that can be reached from some functions, the harness's and the engine's apart."""
        return Code(functions, NOT_THE_USERS)

    recorded = staticmethod(recorded)

    casts_left_out = staticmethod(casts_left_out)

    def moving(self, change: Mover, leaks: list[str]) -> AbstractContextManager[Any]:
        return watched(Moving(change, leaks))

    def moving_numpy(self, code: Code) -> AbstractContextManager[Any]:
        return recording_numpy(code, False)


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
