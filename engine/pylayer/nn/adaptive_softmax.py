"""The softmax over many classes, those that are rare in clusters (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.nn.functional import linear
from pylayer.nn.layer import Layer
from pylayer.ops.activation import log_softmax
from pylayer.ops.joining import concat
from pylayer.ops.positions import take_along_axis
from pylayer.ops.reduction import mean
from pylayer.ops.shape import astype, squeeze, unsqueeze
from pylayer.ops.sorting import argmax
from pylayer.tensor import Tensor

Weights = Sequence[Sequence[Tensor]]


def _log_probabilities(
    input: Tensor, head_weight: Tensor, tail_weights: Weights, common: int, head_bias: Tensor | None
) -> Tensor:
    """Of all classes: `common` ones from the head, the others in their clusters, times the cluster's probability."""
    head = log_softmax(linear(input, head_weight, head_bias), 1)
    tails = [
        log_softmax(linear(linear(input, first), second), 1) + head[:, common + k : common + k + 1]
        for k, (first, second) in enumerate(tail_weights)
    ]
    found: Tensor = concat([head[:, :common], *tails], 1)
    return found


def adaptive_log_softmax_with_loss(
    input: Tensor,
    label: Tensor,
    head_weight: Tensor,
    tail_weights: Weights,
    cutoffs: Sequence[int],
    head_bias: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The log-probabilities of the labels, and minus their mean.

    Args:
        input: [batch, features], or [features] with a single label.
        head_weight: [features, common classes and clusters].
        tail_weights: for each cluster two matrices, one after the other.
        cutoffs: where clusters begin, and the number of classes.

    Raises:
        ValueError: shapes that do not fit, or labels that are no classes.
    """
    if label.ndim > 1:
        raise ValueError("0D or 1D label tensor expected, multi-label not supported")
    if label.ndim == 1 and input.shape[0] != label.shape[0]:
        raise ValueError("Input and label should have the same size in the batch dimension.")
    if input.ndim != label.ndim + 1:
        raise ValueError(
            f"{label.ndim}D label tensor expects {label.ndim + 1}D input tensors, but found inputs with size "
            f"{input.shape}"
        )
    rows = input if label.ndim else unsqueeze(input, 0)
    classes = label if label.ndim else unsqueeze(label, 0)
    low, high = int(classes.array.min()), int(classes.array.max())
    if low < 0 or high >= cutoffs[-1]:
        raise ValueError(
            f"label values should be in [0, n_classes - 1], but values in range [{low}, {high}] were found. "
        )
    scores = _log_probabilities(rows, head_weight, tail_weights, cutoffs[0], head_bias)
    output = squeeze(take_along_axis(scores, unsqueeze(classes, 1), 1), 1)
    return (output if label.ndim else squeeze(output, 0)), -mean(output)


class AdaptiveLogSoftmaxWithLoss(Layer):
    """`nn.functional.adaptive_log_softmax_with_loss`; as in Paddle, the weights of clusters are not registered."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        weight_attr: Any = None,
        bias_attr: Any = None,
        div_value: float = 4.0,
        head_bias: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        bounds = list(cutoffs)
        if bounds != sorted({int(n) for n in bounds}) or not 0 < bounds[0] <= bounds[-1] < n_classes:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs = [*bounds, n_classes]
        self.is_head_bias = head_bias
        self.shortlist_size, self.n_clusters = bounds[0], len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head_weight = self.create_parameter([in_features, self.head_size], weight_attr)
        self.head_bias = self.create_parameter([self.head_size], bias_attr, is_bias=True) if head_bias else None
        between = [int(in_features // div_value ** (k + 1)) for k in range(self.n_clusters)]
        sizes = [high - low for low, high in zip(self.cutoffs, self.cutoffs[1:], strict=False)]
        self.tail_weights = [
            [self.create_parameter([in_features, inner], weight_attr), self.create_parameter([inner, n], weight_attr)]
            for inner, n in zip(between, sizes, strict=True)
        ]

    def forward(self, input: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probabilities of the labels, and minus their mean."""
        return adaptive_log_softmax_with_loss(
            input, label, self.head_weight, self.tail_weights, self.cutoffs, self.head_bias
        )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        return _log_probabilities(input, self.head_weight, self.tail_weights, self.shortlist_size, self.head_bias)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable classes, in float32 if there is a common one among them, as in Paddle."""
        found: Tensor = argmax(self.log_prob(input), 1)
        return astype(found, "float32") if (found.array < self.shortlist_size).any() else found
