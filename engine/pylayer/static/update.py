"""Operators that change parameters: an optimizer's step, and the initialisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pylayer.static.program import Operator
from pylayer.static.variable import Variable
from pylayer.tape.symbol import Parameter
from pylayer.tensor.tensor import Tensor


class Update(Operator):
    """One step of an optimizer: the same as in dynamic mode."""

    def __init__(self, optimizer: Any, pairs: Sequence[tuple[Parameter, Variable]]) -> None:
        super().__init__()
        self.optimizer = optimizer
        self.pairs = list(pairs)
        self.type = type(optimizer).__name__.lower()

    def tensors(self) -> list[Tensor]:
        return [t for pair in self.pairs for t in pair]

    def show_arguments(self) -> str:
        return ", ".join(f"{p.name}, grad={g.name}" for p, g in self.pairs)

    def compute(self, run: Any) -> Sequence[Any]:
        """No outputs: the parameters are changed in place."""
        for parameter, gradient in self.pairs:
            parameter._grad = run.as_tensor(gradient)
        self.optimizer.step_on([parameter for parameter, _ in self.pairs])
        for parameter, _ in self.pairs:
            parameter._grad = None
        return []


class Initialize(Operator):
    """The operator of startup programs, which sets a parameter to its initial values."""

    type = "initialize"

    def __init__(self, parameter: Parameter, values: Callable[[], Tensor]) -> None:
        super().__init__()
        self.parameter = parameter
        self.values = values

    def show_arguments(self) -> str:
        return self.parameter.name

    def compute(self, run: Any) -> Sequence[Any]:
        """Do nothing: the initial values are drawn again when the program runs."""
        self.parameter.array[...] = self.values().array
        return []
