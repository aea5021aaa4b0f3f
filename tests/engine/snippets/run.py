"""Runs a snippet plainly and recorded, and says how that ended.

``right``: the tape's outputs and gradients are those of the plain run. ``leak``: values left the recording, which was
told. ``unequal``: the outputs are not a plain run's, so nobody believes the tape. ``raises``: it raises plainly too.
``not finite``: the tape's gradient is NaN, and seen to be. Anything else is a mistake of the recording: ``WRONG``,
believed but not the derivative; or ``CRASH``.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, wraps
from types import SimpleNamespace
from typing import Any

import numpy as np

import pylayer.paddle as paddle
from gradcheck.backends.recording import Recording, record_call
from pylayer.watch.numpy_recording import Code


def on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays as one of Tensors: it gets their values, and what it returns becomes Tensors."""

    @wraps(function)
    def call(*tensors: Any) -> Any:
        return as_tensors(function(*(t.numpy() for t in tensors)))

    return call


def as_tensors(value: Any) -> Any:
    """Arrays, in lists and tuples as well, as Tensors."""
    if isinstance(value, (list, tuple)) and any(np.ndim(v) or hasattr(v, "dtype") for v in value):
        return tuple(as_tensors(v) for v in value)
    return value if isinstance(value, paddle.Tensor) else paddle.to_tensor(value)


def prelude() -> dict[str, Any]:
    """The names that snippets use."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    names["_Module"] = SimpleNamespace(np=names["np"])
    return names


PRELUDE = """
import array, cmath, copy, decimal, fractions, functools, importlib, io, itertools, json, math, operator, pickle
import statistics, struct, sys, threading, contextlib, collections, concurrent.futures, contextvars, weakref, random
import dataclasses, enum, heapq, bisect, string, types, typing, abc, inspect, queue, asyncio, gc
import numpy as np
from numpy import zeros
try:
    import scipy.linalg as sl
    import scipy.special as sp
except ImportError:
    pass

def _saved(x):
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    return file

@functools.lru_cache
def _cached_table(n):
    return np.arange(n) * 1.0

def _closure():
    module = np
    def run(x):
        z = module.zeros((3, 4))
        z += x
        return z * 2
    return run

def _default(x, module=np):
    z = module.zeros((3, 4))
    z += x
    return z * 2

def _kwdefault(x, *, make=np.zeros):
    z = make((3, 4))
    z += x
    return z * 2

_held = {"zeros": np.zeros}
_mask = np.arange(12).reshape(3, 4) % 3 > 0
_index = np.array([2, 0, 1])
_table = np.array([0.5, 1.0, 1.5, 2.5])

class _Sub(np.ndarray):
    def __new__(cls, x):
        return np.asarray(x).view(cls)
"""


def snippets(text: str) -> Iterator[tuple[str, str]]:
    """The snippets of a table, and the comment that they stand under."""
    part = ""
    for line in text.strip().splitlines():
        if line.startswith("#"):
            part = line.strip("# -")
        elif line.strip():
            yield part, line.replace("\\n", "\n")


def function_of(code: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function that a snippet is the body of."""
    try:
        compile(code, "<snippet>", "eval")
        code = f"return {code}"
    except SyntaxError:
        pass
    exec(compile("def f(x, w, a):\n" + textwrap.indent(code, "    "), "<snippet>", "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


@lru_cache
def inputs() -> tuple[Any, ...]:
    """Three inputs: positive, and not on any kink."""
    random = np.random.default_rng(5)
    root = random.normal(size=(4, 4)) / 2
    return random.uniform(0.2, 2, (3, 4)), random.uniform(0.3, 1.9, 4), root @ root.T + np.eye(4)


def plainly(f: Callable[..., Any], arrays: Any) -> list[Any]:
    """The outputs of a plain run as arrays of float64 or complex128."""
    found = f(*(v.copy() for v in arrays))
    return [np.asarray(v) for v in (found if isinstance(found, (tuple, list)) else [found])]


def real(values: Any) -> Any:
    """Values as a row of real numbers."""
    return (
        np.concatenate([np.ravel(values.real), np.ravel(values.imag)]) if values.dtype.kind == "c" else np.ravel(values)
    )


@cache
def told(code: str) -> tuple[str, str]:
    """How a snippet ends, and what there is to say of it."""
    names = prelude()
    f = function_of(code, names)
    arrays = inputs()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            outputs = plainly(f, arrays)
            outputs = [v if v.dtype.name in ("float64", "complex128") else v.astype(float) for v in outputs]
        except Exception as error:
            return "raises", repr(error)
        before = snapshot(names)
        try:
            found = tape_of(f, arrays)
        except Exception as error:
            return "CRASH", repr(error)
        if snapshot(names) != before:
            return "CRASH", "names are not as before"
        if found.error or found.leaks:
            return "leak", found.error or "; ".join(dict.fromkeys(found.leaks))
        same = len(found.outputs) == len(outputs) and all(
            p.shape == q.shape and np.allclose(p.astype(q.dtype), q, rtol=1e-9, atol=1e-12, equal_nan=True)
            for p, q in zip(found.outputs, outputs, strict=True)
        )
        if not same:
            return "unequal", ""
        random = np.random.default_rng(0)
        cotangents = [random.normal(size=v.shape).astype(v.dtype) for v in found.outputs]
        try:
            tape = gradients(found, cotangents)
        except Exception as error:
            return "CRASH", f"in the tape: {error!r}"
        digits = min((np.finfo(v.dtype).precision for v in found.arrays if v.dtype.kind in "fc"), default=15)
        step, tolerance = {3: (0.05, 0.2), 6: (1e-2, 1e-2)}.get(digits, (1e-6, 1e-5))
        for k, array in enumerate(arrays):
            direction = random.normal(size=array.shape)
            ends = []
            for times in (1, -1, 2, -2):
                moved = [v + times * step * direction if j == k else v for j, v in enumerate(arrays)]
                pairs = zip(cotangents, plainly(f, moved), strict=True)
                ends.append(sum(float(np.dot(real(c), real(v.astype(c.dtype)))) for c, v in pairs))
            numeric = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)
            analytic = float(np.sum(np.real(tape.get(k, 0)) * direction))
            if not np.isfinite(analytic) and np.isfinite(numeric):
                return "not finite", f"input {k}"  # which is told of, as NaN
            if not np.isclose(analytic, numeric, rtol=tolerance, atol=tolerance / 10 * max(1, abs(ends[0]))):
                return "WRONG", f"input {k}: {analytic} beside {numeric}"
    return "right", ""


def snapshot(names: dict[str, Any]) -> Any:
    """What the names refer to, and the variables of closures."""
    return {k: id(v) for k, v in names.items() if k not in ("f", "_kept", "__warningregistry__")}, names[
        "_default"
    ].__defaults__


def tape_of(f: Callable[..., Any], arrays: Any) -> Recording:
    """The recorded call."""
    tensors = [paddle.to_tensor(v.copy(), stop_gradient=False) for v in arrays]

    def call() -> Any:
        found = on_tensors(f)(*tensors)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    return record_call(call, tensors, lines=True, numpy=Code([f]))


def gradients(found: Recording, cotangents: list[Any]) -> dict[int, Any]:
    """The tape's gradients, by the number of the value."""
    total: dict[int, Any] = {}
    for end, cotangent in zip(found.ends, cotangents, strict=True):
        if end >= 0:
            total[end] = total.get(end, 0) + cotangent
    for step in reversed(found.steps):
        given = [total.pop(step.first + k, None) for k in range(len(step.values))]
        if any(g is not None for g in given):
            for _, edge, gradient in step.pull(given):
                total[edge] = total.get(edge, 0) + gradient
    return total
