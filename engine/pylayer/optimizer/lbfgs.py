"""L-BFGS: steps by an approximate inverse Hessian of limited memory (Nocedal and Wright, 2006, algorithm 7.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pylayer.array import XP, Array
from pylayer.grad_mode import enable_grad, no_grad
from pylayer.optimizer.base import Optimizer, Parameters
from pylayer.optimizer.clip import GradientClip
from pylayer.optimizer.line_search import Trial, strong_wolfe
from pylayer.optimizer.regularizer import Regularizer
from pylayer.tensor import Tensor
from pylayer.versions import mark_changed

LEAST_CURVATURE = 1e-10
"""Of the changes of step and gradient, their product: with less they are not remembered. Paddle's number."""


class LBFGS(Optimizer):
    """Changes parameters by their gradients and what earlier steps tell of their curvature.

    Args:
        learning_rate: the length of steps, or with a line search the first that is tried.
        max_iter: of each call of `step`.
        max_eval: evaluations of the closure in each; 5/4 of `max_iter` unless given.
        tolerance_grad: the largest element of the gradient at which a call ends.
        tolerance_change: the same of a step, and of the loss's change.
        history_size: how many steps are remembered.
        line_search_fn: None or ``strong_wolfe``.
        weight_decay: without effect, as in Paddle, and so is `grad_clip`.

    Raises:
        ValueError: no parameters are given.
        TypeError: they are a single Tensor.
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        parameters: Parameters = None,
        weight_decay: float | Regularizer | None = None,
        grad_clip: GradientClip | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(1.0, parameters, weight_decay, grad_clip, name)
        self.learning_rate, self.max_iter = learning_rate, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.state: dict[str, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, under ``state``."""
        return {"state": dict(self.state)}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take a `state_dict` on."""
        self.state = dict(state_dict["state"])

    def minimize(
        self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> NoReturn:
        """Not for this optimizer: it needs a closure."""
        raise NotImplementedError(
            "LBFGS optimizer does not use this way to minimize loss. Call step(closure), where closure clears the "
            "gradients, computes the loss, calls its backward and returns it."
        )

    # ----------------------------------------------------------------- the parameters as one vector
    def _gradient(self) -> Array:
        xp = XP[type(self._parameters[0].array)]
        return xp.concatenate(
            [(xp.zeros_like(p.array) if p.grad is None else p.grad.array).reshape(-1) for p in self._parameters]
        )

    def _move(self, step: Array) -> None:
        start = 0
        for parameter in self._parameters:
            end = start + parameter.array.size
            parameter.array += step[start:end].reshape(parameter.array.shape)
            mark_changed(parameter.array)
            start = end

    # ----------------------------------------------------------------- the step
    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:
        """Up to `max_iter` steps; the loss before them.

        Args:
            closure: clears the gradients, computes the loss, calls its backward and returns it.

        Raises:
            TypeError: no closure is given.
            RuntimeError: another line search than strong_wolfe.
        """
        if closure is None:
            raise TypeError(
                "LBFGS.step() needs a closure that clears the gradients, computes the loss and calls its backward."
            )
        with no_grad():
            return self._steps(enable_grad()(closure))

    def _steps(self, closure: Callable[[], Tensor]) -> Tensor:
        state = self.state
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if float(abs(gradient).max()) <= self.tolerance_grad:
            return first
        for iteration in range(1, self.max_iter + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient)
            state["d"], state["prev_flat_grad"], state["prev_loss"] = direction, gradient, loss
            state["alpha"] = self.learning_rate
            if state["n_iter"] == 1:
                state["alpha"] *= min(1.0, 1.0 / float(abs(gradient).sum()))
            slope = float((gradient * direction).sum())
            if slope > -self.tolerance_change:
                break
            if self.line_search_fn is not None:
                found, count = self._searched(closure, Trial(0.0, loss, gradient, slope), direction)
                state["alpha"], loss, gradient = found.length, found.loss, found.gradient
                self._move(state["alpha"] * direction)
            else:
                self._move(state["alpha"] * direction)
                count = int(iteration != self.max_iter)
                if count:
                    loss, gradient = float(closure()), self._gradient()
            evaluations += count
            state["func_evals"] += count
            if (
                float(abs(gradient).max()) <= self.tolerance_grad
                or float(abs(direction * state["alpha"]).max()) <= self.tolerance_change
                or abs(loss - state["prev_loss"]) < self.tolerance_change
                or evaluations >= self.max_eval
            ):
                break
        return first

    def _direction(self, gradient: Array) -> Array:
        """Minus the gradient, times the inverse Hessian that the remembered steps suggest."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_yk=[], old_sk=[], ro=[], H_diag=1.0)
            return -gradient
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["alpha"]
        changes, steps, weights = state["old_yk"], state["old_sk"], state["ro"]
        curvature = float((change * step).sum())
        if curvature > LEAST_CURVATURE:
            for remembered, new in ((changes, change), (steps, step), (weights, 1.0 / curvature)):
                remembered[: max(0, len(remembered) - self.history_size + 1)] = []
                remembered.append(new)
            state["H_diag"] = curvature / float((change * change).sum())
        found, parts = -gradient, []
        for y, s, weight in zip(reversed(changes), reversed(steps), reversed(weights), strict=True):
            parts.append(float((s * found).sum()) * weight)
            found = found - y * parts[-1]
        found = found * state["H_diag"]
        for y, s, weight, part in zip(changes, steps, weights, reversed(parts), strict=True):
            found = found + s * (part - float((y * found).sum()) * weight)
        return found

    def _searched(self, closure: Callable[[], Tensor], start: Trial, direction: Array) -> tuple[Trial, int]:
        """The trial that the line search takes; the parameters are where they were."""
        if self.line_search_fn != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        values = [p.array.copy() for p in self._parameters]

        def evaluate(length: float) -> Trial:
            self._move(length * direction)
            loss, gradient = float(closure()), self._gradient()
            for parameter, value in zip(self._parameters, values, strict=True):
                parameter.array[...] = value
                mark_changed(parameter.array)
            return Trial(length, loss, gradient, float((gradient * direction).sum()))

        widest = float(abs(direction).max())
        return strong_wolfe(evaluate, start, self.state["alpha"], widest)
