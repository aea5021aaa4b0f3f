"""`paddle.nn`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.nn import functional as functional
from pylayer.paddle.nn import initializer as initializer
from pylayer.paddle.nn import utils as utils

_EXPORTS = {
    "nn.layer": "Layer",
    "nn.layers": (
        "BCEWithLogitsLoss CrossEntropyLoss Dropout ELU Embedding Flatten GELU Identity L1Loss LayerList "
        "LayerNorm LeakyReLU Linear LogSoftmax MSELoss ParameterList ReLU Sequential Sigmoid Silu Softmax "
        "Softplus Tanh"
    ),
    "optimizer.clip": "ClipGradByGlobalNorm ClipGradByNorm ClipGradByValue",
    "tensor": "Parameter",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
