"""The shared part of optimizers: parameters, learning rate, weight decay, and state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pylayer.ops.arguments import require
from pylayer.ops.creation import to_tensor
from pylayer.optimizer.regularizer import L2Decay
from pylayer.static.backward import record_minimize
from pylayer.tape.symbol import Symbol, recording
from pylayer.tape.versions import mark_changed
from pylayer.tensor.array import Array
from pylayer.tensor.invalid import check_supported
from pylayer.tensor.tensor import Tensor

State = dict[str, Array]
"""The state that steps keep per parameter, by name."""

Parameters = Iterable[Any] | None
"""Tensors, or groups of Tensors."""


class Optimizer:
    """The base class of optimizers, which change parameters by their gradients. A subclass
    implements `update`.

    Args:
        learning_rate: a number. Schedules are not part of the bundled engine.
        parameters: Tensors; or groups, dicts with ``params`` and settings for them:
            ``learning_rate``, a factor of the optimizer's, and ``weight_decay``.
        weight_decay: a number is the coefficient of `L2Decay`: `weight_decay` times the parameter
            is added to its gradient. A parameter's own regularizer replaces it.
        grad_clip: None; clipping is not part of the bundled engine.

    Raises:
        ValueError: no parameters are given.
        TypeError: the learning rate is not a number, or the parameters are a single Tensor.
    """

    def __init__(
        self,
        learning_rate: float | Tensor,
        parameters: Parameters = None,
        weight_decay: float | L2Decay | None = None,
        grad_clip: None = None,
        name: str | None = None,
    ) -> None:
        text = "The optimizer's parameters should be an iterable of Tensors, but got a Tensor"
        require(not isinstance(parameters, Tensor), f"{text}. Put it into a list", error=TypeError)
        is_given = parameters is not None or recording.get() is not None
        require(
            is_given,
            "parameters argument given to the optimizer should not be None in dygraph mode",
        )
        check_supported(grad_clip)
        text = "'grad_clip' should be an instance of GradientClipBase's derived class"
        require(grad_clip is None, text, error=TypeError)
        entries = list(parameters or ())
        self._groups: dict[int, Mapping[str, Any]] = {}
        self._parameters: list[Tensor] = []
        for group in entries if entries and isinstance(entries[0], dict) else [{"params": entries}]:
            for parameter in group["params"]:
                self._parameters.append(parameter)
                self._groups[id(parameter)] = group
        self._weight_decay = weight_decay
        self._states: dict[int, State] = defaultdict(dict)
        self.set_lr(learning_rate)

    # ----------------------------------------------------------------- the rate
    def get_lr(self) -> float:
        """The learning rate."""
        return self._learning_rate

    def set_lr(self, value: float | Tensor) -> None:
        """Set the learning rate.

        Raises:
            TypeError: the rate is not a number.
        """
        check_supported(value)
        is_number = isinstance(value, (int, float, Tensor))
        text = f"learning rate should be float or LRScheduler, got {type(value)} here"
        require(is_number, text, error=TypeError)
        self._learning_rate = float(value)

    # ----------------------------------------------------------------- the step
    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        """Change the parameter's array in place, using its gradient, which has the same dtype."""
        raise NotImplementedError(f"{type(self).__name__} must override update().")

    def add_weight_decay(self, parameter: Tensor, gradient: Array) -> Array:
        """The gradient including weight decay."""
        decay = getattr(parameter, "regularizer", None)
        if decay is None:
            decay = self._group(parameter).get("weight_decay", self._weight_decay)
        if decay is None:
            return gradient
        regularizer = decay if isinstance(decay, L2Decay) else L2Decay(float(decay))
        return gradient + regularizer.gradient(parameter.array)

    def _group(self, parameter: Tensor) -> Mapping[str, Any]:
        return self._groups.get(id(parameter), {})

    def step(self) -> None:
        """Update the parameters in place."""
        self.step_on(self._parameters)

    def step_on(self, parameters: Iterable[Tensor]) -> None:
        """Change `parameters` in place: those of `step`, or those of a static program."""
        self._apply((p, p.grad) for p in parameters if not p._stop_gradient and p.grad is not None)

    def _apply(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        for parameter, gradient in pairs:
            factor = self._group(parameter).get("learning_rate", 1.0)
            factor *= getattr(parameter, "optimize_attr", {}).get("learning_rate", 1.0)
            state = self._states[id(parameter)]
            array = gradient.array.astype(parameter.array.dtype, copy=False)
            self.update(
                parameter, self.add_weight_decay(parameter, array), self.get_lr() * factor, state
            )
            mark_changed(parameter.array)

    def minimize(
        self,
        loss: Tensor,
        startup_program: Any = None,
        parameters: Iterable[Any] | None = None,
        no_grad_set: Any = None,
    ) -> Any:
        """`step`. As in Paddle, the gradients must exist: call ``loss.backward()`` first.

        For a Variable: add its gradients and the step to the program, for `parameters`, otherwise
        for those of the optimizer, otherwise for all that the program uses.

        Returns:
            Paddle's pair: an empty list, and the parameters that have a gradient, each with its
            gradient.
        """
        if isinstance(loss, Symbol):
            return record_minimize(loss, self, list(parameters or self._parameters) or None)
        self.step()
        trained = [p for p in self._parameters if p.grad is not None and not p.stop_gradient]
        return [], [(p, p.grad) for p in trained]

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradients of the parameters to zeros, or to None."""
        for parameter in self._parameters:
            parameter.clear_grad(set_to_zero)

    clear_gradients = clear_grad

    # ----------------------------------------------------------------- the state
    def state_dict(self) -> dict[str, Any]:
        """The state that the steps keep, as Tensors named ``<parameter's name>_<kind of
        state>_0``.
        """
        saved: dict[str, Any] = {}
        for parameter in self._parameters:
            for key, value in self._states.get(id(parameter), {}).items():
                saved[f"{parameter.name}_{key}_0"] = Tensor(value.copy())
        return saved

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a `state_dict`; parameters are identified by their names."""
        for parameter in self._parameters:
            start = f"{parameter.name}_"
            self._states[id(parameter)] = {
                name.removeprefix(start).removesuffix("_0"): to_tensor(value).array
                for name, value in state_dict.items()
                if name.startswith(start) and name.endswith("_0")
            }

    set_dict = set_state_dict
