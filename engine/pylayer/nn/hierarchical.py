"""The hierarchical sigmoid loss (Morin and Bengio, 2005): a decision at each node from a class up to the root."""

from __future__ import annotations

from typing import Any

import numpy as np

from pylayer.array import XP, to_numpy
from pylayer.nn.layer import Layer
from pylayer.ops.elementwise import clip, log1p
from pylayer.ops.elementwise import exp as exponential
from pylayer.ops.indexing import getitem
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import unsqueeze
from pylayer.tensor import Tensor

LARGEST = 40.0
"""The largest score that Paddle takes the exponential of."""


def _paths(label: Any, num_classes: int, path_table: Any, path_code: Any) -> tuple[Any, Any, Any]:
    """Per sample and step from the class up: the node, the decision there, 0 or 1, and whether the path has the step.

    Without a tree, the default one is that of a binary heap: class c is the leaf c + `num_classes`, whose bits, read
    from the lowest, are the decisions, and what stands before each of them, less 1, is the node.
    """
    if path_table is not None:
        there = np.logical_and.accumulate(path_table >= 0, 1)
        return np.where(there, path_table, 0), path_code, there
    steps = np.arange(int(num_classes - 1).bit_length())
    leaf = label.reshape(-1, 1) + num_classes
    nodes = (leaf >> (steps + 1)) - 1
    return np.maximum(nodes, 0), (leaf >> steps) & 1, nodes >= 0


def hsigmoid_loss(
    input: Tensor,
    label: Tensor,
    num_classes: int,
    weight: Tensor,
    bias: Tensor | None = None,
    path_table: Tensor | None = None,
    path_code: Tensor | None = None,
    is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Minus the logarithm of the probability of the decisions from each sample's class up to the root, [batch, 1].

    As in Paddle, scores count up to ±40, and every step that a path is shorter than the longest adds log 2.

    Args:
        input: [batch, features].
        label: int64, [batch] or [batch, 1]: the classes.
        num_classes: the number of classes; of nodes, with a tree of one's own.
        weight: [nodes, features], one node less than classes; `bias` is [nodes, 1].
        path_table: int64, [batch, steps]: the nodes from each sample's class up, then -1; `path_code` has the
            decisions. Both are None for the default tree.
        is_sparse: a hint that is not taken.

    Raises:
        ValueError: fewer than two classes; shapes or dtypes that do not go together; or nodes that `weight` lacks.
    """
    if num_classes < 2:
        raise ValueError(f"Expected num_classes >= 2 (got {num_classes})")
    if (path_table is None) != (path_code is None):
        raise ValueError("(InvalidArgument) hsigmoid_loss(): path_table and path_code should be given together.")
    for what, tensor in (("label", label), ("path_table", path_table), ("path_code", path_code)):
        if tensor is not None and tensor.dtype.name != "int64":
            raise ValueError(f"(InvalidArgument) hsigmoid_loss(): {what} should be int64, not {tensor.dtype.name}.")
        if tensor is not None and tensor.shape[:1] != input.shape[:1]:
            raise ValueError(
                f"(InvalidArgument) The first dimension of input and {what} is expected to be the same, but the shapes "
                f"are {input.shape} and {tensor.shape}."
            )
    if input.ndim != 2 or weight.ndim != 2 or input.shape[1] != weight.shape[1]:
        raise ValueError(
            f"(InvalidArgument) hsigmoid_loss(): input should be [batch, features] and weight [nodes, features], but "
            f"the shapes are {input.shape} and {weight.shape}."
        )
    arrays = [None if t is None else to_numpy(t.array) for t in (label, path_table, path_code)]
    nodes, decisions, there = _paths(arrays[0], num_classes, *arrays[1:])
    if nodes.size and nodes.max() >= weight.shape[0]:
        raise ValueError(
            f"(InvalidArgument) hsigmoid_loss(): a path goes through node {nodes.max()}, but weight has "
            f"{weight.shape[0]} rows."
        )
    xp = XP[type(input.array)]
    chosen = Tensor(xp.asarray(nodes))
    scores = total(getitem(weight, chosen) * unsqueeze(input, 1), 2)
    if bias is not None:
        scores = scores + getitem(bias, (chosen, 0))
    scores = scores * Tensor(xp.asarray(there, input.array.dtype))
    bounded = scores + (clip(scores, -LARGEST, LARGEST) - scores).detach()  # the gradient is not bounded, as in Paddle
    yes = Tensor(xp.asarray(decisions * there, input.array.dtype))
    loss: Tensor = total(log1p(exponential(bounded)) - yes * bounded, 1, None, True)
    return loss


class HSigmoidLoss(Layer):
    """`hsigmoid_loss` with weight and bias of its own; with `is_custom`, of a tree that the call is given."""

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError("num_classes must not be less than 2 with default tree")
        self._num_classes = num_classes
        nodes = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([nodes, feature_size], weight_attr)
        self.bias = self.create_parameter([nodes, 1], bias_attr, is_bias=True)

    def forward(
        self, input: Tensor, label: Tensor, path_table: Tensor | None = None, path_code: Tensor | None = None
    ) -> Tensor:
        """The loss of each sample, [batch, 1]."""
        return hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code)
