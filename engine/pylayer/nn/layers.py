"""The common layers: linear, embedding, dropout, activations, losses, layer normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.nn import functional, losses
from pylayer.nn.checks import check_reduction
from pylayer.nn.initializer import Constant
from pylayer.nn.layer import Layer
from pylayer.nn.words import also
from pylayer.ops import activation, elementwise
from pylayer.ops.arguments import as_ints, require
from pylayer.tensor.tensor import Tensor


class Linear(Layer):
    """``x @ weight + bias``, `weight` of shape [in_features, out_features]; no bias if `bias_attr`
    is False.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The output, of shape [..., out_features]."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, dtype={self._dtype.name}"


class Embedding(Layer):
    """The rows of a weight of shape [num_embeddings, embedding_dim]; the row of `padding_idx` is
    initially zeros.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        *,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype)
        self._num_embeddings, self._embedding_dim = num_embeddings, embedding_dim
        self._padding_idx = padding_idx
        self._max_norm, self._norm_type, self._sparse = max_norm, norm_type, sparse
        self._scale_grad_by_freq = scale_grad_by_freq
        shape = [num_embeddings, embedding_dim]
        if _weight is None:
            self.weight = self.create_parameter(shape, weight_attr, device=device)
        else:
            text = "Shape of weight does not match num_embeddings and embedding_dim"
            require(list(_weight.shape) == shape, text, error=AssertionError)
            self.weight = _weight
        if weight_attr is None or _weight is not None:
            self.weight.stop_gradient = _freeze
        if padding_idx is not None:
            functional.check_padding_row(padding_idx, num_embeddings)
            self.weight.array[padding_idx] = 0.0

    @property
    def padding_idx(self) -> int | None:
        """The row that is zeros and takes no gradient."""
        return self._padding_idx

    @padding_idx.setter
    def padding_idx(self, value: int | None) -> None:
        self._padding_idx = value

    @also(input="x")
    def forward(self, x: Tensor) -> Tensor:
        """The rows `x`."""
        return functional.embedding(
            x, self.weight, self.padding_idx, self._max_norm, self._norm_type,
            scale_grad_by_freq=self._scale_grad_by_freq,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        padding = "" if self.padding_idx is None else f"padding_idx={self.padding_idx}, "
        hints = f"sparse={self._sparse}, scale_grad_by_freq={self._scale_grad_by_freq}"
        return f"{self._num_embeddings}, {self._embedding_dim}, {padding}{hints}"


class LayerNorm(Layer):
    """`nn.functional.layer_norm` with an initial weight of ones and bias of zeros, each in one
    row.
    """

    @also(eps="epsilon")
    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-5,
        *,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype)
        weight_attr = weight_attr if elementwise_affine else False
        bias_attr = bias_attr if elementwise_affine and bias else False
        self._normalized_shape, self._epsilon = as_ints(normalized_shape), epsilon
        shape = [math.prod(self._normalized_shape)]
        self.weight = self.create_parameter(
            shape, weight_attr, default_initializer=Constant(1.0), device=device
        )
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return functional.layer_norm(
            input, self._normalized_shape, self.weight, self.bias, self._epsilon
        )

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class Dropout(Layer):
    """`nn.functional.dropout`, in training mode only."""

    def __init__(
        self,
        p: float = 0.5,
        inplace: bool = False,
        axis: Any = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.p, self.axis, self.mode, self.inplace = p, axis, mode, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with some elements set to zero."""
        return functional.dropout(input, self.p, self.axis, self.training, mode=self.mode)

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return f"p={self.p}, axis={self.axis}, mode={self.mode}, inplace={self.inplace}"


class Identity(Layer):
    """Returns its input; arguments of the constructor are ignored, as in Paddle."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


# --------------------------------------------------------------------------- activations
class _Activation(Layer):
    """A layer that calls an activation function without options."""

    function: Callable[[Tensor], Tensor]

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        """The function's result."""
        return type(self).function(x)


class ReLU(_Activation):
    """`nn.functional.relu` as a layer."""

    function = staticmethod(activation.relu)


class Tanh(_Activation):
    """`paddle.tanh` as a layer."""

    function = staticmethod(elementwise.tanh)


class Sigmoid(_Activation):
    """`nn.functional.sigmoid` as a layer."""

    function = staticmethod(elementwise.sigmoid)


class Swish(_Activation):
    """`nn.functional.swish` as a layer."""

    function = staticmethod(activation.swish)


class Silu(Layer):
    """`nn.functional.silu` as a layer; the hint `inplace` is ignored."""

    def __init__(self, inplace: bool = False, name: str | None = None) -> None:
        super().__init__()
        self._inplace, self._name = inplace, name

    def forward(self, x: Tensor) -> Tensor:
        """The function's result."""
        return activation.silu(x)

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return f"inplace={self._inplace}"


class GELU(Layer):
    """`nn.functional.gelu` as a layer."""

    def __init__(self, approximate: bool | str = False, name: str | None = None) -> None:
        super().__init__()
        self._approximate, self._name = approximate, name

    def forward(self, x: Tensor) -> Tensor:
        """The function's result."""
        return activation.gelu(x, self._approximate)

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return f"approximate={self._approximate}"


class Softmax(Layer):
    """`nn.functional.softmax` as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis, self._name = axis, name

    def forward(self, x: Tensor) -> Tensor:
        """The function's result."""
        return activation.softmax(x, self._axis)

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return f"axis={self._axis}"


# --------------------------------------------------------------------------- losses
class MSELoss(Layer):
    """`nn.functional.mse_loss` as a layer."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return losses.mse_loss(input, label, self.reduction)


class CrossEntropyLoss(Layer):
    """`nn.functional.cross_entropy` as a layer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction
        self.soft_label, self.axis, self.use_softmax = soft_label, axis, use_softmax
        self.label_smoothing, self.name = label_smoothing, name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return losses.cross_entropy(
            input,
            label,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.soft_label,
            self.axis,
            self.use_softmax,
            self.label_smoothing,
        )


class BCEWithLogitsLoss(Layer):
    """`nn.functional.binary_cross_entropy_with_logits` as a layer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.weight, self.reduction = weight, reduction
        self.pos_weight, self.name = pos_weight, name

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return losses.binary_cross_entropy_with_logits(
            logit, label, self.weight, self.reduction, self.pos_weight
        )
