"""How NumPy's operations on recorded arrays are computed: by a rule, which records them, or else as a leak.

NumPy itself computes each operation first, on plain copies. What it raises is raised; its result, and what it writes
into its arguments, is what the rule's has to be, in shape, dtype and value, or the rule is not believed. Without a rule
the values leave the recording: that is the only place where they do so.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pylayer.dtype import BY_NUMPY
from pylayer.ops.indexing import where_
from pylayer.ops.shape import astype, broadcast_to
from pylayer.tensor import Tensor
from pylayer.watch import tell_computed
from pylayer.watch.numpy_array import (
    RecordedArray,
    Session,
    fresh,
    gathered,
    holds_recorded,
    like,
    plain,
    recorded_in,
    replaced,
    session_here,
)

Rule = Callable[..., Any]

FUNCTIONS: dict[Any, Rule] = {}
"""By function of NumPy's: what gives its result, of the same arguments, in operations that are recorded. Under None:
what does so for any other function, of it and its arguments."""
NAMED: dict[str, dict[str, Rule]] = {}
"""The same for SciPy, which may not be there: by module and name, ufuncs included."""
UFUNCS: dict[Any, Rule] = {}
"""By ufunc: what gives its result as a Tensor, of the result's dtype and the operands, Tensors and plain values."""
METHODS: dict[str, Rule] = {}
"""By method of ufuncs, such as ``reduce``: as `FUNCTIONS`, of the ufunc and the arguments."""
VIEWS: set[Any] = set()
"""Functions that only place the elements of their first argument anew, perhaps as a view of it."""
ASKS: set[Any] = set()
"""Functions that ask for what an array is, or make one in its shape, with nothing of its values."""
OURS: dict[Any, Rule] = {}
"""Functions that are computed without NumPy: they call the user's own, are about memory, or give views of several."""
CHANGE_NOTHING = (
    "out", "casting", "subok", "overwrite_a", "overwrite_b", "overwrite_x", "check_finite", "lapack_driver", "lwork",
)  # fmt: skip
"""Keywords of which no rule needs to know: what they ask for is done with the result, or does not change it."""
DECISIONS = {
    "less": "less_than", "greater": "greater_than", "array_equal": "equal_all", "flatnonzero": "nonzero",
    "argwhere": "nonzero", "lexsort": "argsort", "argpartition": "argsort", "digitize": "searchsorted",
}  # fmt: skip
"""The engine's names of NumPy's functions whose results are chosen by the values."""
ALONG = ("argmax", "argmin", "argsort")
"""Those of them that take one array and an axis."""
OF_TWO = ("isclose", "allclose", "equal_all", "searchsorted")
"""Those of them that say something of two arrays, one of which may be plain."""


class Choice(NamedTuple):
    """An operation whose result, of integers or truths, is chosen by the values."""

    name: str
    arguments: Sequence[str]


class Unruled(Exception):  # noqa: N818 - no error: the values leave the recording
    """There is no rule for this call."""


# --------------------------------------------------------------------------- results
def wrapped(value: Any, session: Session | None, given: Sequence[Any] = ()) -> Any:
    """Plain results as arrays that may take recorded values, of a constant, which nothing depends on; not those that
    are memory of the plain arrays among what was `given`."""
    if session is None:
        return value
    if type(value) is np.ndarray and value.dtype in BY_NUMPY and value.flags.writeable:
        if any(type(v) is np.ndarray and np.may_share_memory(value, v) for v in given):
            return value
        return fresh(Tensor(value), value, False, session)
    if isinstance(value, (list, tuple)):
        return like(value, [wrapped(v, session) for v in value])
    return value


def settled(result: Any, expected: Any, session: Session) -> Any:
    """A rule's result as NumPy code gets it. Raises Unruled if it is not what NumPy's own is."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(expected):
            raise Unruled
        return like(expected, [settled(r, e, session) for r, e in zip(result, expected, strict=True)])
    if not isinstance(expected, (np.ndarray, np.generic)):
        return expected
    own = type(result) is RecordedArray
    tensor = result._tensor() if own else result if isinstance(result, Tensor) else Tensor(np.asarray(result))
    if tensor.array.shape != expected.shape or expected.dtype not in BY_NUMPY:
        raise Unruled
    if isinstance(expected, np.ndarray) and type(expected) is not np.ndarray:  # a subclass, with a meaning of its own
        raise Unruled
    tensor = tensor if tensor.array.dtype == expected.dtype else astype(tensor, expected.dtype)
    if session.exact and not alike(tensor.array, expected):
        raise Unruled
    return fresh(tensor, expected, not own or result._buffer.live, session)


def alike(found: Any, expected: Any) -> bool:
    """Whether values are those that NumPy computed, but for rounding: half of the digits, of the largest of them."""
    same = bool(found.tobytes() == expected.tobytes())
    if same or found.dtype.kind not in "fcV":
        return same
    if found.dtype.kind == "V":
        found, expected = found.astype("float32"), expected.astype("float32")
    with np.errstate(all="ignore"):
        found, expected = np.atleast_1d(found, expected)
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(found)):
            return False
        bound = 16 * np.sqrt(np.finfo(found.dtype).eps) * float(np.max(np.abs(expected[finite]), initial=0.0))
        return bool(np.all(np.abs(found - expected)[finite] <= bound))


# --------------------------------------------------------------------------- decisions
def is_decision(expected: Any) -> bool:
    """Whether a result holds nothing that a derivative could go through."""
    if isinstance(expected, (list, tuple)):
        return bool(expected) and all(map(is_decision, expected))
    if isinstance(expected, (np.ndarray, np.generic)):
        return expected.dtype.kind in "biu"
    return isinstance(expected, int)


def tell_decision(name: str, operands: Sequence[Any], axis: Any = None, made: Any = None) -> Any:
    """Tell the watch that the values of these operands, recorded arrays or plain, decided on `made`, if that is known.

    Returns:
        `made`, which the watch may have changed.
    """
    array = np.asarray(made) if isinstance(made, (np.ndarray, np.generic)) else None
    name = DECISIONS.get(name, name)
    read = [v._tensor() if type(v) is RecordedArray else np.asarray(v) for v in operands]
    if name in ALONG:
        tell_computed(Choice(name, ("x", "axis")), [read[0], axis], array)  # type: ignore[arg-type]
    elif len(read) == 2 or name not in OF_TWO:
        tell_computed(Choice(name, ("x", "y", "z")[: len(read)]), read[:3], array)  # type: ignore[arg-type]
    return array[()] if array is not None and isinstance(made, np.generic) else made


# --------------------------------------------------------------------------- an operation
def performed(run: Callable[..., Any], name: str, rule: Rule, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What an operation of NumPy's, or of anybody's, gives for arguments with recorded arrays in them.

    Args:
        name: as people write it.
        rule: gives the result in operations that are recorded, of NumPy's own result and the arguments.
    """
    copies: list[tuple[RecordedArray, Any]] = []

    def copied(array: RecordedArray) -> Any:
        copies.append((array, array._copied()))
        return copies[-1][1]

    expected = run(*replaced(list(args), copied), **replaced(kwargs, copied))
    session = session_of([array for array, _ in copies])
    memory = [(array, copy) for array, copy in copies if isinstance(copy, np.ndarray)]

    def write_back() -> None:
        for array, copy in memory:
            if copy.tobytes() != array._plain().tobytes():
                array._assign(copy)

    if session is None:
        write_back()
        return expected
    rest = {k: v for k, v in kwargs.items() if k != "out" or "where" in kwargs}
    read = [array for array in recorded_in((args, rest)) if array._buffer.live]
    result, done = expected, False
    if read:
        try:
            result = settled(rule(expected, args, kwargs), expected, session)
            done = expected is not None or not session.exact or all(alike(a._plain(), copy) for a, copy in memory)
        except Exception:  # whatever it is, there is no rule for it
            pass
        for array in [] if done else read:
            session.leak(array._tensor(), name)
    if not done:
        write_back()
        result = wrapped(expected, session, args)
    given_out: dict[int, Any] = {id(copy): array for array, copy in memory}
    given_out |= {id(v): v for v in (*args, *as_tuple(kwargs.get("out"))) if type(v) is np.ndarray}
    targets = [given_out.get(id(e)) for e in as_tuple(expected)]
    if all(target is None for target in targets):
        return result
    for target, one in zip(targets, as_tuple(result), strict=True):
        if type(target) is RecordedArray:
            target._assign(one)
        elif target is not None and type(one) is RecordedArray and one._buffer.live:
            session.leak(one._tensor(), "an array made outside the recording")
    found = [one if t is None else t for t, one in zip(targets, as_tuple(result), strict=True)]
    return like(expected, found) if isinstance(expected, tuple) else found[0]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The items of a tuple, or a single value in one."""
    return value if isinstance(value, tuple) else (value,)


def session_of(arrays: Sequence[RecordedArray]) -> Session | None:
    """The session in force here, which all of the arrays are told of."""
    sessions = [array._here() for array in arrays]
    return sessions[0] if sessions else session_here()


def named(function: Any) -> Rule | None:
    """The rule of a function or ufunc of SciPy's."""
    for module, rules in NAMED.items():
        rule = rules.get(function.__name__)
        if rule is not None and getattr(sys.modules.get(module), function.__name__, None) is function:
            return rule
    return None


# --------------------------------------------------------------------------- functions
def call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a function, of NumPy's or any other, gives for arguments with recorded arrays in them."""
    session = session_of(list(recorded_in((args, kwargs))))
    if function in ASKS:
        return wrapped(function(*plain(args), **plain(kwargs)), session)
    if session is not None and function in OURS:
        return OURS[function](*args, **kwargs)
    if session is not None and function in VIEWS and args and type(args[0]) is RecordedArray:
        return placed_anew(function, *args, **kwargs)
    module = str(getattr(function, "__module__", None) or "numpy").replace("numpy", "np").replace("np._core", "np")
    name = f"{module}.{getattr(function, '__name__', type(function).__name__)}"
    return performed(function, name, functools.partial(by_function, function), args, kwargs)


def by_function(function: Any, expected: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result by the rule of a function."""
    if is_decision(expected):
        name = function.__name__
        operands = list(args[:2]) if DECISIONS.get(name, name) in OF_TWO else list(recorded_in((args, kwargs)))[:1]
        operands = operands[::-1] if name == "digitize" else operands
        axis = kwargs.get("axis", args[1] if len(args) > 1 else -1 if "sort" in name else None)
        return tell_decision(name, operands, axis, expected)
    rest = {k: v for k, v in kwargs.items() if k not in CHANGE_NOTHING and v is not np._NoValue}
    place = -1 if "out" in kwargs else place_of_out(function)
    rule = FUNCTIONS.get(function) or named(function) or functools.partial(FUNCTIONS[None], function)
    return rule(*(None if k == place else v for k, v in enumerate(args)), **rest)


@functools.cache
def place_of_out(function: Any) -> int:
    """The place of the parameter `out` of a function; -1 if it is not known by place."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return -1
    return next((k for k, p in enumerate(parameters) if p.name == "out" and p.kind == p.POSITIONAL_OR_KEYWORD), -1)


def array_function(self: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """NumPy's protocol for functions (NEP 18)."""
    return call(function, args, kwargs)


# --------------------------------------------------------------------------- ufuncs
def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs and their methods (NEP 13)."""
    if any(getattr(type(v), "__array_ufunc__", "") is None for v in inputs):  # it sees to that itself, as Tensors do
        return NotImplemented
    name = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
    given = [gathered(v) if type(v) is list and holds_recorded(v) else v for v in inputs]
    return performed(getattr(ufunc, method), name, functools.partial(by_ufunc, ufunc, method), given, kwargs)


def by_ufunc(ufunc: np.ufunc, method: str, expected: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result by the rule of a ufunc, or of one of its methods."""
    options = {k: v for k, v in kwargs.items() if k not in (*CHANGE_NOTHING, "order") and v is not np._NoValue}
    if method != "__call__":
        return METHODS[method](ufunc, *inputs, **options)
    if is_decision(expected):
        return tell_decision(ufunc.__name__, inputs, None, expected)
    where = options.pop("where", True)
    rule = UFUNCS.get(ufunc) or named(ufunc)
    if rule is None or not set(options) <= {"dtype", "signature", "sig"}:
        raise Unruled
    found = rule(as_tuple(expected)[0].dtype, *replaced(inputs, RecordedArray._tensor))
    if where is True:
        return found
    (target,) = kwargs["out"]  # which keeps its values where the mask does not hold
    before = target._tensor() if type(target) is RecordedArray else Tensor(np.asarray(target))
    shape = list(before.array.shape)
    mask = Tensor(np.broadcast_to(plain(where), shape).copy())
    return where_(mask, broadcast_to(astype(found, before.dtype), shape), before)


RecordedArray.__array_ufunc__ = array_ufunc
RecordedArray.__array_function__ = array_function


# --------------------------------------------------------------------------- placing elements anew
def placed_anew(function: Any, array: RecordedArray, *args: Any, **kwargs: Any) -> Any:
    """What a function makes of the positions of an array: views of it, or arrays of their own."""

    def made(where: Any) -> Any:
        return like(where, [made(w) for w in where]) if isinstance(where, (list, tuple)) else array._at(where)

    return made(function(array._positions(), *plain(args), **plain(kwargs)))


def moved(function: Any, places: Sequence[tuple[int, str]], *args: Any, **kwargs: Any) -> Any:
    """What a function does that only places elements anew, also within its first argument: those of the arguments in
    these places, by position and name."""
    parts: list[Any] = [np.zeros(1)]  # what is placed, in one row, a 0 first

    def numbered(value: Any) -> Any:
        """The numbers in that row of the elements of an array, of numbers, or of lists of these."""
        if isinstance(value, (list, tuple)) and holds_recorded(value):
            return like(value, [numbered(v) for v in value])
        first, shape = sum(part.size for part in parts), np.shape(value)
        numbers = np.empty_like(value._positions()) if type(value) is RecordedArray else np.empty(shape, np.intp)
        numbers[...] = np.arange(first, first + numbers.size).reshape(shape)
        parts.append(np.ravel(value))
        return numbers if numbers.ndim else numbers[()]

    def elements(numbers: Any) -> Any:
        if isinstance(numbers, (list, tuple)):
            return [elements(n) for n in numbers]
        dtype = np.result_type(*(part.dtype for part in parts[1:]))
        return np.concatenate([v if v.dtype == dtype else v.astype(dtype) for v in parts])[np.asarray(numbers)]

    given, rest = plain(list(args)), plain(kwargs)
    for position, name in places:
        if position < len(args):
            given[position] = numbered(args[position])
        elif name in kwargs:
            rest[name] = numbered(kwargs[name])
    numbers = function(*given, **rest)
    if numbers is not None:
        return elements(numbers)
    args[0][...] = elements(given[0])
    return None
