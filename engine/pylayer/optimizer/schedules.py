"""`paddle.optimizer.lr`: learning rates as functions of the epoch."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class LRScheduler:
    """A learning rate that changes with `step`. A subclass says how, in `get_lr`, from `base_lr` and `last_epoch`.

    Raises:
        TypeError: the learning rate is no number.
        ValueError: it is negative.
    """

    keys: Sequence[str] = ("last_epoch", "last_lr")
    """The attributes that `state_dict` holds."""

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(learning_rate, (float, int)):
            raise TypeError(f"The type of learning rate must be float, but received {type(learning_rate)}")
        if learning_rate < 0:
            raise ValueError(f"Invalid learning rate: {learning_rate}")
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def __call__(self) -> float:
        return self.last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to the one given."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        self._tell()

    def _tell(self) -> None:
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The learning rate of `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} must override get_lr().")

    def state_keys(self) -> None:
        """To be overridden by one that keeps more: sets `keys`."""

    def state_dict(self) -> dict[str, Any]:
        """What `set_state_dict` takes on."""
        self.state_keys()
        return {key: getattr(self, key) for key in self.keys}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take on a state.

        Raises:
            RuntimeError: something is missing in it.
        """
        self.state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise RuntimeError(
                    f"Please check whether state_dict is correct for optimizer. Can't find [ {key} ] in state_dict"
                )
            setattr(self, key, state_dict[key])

    set_dict = set_state_dict


def _checked(condition: bool, error: type[Exception], message: str) -> None:
    if not condition:
        raise error(message)


class NoamDecay(LRScheduler):
    """base · d_model^−½ · min(epoch^−½, epoch · warmup_steps^−3/2) (Vaswani et al., 2017, section 5.3)."""

    def __init__(
        self, d_model: int, warmup_steps: int, learning_rate: float = 1.0, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        _checked(d_model > 0, ValueError, "d_model should be grater than 0")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        after = self.last_epoch**-0.5 if self.last_epoch else 1.0
        return float(self.base_lr * self.d_model**-0.5 * min(after, self.warmup_steps**-1.5 * self.last_epoch))


class PiecewiseDecay(LRScheduler):
    """One of `values` between two `boundaries`."""

    def __init__(
        self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        _checked(len(boundaries) > 0, ValueError, "The boundaries cannot be empty.")
        _checked(
            len(values) > len(boundaries),
            ValueError,
            f"The values have one more element than boundaries, but received len(values) [{len(values)}] < "
            f"len(boundaries) + 1 [{len(boundaries) + 1}].",
        )
        self.boundaries, self.values = boundaries, values
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        return self.values[bisect.bisect_right(self.boundaries, self.last_epoch)]


class _GammaDecay(LRScheduler):
    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_GammaDecay):
    """base · exp(−gamma · epoch)."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_GammaDecay):
    """base / (1 + gamma · epoch)."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_GammaDecay):
    """base · gamma^epoch."""

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False) -> None:
        _checked(
            0.0 < gamma < 1.0,
            AssertionError,
            " 'gamma' must be in interval (0.0, 1.0) so that the learning rate will decay.",
        )
        super().__init__(learning_rate, gamma, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma**self.last_epoch)


class PolynomialDecay(LRScheduler):
    """(base − end) · (1 − epoch / decay_steps)^power + end; with `cycle` the steps grow by multiples."""

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _checked(power > 0.0, AssertionError, " 'power' must be greater than 0.0 so that the learning rate will decay.")
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        epoch, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= math.ceil(epoch / steps) or 1
        else:
            epoch = min(epoch, steps)
        return float((self.base_lr - self.end_lr) * (1 - epoch / steps) ** self.power + self.end_lr)


class LinearWarmup(LRScheduler):
    """From `start_lr` to `end_lr` in `warmup_steps`, then `learning_rate`, a number or a schedule of its own."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _checked(
            isinstance(learning_rate, (float, int, LRScheduler)),
            TypeError,
            f"the type of learning_rate should be [int, float or LRScheduler], the current type is {learning_rate}",
        )
        _checked(end_lr > start_lr, AssertionError, f"end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            return (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate

    def state_dict(self) -> dict[str, Any]:
        inner = self.learning_rate
        own = {"LinearWarmup_LR": inner.state_dict()} if isinstance(inner, LRScheduler) else {}
        return super().state_dict() | own

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])


class MultiStepDecay(LRScheduler):
    """base · gamma^(the number of milestones passed)."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        _checked(
            isinstance(milestones, (tuple, list)),
            TypeError,
            f"The type of 'milestones' in 'MultiStepDecay' must be 'tuple, list', but received {type(milestones)}.",
        )
        rising = all(a < b for a, b in itertools.pairwise(milestones))
        _checked(rising, ValueError, "The elements of milestones must be incremented")
        _checked(gamma < 1.0, ValueError, "gamma should be < 1.0.")
        self.milestones, self.gamma = milestones, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma ** bisect.bisect_right(self.milestones, self.last_epoch))


class StepDecay(LRScheduler):
    """base · gamma^(epoch // step_size)."""

    def __init__(
        self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        _checked(
            isinstance(step_size, int),
            TypeError,
            f"The type of 'step_size' must be 'int', but received {type(step_size)}.",
        )
        _checked(gamma < 1.0, ValueError, "gamma should be < 1.0.")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma ** (self.last_epoch // self.step_size))


class _FunctionDecay(LRScheduler):
    def __init__(
        self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        _checked(
            callable(lr_lambda),
            TypeError,
            f"The type of 'lr_lambda' in '{type(self).__name__}' must be 'function', but received {type(lr_lambda)}.",
        )
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)


class LambdaDecay(_FunctionDecay):
    """base · lr_lambda(epoch)."""

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(_FunctionDecay):
    """base · lr_lambda(1) · … · lr_lambda(epoch)."""

    def get_lr(self) -> float:
        return self.base_lr * math.prod(self.lr_lambda(k) for k in range(1, self.last_epoch + 1))


class CosineAnnealingDecay(LRScheduler):
    """eta_min + (base − eta_min) · (1 + cos(π · epoch / T_max)) / 2 (Loshchilov and Hutter, 2017)."""

    def __init__(
        self, learning_rate: float, T_max: int, eta_min: float = 0, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        _checked(
            isinstance(T_max, int),
            TypeError,
            f"The type of 'T_max' in 'CosineAnnealingDecay' must be 'int', but received {type(T_max)}.",
        )
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        half = (self.base_lr - self.eta_min) / 2
        return self.eta_min + half * (1 + math.cos(math.pi * self.last_epoch / self.T_max))
