"""`paddle.optimizer`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.optimizer import lr as lr

_EXPORTS = {
    "optimizer.adam": "Adam AdamW Adamax Lamb NAdam RAdam",
    "optimizer.base": "Optimizer",
    "optimizer.lbfgs": "LBFGS",
    "optimizer.rules": "ASGD Adadelta Adagrad Momentum RMSProp Rprop SGD",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
