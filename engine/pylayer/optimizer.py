"""Optimizers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pylayer.array import Array
from pylayer.static.backward import minimized
from pylayer.symbol import Symbol, recording
from pylayer.tensor import Tensor
from pylayer.versions import mark_changed


class SGD:
    """Gradient descent: ``p -= learning_rate * (p.grad + weight_decay * p)`` for every parameter that has a gradient.

    Raises:
        ValueError: no parameters are given.
        TypeError: the learning rate is not a number.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        parameters: Iterable[Tensor] | None = None,
        weight_decay: float | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(parameters, Tensor):
            raise TypeError(
                "The optimizer's parameters should be an iterable of Tensors, but got a Tensor. Put it into a list."
            )
        if parameters is None and recording.get() is None:
            raise ValueError("parameters argument given to the optimizer should not be None in dygraph mode.")
        self._parameters = list(parameters or ())
        self._weight_decay = weight_decay or 0.0
        self.set_lr(learning_rate)

    def get_lr(self) -> float:
        """The learning rate."""
        return self._learning_rate

    def set_lr(self, value: float) -> None:
        """Set the learning rate."""
        if not isinstance(value, (int, float)):
            raise TypeError(
                f"learning rate should be float, got {type(value).__name__} here: the bundled engine has no schedulers."
            )
        self._learning_rate = float(value)

    def step(self) -> None:
        """Change the parameters, in place."""
        self.step_on(self._parameters)

    def step_on(self, parameters: Iterable[Tensor]) -> None:
        """Change `parameters`, in place: those of `step`, or those that a static program found."""
        for parameter in parameters:
            if parameter._stop_gradient or parameter.grad is None:
                continue
            array: Array = parameter.array
            change = parameter.grad.array.astype(array.dtype, copy=False)
            if self._weight_decay:
                change = change + self._weight_decay * array
            array -= self._learning_rate * change
            mark_changed(array)

    def minimize(self, loss: Tensor, startup_program: Any = None, parameters: Iterable[Any] | None = None) -> Any:
        """`step`. As in Paddle the gradients must be there: ``loss.backward()`` comes first.

        Of a Variable: add its gradients and the step to the program, for `parameters` or else those of the optimizer,
        or all that the program uses.
        """
        if isinstance(loss, Symbol):
            return minimized(loss, self, list(parameters or self._parameters) or None)
        return self.step()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of the parameters: zeros, or None."""
        for parameter in self._parameters:
            parameter.clear_grad(set_to_zero)

    clear_gradients = clear_grad
