"""`paddle.nn.functional`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "nn.activations": (
        "alpha_dropout bilinear dropout2d dropout3d gumbel_softmax hardshrink hardtanh_ maxout rrelu "
        "sequence_mask softmax_ softshrink swiglu thresholded_relu thresholded_relu_ zeropad2d"
    ),
    "nn.adaptive_pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d"
    ),
    "nn.common_losses": (
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy kl_div l1_loss mse_loss nll_loss "
        "smooth_l1_loss"
    ),
    "nn.convolution": "conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose",
    "nn.ctc": "ctc_loss",
    "nn.fractional_pooling": "fractional_max_pool2d fractional_max_pool3d",
    "nn.functional": "cosine_similarity dropout embedding layer_norm linear normalize",
    "nn.hierarchical": "hsigmoid_loss",
    "nn.interpolation": "interpolate upsample",
    "nn.losses": (
        "cosine_embedding_loss dice_loss gaussian_nll_loss hinge_embedding_loss label_smooth log_loss "
        "margin_ranking_loss multi_label_soft_margin_loss multi_margin_loss npair_loss pairwise_distance "
        "poisson_nll_loss sigmoid_focal_loss soft_margin_loss softmax_with_cross_entropy square_error_cost "
        "triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "nn.normalization": (
        "batch_norm group_norm instance_norm local_response_norm rms_norm scaled_dot_product_attention"
    ),
    "nn.pooling": (
        "avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d max_pool1d max_pool2d max_pool3d max_unpool1d "
        "max_unpool2d max_unpool3d"
    ),
    "nn.transducer": "rnnt_loss",
    "nn.vision": "affine_grid channel_shuffle fold grid_sample pixel_shuffle pixel_unshuffle temporal_shift unfold",
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
