"""Layers that normalise."""

from __future__ import annotations

from typing import Any

from pylayer.nn.initializer import Constant, ParamAttr
from pylayer.nn.layer import Layer
from pylayer.nn.normalization import batch_norm, group_norm, instance_norm
from pylayer.nn.spatial import ALL_FORMATS
from pylayer.nn.words import also
from pylayer.ops import activation, elementwise
from pylayer.tensor.tensor import Tensor

_FIXED = ParamAttr(trainable=False)


class _Normed(Layer):
    """A layer whose input has one of some numbers of axes."""

    dimensions: tuple[int, ...] = ()
    usual_format = "NCHW"

    def _check_input_dim(self, input: Tensor) -> None:
        if self.dimensions and input.ndim not in self.dimensions:
            expected = " or ".join(f"{n}D" for n in self.dimensions)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")


class _BatchNorm(_Normed):
    """`nn.functional.batch_norm`: weight of ones, bias of zeros, running mean 0 and variance 1 to start with."""

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
        self._data_format, self._use_global_stats = (
            data_format or self.usual_format,
            use_global_stats,
        )
        self._weight_attr, self._bias_attr, self._name = weight_attr, bias_attr, name
        self.weight = self.create_parameter(
            [num_features], weight_attr, default_initializer=Constant(1.0)
        )
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        # In Paddle the running statistics are parameters that are not trained.
        for part, value in (("_mean", 0.0), ("_variance", 1.0)):
            fixed = ParamAttr(name and name + part, Constant(value), trainable=False)
            setattr(self, part, self.create_parameter([num_features], fixed))

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        last = self._data_format.endswith("C") and len(self._data_format) > 2
        self._data_format = "NHWC" if last else "NCHW"
        self._check_input_dim(input)
        return batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training, self._momentum, self._epsilon,
            self._data_format, self._use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """What the repr shows."""
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
    """`BatchNorm2D` of any number of axes: there is one process, with which nothing need be in step."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name
        )
        if self.weight is None:
            self.weight = self.create_parameter(
                [num_features], _FIXED, default_initializer=Constant(1.0)
            )
        if self.bias is None:
            self.bias = self.create_parameter([num_features], _FIXED, is_bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input."""
        return super().forward(x)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with one of this class for each `BatchNorm1D` to `BatchNorm3D` in it, of the same parameters."""
        found = layer
        if isinstance(layer, _BatchNorm):
            options = (
                layer._momentum,
                layer._epsilon,
                layer._weight_attr,
                layer._bias_attr,
                layer._data_format,
            )
            found = SyncBatchNorm(layer._num_features, *options, layer._name)
            if layer.weight is not None and layer.bias is not None:
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
        self._act, self._momentum, self._epsilon, self._data_layout = (
            act,
            momentum,
            epsilon,
            data_layout,
        )
        self._use_global_stats, self._trainable_statistics = use_global_stats, trainable_statistics
        self.weight = self.create_parameter(
            [num_channels], param_attr, default_initializer=Constant(1.0)
        )
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)
        for part, name, value in (
            ("_mean", moving_mean_name, 0.0),
            ("_variance", moving_variance_name, 1.0),
        ):
            fixed = ParamAttr(name, Constant(value), trainable=False)
            setattr(self, part, self.create_parameter([num_channels], fixed))
        self.training = not is_test

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input; its own statistics outside training, too, with `trainable_statistics`."""
        running = self._use_global_stats or not (self.training or self._trainable_statistics)
        out = batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training, self._momentum, self._epsilon,
            self._data_layout, running,
        )  # fmt: skip
        if self._act is None:
            return out
        found: Tensor = getattr(
            activation if hasattr(activation, self._act) else elementwise, self._act
        )(out)
        return found


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
        if data_format not in ALL_FORMATS[1:]:
            raise ValueError(f"unsupported data layout:{data_format}")
        weight_attr, bias_attr = (weight_attr, bias_attr) if affine else (False, False)
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format = data_format
        first = Constant(1.0)
        self.weight = self.create_parameter(
            [num_channels], weight_attr, default_initializer=first, device=device
        )
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return group_norm(
            input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format
        )

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


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
        if (weight_attr is False) != (bias_attr is False):
            raise AssertionError(
                "weight_attr and bias_attr must be set to False at the same time in InstanceNorm"
            )
        self._num_features, self._epsilon, self._momentum = num_features, epsilon, momentum
        self._data_format = data_format or self.usual_format
        self.scale = self.create_parameter(
            [num_features], weight_attr, default_initializer=Constant(1.0)
        )
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        self._check_input_dim(input)
        return instance_norm(
            input, None, None, self.scale, self.bias, True, self._momentum, self._epsilon
        )

    def extra_repr(self) -> str:
        """What the repr shows."""
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
