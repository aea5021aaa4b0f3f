"""Dispatch of NumPy operations on recorded arrays: to a rule, which records them, otherwise as a
leak.

NumPy itself computes each operation first, on its own arrays. Its exceptions are raised. A result
in the memory of an argument is a view of it. A rule must reproduce any other result, and everything
that NumPy writes into the arguments, in shape, dtype and value; otherwise its result is not used.
Without a rule the values leave the recording; this is the only place where they do.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from pylayer.ops.complexes import real
from pylayer.ops.indexing import where_
from pylayer.ops.shape import astype, broadcast_to, reshape
from pylayer.tape.symbol import Symbol
from pylayer.tensor.dtype import BY_NUMPY
from pylayer.tensor.nested import like, mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import watchers
from pylayer.watch.numpy_array import (
    Dispatched,
    RecordedArray,
    Session,
    constant,
    current_session,
    fresh,
    is_live,
    plain,
    recorded_in,
    replace_recorded,
    stack_recorded,
)

Rule = Callable[..., Any]

FUNCTIONS: dict[Any, Rule] = {}
"""Rules by NumPy function: each computes the function's result from the same arguments by recorded
operations. The rule under None applies to any other function, and gets the function too.
"""
NAMED: dict[str, dict[str, Rule]] = {}
"""Rules for SciPy, which may not be installed: by module and name, ufuncs included."""
UFUNCS: dict[Any, Rule] = {}
"""Functions that compute a ufunc's result as a Tensor, by ufunc; they take the result's dtype and
the operands, which are Tensors or plain values.
"""
OPERATIONS: dict[tuple[Any, Any], Any] = {}
"""The engine's operation with bitwise equal results, by ufunc and dtype."""
BESIDE_NUMBERS = {np.add, np.subtract, np.multiply, np.divide}
"""The ufuncs in `OPERATIONS` whose operands may be numbers."""
REDUCTIONS: dict[Any, Any] = {}
"""The operation of the engine, by NumPy's reduction."""
FLOATS = (np.dtype("float64"), np.dtype("float32"))
METHODS: dict[str, Rule] = {}
"""Like `FUNCTIONS`, but for methods of ufuncs such as ``reduce``; they take the ufunc and the
arguments.
"""
MAKES = {
    "array",
    "asarray",
    "asanyarray",
    "ascontiguousarray",
    "asfortranarray",
    "asarray_chkfinite",
    "astype",
}
"""The names of functions and methods that convert values to an array, possibly of another dtype."""
PLACES = {
    "copy",
    "view",
    "flatten",
    "ravel",
    "reshape",
    "transpose",
    "squeeze",
    "take",
    "repeat",
    "compress",
    "choose",
    "copyto",
    "put",
    "place",
    "putmask",
    "fill",
    "block_diag",
}
"""The names of functions and methods that only rearrange elements, in a new array or in the first
argument.
"""
ASKS = {
    "zeros_like",
    "ones_like",
    "empty_like",
    "shape",
    "ndim",
    "size",
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "result_type",
    "can_cast",
    "min_scalar_type",
    "common_type",
    "shares_memory",
    "may_share_memory",
    "broadcast",
}
"""The names of functions that use only the form of an array, never its values."""
CALL_USERS = {"apply_along_axis", "apply_over_axes", "piecewise"}
"""The names of functions that call user functions; for these, NumPy does not compute the result
first.
"""
CHANGE_NOTHING = (
    "out",
    "order",
    "casting",
    "subok",
    "overwrite_a",
    "overwrite_b",
    "overwrite_x",
    "check_finite",
    "lapack_driver",
    "lwork",
)
"""Keywords that no rule needs: they apply to the finished result, or do not change it."""
DECISIONS = {
    "less": "less_than",
    "greater": "greater_than",
    "array_equal": "equal_all",
    "flatnonzero": "nonzero",
    "argwhere": "nonzero",
    "lexsort": "argsort",
    "argpartition": "argsort",
    "digitize": "searchsorted",
}
"""The engine's names for NumPy functions whose results are choices that depend on values."""
ALONG = {"argmax": None, "argmin": None, "argsort": -1}
"""Functions in `CHOICES` that take an axis after the array, with its default."""
OF_TWO = ("isclose", "allclose", "equal_all", "searchsorted")
"""Functions in `CHOICES` that compare their first two arguments, one of which may be plain."""


FEW_DIGITS = 2.0**-7
"""The epsilon of bfloat16."""


class Choice(NamedTuple):
    """An operation whose result (integers or bools) depends on comparisons of values."""

    name: str
    arguments: Sequence[str]


class Unruled(Exception):  # noqa: N818 - no error: the values leave the recording
    """Raised for a call without a rule."""


def refuse_call(*args: Any) -> Any:
    """The rule for calls without a specific rule."""
    raise Unruled


# --------------------------------------------------------------------------- results
def wrap_constants(
    value: Any,
    session: Session | None,
    arrays: Sequence[RecordedArray] = (),
    arguments: Sequence[Any] = (),
) -> Any:
    """Plain results as recorded arrays of constants, which may take recorded values later. A result
    in the memory of one of `arrays` becomes a view of it, and one in the memory of a plain array in
    `arguments` stays plain.
    """
    if session is None:
        return value

    def wrap(leaf: Any) -> Any:
        view = view_of(leaf, arrays)
        if view is not None:
            return view
        is_plain = type(leaf) is np.ndarray and leaf.dtype in BY_NUMPY and leaf.flags.writeable
        if not is_plain:
            return leaf
        foreign = any(type(v) is np.ndarray and np.may_share_memory(leaf, v) for v in arguments)
        return leaf if foreign else constant(leaf, session)

    return mapped(value, wrap)


def view_of(value: Any, arrays: Sequence[RecordedArray]) -> Any:
    """A value in the memory of one of the arrays as a view of it; otherwise None."""
    if not isinstance(value, np.ndarray):
        return None
    for array in sorted(arrays, key=lambda array: array._memory is not value):  # itself first
        if isinstance(array._memory, np.ndarray) and np.may_share_memory(value, array._memory):
            return array._view(value)
    return None


def conform_result(
    result: Any, expected: Any, session: Session, arrays: Sequence[RecordedArray]
) -> Any:
    """A rule's result in the form in which NumPy code receives it. Raises Unruled if it differs
    from NumPy's own result.
    """
    if isinstance(expected, (list, tuple)):
        if not isinstance(result, (list, tuple)):
            raise Unruled
        return like(
            expected,
            [conform_result(*pair, session, arrays) for pair in zip(result, expected, strict=True)],
        )
    if not isinstance(expected, (np.ndarray, np.generic)):
        return expected
    view = view_of(expected, arrays) if arrays else None
    if type(view) is RecordedArray:
        return view
    is_recorded = type(result) is RecordedArray
    tensor = (
        result._tensor()
        if is_recorded
        else result
        if isinstance(result, Tensor)
        else Tensor(np.asarray(result))
    )
    # a subclass of arrays may mean something else
    subclass = isinstance(expected, np.ndarray) and type(expected) is not np.ndarray
    if subclass or tensor.array.shape != expected.shape or expected.dtype not in BY_NUMPY:
        raise Unruled
    tensor = tensor if tensor.array.dtype == expected.dtype else astype(tensor, expected.dtype)
    if not alike(tensor.array, expected, session.exact):
        raise Unruled
    constants = is_recorded and result._buffer.tensor is None
    return constant(tensor.array[()], session) if constants else fresh(tensor, expected, session)


def alike(values: Any, expected: Any, exact: bool = True) -> bool:
    """Whether values are those that NumPy computed, up to rounding: to half of the digits of the
    largest value; to an eighth of it, or more in a dtype of few digits, if operations are perturbed
    but the rule may not be.
    """
    same = bool(values.tobytes() == expected.tobytes())
    if same or not is_live(values.dtype):
        return same or not exact
    few = "V" in (values.dtype.kind, expected.dtype.kind)  # one of them, where casts are left out
    if few:
        values, expected = values.astype("float32"), expected.astype("float32")
    with np.errstate(all="ignore"):
        sizes = np.abs(expected)
        largest = np.maximum.reduce(sizes, axis=None, where=np.isfinite(sizes), initial=0.0)
        epsilon = float(np.finfo(expected.dtype).eps) if exact or not few else FEW_DIGITS
        bound = (16 * np.sqrt(epsilon) if exact else max(1 / 8, 256 * epsilon)) * largest
        near = (np.abs(values - expected) <= bound) | (values == expected)
        near |= np.isnan(values) & np.isnan(expected)
        return bool(np.logical_and.reduce(near, axis=None))


# --------------------------------------------------------------------------- decisions
def is_decision(expected: Any) -> bool:
    """Whether a result contains no value that could carry a derivative."""
    if isinstance(expected, (list, tuple)):
        return bool(expected) and all(map(is_decision, expected))
    if isinstance(expected, (np.ndarray, np.generic)):
        return expected.dtype.kind in "biu"
    return isinstance(expected, int)


def tell_decision(name: str, operands: Sequence[Any], axis: Any = None, outcome: Any = None) -> Any:
    """Report to the observer that the values of these operands, recorded arrays or plain,
    determined the choice `outcome`, if known.

    Returns:
        `outcome`, which the observer may have changed.
    """
    array = np.asarray(outcome) if isinstance(outcome, (np.ndarray, np.generic)) else None
    read = dict(
        zip(
            "xyz",
            [v._tensor() if type(v) is RecordedArray else np.asarray(v) for v in operands],
            strict=False,
        )
    )
    read |= {} if axis is None else {"axis": axis}
    choice: Any = Choice(DECISIONS.get(name, name), tuple(read))
    watchers.get().observer.computed(choice, list(read.values()), array)
    return array[()] if array is not None and isinstance(outcome, np.generic) else outcome


# --------------------------------------------------------------------------- an operation
def perform(
    run: Callable[..., Any],
    name: str,
    rule: Rule,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    written: Any,
    out: Any,
) -> Any:
    """Call an operation of NumPy or of other code with arguments that contain recorded arrays.

    Args:
        name: as written in code.
        rule: computes the result by recorded operations, from NumPy's result and the arguments.
        written: the arguments that the operation may write into.
        out: the arrays among them that receive the results.
    """
    arrays = recorded_in((args, kwargs))
    session = session_of(arrays)
    run = functools.partial(run, *plain(list(args)), **plain(kwargs))
    expected, after = run_and_restore(run, written)
    if session is None:
        for array, values in after:
            array._assign(values)
        return expected
    contents = {id(array._memory): values for array, values in after}
    out_arrays: dict[int, Any] = {id(plain(v)): v for v in out if isinstance(v, np.ndarray)}
    out_arrays |= {id(array._memory): array for array, _ in after}
    targets = [out_arrays.get(id(item)) for item in as_tuple(expected)]
    pairs = zip(as_tuple(expected), targets, strict=True)
    copies = [o if target is None else contents.get(id(o), o.copy()) for o, target in pairs]
    expected = like(expected, copies) if isinstance(expected, tuple) else copies[0]
    result, done = wrap_constants(expected, session, arrays, args), False
    buffers, items = (
        [array._buffer for array in arrays],
        result if isinstance(result, (list, tuple)) else [result],
    )
    views = all(type(item) is RecordedArray and item._buffer in buffers for item in items)
    rest = {k: v for k, v in kwargs.items() if k != "out" or "where" in kwargs}
    read = [array for array in recorded_in((args, rest)) if array._buffer.tensor is not None]
    filled = [target._buffer for target in targets if type(target) is RecordedArray]
    other_writes = [(array, values) for array, values in after if array._buffer not in filled]
    if read and (other_writes or not views or not items):
        try:
            result = conform_result(rule(expected, args, kwargs), expected, session, arrays)
            done = not session.exact or all(
                alike(array._memory, values) for array, values in other_writes
            )
        except Exception:  # whatever the error, the rule does not apply
            pass
        for array in [] if done else read:
            session.leak(array._tensor(), name)
    for array, values in [] if done else after:
        array._assign(values)
    if not out_arrays:
        return result
    results = [
        deliver(*pair, done, session) for pair in zip(targets, as_tuple(result), strict=True)
    ]
    return like(expected, results) if isinstance(expected, tuple) else results[0]


USUAL = {RecordedArray, np.ndarray, np.float64, float, int}
"""The types of the operands of a usual call."""


def run_and_restore(
    run: Callable[[], Any], written: Any
) -> tuple[Any, list[tuple[RecordedArray, Any]]]:
    """A call's result, and the arrays among `written` that it wrote to, with their new contents.
    Their old contents are restored: the recorded operations write.
    """
    before = [
        (a, a._memory.copy()) for a in recorded_in(written) if isinstance(a._memory, np.ndarray)
    ]
    after: list[tuple[RecordedArray, Any]] = []
    try:
        return run(), after
    finally:
        changed = [(a, values) for a, values in before if a._memory.tobytes() != values.tobytes()]
        after += [(array, array._memory.copy()) for array, _ in changed]
        for array, values in changed:
            array._memory[...] = values


def deliver(target: Any, result: Any, done: bool, session: Session) -> Any:
    """A result, written into the array given as `out`, if any; `done` means that a rule computed it
    and the array does not hold it yet.
    """
    if target is None:
        return result
    if type(target) is not RecordedArray:
        if type(result) is RecordedArray and result._buffer.tensor is not None:
            session.leak(result._tensor(), "an array made outside the recording")
    elif done:
        target._assign(result)
    return target


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The tuple itself, or a tuple of the single value."""
    return value if isinstance(value, tuple) else (value,)


def session_of(arrays: Sequence[RecordedArray]) -> Session | None:
    """The current session, after a check that every array belongs to it."""
    sessions = [array._current_session() for array in arrays]
    return sessions[0] if sessions else current_session()


def named_rule(function: Any) -> Rule | None:
    """The rule of a SciPy function or ufunc."""
    for module, rules in NAMED.items():
        rule = rules.get(function.__name__)
        if (
            rule is not None
            and getattr(sys.modules.get(module), function.__name__, None) is function
        ):
            return rule
    return None


# --------------------------------------------------------------------------- functions
def call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy or of other code with arguments that contain recorded arrays."""
    if function.__name__ in ASKS:
        session = session_of(recorded_in((args, kwargs)))
        return wrap_constants(function(*plain(args), **plain(kwargs)), session)
    if function.__name__ in CALL_USERS and session_of(recorded_in((args, kwargs))) is not None:
        return FUNCTIONS[None](function, *args, **kwargs)
    module = (
        str(getattr(function, "__module__", None) or "numpy")
        .replace("numpy", "np")
        .replace("np._core", "np")
    )
    name = f"{module}.{function.__name__}"
    out = with_keywords(function, args, kwargs)[1].get("out")
    outs = () if out is None else as_tuple(out)
    rule, written = functools.partial(by_function, function), (args, kwargs)
    written = outs if function in FUNCTIONS else written
    return perform(function, name, rule, args, kwargs, written, outs)


def call_method(array: RecordedArray, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method of an array, by the function of its name if NumPy has one."""
    function = getattr(np, name, None)
    if isinstance(function, (Dispatched, np.ufunc)) and name not in PLACES:
        return function(array, *args, **kwargs)
    if name == "ravel" and not args and not kwargs and array._current_session() is not None:
        flat = array._memory.ravel()
        if np.may_share_memory(flat, array._memory):
            return array._view(flat)

    def method(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    method.__name__ = name
    rule = functools.partial(by_function, method) if name in MAKES | PLACES else refuse_call
    arguments = (array, *args)
    return perform(
        method,
        f".{name}",
        rule,
        arguments,
        kwargs,
        (arguments, kwargs),
        as_tuple(kwargs.get("out")),
    )


def by_function(function: Any, expected: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a function, by its rule."""
    name = function.__name__
    if name in MAKES:
        return make_array(args[0], expected)
    if name in PLACES:
        return rearrange_elements(function, *args, **kwargs)
    if is_decision(expected):
        decision, values = DECISIONS.get(name, name), [*args, *kwargs.values()]
        operands = values[:2] if decision in OF_TWO else recorded_in(values)[:1]
        axis = kwargs.get(
            "axis", args[1] if name in ALONG and len(args) > 1 else ALONG.get(decision)
        )
        return tell_decision(
            decision, operands[::-1] if name == "digitize" else operands, axis, expected
        )
    rule = (
        FUNCTIONS.get(function)
        or named_rule(function)
        or functools.partial(FUNCTIONS[None], function)
    )
    return call_rule(rule, *with_keywords(function, args, kwargs))


def call_rule(rule: Rule, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a rule, leaving out arguments that have no effect; a `dtype` becomes that of the first
    argument.
    """
    rest = effective_options(kwargs)
    dtype = rest.pop("dtype", None)
    first = (
        args[0] if dtype is None else replace_recorded(args[0], lambda array: array.astype(dtype))
    )
    return rule(first, *args[1:], **rest)


def effective_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The given keywords of a call that have an effect; a numeric `order` is that of a spline."""
    options = {k: v for k, v in kwargs.items() if k not in CHANGE_NOTHING and v is not np._NoValue}
    if not isinstance(kwargs.get("order"), str | None):
        options["order"] = kwargs["order"]
    return options


def with_keywords(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments of a call with `out` and `dtype` as keywords, if their positions are known."""
    if len(args) < 3:  # they are not among the first two
        return args, kwargs
    try:
        bound = signature_of(function).bind(*args, **kwargs)
    except (ValueError, TypeError):
        return args, kwargs
    named = {
        name: bound.arguments.pop(name) for name in ("out", "dtype") if name in bound.arguments
    }
    return bound.args, bound.kwargs | named


signature_of = functools.cache(inspect.signature)


def array_function(
    self: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """NumPy's protocol for functions (NEP 18)."""
    if function is np.outer and not kwargs and all(map(is_vector, args)):
        return args[0][:, None] * args[1][None, :]
    result = None
    if function in REDUCTIONS and len(args) < 3 and kwargs.keys() <= {"axis", "keepdims"}:
        result = usual_reduction(function, *args, **kwargs)
    return call(function, args, kwargs) if result is None else result


def is_vector(value: Any) -> bool:
    """Whether a value is an array of one axis, recorded or plain."""
    return type(value) in (RecordedArray, np.ndarray) and value.ndim == 1


def usual_reduction(function: Any, array: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The result of `call` for one of `REDUCTIONS` of an array of `FLOATS`, in fewer calls.

    None for any other call, and for an array whose memory order is not its Tensor's: the sums would
    be rounded differently.
    """
    session = current_session()
    if type(array) is not RecordedArray or session is None or array._buffer.session is not session:
        return None
    memory, is_live = array._memory, array._buffer.tensor is not None
    of_axes = memory.ndim and type(axis) in (int, NoneType)
    if not (is_live and of_axes and memory.dtype in FLOATS and memory.flags.c_contiguous):
        return None
    expected = function(memory, axis=axis, keepdims=keepdims)
    axes = list(range(memory.ndim)) if axis is None else [axis % memory.ndim]
    options = {"axis": axes, "keepdim": bool(keepdims), "dtype": None}
    tensor, row = array._tensor(), REDUCTIONS[function]
    if isinstance(tensor, Symbol):  # its tracer has to see the call
        return None
    rest = list(map(options.__getitem__, row.arguments[1:]))
    arguments = (tensor, *rest)
    reduced = row.result((tensor,), arguments, [tensor.array, *rest], np.array(expected))
    return fresh(reduced, expected, session)


# --------------------------------------------------------------------------- ufuncs
def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs and their methods (NEP 13)."""
    if method == "__call__" and not kwargs:
        result = usual_call(ufunc, self._memory.dtype, inputs)
        if result is not None:
            return result
    operands: Sequence[Any] = inputs
    if not USUAL.issuperset(map(type, inputs)):
        if any(getattr(type(v), "__array_ufunc__", "") is None for v in inputs):
            return NotImplemented  # it handles that itself, as Tensors do
        operands = [stack_recorded(v) for v in inputs]
    name = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
    out = kwargs.get("out", ())
    written = operands[:1] if method == "at" else out
    rule = functools.partial(by_ufunc, ufunc, method)
    return perform(getattr(ufunc, method), name, rule, operands, kwargs, written, out)


def usual_call(ufunc: np.ufunc, dtype: np.dtype[Any], inputs: Sequence[Any]) -> Any:
    """The result of `perform` for one of `OPERATIONS` on arrays of one dtype, in fewer calls.

    None for any other call.
    """
    row, session = OPERATIONS.get((ufunc, dtype)), current_session()
    if row is None or session is None or not USUAL.issuperset(map(type, inputs)):
        return None
    memories: list[Any] = []
    values: list[Any] = []
    raw: list[Any] = []
    live = 0
    for value in inputs:
        memory = value
        if type(value) is RecordedArray:
            buffer, memory = value._buffer, value._memory
            # a Symbol's tracer has to see the call
            if buffer.session is not session or isinstance(buffer.tensor, Symbol):
                return None
            value = value._tensor()
            live += buffer.tensor is not None
        elif type(value) is np.ndarray:
            value = Tensor(np.array(value))  # the code may change its own array later
        elif ufunc not in BESIDE_NUMBERS:
            value = Tensor(np.array(value, dtype))
        if type(value) is Tensor and value.array.dtype is not dtype:
            return None
        memories.append(memory)
        values.append(value)
        raw.append(value.array if type(value) is Tensor else value)
    if not live:
        return None
    expected = ufunc(*memories)
    if expected.dtype is not dtype:  # next to a NumPy scalar
        return None
    return fresh(row.result(values, values, raw, np.array(expected)), expected, session)


def by_ufunc(
    ufunc: np.ufunc, method: str, expected: Any, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The result of a ufunc, or of one of its methods, by its rule."""
    if method != "__call__":
        return call_rule(functools.partial(METHODS[method], ufunc), inputs, kwargs)
    if is_decision(expected):
        return tell_decision(ufunc.__name__, inputs, None, expected)
    options, rule = (
        effective_options(kwargs) if kwargs else {},
        UFUNCS.get(ufunc) or named_rule(ufunc),
    )
    where = options.pop("where", True)
    if rule is None or not set(options) <= {"dtype", "signature", "sig"}:
        raise Unruled
    result = rule(as_tuple(expected)[0].dtype, *map(operand, inputs))
    if where is True:
        return result
    (target,) = kwargs["out"]  # it keeps its values where the mask does not hold
    before = target._tensor() if type(target) is RecordedArray else Tensor(np.asarray(target))
    shape = list(before.array.shape)
    mask = Tensor(np.broadcast_to(plain(where), shape).copy())
    return where_(mask, broadcast_to(astype(result, before.dtype), shape), before)


def operand(value: Any) -> Any:
    """The Tensor of a recorded array, or its values if they are constants; any other value
    unchanged.
    """
    if type(value) is not RecordedArray:
        return value
    return value._memory if value._buffer.tensor is None else value._tensor()


RecordedArray.__array_ufunc__ = array_ufunc
RecordedArray.__array_function__ = array_function
RecordedArray._call = call_method


# ------------------------------------------------------------------- making and rearranging arrays
def make_array(value: Any, expected: Any) -> Tensor:
    """Convert an array, or lists of arrays and numbers, to a Tensor with NumPy's dtype and
    shape.
    """
    tensor = stack_recorded(value)._tensor()
    if tensor.array.dtype.kind == "c" and expected.dtype.kind not in "cb":
        tensor = real(tensor)
    return reshape(astype(tensor, expected.dtype), list(expected.shape))


def rearrange_elements(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that only rearranges elements, in its result or in its first argument.

    It is run on marks (numbers that occur nowhere else) in place of recorded values. Any other
    number in the result is a constant.
    """
    arrays = [array for array in recorded_in((args, kwargs)) if array._buffer.tensor is not None]
    ends = np.cumsum([array.size for array in arrays])
    marks = np.sin(np.arange(1.0, 1 + ends[-1]))
    order, unused_marks = np.argsort(marks), iter(np.split(marks, ends))

    def marks_for(array: RecordedArray) -> Any:
        if array._buffer.tensor is None:
            return array._memory.astype(float if is_live(array.dtype) else array.dtype)
        stand_in = np.empty_like(array._memory, dtype=float, subok=False)
        stand_in[...] = next(unused_marks).reshape(stand_in.shape)
        return stand_in if isinstance(array._memory, np.ndarray) else stand_in[()]

    def elements(result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return [elements(item) for item in result]
        # The bytes of the values may have been read as other numbers.
        if np.asarray(result).dtype != marks.dtype:
            raise Unruled
        where = order[np.searchsorted(marks[order], result).clip(max=marks.size - 1)]
        is_mark = marks[where] == result
        if len(arrays) == 1 and np.all(is_mark):
            return arrays[0]._rearrange(np.asarray(arrays[0]._positions()).ravel()[where])
        constants = np.asarray(result)[~is_mark].astype(arrays[0].dtype)
        where[~is_mark] = marks.size + np.arange(constants.size)
        return np.concatenate([*map(np.ravel, arrays), constants])[where]

    new = [
        v.copy() if type(v) is np.ndarray else v for v in replace_recorded(list(args), marks_for)
    ]
    result = function(
        *new, **replace_recorded({k: v for k, v in kwargs.items() if k != "out"}, marks_for)
    )
    if result is not None:
        return elements(result)
    return args[0]._assign(elements(new[0]))
