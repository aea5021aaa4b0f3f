"""`paddle.nn.functional`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "nn.functional": (
        "binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity cross_entropy dropout embedding "
        "kl_div l1_loss layer_norm linear mse_loss nll_loss normalize smooth_l1_loss"
    ),
    "ops.activation": (
        "celu elu elu_ gelu glu hardsigmoid hardswish hardtanh leaky_relu leaky_relu_ log_sigmoid log_softmax "
        "mish prelu relu relu6 relu_ selu silu softmax softplus softsign swish tanhshrink"
    ),
    "ops.elementwise": "sigmoid tanh",
    "ops.padding": "pad",
    "ops.sorting": "one_hot",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
