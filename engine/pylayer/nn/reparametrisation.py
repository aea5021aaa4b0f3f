"""`paddle.nn.utils.weight_norm`: a layer's parameter computed from others before each call."""

from __future__ import annotations

from typing import Any

from pylayer.nn.layer import Layer
from pylayer.ops.creation import full_like
from pylayer.ops.elementwise import maximum, sqrt
from pylayer.ops.inplace import assign
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import reshape
from pylayer.tape.grad_mode import no_grad
from pylayer.tensor.tensor import Tensor

LEAST = 1e-12
"""What Paddle adds to sums of squares, and the least norm by which it divides."""


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
    if any(
        isinstance(hook, _WeightNorm) and hook.name == name
        for hook in layer._forward_pre_hooks.values()
    ):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    weight = layer._parameters[name]
    if dim is not None and not -weight.ndim <= dim < weight.ndim:
        raise AssertionError(
            f"dim must set between [-R, R), R means the dimension of weight, but is {dim}."
        )
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
