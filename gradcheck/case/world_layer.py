"""A scenario's layer on every rank of a world: its source runs once on each, in a namespace of the rank's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcheck.backends.base import Array, Tensor
from gradcheck.case.layer import ScenarioLayer
from gradcheck.case.reference import import_reference
from gradcheck.case.world_call import Declared, FunctionOfWorld, WorldCall
from gradcheck.spec.containers import in_variables
from gradcheck.spec.model import LayerRef, World, size_of

if TYPE_CHECKING:
    from gradcheck.case.case import Case
    from gradcheck.spec.model import Scenario


class WorldLayer(FunctionOfWorld, ScenarioLayer):
    """The layer as a function of the inputs of all ranks.

    The namespace of the scenario, in which its expressions are evaluated, has the inputs and the output of the world.
    """

    def begin(self, case: Case) -> None:
        layer, world = self.scenario.layer, self.scenario.world_at(case.parameters)
        assert world is not None
        if isinstance(layer, LayerRef):  # outside of the world, as any program's imports
            import_reference(layer.ref, Path(self.scenario.path).parent)
        self.on_ranks = [OnNamespace(self) for _ in range(size_of(world))]
        self.world = WorldCall(self.backend, declared_by(self.scenario, world), self.loaded, self.leaf)
        self.sources = self.on_ranks

    def loaded(self, rank: int) -> OnNamespace:
        """The call of a rank, on that rank, once its source has run there."""
        self.on_ranks[rank].begin()
        return self.on_ranks[rank]

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        """What the world returns with the inputs of all ranks: the one output, or a list."""
        self.namespace.update(in_variables(tensors))
        found = self.world(tensors)
        return found[0] if len(found) == 1 else found

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """An input of the world, whose ranks have the layout."""
        return self.backend.tensor(array, dtype, stop_gradient)

    def leaf(self, name: str, array: Array, stop_gradient: bool) -> Tensor:
        """An input of a rank."""
        if name not in self.memory or not array.ndim:
            return self.backend.leaf(array, stop_gradient)
        return super().tensor(name, array, None, stop_gradient)

    def documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        with self.world.own_errors():
            return super().documented(cotangent)


class OnNamespace:
    """The call of a layer in a namespace of its own."""

    def __init__(self, layer: ScenarioLayer) -> None:
        self.layer, self.namespace = layer, dict(layer.namespace)

    def begin(self) -> None:
        """Run the layer's source."""
        self.code = self.layer.load(self.namespace)

    def __call__(self, tensors: Mapping[str, Tensor]) -> Any:
        """What the scenario's call returns with the inputs bound to `tensors`."""
        self.namespace.update(in_variables(tensors))
        return eval(self.code, self.namespace)


def declared_by(scenario: Scenario, world: World) -> Declared:
    """What a scenario declares of its world."""
    return Declared(
        size_of(world),
        {name: input.ranks for name, input in scenario.inputs.items()},
        scenario.output_stands,
        {} if isinstance(world, int) else {str(axis): degree for axis, degree in world.items()},
        scenario.random == "same",
    )
