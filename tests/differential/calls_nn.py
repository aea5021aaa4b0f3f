"""Calls of `paddle.nn.functional` on images and sequences, its losses and norms: name to arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from calls_numbers import REDUCTION, labels, losses, matched, spread
from described import T
from draws import DISTINCT, FLOATS, POSITIVE, SPECIAL, USUAL, Strategy, binary, call, ints, one, tensor, tensors
from hypothesis import strategies as st

F = FLOATS
REALS = (*FLOATS, *FLOATS, "float16", "int64")
SEQUENCES = tensors(F, ((1, 2, 5), (2, 2, 4), (2, 3), (0, 2, 4)), DISTINCT)
IMAGES = tensors(F, ((1, 2, 4, 4), (2, 4, 3, 5), (2, 3, 4), (0, 2, 4, 4)), DISTINCT)
VOLUMES = tensors(F, ((1, 2, 3, 4, 3), (1, 1, 2, 2, 2), (2, 3, 4), (0, 1, 2, 2, 2)), DISTINCT)
BY_AXES = {1: SEQUENCES, 2: IMAGES, 3: VOLUMES}
SIGNS = [-1.0, 1.0]
SHAPES = {1: ((1, 4, 5), (6, 2, 3)), 2: ((1, 4, 4, 5), (4, 2, 3, 2)), 3: ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2))}


def pooled(axes: int, **more: Any) -> Strategy[Any]:
    """Pooling over so many axes: windows, strides, padding."""
    return call(
        BY_AXES[axes], one(2, 3, 1, 9), stride=one(None, 1, 2), padding=one(0, 1), ceil_mode=st.booleans(), **more
    )


def adaptive(axes: int, **more: Any) -> Strategy[Any]:
    """Pooling to sizes."""
    return call(BY_AXES[axes], one(1, 2, 3, 0), **more)


def convolved(axes: int, transposed: bool = False) -> Strategy[Any]:
    """Convolutions, with groups and a bias or without."""
    image, weight = SHAPES[axes]
    if transposed:
        weight = (image[1], 2, *weight[2:])
        pair = matched([image, weight], [(2, *image[1:]), weight], [image[1:], weight])
        return spread(
            pair,
            bias=one(None, tensor("float64", (2,))),
            stride=one(1, 2),
            padding=one(0, 1),
            dilation=one(1, 2),
            output_padding=one(0, 1),
        )
    groups = image[1] // weight[1]
    pair = matched(
        [image, weight], [(2, *image[1:]), weight], [image, (weight[0], 3, *weight[2:])], [(0, *image[1:]), weight]
    )
    return spread(
        pair,
        bias=one(None, tensor("float64", weight[:1])),
        stride=one(1, 2),
        padding=one(0, 1, "SAME", "VALID"),
        dilation=one(1, 2),
        groups=groups,
    )


def triples(*shapes: Any) -> Strategy[Any]:
    return matched(*([shape] * 3 for shape in shapes), values=DISTINCT)


def unpooled(axes: int) -> Strategy[Any]:
    """Values and the places they came from."""
    shape = (1, 2, *[2] * axes)
    place = tensor("int32", shape, [float(k) for k in range(2**axes)], ("constant",))
    return call(tensors(F, (shape,), DISTINCT), place, one(2, 1), stride=one(None, 2))


LOSSES: dict[str, Strategy[Any]] = {
    "square_error_cost": spread(losses()), "log_loss": spread(matched([(2, 1), (2, 1)], [(3,), (3,)], dtypes=("float32",), values=[0.0, 0.25, 0.5, 1.0]), epsilon=one(1e-4, 0.5)),
    "dice_loss": call(tensors(F, ((2, 3), (2, 2, 3)), POSITIVE), one(labels((2, 1)), labels((2, 2, 1)), labels((2,))), epsilon=one(1e-5, 0.5)),
    "sigmoid_focal_loss": spread(losses(USUAL, [0.0, 1.0]), normalizer=one(None, T(np.array([2.0]), "float64")), alpha=one(0.25, 0.5), gamma=one(2.0, 1.5, 0), reduction=REDUCTION),
    "margin_ranking_loss": spread(triples((2, 3), (3,), ()), margin=one(0.0, 0.5), reduction=REDUCTION),
    "hinge_embedding_loss": spread(losses(USUAL, SIGNS), margin=one(1.0, 0.5), reduction=REDUCTION),
    "cosine_embedding_loss": call(*[tensor("float64", (2, 3), DISTINCT)] * 2, tensor("int64", (2,), SIGNS, ("constant",)), margin=one(0, 0.5, 2), reduction=REDUCTION),
    "pairwise_distance": spread(matched([(2, 3), (2, 3)], [(3,), (3,)], [(2, 3), (3,)]), p=one(2.0, 1.0, 0, 3.0, float("inf")), epsilon=one(1e-6, 0.0), keepdim=st.booleans()),
    "triplet_margin_loss": spread(triples((2, 3), (3,)), margin=one(1.0, 0.5), p=one(2.0, 1.0), swap=st.booleans(), reduction=REDUCTION),
    "triplet_margin_with_distance_loss": spread(triples((2, 3), (3,)), margin=one(1.0, 0.5), swap=st.booleans(), reduction=REDUCTION),
    "poisson_nll_loss": spread(losses(POSITIVE, POSITIVE), log_input=st.booleans(), full=st.booleans(), epsilon=one(1e-8, 0.5), reduction=REDUCTION),
    "gaussian_nll_loss": call(*[tensor("float64", (2, 3), DISTINCT)] * 2, tensor("float64", (2, 3), POSITIVE, ("constant",)), full=st.booleans(), reduction=REDUCTION),
    "soft_margin_loss": spread(losses(USUAL, SIGNS), reduction=REDUCTION),
    "softmax_with_cross_entropy": call(tensors(F, ((2, 3),)), one(labels((2, 1)), labels((2,))), ignore_index=one(-100, 1), return_softmax=st.booleans(), axis=one(-1, 1)),
    "label_smooth": call(tensors(F, ((2, 3), (3,)), (0.0, 1.0)), epsilon=one(0.1, 0.25), prior_dist=one(None, tensor("float64", (1, 3), POSITIVE, ("constant",)))),

}  # fmt: skip

ACTIVATIONS: dict[str, Strategy[Any]] = {
    **{name: call(tensors(REALS, values=SPECIAL), threshold=one(0.5, 0.25, 1)) for name in ("hardshrink", "softshrink")},
    "gumbel_softmax": call(tensors(F, ((2, 3), (3,))), temperature=one(1.0, 0.5), hard=st.booleans(), axis=one(-1, 0)),
    "swiglu": st.one_of(binary(F), call(tensors(F, ((2, 4), (4,), (3,))))),
    "sequence_mask": call(one(ints((2,), 3, least=0), ints((2, 2), 3, "int32", 0), tensor("float64", (2,), (1.0, 2.0), ("constant",))), maxlen=one(None, 2, 4), dtype=one("int64", "float32", "bool")),
    **{name: call(tensors(F, ((2, 3), (3,), ())), p=one(0.0, 0.5, 1.0, 1.5), training=st.booleans()) for name in ("alpha_dropout",)},
    **{f"dropout{k}d": call(BY_AXES[k], p=one(0.0, 0.5, 1.0), training=st.booleans()) for k in (1, 2, 3)},
}  # fmt: skip

NORMS: dict[str, Strategy[Any]] = {
    "batch_norm": st.one_of(
        call(tensors(F, ((2, 3), (2, 3, 4), (2, 3, 2, 2), (1, 3)), DISTINCT), tensor("float64", (3,), kinds=("constant",)), tensor("float64", (3,), POSITIVE, ("constant",)), weight=one(None, tensor("float64", (3,))), bias=one(None, tensor("float64", (3,))), training=st.booleans(), momentum=one(0.5), epsilon=one(1e-3))),
    "group_norm": call(tensors(F, ((2, 4, 3), (1, 4, 2, 2), (2, 4)), DISTINCT), one(2, 1, 4, 3), weight=one(None, tensor("float64", (4,))), bias=one(None, tensor("float64", (4,))), epsilon=one(1e-3)),
    "instance_norm": call(tensors(F, ((2, 3, 4), (1, 3, 2, 2), (2, 3)), DISTINCT), weight=one(None, tensor("float64", (3,))), bias=one(None, tensor("float64", (3,)))),
    "rms_norm": call(tensors(F, ((2, 3), (2, 2, 3)), DISTINCT), one([3], 3), tensor("float64", (3,))),
    "scaled_dot_product_attention": st.one_of(spread(triples((1, 2, 2, 3), (2, 3, 1, 2)), is_causal=st.booleans()), spread(triples((1, 2, 2, 3)), attn_mask=tensor("float64", (1, 2, 2, 2), USUAL, ("constant",)))),
}  # fmt: skip

SPATIAL: dict[str, Strategy[Any]] = {
    **{f"conv{k}d": convolved(k) for k in (1, 2, 3)}, **{f"conv{k}d_transpose": convolved(k, True) for k in (1, 2, 3)},
    **{f"max_pool{k}d": pooled(k, return_mask=st.booleans()) for k in (1, 2, 3)}, **{f"avg_pool{k}d": pooled(k, exclusive=st.booleans()) for k in (1, 2, 3)},
    **{f"adaptive_avg_pool{k}d": adaptive(k) for k in (1, 2, 3)}, **{f"adaptive_max_pool{k}d": adaptive(k, return_mask=st.booleans()) for k in (1, 2, 3)},
    "unfold": call(IMAGES, one(2, [1, 3], 9), strides=one(1, 2), paddings=one(0, 1, [1, 0, 0, 1]), dilations=one(1, 2)),
    "fold": call(tensors(F, ((1, 4, 4), (2, 8, 4), (4, 4), (1, 3, 4)), DISTINCT), one([3, 3], 3, [2, 5]), one(2, [2, 2]), strides=one(1), paddings=one(0)),
    "pixel_shuffle": call(IMAGES, one(2, 1, 3), data_format=one("NCHW", "NHWC")), "pixel_unshuffle": call(IMAGES, one(2, 1, 3)),
}  # fmt: skip

FUNCTIONAL: dict[str, Strategy[Any]] = {**LOSSES, **ACTIVATIONS, **NORMS, **SPATIAL}
RANDOM = set("gumbel_softmax".split())
