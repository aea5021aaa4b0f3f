"""`paddle.optimizer.lr`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "optimizer.cycles": "CosineAnnealingWarmRestarts CyclicLR LinearLR OneCycleLR ReduceOnPlateau",
    "optimizer.schedules": (
        "CosineAnnealingDecay ExponentialDecay InverseTimeDecay LRScheduler LambdaDecay "
        "LinearWarmup MultiStepDecay MultiplicativeDecay NaturalExpDecay NoamDecay PiecewiseDecay "
        "PolynomialDecay StepDecay"
    ),
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
