"""The functions of a `static_pylayer` on Tensors. Its backward takes only cotangents, and reads
the inputs by the names of their Variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from gradcheck.deriving.graph import NotDerived
from pylayer.static.structure import leaves
from pylayer.tensor.tensor import Tensor


@dataclass(frozen=True)
class StaticFunctions:
    """The functions of a static layer, and the Variables that they can read."""

    forward_fn: FunctionType
    backward_fn: FunctionType
    inputs: Sequence[str]
    """The names of forward's inputs: the names of their Variables, if known, or made-up names."""
    others: Sequence[str]
    """The names of Variables that are not inputs of forward."""
    readable: Sequence[str]
    """The names of all Variables that both functions can read."""

    @classmethod
    def of(
        cls,
        forward_fn: Any,
        inputs: Sequence[Any],
        backward_fn: Any,
        variables: Mapping[str, Any],
    ) -> StaticFunctions:
        """The functions of a call of `static_pylayer`.

        Args:
            inputs: Tensors in place of Variables.
            variables: the Tensors that both functions can read, by name.

        Raises:
            NotDerived: the functions are not plain, or an input is not a Variable.
        """
        if type(forward_fn) is not FunctionType or type(backward_fn) is not FunctionType:
            raise NotDerived("forward_fn or backward_fn is not a plain function")
        if not all(isinstance(value, Tensor) for value in inputs):
            raise NotDerived("an input of the static_pylayer is not a Variable")
        unused = {id(tensor): name for name, tensor in variables.items()}
        names = [unused.pop(id(tensor), f"input_{k}") for k, tensor in enumerate(inputs)]
        return cls(forward_fn, backward_fn, names, [*unused.values()], [*variables])

    @property
    def parameters(self) -> list[str]:
        """The names of the arguments of `forward`: the inputs and the other Variables."""
        return [*self.inputs, *self.others]

    def forward(self, *values: Any) -> list[Any]:
        """The outputs of forward, given the values of the inputs and of the other Variables."""
        self.bind(self.forward_fn, values)
        returned = leaves(self.forward_fn(*values[: len(self.inputs)]))
        return [value for value in returned if isinstance(value, Tensor)]

    def pull_back(
        self, backward: Callable[..., Any], values: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        """The gradients that backward returns; forward runs first and may keep values for it."""
        self.forward(*values)
        self.bind(backward, values)
        return leaves(backward(*cotangents))

    def bind(self, function: Any, values: Sequence[Any]) -> None:
        """Set the global names by which a function reads Variables to some values."""
        function.__globals__.update(self.variables(values))

    def variables(self, values: Sequence[Any]) -> dict[str, Any]:
        """The values of the Variables, by name."""
        named = zip(self.parameters, values, strict=True)
        return {name: value for name, value in named if name in self.readable}
