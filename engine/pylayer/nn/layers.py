"""The common layers, and how a function becomes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.nn import common_losses, functional
from pylayer.nn.initializer import Constant
from pylayer.nn.layer import Layer
from pylayer.ops import activation, elementwise
from pylayer.ops.arguments import as_ints
from pylayer.ops.shape import flatten
from pylayer.tensor import Tensor


class Linear(Layer):
    """``x @ weight + bias``, `weight` of shape [in_features, out_features]; no bias if `bias_attr` is False."""

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
        """What the repr shows."""
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._dtype.name}"


class Embedding(Layer):
    """The rows of a weight of shape [num_embeddings, embedding_dim]."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        sparse: bool = False,
        scale_grad_by_freq: bool = False,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)

    def forward(self, x: Tensor) -> Tensor:
        """The rows `x`."""
        return functional.embedding(
            x, self.weight, self.padding_idx, self.max_norm, self.norm_type, scale_grad_by_freq=self.scale_grad_by_freq
        )

    def extra_repr(self) -> str:
        """What the repr shows."""
        padding = "" if self.padding_idx is None else f"padding_idx={self.padding_idx}, "
        return f"{self.num_embeddings}, {self.embedding_dim}, {padding}sparse=False, scale_grad_by_freq=False"


class LayerNorm(Layer):
    """`nn.functional.layer_norm` with a weight of ones and a bias of zeros to start with."""

    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.epsilon = as_ints(normalized_shape), epsilon
        self.weight = self.create_parameter(self.normalized_shape, weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(self.normalized_shape, bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.epsilon)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"normalized_shape={self.normalized_shape}, epsilon={self.epsilon}"


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
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, input: Tensor) -> Tensor:
        """The input, some of it zero."""
        return functional.dropout(input, self.p, self.axis, self.training, mode=self.mode)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"p={self.p}, axis={self.axis}, mode={self.mode}, inplace=False"


class Identity(Layer):
    """The input as it is; arguments to the constructor are ignored, as in Paddle."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


class Flatten(Layer):
    """`flatten`, from the second axis on unless told otherwise."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Tensor) -> Tensor:
        """The flattened input."""
        return flatten(input, self.start_axis, self.stop_axis)


# --------------------------------------------------------------------------- a function as a layer
class _Function(Layer):
    """A layer that calls a function with the options it was made with."""

    function: Callable[..., Any]
    options: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = ()
    shows: tuple[str, ...] = ()

    def __init__(self, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__()
        if len(args) > len(self.options) or kwargs.keys() - set(self.options[len(args) :]):
            given = ", ".join([*map(repr, args), *kwargs])
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.options) or 'no options'}, but got {given}.")
        values = {
            **dict(zip(self.options, self.defaults, strict=True)),
            **dict(zip(self.options, args, strict=False)),
            **kwargs,
        }
        missing = [option for option, value in values.items() if value is REQUIRED]
        if missing:
            raise TypeError(f"{type(self).__name__} needs {', '.join(missing)}.")
        self.values: dict[str, Any] = values

    def forward(self, *inputs: Any) -> Any:
        """The function's result."""
        return type(self).function(*inputs, **self.values)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return ", ".join(f"{key}={self.values[key]}" for key in self.shows)


REQUIRED = object()
"""The default of an option that has none."""


def function_layer(
    name: str, function: Callable[..., Any], shows: bool | str = True, /, **options: Any
) -> type[_Function]:
    """A layer class over `function`, its options and their defaults given; the repr shows all of them, none, or some.

    The repr of a loss shows none.
    """
    body = {
        "__doc__": f"`nn.functional.{function.__name__}` as a layer.",
        "__module__": __name__,
        "function": staticmethod(function),
        "options": tuple(options),
        "defaults": tuple(options.values()),
        "shows": tuple(shows.split()) if isinstance(shows, str) else tuple(options) if shows else (),
    }
    return type(name, (_Function,), body)


ReLU = function_layer("ReLU", activation.relu)
Tanh = function_layer("Tanh", elementwise.tanh)
Sigmoid = function_layer("Sigmoid", elementwise.sigmoid)
Silu = function_layer("Silu", activation.silu, inplace=False)
GELU = function_layer("GELU", activation.gelu, approximate=False)
LeakyReLU = function_layer("LeakyReLU", activation.leaky_relu, negative_slope=0.01)
ELU = function_layer("ELU", activation.elu, alpha=1.0)
Softplus = function_layer("Softplus", activation.softplus, beta=1, threshold=20)
Softmax = function_layer("Softmax", activation.softmax, axis=-1)
LogSoftmax = function_layer("LogSoftmax", activation.log_softmax, axis=-1)
MSELoss = function_layer("MSELoss", common_losses.mse_loss, False, reduction="mean")
L1Loss = function_layer("L1Loss", common_losses.l1_loss, False, reduction="mean")
CrossEntropyLoss = function_layer(
    "CrossEntropyLoss", common_losses.cross_entropy, False, weight=None, ignore_index=-100, reduction="mean",
    soft_label=False,
    axis=-1, use_softmax=True, label_smoothing=0.0,
)  # fmt: skip
BCEWithLogitsLoss = function_layer(
    "BCEWithLogitsLoss",
    common_losses.binary_cross_entropy_with_logits,
    False,
    weight=None,
    reduction="mean",
    pos_weight=None,
)
