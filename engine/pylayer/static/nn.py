"""`paddle.static.nn.fc`, a layer of static programs."""

from __future__ import annotations

import math
from typing import Any

from pylayer.nn import functional
from pylayer.ops import activation as activations
from pylayer.ops import elementwise
from pylayer.ops.shape import reshape
from pylayer.static.current_program import default_main_program
from pylayer.static.data import create_parameter
from pylayer.static.recorder import check_static
from pylayer.static.variable import Variable
from pylayer.tensor.tensor import Tensor


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Tensor:
    """``activation(x · W + b)``, with new parameters.

    Args:
        x: a Variable, or a list of them; each has a weight, and the products are summed.
        size: of the last axis of the result.
        num_flatten_dims: how many leading axes of `x` are kept; the others are merged. weight_attr,
            bias_attr: as for `create_parameter`; False for no bias.
        activation: the name of a function of one Tensor, such as ``relu``.

    Raises:
        TypeError: `x` is not a Variable.
        ValueError: a size that must be known is unknown, or the activation does not exist.
    """
    check_static("paddle.static.nn.fc")
    inputs = list(x) if isinstance(x, (list, tuple)) else [x]
    stem = name or f"fc_{default_main_program().version}"
    total: Any = None
    for k, tensor in enumerate(inputs):
        if not isinstance(tensor, Variable):
            raise TypeError(
                f"The input x of fc should be a Variable, but received {type(tensor).__name__}."
            )
        first_axis = num_flatten_dims if num_flatten_dims >= 0 else tensor.ndim + num_flatten_dims
        rest = tensor._spec.shape[first_axis:]
        if not all(isinstance(n, int) for n in rest):
            raise ValueError(
                f"fc: the sizes of the axes from {first_axis} on must be known, but x is "
                f"{tensor.describe()}."
            )
        width = math.prod(rest)  # type: ignore[arg-type]
        flat = tensor if len(rest) == 1 else reshape(tensor, [*tensor.shape[:first_axis], width])
        weight = create_parameter([width, size], tensor.dtype, f"{stem}.w_{k}", weight_attr)
        product = flat @ weight
        total = product if total is None else total + product
    if bias_attr is not False:
        total = total + create_parameter([size], inputs[0].dtype, f"{stem}.b_0", bias_attr, True)
    return total if activation is None else _activation(activation)(total)  # type: ignore[no-any-return]


def _activation(name: str) -> Any:
    for module in (activations, elementwise, functional):
        if callable(function := getattr(module, name, None)):
            return function
    raise ValueError(f"fc: there is no activation {name!r}.")
