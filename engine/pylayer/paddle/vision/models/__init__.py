"""`paddle.vision.models`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "nn.resnet": "ResNet resnet101 resnet152 resnet18 resnet34 resnet50",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
