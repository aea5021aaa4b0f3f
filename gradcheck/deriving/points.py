"""Other points for a check: the same arguments at other sizes and values, and other options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.deriving.trace import as_input, is_layer_class
from pylayer.layer.py_layer import PyLayerContext
from pylayer.tape.grad_mode import grad_mode
from pylayer.tensor.tensor import Tensor

FACTORS = 0.6, 1.4
"""Bounds of the factors of values at another point: near enough to stay in most domains."""


def is_array(value: Any) -> bool:
    """Whether an argument is a Tensor or an array."""
    return isinstance(value, (np.ndarray, Tensor))


def raw_array(value: Any) -> Array:
    """The array of an argument."""
    array: Array = value.array if isinstance(value, Tensor) else value
    return array


def as_tensor(value: Any) -> Any:
    """An argument as `apply` gets it: a fresh Tensor of an array."""
    return as_input(value.copy()) if isinstance(value, np.ndarray) else value


def outputs_at(subject: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Array] | None:
    """The arrays that forward gives; None where it raises, or is not finite."""
    token = grad_mode.set(False)
    try:
        tensors = list(map(as_tensor, args))
        with np.errstate(all="ignore"):
            if is_layer_class(subject):
                context = PyLayerContext(subject.__name__)
                returned = subject.forward(context, *tensors, **kwargs)
            else:
                returned = subject(*tensors, **kwargs)
    except Exception:
        return None
    finally:
        grad_mode.reset(token)
    outputs = returned if isinstance(returned, (list, tuple)) else [returned]
    arrays = [output.array for output in outputs if isinstance(output, Tensor)]
    is_finite = all(bool(np.isfinite(array).all()) for array in arrays if array.dtype.kind == "f")
    return arrays if is_finite else None


def resized(value: Any, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """An argument in another shape, with other values: of floats with both signs, either sign."""
    old = raw_array(value)
    array = np.resize(random.permutation(old.ravel()), shape).astype(old.dtype)
    if array.dtype.kind == "f":
        array = array * random.uniform(*FACTORS, shape)
        if (old < 0).any() and (old > 0).any():
            array = array * random.choice([-1.0, 1.0], shape)
        array = np.asarray(array, old.dtype)
    if not isinstance(value, Tensor):
        return array
    tensor = as_input(array)
    tensor.stop_gradient = value.stop_gradient
    return tensor


def changes_of_shapes(
    shapes: Sequence[tuple[int, ...]],
) -> Iterator[list[tuple[int, ...]]]:
    """Other shapes: all sizes one larger, or doubled; then equal sizes together; then one axis of
    one shape alone, which separates sizes that are equal by chance."""
    sizes = sorted({size for shape in shapes for size in shape if size > 1})
    larger = [{n: n + 1 for n in sizes}, {n: 2 * n for n in sizes}]
    larger += [{n: m} for n in sizes for m in (n + 1, 2 * n)]
    for change in larger:
        yield [tuple(change.get(n, n) for n in shape) for shape in shapes]
    for number, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if size > 1:
                changed = (*shape[:axis], size + 1, *shape[axis + 1 :])
                yield [*shapes[:number], changed, *shapes[number + 1 :]]


def other_points(
    subject: Any, args: Sequence[Any], kwargs: dict[str, Any], random: np.random.Generator
) -> Iterator[list[Any]]:
    """The arguments at other sizes at which forward runs and is finite, one for each of the ways
    to change sizes."""
    places = [k for k, value in enumerate(args) if is_array(value)]
    shapes = [tuple(raw_array(args[k]).shape) for k in places]
    known = {tuple(shapes)}
    for changed in changes_of_shapes(shapes):
        if tuple(changed) in known:
            continue
        known.add(tuple(changed))
        point = list(args)
        for k, shape in zip(places, changed, strict=True):
            point[k] = resized(args[k], shape, random)
        if outputs_at(subject, point, kwargs) is not None:
            yield point


def other_options(value: Any) -> list[Any]:
    """Other values that an option may have."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value]
    if isinstance(value, float):
        return [value * 1.5 + 0.1 * (value == 0), value / 2]
    return []
