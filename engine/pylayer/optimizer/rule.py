"""Optimizers whose arguments are class keywords."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, ClassVar

from pylayer.optimizer.base import Optimizer
from pylayer.tensor.tensor import Tensor

SHARED = ("learning_rate", "parameters", "weight_decay", "grad_clip")
"""What all optimizers take."""


class Rule(Optimizer):
    """An optimizer whose class keywords are its arguments in Paddle's order, with their defaults.

    Those that not all optimizers take are `options`, for `update`.
    """

    _signature: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **takes: Any) -> None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if takes:
            parameters = [
                inspect.Parameter(name, kind, default=default) for name, default in takes.items()
            ]
            cls._signature = cls.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = self._signature.bind(*args, **kwargs)
        given.apply_defaults()
        shared = {name: given.arguments.pop(name) for name in SHARED if name in given.arguments}
        super().__init__(**shared)
        numbers = {n: v.item() if isinstance(v, Tensor) else v for n, v in given.arguments.items()}
        self.options = SimpleNamespace(**numbers)
