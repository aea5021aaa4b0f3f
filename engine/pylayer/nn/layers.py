"""The common layers, and how a function becomes one."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar

from pylayer.nn import common_losses, functional
from pylayer.nn.checks import check_reduction
from pylayer.nn.initializer import Constant
from pylayer.nn.layer import Layer
from pylayer.nn.words import also, in_own_words
from pylayer.ops import activation, elementwise
from pylayer.ops.arguments import as_ints
from pylayer.ops.spellings import SPELLINGS
from pylayer.tensor.tensor import Tensor


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
    """The rows of a weight of shape [num_embeddings, embedding_dim]; that of `padding_idx` starts as zeros."""

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
        self._num_embeddings, self._embedding_dim, self._padding_idx = (
            num_embeddings,
            embedding_dim,
            padding_idx,
        )
        self._max_norm, self._norm_type, self._sparse = max_norm, norm_type, sparse
        self._scale_grad_by_freq = scale_grad_by_freq
        shape = [num_embeddings, embedding_dim]
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx must be within [-{num_embeddings}, {num_embeddings})")
        if _weight is not None and list(_weight.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = (
            self.create_parameter(shape, weight_attr, device=device) if _weight is None else _weight
        )
        if weight_attr is None or _weight is not None:
            self.weight.stop_gradient = _freeze
        if padding_idx is not None:
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
        """What the repr shows."""
        padding = "" if self.padding_idx is None else f"padding_idx={self.padding_idx}, "
        hints = f"sparse={self._sparse}, scale_grad_by_freq={self._scale_grad_by_freq}"
        return f"{self._num_embeddings}, {self._embedding_dim}, {padding}{hints}"


class LayerNorm(Layer):
    """`nn.functional.layer_norm` with a weight of ones and a bias of zeros to start with, each in one row."""

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
        """What the repr shows."""
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
        """The input, some of it zero."""
        return functional.dropout(input, self.p, self.axis, self.training, mode=self.mode)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"p={self.p}, axis={self.axis}, mode={self.mode}, inplace={self.inplace}"


class Identity(Layer):
    """The input as it is; arguments to the constructor are ignored, as in Paddle."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


# --------------------------------------------------------------------------- a function as a layer
class _Function(Layer):
    """A layer that calls a function with its options, which are attributes."""

    function: Callable[..., Any]
    made_with: inspect.Signature
    called_with: inspect.Signature
    options: tuple[str, ...]
    words: dict[str, str]
    """Other words for the options and inputs."""
    shows: tuple[str, ...] = ()
    checks: ClassVar[dict[str, Callable[[Any], None]]] = {}
    """By name of an option, what says whether its value is taken."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given = self._bound(self.made_with, args, kwargs)
        given.apply_defaults()
        for name in self.options:
            setattr(self, name, given.arguments[name])
        for name, check in self.checks.items():
            check(getattr(self, name))

    def _bound(
        self, signature: inspect.Signature, args: Any, kwargs: dict[str, Any]
    ) -> inspect.BoundArguments:
        try:
            return signature.bind(*args, **in_own_words(self.words, kwargs))
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None

    def __getattr__(self, name: str) -> Any:
        own = self.words.get(
            name, name.removeprefix("_")
        )  # some options have an underscore in Paddle
        return (
            getattr(self, own) if own != name and own in self.options else super().__getattr__(name)
        )

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The function's result."""
        if named:
            inputs = self._bound(self.called_with, inputs, named).args
        return type(self).function(*inputs, **{name: getattr(self, name) for name in self.options})

    def extra_repr(self) -> str:
        """What the repr shows."""
        return ", ".join(f"{key}={getattr(self, key)}" for key in self.shows)


def _signed(method: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """The method with a signature to be seen."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    call.__signature__ = signature.replace(parameters=[own, *signature.parameters.values()])  # type: ignore[attr-defined]
    return call


def function_layer(
    name: str, function: Callable[..., Any], shows: bool = True, /, **options: Any
) -> type[_Function]:
    """A layer class over `function`, its options and their defaults given; the repr `shows` the options or none.

    The repr of a loss shows none.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    known = inspect.signature(function).parameters
    taken = [n for n, p in known.items() if n not in options and p.default is p.empty]
    called = inspect.Signature([inspect.Parameter(word, kind) for word in taken])
    made = inspect.Signature(
        [inspect.Parameter(n, kind, default=d) for n, d in {**options, "name": None}.items()]
    )
    body = {
        "__doc__": f"`nn.functional.{function.__name__}` as a layer.",
        "__module__": __name__,
        "__init__": _signed(_Function.__init__, made),
        "forward": _signed(_Function.forward, called),
        "function": staticmethod(function),
        "options": tuple(options),
        "made_with": made,
        "called_with": called,
        "words": {
            word: own
            for word, own in SPELLINGS.get(function.__name__, {}).items()
            if word not in taken
        },
        "shows": tuple(options) if shows else (),
    }
    return type(name, (_Function,), body)


ReLU = function_layer("ReLU", activation.relu)
Tanh = function_layer("Tanh", elementwise.tanh)
Sigmoid = function_layer("Sigmoid", elementwise.sigmoid)
Silu = function_layer("Silu", activation.silu, inplace=False)
GELU = function_layer("GELU", activation.gelu, approximate=False)
Swish = function_layer("Swish", activation.swish)
Softmax = function_layer("Softmax", activation.softmax, axis=-1)
MSELoss = function_layer("MSELoss", common_losses.mse_loss, False, reduction="mean")
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
# Not CrossEntropyLoss, whose constructor takes any word in Paddle.
MSELoss.checks = BCEWithLogitsLoss.checks = {"reduction": check_reduction}
