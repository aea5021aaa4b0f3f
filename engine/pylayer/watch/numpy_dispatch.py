"""How NumPy's operations on recorded arrays are computed: by a rule, which records them, or else as a leak.

NumPy itself computes each operation first, on plain copies. What it raises is raised; its result is what the rule's has
to be, in shape, dtype and value, or the rule is not believed. Without a rule the values leave the recording: that is
the only place where they do so.
"""

from __future__ import annotations

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
    declines,
    holds_recorded,
    recorded_in,
    replaced,
    session_here,
)

Rule = Callable[..., Any]

FUNCTIONS: dict[Any, Rule] = {}
"""By function of NumPy's: what gives its result, of the same arguments, in operations that are recorded."""
NAMED: dict[str, dict[str, Rule]] = {}
"""The same for SciPy, which may not be there: by module and name, ufuncs included."""
UFUNCS: dict[Any, Rule] = {}
"""By ufunc: what gives its result as a Tensor, of the result's dtype and the operands, Tensors and plain values."""
METHODS: dict[str, Rule] = {}
"""By method of ufuncs, such as ``reduce``: as `FUNCTIONS`, of the ufunc and the arguments."""
VIEWS: set[Any] = set()
"""Functions that only place the elements of their first argument anew, perhaps as a view of it."""
MOVES: dict[Any, Sequence[tuple[int, str]]] = {}
"""Functions that only place elements anew, and which arguments these are in, by position and name."""
ASKS: set[Any] = set()
"""Functions that ask for what an array is, not for its values."""
SHAPED: set[Any] = set()
"""Functions that make an array in the shape of another, with nothing of its values."""
OURS: dict[Any, Rule] = {}
"""Functions that are computed without NumPy: they call the user's own, are about memory, or give views of several."""
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


def session_of(arrays: Sequence[RecordedArray]) -> Session | None:
    """The session in force here, which all of the arrays are told of."""
    sessions = [array._here() for array in arrays]
    return sessions[0] if sessions else session_here()


# --------------------------------------------------------------------------- results
def wrapped(value: Any, session: Session, leave: Sequence[Any] = ()) -> Any:
    """Plain results as arrays that may take recorded values: of a constant, which nothing depends on."""
    if type(value) is np.ndarray and value.dtype in BY_NUMPY and value.flags.writeable:
        if any(np.may_share_memory(value, other) for other in leave):
            return value
        return RecordedArray._fresh(Tensor(value), value, False, session)
    if isinstance(value, (list, tuple)):
        return like(value, [wrapped(v, session, leave) for v in value])
    return value


def like(value: Any, items: Sequence[Any]) -> Any:
    """Items in the same kind of list or tuple."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def settled(result: Any, expected: Any, session: Session) -> Any:
    """A rule's result as NumPy code gets it. Raises Unruled if it is not what NumPy's own is."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(expected):
            raise Unruled
        return like(expected, [settled(r, e, session) for r, e in zip(result, expected, strict=True)])
    if not isinstance(expected, (np.ndarray, np.generic)):
        return expected
    own = type(result) is RecordedArray
    if not own and isinstance(result, (np.ndarray, np.generic, int, float)):
        result = Tensor(np.asarray(result))
    tensor = result._tensor() if own else result
    if isinstance(expected, np.ndarray) and type(expected) is not np.ndarray:  # a subclass, with a meaning of its own
        raise Unruled
    if not isinstance(tensor, Tensor) or tensor.array.shape != expected.shape or expected.dtype not in BY_NUMPY:
        raise Unruled
    same = tensor.array.dtype == expected.dtype
    tensor = tensor if same else astype(tensor, expected.dtype)
    if session.exact and not alike(tensor.array, expected):
        raise Unruled
    if own and same and result._scalar is not isinstance(expected, np.ndarray):
        return result
    return RecordedArray._fresh(tensor, expected, True, session)


def alike(found: Any, expected: Any) -> bool:
    """Whether values are those that NumPy computed, but for rounding: half of the digits, of the largest of them."""
    if found.dtype.kind == "V":
        found, expected = found.astype("float32"), expected.astype("float32")
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, expected))
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(found)):
            return False
        sizes = np.abs(expected[finite]) if finite.ndim else np.abs(np.atleast_1d(expected))[np.atleast_1d(finite)]
        bound = 16 * np.sqrt(np.finfo(found.dtype).eps) * float(np.max(sizes, initial=0.0))
        return bool(np.all(np.where(finite, np.abs(found - expected) <= bound, True)))


def is_decision(expected: Any) -> bool:
    """Whether a result holds nothing that a derivative could go through."""
    if isinstance(expected, (list, tuple)):
        return bool(expected) and all(map(is_decision, expected))
    if isinstance(expected, (np.ndarray, np.generic)):
        return expected.dtype.kind in "biu"
    return isinstance(expected, (int, np.dtype, type))


def tell_decision(name: str, operands: Sequence[Any], axis: Any = None, made: Any = None) -> Any:
    """Tell the watch that the values of these operands, recorded arrays or plain, decided on `made`, if that is known.

    Returns:
        `made`, which the watch may have changed.
    """
    scalar = isinstance(made, np.generic)
    made = np.asarray(made) if scalar else made if isinstance(made, np.ndarray) else None
    name = DECISIONS.get(name, name)
    read = [v._tensor() if type(v) is RecordedArray else np.asarray(v) for v in operands]
    if name in ALONG:
        tell_computed(Choice(name, ("x", "axis")), [read[0], axis], made)  # type: ignore[arg-type]
    elif len(read) == 2 or name not in OF_TWO:
        tell_computed(Choice(name, ("x", "y", "z")[: len(read)]), read[:3], made)  # type: ignore[arg-type]
    return made[()] if scalar else made


# --------------------------------------------------------------------------- leaving the recording
class Copies:
    """Plain copies of the arrays in the arguments of a call, one per place; what becomes of them goes back."""

    def __init__(self) -> None:
        self.made: list[tuple[RecordedArray, Any]] = []

    def of(self, array: RecordedArray) -> Any:
        """A copy for one place."""
        copy = array._copied()
        self.made.append((array, copy))
        return copy

    def array_of(self, value: Any) -> RecordedArray | None:
        """The array that a value is the copy of, if it is one."""
        return next((array for array, copy in self.made if copy is value and isinstance(copy, np.ndarray)), None)

    def write_back(self) -> bool:
        """Give changed values to the arrays that they are copies of. Whether there were any."""
        changed = [
            (array, copy)
            for array, copy in self.made
            if isinstance(copy, np.ndarray) and copy.tobytes() != array._plain().tobytes()
        ]
        for array, copy in changed:
            array._assign(np.array(array._positions()), copy)
        return bool(changed)


def leave(name: str, session: Session, arrays: Sequence[RecordedArray]) -> None:
    """Tell that the values of these arrays left the recording."""
    for array in arrays:
        if array._buffer.live:
            session.leak(array._tensor(), name)


def name_of(function: Any) -> str:
    """A function as people write it."""
    module = str(getattr(function, "__module__", None) or "numpy").replace("numpy", "np").replace("np._core", "np")
    return f"{module}.{getattr(function, '__name__', type(function).__name__)}"


# --------------------------------------------------------------------------- functions
def call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a function, of NumPy's or any other, gives for arguments with recorded arrays in them."""
    arrays = list(recorded_in((args, kwargs)))
    session = session_of(arrays)
    if function in ASKS:
        return function(*replaced(args, RecordedArray._plain), **replaced(kwargs, RecordedArray._plain))
    if session is not None and function in SHAPED:
        made = function(*replaced(args, RecordedArray._plain), **replaced(kwargs, RecordedArray._plain))
        return wrapped(made, session)
    if session is not None and function in OURS:
        return OURS[function](*args, **kwargs)
    copies = Copies()
    if session is not None and function in VIEWS and args and type(args[0]) is RecordedArray:
        return placed_anew(function, args[0], replaced(args[1:], RecordedArray._plain), kwargs, session)
    given = replaced(list(args), copies.of), replaced(kwargs, copies.of)
    expected = function(*given[0], **given[1])
    if session is None:
        copies.write_back()
        return expected
    live = any(array._buffer.live for array in arrays)
    target = copies.array_of(expected)
    if target is not None and live:
        out, args, kwargs = out_of(function, args, kwargs)
        if target is out:
            result = ruled(function, args, kwargs, expected, session)
            target._assign(np.array(target._positions()), result)
        elif copies.write_back():  # changed in a way for which there is no rule
            leave(name_of(function), session, arrays)
        return target
    if expected is None and function in MOVES:
        try:
            moved_within(function, args, kwargs)
            return None
        except Exception:  # whatever it is, there is no rule for it
            pass
    if not live:
        copies.write_back()
        if target is not None:
            return target
        return wrapped(expected, session, [v for v in (*args, *kwargs.values()) if type(v) is np.ndarray])
    if is_decision(expected):
        name = function.__name__
        operands = list(args[:2]) if DECISIONS.get(name, name) in OF_TWO else arrays[:1]
        operands = operands[::-1] if name == "digitize" else operands
        axis = kwargs.get("axis", args[1] if len(args) > 1 else -1 if "sort" in name else None)
        made = tell_decision(name, operands, axis, expected)
        return wrapped(expected if made is None else made, session)
    result = ruled(function, args, kwargs, expected, session)
    if result is expected:
        copies.write_back()
        return wrapped(expected, session)
    return result


def named(function: Any) -> Rule | None:
    """The rule of a function or ufunc of SciPy's."""
    for module, rules in NAMED.items():
        rule = rules.get(function.__name__)
        if rule is not None and getattr(sys.modules.get(module), function.__name__, None) is function:
            return rule
    return None


def out_of(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """The argument `out` of a call, and the arguments without it."""
    rest = {k: v for k, v in kwargs.items() if k != "out"}
    if len(rest) < len(kwargs):
        (out,) = kwargs["out"] if isinstance(kwargs["out"], tuple) else (kwargs["out"],)
        return out, list(args), rest
    names = list(inspect.signature(function).parameters)
    place = names.index("out") if "out" in names else len(args)
    return (args[place] if place < len(args) else None), [None if k == place else v for k, v in enumerate(args)], rest


def ruled(function: Any, args: Sequence[Any], kwargs: dict[str, Any], expected: Any, session: Session) -> Any:
    """The result by the rule of a function; `expected` itself, as a leak, if there is none that is right."""
    try:
        rule = FUNCTIONS.get(function) or named(function)
        if rule is not None:
            return settled(rule(*args, **kwargs), expected, session)
        if function in MOVES:
            return settled(moved(function, args, kwargs), expected, session)
        return settled(FUNCTIONS[None](function, *args, **kwargs), expected, session)
    except Exception:  # whatever it is, there is no rule for it
        leave(name_of(function), session, list(recorded_in((args, kwargs))))
        return expected


# --------------------------------------------------------------------------- ufuncs
def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a ufunc, or one of its methods, gives for recorded arrays."""
    if any(map(declines, inputs)):
        return NotImplemented
    run = getattr(ufunc, method)
    inputs = [RecordedArray._gathered(v) if type(v) is list and holds_recorded(v) else v for v in inputs]
    arrays = list(recorded_in((inputs, kwargs)))
    session = session_of(arrays)
    copies = Copies()
    outs = kwargs.get("out", ())
    outs = () if outs is Ellipsis or any(out is Ellipsis for out in outs) else outs
    plain = {k: replaced(v, copies.of if k == "out" else RecordedArray._plain) for k, v in kwargs.items()}
    if method == "at":
        given = [copies.of(v) if type(v) is RecordedArray else replaced(v, RecordedArray._plain) for v in inputs]
        run(*given)
        if session is None or not any(array._buffer.live for array in arrays):
            copies.write_back()
            return None
        try:
            METHODS["at"](ufunc, *inputs)
        except Exception:  # whatever it is, there is no rule for it
            leave(f"np.{ufunc.__name__}.at", session, arrays)
            copies.write_back()
        return None
    expected = run(*replaced(list(inputs), RecordedArray._plain), **plain)
    if session is None:
        copies.write_back()
        return expected
    read = [a for a in arrays if "where" in kwargs or not any(a is o for o in outs) or any(a is v for v in inputs)]
    options = {k: v for k, v in kwargs.items() if k not in ("out", "where", "casting", "order", "subok")}
    if not any(array._buffer.live for array in read):
        result = wrapped(expected, session)
    elif is_decision(expected) and method == "__call__":
        made = tell_decision(ufunc.__name__, inputs, None, expected)
        result = wrapped(expected if made is None else made, session)
    else:
        try:
            where = kwargs.get("where", True)
            if method == "__call__":
                found = called(ufunc, inputs, options, expected)
                found = selected(found, where, outs) if where is not True else found
            else:
                options |= {"where": where} if where is not True else {}
                found = METHODS[method](ufunc, *inputs, **options)
            result = settled(found, expected, session)
        except Exception:  # whatever it is, there is no rule for it
            leave(f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__"), session, read)
            result = wrapped(expected, session)
    if not outs:
        return result
    results = result if isinstance(result, tuple) else (result,)
    given_out = []
    for target, one in zip(outs, results, strict=True):
        if type(target) is RecordedArray:
            target._assign(np.array(target._positions()), one)
        elif target is not None:  # plain memory, which nothing recorded can be in
            if type(one) is RecordedArray and one._buffer.live:
                session.leak(one._tensor(), "an array made outside the recording")
            target[...] = replaced(one, RecordedArray._plain)
        given_out.append(one if target is None else target)
    return tuple(given_out) if len(given_out) > 1 else given_out[0]


def called(ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any], expected: Any) -> Any:
    """The result of a ufunc as a Tensor."""
    rule = UFUNCS.get(ufunc) or named(ufunc)
    if rule is None or not set(options) <= {"dtype", "signature", "sig"}:
        raise Unruled
    dtype = (expected[0] if isinstance(expected, tuple) else expected).dtype
    return rule(dtype, *(replaced(v, RecordedArray._tensor) for v in inputs))


def selected(found: Any, where: Any, outs: Sequence[Any]) -> Any:
    """The result where a mask holds, else what was there before."""
    if not outs or not isinstance(found, Tensor):
        raise Unruled
    (target,) = outs
    mask = np.asarray(replaced(where, RecordedArray._plain))
    before = target._tensor() if type(target) is RecordedArray else Tensor(np.asarray(target))
    shape = list(before.array.shape)
    return where_(Tensor(np.broadcast_to(mask, shape).copy()), broadcast_to(astype(found, before.dtype), shape), before)


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs (NEP 13)."""
    return call_ufunc(ufunc, method, inputs, kwargs)


def array_function(self: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """NumPy's protocol for its other functions (NEP 18)."""
    return call(function, args, kwargs)


RecordedArray.__array_ufunc__ = array_ufunc
RecordedArray.__array_function__ = array_function


# --------------------------------------------------------------------------- placing elements anew
def placed_anew(function: Any, array: RecordedArray, args: Any, kwargs: dict[str, Any], session: Session) -> Any:
    """What a function makes of the positions of an array: views of it, or arrays of their own."""
    mine = array._positions()

    def made(where: Any) -> Any:
        if isinstance(where, (list, tuple)):
            return like(where, [made(w) for w in where])
        if where is mine:
            return array
        if not isinstance(where, np.ndarray):
            return array[()]
        if np.may_share_memory(where, mine):
            return array._view(where)
        return RecordedArray._fresh(array._moved(where), where, array._buffer.live, session)

    return made(function(mine, *args, **replaced(kwargs, RecordedArray._plain)))


class Numbering:
    """Numbers for the elements of several arrays, and those elements in one row, a 0 first."""

    def __init__(self) -> None:
        self.parts: list[Any] = [np.zeros(1)]
        self.size = 1

    def of(self, value: Any) -> Any:
        """The numbers of the elements of an array, of numbers, or of lists of these."""
        if isinstance(value, (list, tuple)) and holds_recorded(value):
            return like(value, [self.of(v) for v in value])
        shape = np.shape(value)
        plain = np.empty_like(value._positions()) if type(value) is RecordedArray else np.empty(shape, np.intp)
        plain[...] = np.arange(self.size, self.size + plain.size).reshape(shape)
        self.size += plain.size
        self.parts.append(np.ravel(value))
        return plain if plain.ndim else plain[()]

    def at(self, numbers: Any) -> Any:
        """The elements with these numbers."""
        dtype = np.result_type(*(p.dtype for p in self.parts[1:]))
        parts = [v if v.dtype == dtype else v.astype(dtype) for v in self.parts]
        return np.concatenate(parts)[np.asarray(numbers)]


def numbered(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Numbering, Any, list[Any]]:
    """What a function makes of the numbers of the elements that it places anew, and its arguments with these."""
    numbering = Numbering()
    given, named = replaced(list(args), RecordedArray._plain), replaced(kwargs, RecordedArray._plain)
    for position, name in MOVES[function]:
        if position < len(args):
            given[position] = numbering.of(args[position])
        elif name in kwargs:
            named[name] = numbering.of(kwargs[name])
    return numbering, function(*given, **named), given


def moved(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a function that only places elements anew."""
    numbering, numbers, _ = numbered(function, args, kwargs)
    if isinstance(numbers, (list, tuple)):
        return [numbering.at(n) for n in numbers]
    return numbering.at(numbers)


def moved_within(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Do what a function does that places elements anew within its first argument."""
    target = args[0]
    numbering, _, given = numbered(function, args, kwargs)
    target[...] = numbering.at(given[0])
