"""What Paddle 3.3.1 refuses the engine refuses: by family of requirement, each run on the release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle

F = paddle.nn.functional


def made(*shape: int, dtype: str = "float64") -> Any:
    """Probabilities that all differ."""
    count = int(np.prod(shape))
    return paddle.to_tensor(((np.arange(count) + 1.0) / (count + 1)).reshape(shape)).astype(dtype)


x, v, single = made(2, 3), made(3), made(2, 3, dtype="float32")
row = made(3, dtype="float32")
seq, img, vol = made(2, 4, 7), made(2, 4, 6, 5), made(1, 2, 4, 5, 4)
kernel = img[:, :, :3, :3]
k = paddle.to_tensor([2, 0])

DTYPES = {
    "conv1d": lambda: F.conv1d(seq, seq[:, :, :3].astype("float32")),
    "conv2d": lambda: F.conv2d(img, kernel.astype("float32")),
    "conv2d of float32": lambda: F.conv2d(img.astype("float32"), kernel),
    "conv2d of integers": lambda: F.conv2d(img, kernel.astype("int64")),
    "conv3d": lambda: F.conv3d(vol, vol[:, :, :2, :2, :2].astype("float32")),
    "conv2d_transpose": lambda: F.conv2d_transpose(img, img[0, :, :3, :3].unsqueeze(1).astype("float32")),
    "layer_norm, weight": lambda: F.layer_norm(x, 3, row),
    "layer_norm, bias": lambda: F.layer_norm(x, 3, None, row),
    "batch_norm, weight": lambda: F.batch_norm(x, v, v, row, row),
    "batch_norm, statistics": lambda: F.batch_norm(x, row, row),
    "instance_norm": lambda: F.instance_norm(seq, weight=made(4, dtype="float32")),
    "group_norm": lambda: F.group_norm(seq, 2, weight=made(4, dtype="float32")),
    "prelu": lambda: F.prelu(x, row[:1]),
    "nll_loss, label of int32": lambda: F.nll_loss(x, k.astype("int32")),
    "nll_loss, weight": lambda: F.nll_loss(x, k, row),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(x, single),
    "binary_cross_entropy_with_logits": lambda: F.binary_cross_entropy_with_logits(x, single),
    "sigmoid_focal_loss": lambda: F.sigmoid_focal_loss(x, single),
}
VALUES = {
    "binary_cross_entropy above 1": lambda: F.binary_cross_entropy(x + 2, x),
    "binary_cross_entropy below 0": lambda: F.binary_cross_entropy(-x, x),
    "binary_cross_entropy of NaN": lambda: F.binary_cross_entropy(x * float("nan"), x),
    "selu, scale": lambda: F.selu(x, 0.5),
    "selu, alpha": lambda: F.selu(x, 1.5, -1.0),
    "nll_loss of a vector": lambda: F.nll_loss(v, k[:1]),
    "triu of a vector": lambda: paddle.triu(v),
    "tril of a number": lambda: paddle.tril(v[0]),
    "index_select of a list": lambda: paddle.index_select(x, [1]),
    "index_select of rows": lambda: paddle.index_select(x, paddle.to_tensor([[1, 0]])),
    "index_select of a number": lambda: paddle.index_select(x, paddle.to_tensor(1)),
    "gather of a list": lambda: paddle.gather(x, [1]),
    "gather of rows": lambda: paddle.gather(x, paddle.to_tensor([[1, 0]])),
    "index_add of a column": lambda: paddle.index_add(x, paddle.to_tensor([[1]]), 0, x[:1]),
    "index_fill of a list": lambda: paddle.index_fill(x, [1], 0, 2.0),
    "index_sample of a list": lambda: paddle.index_sample(x, [[1], [0]]),
    "instance_norm of a vector": lambda: F.instance_norm(v),
}
ZEROS = {
    "conv2d, stride": lambda: F.conv2d(img, kernel, stride=0),
    "conv2d, one stride": lambda: F.conv2d(img, kernel, stride=[1, 0]),
    "conv2d, dilation": lambda: F.conv2d(img, kernel, dilation=0),
    "conv1d": lambda: F.conv1d(seq, seq[:, :, :3], stride=0),
    "conv2d_transpose, stride": lambda: F.conv2d_transpose(img, img[0, :, :3, :3].unsqueeze(1), stride=0),
    "conv2d_transpose, groups": lambda: F.conv2d_transpose(img, img[0, :, :3, :3].unsqueeze(1), groups=0),
    "max_pool2d": lambda: F.max_pool2d(img, 2, stride=0),
    "avg_pool2d": lambda: F.avg_pool2d(img, 0),
    "unfold": lambda: F.unfold(img, 2, 0),
    "group_norm": lambda: F.group_norm(img, 0),
    "pixel_shuffle": lambda: F.pixel_shuffle(img, 0),
    "pixel_unshuffle": lambda: F.pixel_unshuffle(img, 0),
}
FORMATS = {
    "conv1d": lambda word: F.conv1d(seq, seq[:, :, :3], data_format=word),
    "conv2d": lambda word: F.conv2d(img, kernel, data_format=word),
    "conv3d": lambda word: F.conv3d(vol, vol[:, :, :2, :2, :2], data_format=word),
    "max_pool2d": lambda word: F.max_pool2d(img, 2, data_format=word),
    "avg_pool3d": lambda word: F.avg_pool3d(vol, 2, data_format=word),
    "adaptive_avg_pool2d": lambda word: F.adaptive_avg_pool2d(img, 2, data_format=word),
    "adaptive_avg_pool3d": lambda word: F.adaptive_avg_pool3d(vol, 2, data_format=word),
    "batch_norm": lambda word: F.batch_norm(x, v, v, data_format=word),
    "group_norm": lambda word: F.group_norm(img, 2, data_format=word),
    "prelu": lambda word: F.prelu(img, seq[0, :, 0], data_format=word),
    "pixel_shuffle": lambda word: F.pixel_shuffle(img, 2, word),
    "GroupNorm": lambda word: paddle.nn.GroupNorm(2, 4, data_format=word),
    "Conv2D": lambda word: paddle.nn.Conv2D(4, 4, 3, data_format=word),
}
LABELS = {
    "smooth_l1_loss": F.smooth_l1_loss,
    "kl_div": F.kl_div,
    "binary_cross_entropy": F.binary_cross_entropy,
    "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits,
    "sigmoid_focal_loss": F.sigmoid_focal_loss,
    "poisson_nll_loss": F.poisson_nll_loss,
    "soft_margin_loss": F.soft_margin_loss,
    "triplet_margin_loss": lambda a, b: F.triplet_margin_loss(a, b, a),
    "triplet_margin_with_distance_loss": lambda a, b: F.triplet_margin_with_distance_loss(a, a, b),
}


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in (DTYPES | VALUES).items()])
def test_a_dtype_or_a_value_that_the_release_refuses_is_refused(call: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        call()


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in ZEROS.items()])
def test_a_stride_or_a_number_of_groups_of_0_is_a_wrong_argument(call: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - and no ZeroDivisionError
        call()


@pytest.mark.parametrize("word", ["XX", "NWC"])
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in FORMATS.items()])
def test_an_unknown_data_format_is_refused(call: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call(word)


@pytest.mark.parametrize("shapes", [((2, 3), (1, 3)), ((2, 3), (2, 1)), ((2, 1), (2, 3))])
@pytest.mark.parametrize("loss", [pytest.param(loss, id=name) for name, loss in LABELS.items()])
def test_a_label_of_another_shape_is_not_broadcast(loss: Any, shapes: Any) -> None:
    with pytest.raises(ValueError, match="shape"):
        loss(*(made(*shape) for shape in shapes))


@pytest.mark.parametrize("name", ["MSELoss", "BCEWithLogitsLoss"])
def test_a_loss_is_not_made_with_an_unknown_reduction(name: str) -> None:
    with pytest.raises(ValueError, match="reduction"):
        getattr(paddle.nn, name)(reduction="x")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.celu(x, 0), ZeroDivisionError),
        (lambda: paddle.sinc(k), TypeError),
        (lambda: F.embedding(k.astype("int16"), x), NotImplementedError),
        (lambda: F.batch_norm(v, v, v), AssertionError),
        (lambda: F.pad(img, [1, 1, 1, 1], data_format="NCL"), AssertionError),
        (lambda: F.dice_loss(x, k), AssertionError),
    ],
)
def test_the_class_of_the_error_is_the_release_s(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_half_precision_takes_parameters_of_float32() -> None:
    half = x.astype("float16")
    assert F.layer_norm(half, 3, row, row).shape == [2, 3]
