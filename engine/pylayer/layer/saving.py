"""`paddle.save` and `paddle.load`, in a format that runs no code when it is read.

A file is a zip of NumPy's (`numpy.savez`): the arrays by number, and one text, the JSON of what holds them, with
``{"tensor": n}`` in their places. Paddle's own files are pickles, which may run any code when they are read: they are
refused.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pylayer.ops.creation import to_tensor
from pylayer.tape.symbol import Parameter, at_once
from pylayer.tensor.array import XP, to_numpy
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.tensor import Tensor

_PLAIN = (bool, int, float, str, type(None))
_FORMAT = "gradcheck state 1"


def _packed(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """A value as JSON, its arrays taken out."""
    if isinstance(value, Tensor) or type(value) in XP or isinstance(value, np.generic):
        array = to_numpy(value.array) if isinstance(value, Tensor) else np.asarray(value)
        low = array.dtype.name == "bfloat16"  # which NumPy's files do not know
        arrays.append(array.view(np.uint16) if low else array)
        kind = (
            "parameter"
            if isinstance(value, Parameter)
            else "tensor"
            if isinstance(value, Tensor)
            else "array"
        )
        name = value.name if isinstance(value, Parameter) else None
        return {kind: len(arrays) - 1, "bfloat16": low, "name": name}
    if isinstance(value, Mapping):
        return {"mapping": [[_packed(k, arrays), _packed(v, arrays)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {
            "tuple" if isinstance(value, tuple) else "list": [_packed(v, arrays) for v in value]
        }
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(
        f"save(): cannot save a {type(value).__name__}; Tensors, arrays, numbers, texts, and dicts, lists and tuples "
        f"of them can be. Save a layer's or an optimizer's state_dict()."
    )


def save(
    obj: Any, path: str | os.PathLike[str] | BinaryIO, protocol: int = 4, **configs: Any
) -> None:
    """Write Tensors, arrays, numbers and texts, also inside dicts, lists and tuples, to a file or a binary stream.

    Args:
        path: folders on the way are made.
        protocol: accepted; it is for pickles.

    Raises:
        TypeError: something else is in `obj`.
        ValueError: the path is a folder.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    text = json.dumps({"format": _FORMAT, "value": _packed(obj, arrays)})
    named: dict[str, Any] = {f"a{k}": array for k, array in enumerate(arrays)}
    if not isinstance(path, (str, os.PathLike)):
        np.savez(path, structure=np.array(text), **named)
        return
    target = os.fspath(path)
    if not os.path.basename(target):
        raise ValueError(
            f"The input path MUST be format of dirname/filename [dirname\\filename in Windows system], but received "
            f"{target!r}: filename is empty string."
        )
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    with open(target, "wb") as file:
        np.savez(file, structure=np.array(text), **named)


def _unpacked(value: Any, take: Callable[[int], np.ndarray[Any, Any]], as_arrays: bool) -> Any:
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {
            _unpacked(k, take, as_arrays): _unpacked(v, take, as_arrays)
            for k, v in value["mapping"]
        }
    if "list" in value:
        return [_unpacked(v, take, as_arrays) for v in value["list"]]
    if "tuple" in value:
        return tuple(_unpacked(v, take, as_arrays) for v in value["tuple"])
    kind = next(k for k in ("parameter", "tensor", "array") if k in value)
    array = take(value[kind])
    array = array.view(as_dtype("bfloat16").numpy) if value["bfloat16"] else array
    if as_arrays or kind == "array":
        return array
    tensor = at_once(to_tensor)(array)
    if kind == "parameter":
        tensor.stop_gradient, tensor.name = False, value["name"]
    return tensor


def load(
    path: str | os.PathLike[str] | BinaryIO, return_numpy: bool = False, **configs: Any
) -> Any:
    """What `save` wrote; with `return_numpy`, arrays in the place of Tensors.

    Raises:
        ValueError: there is no such file, or it is not one of `save`'s.
    """
    if isinstance(path, (str, os.PathLike)) and not os.path.isfile(path):
        raise ValueError(f"The path ({os.fspath(path)}) to load model not exists.")
    content = Path(path).read_bytes() if isinstance(path, (str, os.PathLike)) else path.read()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            outer = json.loads(found["structure"].item())
            if outer["format"] != _FORMAT:
                raise ValueError(f"format {outer['format']!r}")
            return _unpacked(outer["value"], lambda k: found[f"a{k}"], return_numpy)
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"load(): {path if isinstance(path, str) else 'the stream'} was not written by the engine's save() "
            f"({error}). Paddle's own files are pickles, which can run code and are not read; write them anew with "
            f"numpy.savez."
        ) from None
