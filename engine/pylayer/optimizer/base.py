"""What all optimizers do: which parameters, at what rate, decay and clipping, and the state that goes with each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pylayer.optimizer.clip import GradientClip
from pylayer.optimizer.regularizer import L1Decay, L2Decay, Regularizer
from pylayer.static.backward import append_backward, minimized, stepped
from pylayer.tape.symbol import Symbol, recording
from pylayer.tape.versions import mark_changed
from pylayer.tensor.array import XP, Array, to_numpy
from pylayer.tensor.invalid import check_supported
from pylayer.tensor.tensor import Tensor

State = dict[str, Any]
"""What a rule keeps for one parameter, by name: arrays and numbers."""

Parameters = Iterable[Any] | None
"""Tensors, or groups of them."""


def step_number(state: State) -> int:
    """The number of this step, from 1."""
    state["step"] = int(state.get("step", 0)) + 1
    return int(state["step"])


class Optimizer:
    """Changes parameters by their gradients. A subclass says by what rule in `update`.

    Args:
        learning_rate: a number. Schedules are not part of the bundled engine.
        parameters: Tensors; or groups, dicts with ``params`` and what is to differ for them: ``learning_rate``, a
            factor to the optimizer's, and ``weight_decay``.
        weight_decay: a number is the coefficient of `L2Decay`: `weight_decay` times the parameter is added to its
            gradient. A parameter's own regularizer takes its place.
        grad_clip: `ClipGradByNorm`, `ClipGradByGlobalNorm` or `ClipGradByValue`.

    Raises:
        ValueError: no parameters are given.
        TypeError: the learning rate is no number, or the parameters are a single Tensor.
    """

    def __init__(
        self,
        learning_rate: float | Tensor,
        parameters: Parameters = None,
        weight_decay: float | Regularizer | None = None,
        grad_clip: GradientClip | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(parameters, Tensor):
            raise TypeError(
                "The optimizer's parameters should be an iterable of Tensors, but got a Tensor. Put it into a list."
            )
        if parameters is None and recording.get() is None:
            raise ValueError(
                "parameters argument given to the optimizer should not be None in dygraph mode."
            )
        if grad_clip is not None and not isinstance(grad_clip, GradientClip):
            raise TypeError("'grad_clip' should be an instance of GradientClipBase's derived class")
        given = list(parameters or ())
        self._groups: dict[int, Mapping[str, Any]] = {}
        self._parameters: list[Tensor] = []
        for group in given if given and isinstance(given[0], dict) else [{"params": given}]:
            for parameter in group["params"]:
                self._parameters.append(parameter)
                self._groups[id(parameter)] = group
        self._weight_decay = weight_decay
        self._grad_clip = grad_clip
        self._states: dict[int, State] = defaultdict(dict)
        self._saved: dict[str, Any] = {}
        check_supported(learning_rate)
        if not isinstance(learning_rate, (int, float, Tensor)):
            raise TypeError(
                f"learning rate should be float or LRScheduler, got {type(learning_rate)} here"
            )
        self._learning_rate = float(learning_rate)

    # ----------------------------------------------------------------- the rate
    def get_lr(self) -> float:
        """The learning rate."""
        return self._learning_rate

    def set_lr(self, value: float) -> None:
        """Set the learning rate.

        Raises:
            TypeError: it is no number.
        """
        if not isinstance(value, (int, float)):
            raise TypeError(
                f"The type of 'value' in optimizer.set_lr must be float, but received {type(value)}."
            )
        self._learning_rate = float(value)

    # ----------------------------------------------------------------- the step
    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        """Change the parameter's array in place, by its gradient, of the same dtype."""
        raise NotImplementedError(f"{type(self).__name__} must override update().")

    def decayed(self, parameter: Tensor, gradient: Array) -> Array:
        """The gradient with weight decay."""
        own = getattr(parameter, "regularizer", None)
        decay = (
            own
            if own is not None
            else self._group(parameter).get("weight_decay", self._weight_decay)
        )
        if decay is None:
            return gradient
        regularizer = decay if isinstance(decay, (L1Decay, L2Decay)) else L2Decay(float(decay))
        return gradient + regularizer.gradient(parameter.array)

    def _group(self, parameter: Tensor) -> Mapping[str, Any]:
        return self._groups.get(id(parameter), {})

    def step(self) -> None:
        """Change the parameters, in place."""
        self.step_on(self._parameters)

    def step_on(self, parameters: Iterable[Tensor]) -> None:
        """Change `parameters`, in place: those of `step`, or those that a static program found."""
        self._apply((p, p.grad) for p in parameters if not p._stop_gradient and p.grad is not None)

    def _apply(self, found: Iterable[tuple[Tensor, Tensor]]) -> None:
        pairs = [(p, g.array.astype(p.array.dtype, copy=False)) for p, g in found]
        if self._grad_clip is not None:
            pairs = self._grad_clip.clipped(pairs)
        for parameter, gradient in pairs:
            factor = self._group(parameter).get("learning_rate", 1.0)
            factor *= getattr(parameter, "optimize_attr", {}).get("learning_rate", 1.0)
            state = self._states[id(parameter)]
            if self._saved:
                self._restore(parameter, state)
            self.update(parameter, self.decayed(parameter, gradient), self.get_lr() * factor, state)
            mark_changed(parameter.array)

    def minimize(
        self,
        loss: Tensor,
        startup_program: Any = None,
        parameters: Iterable[Any] | None = None,
        no_grad_set: Any = None,
    ) -> Any:
        """`step`. As in Paddle the gradients must be there: ``loss.backward()`` comes first.

        Of a Variable: add its gradients and the step to the program, for `parameters` or else those of the optimizer,
        or all that the program uses.

        Returns:
            Paddle's pair: an empty list, and the parameters that have a gradient, each with it.
        """
        if isinstance(loss, Symbol):
            return minimized(loss, self, list(parameters or self._parameters) or None)
        self.step()
        return [], [
            (p, p.grad) for p in self._parameters if p.grad is not None and not p.stop_gradient
        ]

    def backward(
        self,
        loss: Any,
        startup_program: Any = None,
        parameters: Iterable[Any] | None = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The parameters that have a gradient, each with it; of a Variable, gradients are added to the program.

        As in Paddle the gradients of a Tensor must be there: ``loss.backward()`` comes first.
        """
        given = list(parameters or self._parameters)
        if isinstance(loss, Symbol):
            variable: Any = loss
            return append_backward(variable, given or None, no_grad_set, callbacks)
        return [(p, p.grad) for p in given if p.grad is not None]

    def apply_gradients(self, params_grads: Iterable[tuple[Any, Any]]) -> Any:
        """The step on these parameters with these gradients; of Variables it is added to the program."""
        pairs = sorted(params_grads, key=lambda pair: str(pair[0].name))
        if any(isinstance(gradient, Symbol) for _, gradient in pairs):
            return stepped(self, pairs)
        self._apply(pairs)
        return []

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of the parameters: zeros, or None."""
        for parameter in self._parameters:
            parameter.clear_grad(set_to_zero)

    clear_gradients = clear_grad

    # ----------------------------------------------------------------- the state
    def state_dict(self) -> dict[str, Any]:
        """What the rule keeps, as Tensors by ``<parameter's name>_<what>_0``."""
        saved: dict[str, Any] = {}
        for parameter in self._parameters:
            for key, value in self._states.get(id(parameter), {}).items():
                array = value if type(value) in XP else XP[type(parameter.array)].asarray([value])
                saved[f"{parameter.name}_{key}_0"] = Tensor(array.copy())
        return saved

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take a `state_dict` on; parameters are told apart by their names."""
        self._saved = {key: value for key, value in state_dict.items() if key != "LR_Scheduler"}
        self._states.clear()

    set_dict = set_state_dict

    def _restore(self, parameter: Tensor, state: State) -> None:
        """Move what was saved for a parameter into its state."""
        start = f"{parameter.name}_"
        for key in [key for key in self._saved if key.startswith(start) and key.endswith("_0")]:
            value = self._saved.pop(key)
            array = (
                value.array
                if isinstance(value, Tensor)
                else XP[type(parameter.array)].asarray(value)
            )
            number = array.size == 1 and array.shape != parameter.array.shape
            state[key[len(start) : -2]] = to_numpy(array).item() if number else array.copy()
