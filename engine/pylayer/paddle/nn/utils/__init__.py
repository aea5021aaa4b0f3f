"""`paddle.nn.utils`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "optimizer.clip": "clip_grad_norm_ clip_grad_value_",
    "nn.reparametrisation": "remove_weight_norm spectral_norm weight_norm",
    "nn.vectors": "parameters_to_vector vector_to_parameters",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
