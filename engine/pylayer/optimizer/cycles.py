"""`paddle.optimizer.lr`: schedules that go up and down, and the one that follows a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.optimizer.schedules import LRScheduler, _checked


class OneCycleLR(LRScheduler):
    """Up to `max_learning_rate`, then down to `end_learning_rate`, in `total_steps` (Smith and Topin, 2017).

    Args:
        divide_factor: the start is `max_learning_rate` / `divide_factor`.
        phase_pct: the share of steps that go up.
        anneal_strategy: cos or linear.
        three_phase: down to the start as long as it went up, then on to the end.

    Raises:
        ValueError: a number out of its range, or a step beyond `total_steps`.
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        for name, rate in (("max_learning_rate", max_learning_rate), ("end_learning_rate", end_learning_rate)):
            _checked(
                isinstance(rate, (float, int)), TypeError, f"'{name}' must be 'float' or 'int', but got {type(rate)}"
            )
            _checked(rate >= 0, ValueError, f"'{name}' must be a positive integer.")
        _checked(
            isinstance(total_steps, int), TypeError, f"'total_step' must be 'int', but received {type(total_steps)}"
        )
        _checked(total_steps > 0, ValueError, "'total_step' must be a positive integer.")
        _checked(0 <= phase_pct <= 1, ValueError, f"'phase_pct' must be between 0 and 1, but received {phase_pct}")
        _checked(
            not three_phase or phase_pct < 0.5,
            ValueError,
            "When three_phase is True, 'phase_pct' must be less than 0.5",
        )
        _checked(
            anneal_strategy in ("cos", "linear"),
            ValueError,
            f"'anneal_strategy' must by one of 'cos' or 'linear', but received {anneal_strategy}",
        )
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        start, up = max_learning_rate / divide_factor, phase_pct * total_steps - 1
        ends, rates = [0.0, up, total_steps - 1.0], [start, max_learning_rate, float(end_learning_rate)]
        if three_phase:
            ends.insert(2, 2 * phase_pct * total_steps - 2)
            rates.insert(2, start)
        self.ends, self.rates = ends, rates
        super().__init__(start, last_epoch, verbose)

    def get_lr(self) -> float:
        at = self.last_epoch
        _checked(
            at <= self.total_steps,
            ValueError,
            f"Tried to step {at} times. However the number of total steps is {self.total_steps}",
        )
        k = next((k for k in range(1, len(self.ends) - 1) if at <= self.ends[k]), len(self.ends) - 1)
        share = (at - self.ends[k - 1]) / (self.ends[k] - self.ends[k - 1])
        before, after = self.rates[k - 1], self.rates[k]
        if self.anneal_strategy == "linear":
            return (after - before) * share + before
        return after + (before - after) / 2.0 * (math.cos(math.pi * share) + 1)


_SCALES: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda at, gamma: 1.0, "cycle"),
    "triangular2": (lambda at, gamma: float(2.0 ** (1 - at)), "cycle"),
    "exp_range": (lambda at, gamma: float(gamma**at), "iterations"),
}
"""Per mode, what the height of a cycle is multiplied with, and what of."""


class CyclicLR(LRScheduler):
    """Up and down between two rates, again and again (Smith, 2017).

    Args:
        step_size_down: as many as up, unless given.
        mode: triangular; triangular2, half as high each time; or exp_range, `exp_gamma`^epoch as high.
        scale_fn: what the height is multiplied with instead, of the number of the cycle or, with the `scale_mode`
            ``iterations``, of the epoch.

    Raises:
        ValueError: a number out of its range, or another mode.
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _checked(
            max_learning_rate >= 0,
            ValueError,
            f"'max_learning_rate' must be a positive integer, but received {max_learning_rate}",
        )
        for name, size in (("step_size_up", step_size_up), ("step_size_down", step_size_down)):
            _checked(size is None or size > 0, ValueError, f"'{name}' must be a positive integer, but received {size}")
        _checked(
            mode in _SCALES or scale_fn is not None,
            ValueError,
            "'mode' is invalid and 'scale_fn' is not specified, make sure one of 'mode' or 'scale_fn' is valid",
        )
        _checked(
            scale_mode in ("cycle", "iterations"), ValueError, "'scale_mode' must be one of 'cycle' or 'iterations"
        )
        up = float(step_size_up)
        self.cycle_size = up + float(up if step_size_down is None else step_size_down)
        self.step_up_pct = up / self.cycle_size
        self.amplitude = float(max_learning_rate) - base_learning_rate
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        if scale_fn is None:
            scale, self.scale_mode = _SCALES[mode]
            self.scale_fn = lambda at: scale(at, exp_gamma)
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        at = self.last_epoch
        cycle = 1 + at // self.cycle_size
        within = 1.0 + at / self.cycle_size - cycle
        rising = within <= self.step_up_pct
        height = within / self.step_up_pct if rising else (1 - within) / (1 - self.step_up_pct)
        assert self.scale_fn is not None
        return self.base_lr + self.amplitude * height * self.scale_fn(cycle if self.scale_mode == "cycle" else at)


class ReduceOnPlateau(LRScheduler):
    """Times `factor` when the metric that `step` is told has not become better for more than `patience` epochs.

    Args:
        mode: min, smaller is better, or max.
        threshold: by how much it must be better: relative (`threshold_mode` rel) or absolute (abs).
        cooldown: how many epochs are not counted after a reduction.
        min_lr: the least rate.
        epsilon: a smaller change is not made.

    Raises:
        ValueError: another mode, or a factor of 1 or more.
    """

    keys = ("cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr")

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ) -> None:
        _checked(mode.lower() in ("min", "max"), ValueError, f"mode: {mode} is unknown!")
        _checked(factor < 1.0, ValueError, "new_lr = origin_lr * gamma and gamma should be < 1.0.")
        _checked(threshold_mode.lower() in ("rel", "abs"), ValueError, f"threshold mode: {threshold_mode} is unknown!")
        _checked(
            isinstance(learning_rate, (float, int)),
            TypeError,
            f"The type of 'learning_rate' in 'ReduceOnPlateau' must be 'float', but received {type(learning_rate)}.",
        )
        self.mode, self.threshold_mode, self.factor = mode.lower(), threshold_mode.lower(), factor
        self.patience, self.threshold, self.cooldown = patience, threshold, cooldown
        self.min_lr, self.epsilon, self.verbose = min_lr, epsilon, verbose
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self.best: Any = None
        self.base_lr = self.last_lr = float(learning_rate)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go on, with a number or a Tensor of one element."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        value = metrics.item() if hasattr(metrics, "item") else metrics
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            rate = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - rate > self.epsilon:
                self.last_lr = rate
                self._tell()

    def _is_better(self, value: float) -> bool:
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1)
        return bool(value < self.best - margin if self.mode == "min" else value > self.best + margin)


class CosineAnnealingWarmRestarts(LRScheduler):
    """`CosineAnnealingDecay` that starts anew after T_0 epochs, then T_0 · T_mult, then T_0 · T_mult² …."""

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _checked(T_0 > 0 and isinstance(T_0, int), ValueError, f"Expected positive integer T_0, but got {T_0}")
        _checked(T_mult >= 1 and isinstance(T_mult, int), ValueError, f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        at, length = self.last_epoch, self.T_0
        if self.T_mult == 1 or at == math.inf:  # which no number of cycles would reach
            at %= length
        while at >= length:
            at, length = at - length, length * self.T_mult
        return self.eta_min + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * at / length)) / 2


class LinearLR(LRScheduler):
    """base times a factor that goes from `start_factor` to `end_factor` in `total_steps`."""

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _checked(
            0 < start_factor <= 1.0,
            ValueError,
            f"`start_factor` must be greater than 0 and less or equal to 1, but got {start_factor}",
        )
        _checked(
            0 <= end_factor <= 1.0,
            ValueError,
            f"`end_factor` must be greater than 0 and less than 1, but got {end_factor}",
        )
        _checked(total_steps > 0, ValueError, f"`total_steps` must be greater than 0, but got {total_steps}")
        self.start_factor, self.end_factor, self.total_steps = start_factor, end_factor, total_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        share = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * share)
