"""The values of a scenario's inputs: given, drawn by an ``init`` such as ``uniform``, or read
from files.
"""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gradcheck.checking.precision import NumpyArray
from gradcheck.spec.model import Input

HERE = Path()
MOST_INPUT_BYTES = 2**30
"""The most bytes that a file may have: the limit of one input."""


class NoInputError(ValueError):
    """A file does not have the values of an input; the message says why."""

    key = "inputs"
    """The key of the scenario that has the mistake."""


def make_input(
    spec: Input, dtype: str, random: np.random.Generator, folder: Path = HERE
) -> NumpyArray:
    """The values of an input, computed in float64, int64, bool or complex128; the backend casts
    them to its `dtype`.

    `near` shifts the drawn values, scaled to 1e-3, to the given points in turn. Complex inputs draw
    both parts. All rows of an expanded input are equal to its first. Files lie below the `folder`
    of the spec.

    Raises:
        NoInputError: a file does not have the values.
    """
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype).kind
    is_drawn = spec.from_ is None and spec.values is None
    if spec.from_ is not None:
        values = load_array(folder, spec.from_, spec.key)
        if values.dtype.kind == "c" and kind != "c":
            raise NoInputError(
                f"{spec.from_} holds complex numbers: give the input 'dtype: complex128'"
            )
    elif spec.values is not None:
        values = np.array(spec.values)
    else:
        values = draw(spec, random)
        values = values + 1j * draw(spec, random) if kind == "c" else values
    if spec.layout == "expanded" and values.ndim and len(values):
        if not is_drawn and not (values == values[:1]).all():
            raise NoInputError(
                "an input with 'layout: expanded' must have equal rows along its first axis"
            )
        values = np.repeat(values[:1], len(values), 0)
    return values.astype({"f": np.float64, "c": np.complex128, "b": np.bool_}.get(kind, np.int64))


def sizes_of(spec: Input) -> tuple[int, ...]:
    """The shape of an input whose sizes are known."""
    return tuple(int(size) for size in spec.shape or ())


def draw(spec: Input, random: np.random.Generator) -> NumpyArray:
    """Values of the input's shape, drawn by the distribution that its `init` names (``normal``,
    ``uniform``, …).
    """
    shape = sizes_of(spec)
    count = prod(shape)
    match spec.drawn:
        case "zeros" | "ones":
            values = np.full(shape, float(spec.drawn == "ones"))
        case "uniform":
            values = random.uniform(*spec.limits, shape)
        case "linspace":
            values = np.linspace(*spec.limits, count).reshape(shape)
        case "integers":
            low, high = spec.limits
            values = random.integers(int(low), int(high), shape).astype(np.float64)
        case "distinct":
            steps = random.permutation(count) - count // 2 + random.uniform(0.1, 0.4, count)
            values = steps.reshape(shape) / 8
        case "ties":
            values = random.choice([-1.5, -0.5, 0.5, 1.5], shape)
        case _:
            values = draw_rows(spec.drawn, shape, random)
    if spec.near:
        centres = np.resize(np.asarray(spec.near, dtype=np.float64), values.size).reshape(shape)
        values = centres + 1e-3 * values
    return values


def draw_rows(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> NumpyArray:
    """Matrices of normal values along the last axes, made symmetric, orthogonal or the like by
    `kind`.
    """
    match kind:
        case "one-hot" if prod(shape):
            return np.eye(shape[-1])[random.integers(0, shape[-1], shape[:-1])]
        case "orthogonal":
            size = max(shape[-2:])
            square = np.linalg.qr(random.standard_normal((*shape[:-2], size, size)))[0]
            return square[..., : shape[-2], : shape[-1]]
    values = random.standard_normal(shape)
    match kind:
        case "sorted" if shape:
            return np.sort(values, -1)
        case "positive-definite":
            return values @ values.swapaxes(-1, -2) / max(shape[-1], 1) + np.eye(shape[-1])
        case "probabilities":
            values = np.exp(values)
            values /= values.sum(-1, keepdims=True)
    return values


def load_array(folder: Path, name: str, key: str | None) -> NumpyArray:
    """The array in a file below the folder of a spec.

    Raises:
        NoInputError: there is no such file there, it is too large, or it holds no array of numbers.
    """
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise NoInputError(f"{name} leads out of {folder.resolve()}: copy the file there")
    if file.exists() and not file.is_file():  # opening a pipe would wait for a writer
        raise NoInputError(
            f"{name} is not a regular file: 'from' reads files written by np.save or np.savez"
        )
    array: Any = None
    try:
        size = file.stat().st_size
        if size <= MOST_INPUT_BYTES:
            array = np.load(file, allow_pickle=False)
            array = array if key is None else array[key]
    except OSError as error:
        raise NoInputError(f"{file}: {error.strerror or error}") from None
    except KeyError:
        has = ", ".join(array.files) or "nothing"
        raise NoInputError(f"{name} has no {key!r}: it has {has}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError, IndexError) as error:
        text = f"{name} is not a file written by np.save or np.savez: {error}"
        raise NoInputError(text) from None
    if size > MOST_INPUT_BYTES:
        raise NoInputError(f"{name} has {size / 2**30:.1f} GiB, at most 1 GiB is allowed")
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fciub":
        raise NoInputError(f"{name} holds no array of numbers")
    return array
