"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from pylayer.ops.joining import concat
from pylayer.ops.shape import reshape
from pylayer.tensor import Tensor
from pylayer.versions import mark_changed


def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """The elements of all parameters, one after the other."""
    return concat([reshape(p, [-1]) for p in parameters], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Write the elements of a vector into the parameters, in place.

    Raises:
        ValueError: there are not as many.
    """
    listed = list(parameters)
    if sum(p.size for p in listed) != vec.size:
        raise ValueError(f"{vec.size} elements for parameters of {sum(p.size for p in listed)}.")
    start = 0
    for parameter in listed:
        parameter.array[...] = vec.array[start : start + parameter.size].reshape(parameter.array.shape)
        mark_changed(parameter.array)
        start += parameter.size
