"""`paddle.nn.utils`' weight and spectral norm: a layer's parameter computed from others before each call."""

from __future__ import annotations

import math
from typing import Any

from pylayer.grad_mode import no_grad
from pylayer.nn.convolution_layers import Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
from pylayer.nn.functional import normalize
from pylayer.nn.initializer import Normal, ParamAttr
from pylayer.nn.layer import Layer
from pylayer.nn.layers import Linear
from pylayer.ops.creation import full_like
from pylayer.ops.elementwise import maximum, sqrt
from pylayer.ops.inplace import assign
from pylayer.ops.linalg import dot, mv
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import moveaxis, reshape
from pylayer.tensor import Tensor

LEAST = 1e-12
"""What Paddle adds to sums of squares, and the least norm by which it divides."""


def _check_free(layer: Layer, kind: type[_WeightNorm | _SpectralNorm], name: str) -> None:
    """Check that no hook of a kind sets the parameter `name` already.

    Raises:
        RuntimeError: one does.
    """
    if any(isinstance(hook, kind) and hook.name == name for hook in layer._forward_pre_hooks.values()):
        shown = "weight_norm" if kind is _WeightNorm else "spectral_norm"
        raise RuntimeError(f"Cannot register two {shown} hooks on the same parameter {name}")


# --------------------------------------------------------------------------- weight norm
class _WeightNorm:
    """The parameter `name` as ``g · v / |v|``, the norm taken over all axes but `dim`; over all for None."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def axes(self, v: Tensor) -> list[int]:
        """The axes over which the norm is taken."""
        return [k for k in range(v.ndim) if k != self.dim]

    def weight(self, layer: Layer) -> Tensor:
        """The parameter."""
        v, g = getattr(layer, self.name + "_v"), getattr(layer, self.name + "_g")
        size = sqrt(total(v * v, self.axes(v), None, True))
        size = size + LEAST if self.dim is None else maximum(size, full_like(size, LEAST))
        shape = [-1 if k == self.dim else 1 for k in range(v.ndim)]
        return v / size * (g if self.dim is None else reshape(g, shape))  # type: ignore[no-any-return]

    def __call__(self, layer: Layer, inputs: Any) -> None:
        setattr(layer, self.name, self.weight(layer))


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Have `layer` learn direction and length of a parameter apart (Salimans and Kingma, 2016).

    Args:
        name: the parameter; it gives way to two: `name`_v of its shape, and `name`_g, the length per position of `dim`.
        dim: the axis that keeps a length per position; one for all with None or -1, as in Paddle.

    Raises:
        KeyError: the layer has no such parameter.
        AssertionError: it has no such axis.
        RuntimeError: the parameter is normalised already.
    """
    _check_free(layer, _WeightNorm, name)
    weight = layer._parameters[name]
    if dim is not None and not -weight.ndim <= dim < weight.ndim:
        raise AssertionError(f"dim must set between [-R, R), R means the dimension of weight, but is {dim}.")
    fixed = _WeightNorm(name, None if dim in (None, -1) else dim % weight.ndim)
    with no_grad():
        length = sqrt(total(weight * weight, fixed.axes(weight)) + LEAST)
    del layer._parameters[name]
    for part, values in (("_v", weight), ("_g", length)):
        layer.add_parameter(name + part, _like(layer, values))
    setattr(layer, name, fixed.weight(layer))
    layer.register_forward_pre_hook(fixed)
    return layer


def _like(layer: Layer, values: Tensor) -> Any:
    """A new parameter of these values."""
    made = layer.create_parameter(values.shape, dtype=values.dtype)
    with no_grad():
        assign(values, made)
    return made


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make what `weight_norm` computes a parameter again.

    Raises:
        ValueError: the parameter is not normalised.
    """
    for key, hook in layer._forward_pre_hooks.items():
        if isinstance(hook, _WeightNorm) and hook.name == name:
            weight = hook.weight(layer)
            for part in ("", "_g", "_v"):
                delattr(layer, name + part)
            layer.add_parameter(name, _like(layer, weight))
            del layer._forward_pre_hooks[key]
            return layer
    raise ValueError(f"weight_norm of '{name}' not found in {layer}")


# --------------------------------------------------------------------------- spectral norm
def _over_largest(weight: Tensor, u: Tensor, v: Tensor, dim: int, steps: int, epsilon: float) -> Any:
    """`weight`, as a matrix with `dim` for rows, over its largest singular value, and the vectors of this value.

    They are found by `steps` of power iteration from u and v, and taken for constants in backward.
    """
    matrix = reshape(moveaxis(weight, dim, 0), [weight.shape[dim], -1])
    with no_grad():
        for _ in range(steps):
            v = normalize(mv(matrix.T, u), axis=0, epsilon=epsilon)
            u = normalize(mv(matrix, v), axis=0, epsilon=epsilon)
    return weight / dot(u, mv(matrix, v)), u, v


class _SpectralNorm:
    """The parameter `name` over its largest singular value, whose vectors each call in training brings nearer."""

    def __init__(self, name: str, steps: int, dim: int, epsilon: float) -> None:
        self.name, self.steps, self.dim, self.epsilon = name, steps, dim, epsilon

    def __call__(self, layer: Layer, inputs: Any) -> None:
        weight, u, v = (getattr(layer, self.name + part) for part in ("_orig", "_u", "_v"))
        steps = self.steps if layer.training else 0
        found, *vectors = _over_largest(weight, u, v, self.dim, steps, self.epsilon)
        with no_grad():
            for old, new in zip((u, v), vectors, strict=True):
                assign(new, old)
        setattr(layer, self.name, found)


def spectral_norm(
    layer: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Have `layer` divide a parameter by its largest singular value before each call (Miyato et al., 2018).

    Args:
        name: the parameter; it becomes `name`_orig, beside the buffers `name`_u and `name`_v.
        n_power_iterations: the steps towards this value in each call in training.
        eps: the least norm by which the vectors are divided.
        dim: the axis of outputs, the rows of the matrix; unless given, 1 for Linear and transposed convolutions, else
            0.

    Raises:
        KeyError: the layer has no such parameter.
        ValueError: the number of steps is not positive.
        RuntimeError: the parameter is normalised already.
    """
    if dim is None:
        dim = int(isinstance(layer, (Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, Linear)))
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    _check_free(layer, _SpectralNorm, name)
    weight = layer._parameters.pop(name)
    rows = weight.shape[dim]
    layer.add_parameter(name + "_orig", weight)
    setattr(layer, name, weight * 1.0)
    for part, size in (("_u", rows), ("_v", weight.size // rows)):
        start = Normal().values([size], weight.dtype)
        layer.register_buffer(name + part, normalize(start, axis=0, epsilon=eps))
    layer.register_forward_pre_hook(_SpectralNorm(name, n_power_iterations, dim, eps))
    return layer


class SpectralNorm(Layer):
    """A weight over its largest singular value, found by power iteration from two vectors that stay as they are."""

    def __init__(
        self, weight_shape: Any, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, dtype: Any = "float32"
    ) -> None:
        super().__init__(dtype=dtype)
        sizes = [int(n) for n in weight_shape]
        if 0 in sizes:
            raise AssertionError("Any dimension of `weight_shape` cannot be equal to 0.")
        if dim >= len(sizes):
            raise AssertionError(
                f"The input `dim` should be less than the length of `weight_shape`, but received dim={dim}"
            )
        self._dim, self._power_iters, self._eps = dim, power_iters, eps
        fixed = ParamAttr(initializer=Normal(), trainable=False)
        self.weight_u = self.create_parameter([sizes[dim]], fixed)
        self.weight_v = self.create_parameter([math.prod(sizes) // sizes[dim]], fixed)

    def forward(self, x: Tensor) -> Tensor:
        """The weight `x`, divided."""
        found: Tensor = _over_largest(x, self.weight_u, self.weight_v, self._dim, self._power_iters, self._eps)[0]
        return found
