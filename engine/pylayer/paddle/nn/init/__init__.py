"""`paddle.nn.init`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "nn.gains": (
        "calculate_gain constant_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ trunc_normal_ "
        "uniform_ xavier_normal_ xavier_uniform_ zeros_"
    ),
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
