"""What a call did: everything about it that the two libraries are to agree on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from described import Arguments, Library, made

TOLERANCE = {"float64": 2e-6, "complex128": 3e-5, "float32": 3e-5, "complex64": 3e-5, "float16": 8e-3, "bfloat16": 6e-2}
"""Relative to the largest value. Paddle computes complex128, and some constants of float64, in single precision; how
exact the engine is, its own checker says."""


@dataclass
class Outcome:
    """`facts` in order: where and what, and the value found."""

    facts: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    caught_as: tuple[str, ...] = ()
    """The names of the types of its exception, most special first."""

    @property
    def error(self) -> str | None:
        """The type of the exception that the call raised."""
        return self.facts.get("error")


def outcome(paddle: Library, function: Callable[..., Any], arguments: Arguments) -> Outcome:
    """Call `function`, on a library, and then backward; what came of it."""
    found = Outcome()
    leaves: list[Any] = []
    args = [made(a, paddle, leaves) for a in arguments.args]
    kwargs = {k: made(a, paddle, leaves) for k, a in arguments.kwargs.items()}
    inputs = [a for a in [*args, *kwargs.values()] if isinstance(a, paddle.Tensor)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            found.facts["error"] = type(error).__name__
            found.message, found.caught_as = str(error), _names(error)
            return found
        describe_all(paddle, result, inputs, leaves, found)
    return found


def describe_all(paddle: Library, result: Any, inputs: list[Any], leaves: list[Any], found: Outcome) -> None:
    """Put the result, what became of the inputs, and the gradients of `leaves` among the facts."""
    tensors = list(_describe(paddle, "out", result, inputs, found.facts))
    for k, x in enumerate(inputs):
        _describe_tensor(f"input {k}", x, found.facts)
        found.facts[f"input {k} changed"] = x.inplace_version > 0
    _describe_gradients(paddle, tensors, leaves, found)


def _describe(paddle: Library, where: str, value: Any, inputs: list[Any], facts: dict[str, Any]) -> Iterator[Any]:
    """Put what `value` is among the facts; the Tensors in it."""
    if isinstance(value, paddle.Tensor):
        _describe_tensor(where, value, facts)
        facts[f"{where} is"] = next((k for k, x in enumerate(inputs) if x is value), None)
        yield value
    elif isinstance(value, (list, tuple)) and type(value).__name__ != "Size":
        facts[f"{where} structure"] = ("tuple" if isinstance(value, tuple) else "list", len(value))
        for k, item in enumerate(value):
            yield from _describe(paddle, f"{where}[{k}]", item, inputs, facts)
    elif isinstance(value, np.ndarray):
        facts[f"{where} array"] = (value.dtype.name, value.shape)
        facts[f"{where} value"] = value
    else:
        facts[f"{where} object"] = list(value) if type(value).__name__ == "Size" else _plain(value)


def _names(error: Exception) -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in type(error).__mro__)


def _plain(value: Any) -> Any:
    """Python values as they are, anything else by its text."""
    return value if isinstance(value, (bool, int, float, complex, str, type(None))) else repr(value)


def _describe_tensor(where: str, tensor: Any, facts: dict[str, Any]) -> None:
    facts[f"{where} dtype"] = tensor.dtype.name.lower()
    facts[f"{where} shape"] = list(tensor.shape)
    facts[f"{where} stop_gradient"] = tensor.stop_gradient
    facts[f"{where} is_leaf"] = tensor.is_leaf
    facts[f"{where} value"] = values_of(tensor)
    if where.startswith("out"):
        facts[f"{where} repr"] = repr(tensor) if isinstance(facts[f"{where} value"], np.ndarray) else "nothing"


def values_of(tensor: Any) -> Any:
    """Its values as an array that NumPy knows."""
    bare = tensor.detach()
    try:
        return (bare.astype("float32") if bare.dtype.name.lower() == "bfloat16" else bare).numpy()
    except Exception as error:  # a Tensor of the release without memory
        return f"{type(error).__name__}: {error}"


def _bits(values: Any) -> bytes | None:
    """The values with the signs of their zeros."""
    return values.tobytes() if isinstance(values, np.ndarray) else None


def cotangent(paddle: Library, tensor: Any) -> Any:
    """Numbers of all signs in the shape and dtype of `tensor`."""
    count = int(np.prod(tensor.shape))
    values = ((np.arange(count) * 7 + 3) % 11 - 4.0).reshape(tensor.shape) / 2
    return paddle.to_tensor(values).astype(tensor.dtype)


def _describe_gradients(paddle: Library, tensors: list[Any], leaves: list[Any], found: Outcome) -> None:
    roots = list({id(t): t for t in tensors if not t.stop_gradient and t.dtype.name.lower() in TOLERANCE}.values())
    if not roots or not leaves:
        return
    try:
        paddle.autograd.backward(roots, [cotangent(paddle, t) for t in roots])
    except Exception as error:
        found.facts["backward error"] = type(error).__name__
        found.message, found.caught_as = str(error), _names(error)
        return
    for k, leaf in enumerate(leaves):
        found.facts[f"gradient {k} there"] = leaf.grad is not None
        if leaf.grad is not None:
            found.facts[f"gradient {k} dtype"] = leaf.grad.dtype.name.lower()
            found.facts[f"gradient {k} shape"] = list(leaf.grad.shape)
            found.facts[f"gradient {k} stop_gradient"] = leaf.grad.stop_gradient
            found.facts[f"gradient {k} value"] = values_of(leaf.grad)


Comparison = Callable[[str, Any, Any, str], bool]
"""Whether a fact's values are close: the fact, the engine's, Paddle's, and the dtype."""


def differences(
    ours: Outcome,
    real: Outcome,
    values: bool = True,
    tolerance: Mapping[str, float] = TOLERANCE,
    close: Comparison | None = None,
) -> dict[str, tuple[Any, Any]]:
    """The facts that are not the same: the engine's, Paddle's. Without `values`, what was drawn at random is left out.

    Values are compared by `tolerance`, or by `close` if it is given.
    """
    found = {}
    for key in dict.fromkeys([*ours.facts, *real.facts]):
        a, b = ours.facts.get(key, "nothing"), real.facts.get(key, "nothing")
        if key.endswith(" value"):
            dtype = real.facts.get(key.removesuffix("value") + "dtype", "")
            same = close(key, a, b, dtype) if close else _close(a, b, tolerance.get(dtype, 3e-5))
            if values and not same:
                found[key] = (a, b)
        elif key.endswith(" repr"):
            where = key.removesuffix("repr")
            same = _bits(ours.facts.get(f"{where}value")) == _bits(real.facts.get(f"{where}value"))
            if values and same and a != b:
                found[key] = (a, b)
        elif type(a) is float and type(b) is float:
            if values and not _close(np.float64(a), np.float64(b), tolerance["float32"]):
                found[key] = (a, b)
        elif key.endswith("error") and b in ours.caught_as:
            continue  # who catches what Paddle raises catches this
        elif (a, type(a)) != (b, type(b)):
            found[key] = (a, b)
    if "error" in found:  # the rest follows from it
        return {"error": (_with_message(found["error"][0], ours), _with_message(found["error"][1], real))}
    return found


def _with_message(kind: str, outcome: Outcome) -> str:
    return kind if not outcome.message else f"{kind}: {outcome.message[-300:].strip()}"


def _close(a: Any, b: Any, tolerance: float) -> bool:
    if not isinstance(a, (np.ndarray, np.generic)) or not isinstance(b, (np.ndarray, np.generic)):
        return a is b
    if a.shape != b.shape:
        return True  # which is a difference of its own
    if a.dtype.kind in "fc" or b.dtype.kind in "fc":
        finite = np.abs(b[np.isfinite(b)]).astype("float64")
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        wide = "complex128" if "c" in (a.dtype.kind, b.dtype.kind) else "float64"
        return np.allclose(a.astype(wide), b.astype(wide), rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    return np.array_equal(a, b)
