"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from pylayer.nn.initializer import Constant, ParamAttr
from pylayer.nn.layer import Layer
from pylayer.nn.normalization import batch_norm, group_norm, instance_norm
from pylayer.nn.words import also
from pylayer.ops import activation
from pylayer.ops.arguments import require
from pylayer.ops.formats import SPATIAL_FORMATS, are_channels_last, check_format
from pylayer.tensor.tensor import Tensor


class _Normed(Layer):
    """A layer whose input may have only some numbers of axes."""

    dimensions: tuple[int, ...] = ()
    usual_format = "NCHW"

    def _check_input_dim(self, input: Tensor) -> None:
        expected = " or ".join(f"{n}D" for n in self.dimensions)
        fits = input.ndim in self.dimensions
        require(fits, f"expected {expected} input (got {input.ndim}D input)")


def _add_parameters(
    layer: Layer,
    size: int,
    weight_attr: Any,
    bias_attr: Any,
    mean_name: str | None,
    variance_name: str | None,
) -> None:
    """Give a layer the parameters of `batch_norm`; in Paddle the running statistics are some that
    are not trained.
    """
    layer.weight = layer.create_parameter([size], weight_attr, default_initializer=Constant(1.0))
    layer.bias = layer.create_parameter([size], bias_attr, is_bias=True)
    for part, name, value in (("_mean", mean_name, 0.0), ("_variance", variance_name, 1.0)):
        fixed = ParamAttr(name, Constant(value), trainable=False)
        setattr(layer, part, layer.create_parameter([size], fixed))


class _BatchNorm(_Normed):
    """`nn.functional.batch_norm`: weight of ones, bias of zeros, running mean 0 and variance 1 to
    start with.
    """

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format = data_format or self.usual_format
        self._use_global_stats = use_global_stats
        self._weight_attr, self._bias_attr, self._name = weight_attr, bias_attr, name
        _add_parameters(
            self, num_features, weight_attr, bias_attr,
            name and f"{name}_mean", name and f"{name}_variance",
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        self._data_format = "NHWC" if are_channels_last(self._data_format) else "NCHW"
        self._check_input_dim(input)
        return batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training,
            self._momentum, self._epsilon, self._data_format, self._use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        shown = (
            f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        )
        return f"{shown}, data_format={self._data_format}" if self._data_format != "NCHW" else shown


class BatchNorm1D(_BatchNorm):
    """`batch_norm` of [batch, channels] or [batch, channels, length]."""

    dimensions = (2, 3)
    usual_format = "NCL"


class BatchNorm2D(_BatchNorm):
    """`batch_norm` of images."""

    dimensions = (4,)


class BatchNorm3D(_BatchNorm):
    """`batch_norm` of volumes."""

    dimensions = (5,)
    usual_format = "NCDHW"


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm2D` for any number of axes: with one process there are no statistics to
    synchronise.
    """

    dimensions = (2, 3, 4, 5)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with one of this class for each `BatchNorm1D` to `BatchNorm3D` in it, of the
        same parameters.
        """
        found = layer
        if isinstance(layer, _BatchNorm):
            found = SyncBatchNorm(
                layer._num_features, layer._momentum, layer._epsilon,
                layer._weight_attr, layer._bias_attr, layer._data_format, name=layer._name,
            )  # fmt: skip
            found.weight, found.bias = layer.weight, layer.bias
            found._mean, found._variance = layer._mean, layer._variance
        for name, sublayer in list(layer.named_children()):
            found.add_sublayer(name, cls.convert_sync_batchnorm(sublayer))
        return found


class BatchNorm(Layer):
    """`batch_norm` by its older name, with an activation behind it."""

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__(dtype="float32" if dtype == "float16" else dtype)
        self._act, self._momentum, self._epsilon = act, momentum, epsilon
        self._data_layout, self._use_global_stats = data_layout, use_global_stats
        self._trainable_statistics = trainable_statistics
        _add_parameters(
            self, num_channels, param_attr, bias_attr, moving_mean_name, moving_variance_name
        )
        self.training = not is_test

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input; its own statistics outside training, too, with
        `trainable_statistics`.
        """
        running = self._use_global_stats or not (self.training or self._trainable_statistics)
        out = batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training,
            self._momentum, self._epsilon, self._data_layout, running,
        )  # fmt: skip
        return out if self._act is None else getattr(activation, self._act)(out)


class GroupNorm(Layer):
    """`nn.functional.group_norm` with a weight of ones and a bias of zeros to start with."""

    @also(eps="epsilon")
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        *,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype)
        check_format(data_format, SPATIAL_FORMATS)
        weight_attr, bias_attr = (weight_attr, bias_attr) if affine else (False, False)
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format = data_format
        self.weight = self.create_parameter(
            [num_channels], weight_attr, default_initializer=Constant(1.0), device=device
        )
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return group_norm(
            input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format
        )

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        sizes = f"num_groups={self._num_groups}, num_channels={self._num_channels}"
        return f"{sizes}, epsilon={self._epsilon}"


class _InstanceNorm(_Normed):
    """`nn.functional.instance_norm` with a scale of ones and a bias of zeros to start with."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        text = "weight_attr and bias_attr must be set to False at the same time in InstanceNorm"
        require((weight_attr is False) == (bias_attr is False), text, error=AssertionError)
        self._num_features, self._epsilon = num_features, epsilon
        self._data_format = data_format or self.usual_format
        self.scale = self.create_parameter(
            [num_features], weight_attr, default_initializer=Constant(1.0)
        )
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        self._check_input_dim(input)
        return instance_norm(input, weight=self.scale, bias=self.bias, eps=self._epsilon)

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(_InstanceNorm):
    """`instance_norm` of sequences."""

    dimensions, usual_format = (2, 3), "NCL"


class InstanceNorm2D(_InstanceNorm):
    """`instance_norm` of images."""

    dimensions = (4,)


class InstanceNorm3D(_InstanceNorm):
    """`instance_norm` of volumes."""

    dimensions, usual_format = (5,), "NCDHW"
