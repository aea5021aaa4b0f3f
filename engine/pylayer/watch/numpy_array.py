"""An array that stands for a Tensor in NumPy code: what NumPy does to it is done to the Tensor, and so recorded.

Arrays that are views of each other share one `Buffer`. A view knows the position in the buffer of each of its elements:
an array of integers, on which NumPy itself does the indexing, transposing and reshaping. So a view is a view exactly
where it is one in NumPy, a write through any of them reaches the buffer, and a read after it sees it.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pylayer.dtype import BY_NUMPY
from pylayer.ops.complexes import complex_, imag, real
from pylayer.ops.indexing import getitem, setitem_
from pylayer.ops.shape import astype, broadcast_to, reshape, transpose
from pylayer.tensor import Tensor
from pylayer.watch import exchange, in_force, records_all

Plain = np.ndarray[Any, Any]


class Session:
    """The recording of NumPy code during one call, in one thread. It hands Tensors out as arrays, and takes them back.

    `is_users` tells whether a file of code is the user's. `exact` says that nothing changes the values of the
    operations, so that they can be held against what NumPy computes.
    """

    def __init__(self, is_users: Callable[[str], bool], exact: bool = True) -> None:
        self.is_users = is_users
        self.exact = exact
        self.thread = threading.get_ident()
        self.watch = in_force.get()
        self.open = True
        self.leaks: list[tuple[str, int, str]] = []
        """Where values left the recording: file, line, and what took them."""

    def where(self) -> tuple[str, int]:
        """The file and line of the innermost code that is the user's."""
        frame = sys._getframe(1)
        while frame.f_back is not None and not self.is_users(frame.f_code.co_filename):
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno

    def leak(self, tensor: Tensor, what: str) -> None:
        """Note that `what` took the values of `tensor` out of the recording."""
        self.leaks.append((*self.where(), what))
        if self.watch is not None:
            self.watch.left(tensor, what)

    def raised(self, error: BaseException) -> str:
        """Note that the code raised `error`, where it would not have done so with plain arrays. Says where."""
        path, line = self.where()
        trace = error.__traceback__
        while trace is not None:
            if self.is_users(trace.tb_frame.f_code.co_filename):
                path, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
            trace = trace.tb_next
        what = f"{type(error).__name__}: {error}"
        self.leaks.append((path, line, what))
        return f"{what} in line {line}"

    def handed(self, tensor: Tensor) -> Any:
        """An array that stands for a copy of the Tensor's values."""
        live = tensor.array.dtype.kind in "fcV" and not (records_all() and tensor.stop_gradient)
        copy = as_it_is(tensor)
        copy.array = tensor.array if records_all() else tensor.array.copy()  # which in-place operations write to
        return RecordedArray(Buffer(copy, live, self))

    def taken(self, value: Any, whole: bool) -> Any:
        """See `pylayer.watch.Exchange`."""
        if whole and isinstance(value, (list, tuple)) and holds_recorded(value):
            value = RecordedArray._gathered(value)
        if type(value) is tuple and any(type(v) is RecordedArray for v in value):
            return tuple(self.taken(v, whole) for v in value)
        if type(value) is not RecordedArray:
            return value
        joined = self.watch is None or self.watch.records
        return as_it_is(value._tensor()) if joined else Tensor(value._tensor().array)


def session_here() -> Session | None:
    """The session in force in this thread."""
    session = exchange.get()
    return session if isinstance(session, Session) and session.thread == threading.get_ident() else None


def as_it_is(tensor: Tensor) -> Tensor:
    """A Tensor of the same value and place in the graph, which in-place operations on the other leave alone."""
    return Tensor(tensor.array, tensor if tensor.node is None else tensor.node, tensor._stop_gradient)


def recorded_in(value: Any) -> Iterator[RecordedArray]:
    """The recorded arrays in a value: itself, or in lists, tuples and dicts at any depth."""
    if type(value) is RecordedArray:
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from recorded_in(item)
    elif isinstance(value, dict):
        yield from recorded_in(list(value.values()))


def holds_recorded(value: Any) -> bool:
    """Whether a value is a recorded array, or holds one."""
    return next(recorded_in(value), None) is not None


def replaced(value: Any, by: Callable[[RecordedArray], Any]) -> Any:
    """`value` with something else in place of each recorded array in it."""
    if type(value) is RecordedArray:
        return by(value)
    if not holds_recorded(value):
        return value
    if isinstance(value, dict):
        return {k: replaced(v, by) for k, v in value.items()}
    items = [replaced(v, by) for v in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


class Buffer:
    """Memory that views share: its present values as a Tensor, and how often it was written to.

    It is `live` if its values depend on those that the session handed out.
    """

    __slots__ = ("live", "places", "session", "tensor", "version")

    def __init__(self, tensor: Tensor, live: bool, session: Session) -> None:
        self.tensor = tensor
        self.live = live
        self.session = session
        self.version = 0
        self.places: Plain | None = None
        """The number of each element, laid out in memory as NumPy lays out the elements; made when asked for."""


def method(name: str) -> Any:
    """The method that is NumPy's function of that name."""

    def call(self: RecordedArray, *args: Any, **kwargs: Any) -> Any:
        return getattr(np, name)(self, *args, **kwargs)

    return call


def in_place(ufunc: np.ufunc) -> Any:
    """``x ∘= y``; of a number a new one, and of a Tensor what it makes of it."""

    def call(self: RecordedArray, other: Any) -> Any:
        if declines(other):
            return NotImplemented
        return ufunc(self, other) if self._scalar else ufunc(self, other, out=(self,))

    return call


def leaving(function: Callable[..., Any]) -> Any:
    """What takes the values out of the recording: Python's ``float()``, ``str()`` and the like."""

    def call(self: RecordedArray, *args: Any) -> Any:
        return function(self._left(f"{function.__name__}()"), *args)

    return call


def declines(other: Any) -> bool:
    """Whether an operand sees to operators with arrays itself, as Tensors do."""
    return getattr(type(other), "__array_ufunc__", "") is None


class RecordedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """See the file. `_where` are the positions of its elements, None if they are those of the whole buffer in order;
    `_part` is set for the real or imaginary part of a complex buffer; a `_scalar` is what NumPy gives for one element.
    """

    __slots__ = ("__weakref__", "_buffer", "_part", "_scalar", "_seen", "_version", "_where")
    __array_priority__ = 1000.0
    __array_ufunc__: Any
    __array_function__: Any

    def __init__(self, buffer: Buffer, where: Plain | None = None, part: Any = None, scalar: bool = False) -> None:
        self._buffer = buffer
        self._where = where
        self._part = part
        self._scalar = scalar
        self._seen: Tensor | None = None
        self._version = -1

    @staticmethod
    def _fresh(tensor: Tensor, like: Any, live: bool, session: Session) -> Any:
        """The result of an operation, laid out in memory as NumPy's own result `like`; a number if nothing depends on
        it."""
        live = live and tensor.array.dtype.kind in "fcV" and not (records_all() and tensor.stop_gradient)
        scalar = not isinstance(like, np.ndarray)
        if tensor.array.dtype.kind not in "fcV" or not live:
            if scalar:
                return tensor.array[()]
            tensor = Tensor(tensor.array)
        buffer = Buffer(tensor, live, session)
        if not scalar and not like.flags.c_contiguous:
            buffer.places = np.empty_like(like, dtype=np.intp, subok=False)
            buffer.places[...] = np.arange(like.size).reshape(like.shape)
        return RecordedArray(buffer, None, None, scalar)

    @staticmethod
    def _gathered(items: Any) -> Any:
        """An array of a list of arrays and numbers."""
        return np.stack([RecordedArray._gathered(v) if isinstance(v, (list, tuple)) else v for v in items])

    # ----------------------------------------------------------------- reading and writing
    def _here(self) -> Session | None:
        """The session that this belongs to, if it is in force here. Told of other threads that touch this."""
        buffer, here = self._buffer, session_here()
        if buffer.session is here:
            return here
        if buffer.session.open:
            if buffer.live:
                buffer.session.leak(buffer.tensor, "another thread")
        elif here is not None:  # kept from an earlier call: a constant of this one
            buffer.tensor, buffer.live, buffer.session = Tensor(buffer.tensor.array), False, here
            self._seen = None
            return here
        return here

    def _positions(self) -> Plain:
        """The positions of its elements in the buffer."""
        if self._where is not None:
            return self._where
        buffer = self._buffer
        if buffer.places is None:
            buffer.places = np.arange(buffer.tensor.size).reshape(buffer.tensor.array.shape)
        return buffer.places

    def _tensor(self) -> Tensor:
        """Its present values."""
        buffer = self._buffer
        if self._seen is None or self._version != buffer.version:
            found = buffer.tensor
            if self._where is not None:
                found = getitem(reshape(found, [-1]), np.array(self._where, order="C"))
            if self._part is not None:
                found = self._part(found)
            self._seen, self._version = found, buffer.version
        return self._seen

    def _plain(self) -> Any:
        """Its values as NumPy has them, which nobody may write to."""
        values = self._tensor().array
        if self._scalar:
            return values[()]
        where = self._where if self._where is not None else self._buffer.places
        if where is None or where.flags.c_contiguous:
            return np.ascontiguousarray(values).reshape(values.shape)
        copy = np.empty_like(where, dtype=values.dtype)
        copy[...] = values
        return copy

    def _copied(self) -> Any:
        """Its values as an array of its own."""
        values = self._plain()
        return values.copy(order="K") if isinstance(values, np.ndarray) else values

    def _view(self, where: Plain) -> RecordedArray:
        """A view with these positions."""
        found = RecordedArray(self._buffer, where, self._part)
        if self._buffer.live:
            found._seen, found._version = self._moved(where), self._buffer.version
        return found

    def _moved(self, where: Plain) -> Tensor:
        """Its values at these positions: as they are in another shape or with axes in another order, if they are."""
        mine, now = self._positions(), self._tensor()
        if where.size == mine.size:
            if where.ndim == mine.ndim and where.shape == mine.shape and np.array_equal(where, mine):
                return now
            if np.array_equal(where.ravel(), mine.ravel()):
                return reshape(now, list(where.shape))
            order = axes_order(mine, where)
            if order is not None:
                return transpose(now, order)
        found = getitem(reshape(self._buffer.tensor, [-1]), np.array(where, order="C"))
        return found if self._part is None else self._part(found)

    def _write(self, value: Tensor, at: Plain | None, live: bool) -> None:
        """Have the elements at these positions, or its own, be `value`, of the same shape and dtype."""
        self._here()
        buffer = self._buffer
        at = self._where if at is None else at
        base = buffer.tensor
        if self._part is not None:
            at = self._positions() if at is None else at
            there = getitem(reshape(base, [-1]), at)
            value = complex_(value, imag(there)) if self._part is real else complex_(real(there), value)
        if at is None:
            buffer.tensor = value
        elif at.size == base.size and np.array_equal(at.ravel(), np.arange(at.size)):
            buffer.tensor = reshape(value, list(base.shape))
        else:
            flat = setitem_(reshape(base, [-1]), np.array(at, order="C"), value)
            buffer.tensor = reshape(flat, list(base.shape))
        if buffer.tensor.array.dtype.kind not in "fcV":
            buffer.tensor = Tensor(buffer.tensor.array)
        buffer.live = buffer.live or live
        buffer.version += 1

    def _assign(self, at: Plain, value: Any) -> None:
        """Write a value at positions of the buffer, cast and broadcast as NumPy does it."""
        if not self._positions().flags.writeable:
            raise ValueError("assignment destination is read-only")
        session = self._here()
        if isinstance(value, (list, tuple)) and holds_recorded(value):
            value = RecordedArray._gathered(value)
        dtype = self.dtype
        staged = np.empty(at.shape, dtype)
        staged[...] = replaced(value, RecordedArray._plain)
        if isinstance(value, Tensor) and session is not None:
            value = session.handed(value)
        if type(value) is not RecordedArray or not value._buffer.live or session is None:
            self._write(Tensor(staged), at, False)
            return
        given = astype(value._tensor(), dtype)
        if dtype.kind not in "fcV":  # a decision, of which the engine has told
            self._write(Tensor(staged), at, False)
            return
        extra = given.ndim - at.ndim
        given = reshape(given, given.shape[extra:]) if extra > 0 else given
        self._write(given if given.array.shape == at.shape else broadcast_to(given, list(at.shape)), at, True)

    def _left(self, what: str) -> Any:
        """Its values as an array that nobody else holds, for code outside the recording."""
        session = self._here()
        if session is not None and self._buffer.live:
            session.leak(self._tensor(), what)
        return self._copied()

    # ----------------------------------------------------------------- what NumPy code asks of an array
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._buffer.tensor.array.dtype.type if self._scalar else np.ndarray

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype = self._buffer.tensor.array.dtype
        return np.zeros(0, dtype).real.dtype if self._part is not None else dtype

    @property
    def shape(self) -> Any:
        return self._buffer.tensor.array.shape if self._where is None else self._where.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        where = self._positions().view()
        where.shape = shape
        self._where, self._seen = where, None

    @property
    def strides(self) -> tuple[int, ...]:
        size = self._buffer.tensor.array.itemsize
        return tuple(n // np.dtype(np.intp).itemsize * size for n in self._positions().strides)

    @property
    def real(self) -> Any:
        return self._as_part(real)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        return self._as_part(imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def _as_part(self, part: Any) -> Any:
        """The view of the real or imaginary part."""
        if self.dtype.kind != "c":
            return self if part is real else np.zeros_like(self)
        session = self._here()
        if self._scalar and session is not None:
            return RecordedArray._fresh(part(self._tensor()), self._plain().real, self._buffer.live, session)
        return RecordedArray(self._buffer, self._positions(), part)

    @property
    def flat(self) -> Flat:
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.intp)))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    flags = property(lambda self: self._positions().flags)
    T = property(lambda self: self.transpose())
    mT = property(lambda self: np.matrix_transpose(self))  # noqa: N815
    base = property(lambda self: None if self._where is None else self[...])
    device = property(lambda self: "cpu")
    data = property(lambda self: self._left("its memory").data)
    ctypes = property(lambda self: self._left("ctypes").ctypes)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        mine, index = self._positions(), replaced(index, RecordedArray._plain)
        where = mine[index]
        session = self._here()
        if session is None:
            return self._copied()[index]
        is_array = isinstance(where, np.ndarray)
        if is_array and (where.base is None or not np.may_share_memory(where, mine)):
            value = getitem(reshape(self._buffer.tensor, [-1]), np.array(where))
            value = value if self._part is None else self._part(value)
            return RecordedArray._fresh(value, where, self._buffer.live, session)
        parts = index if isinstance(index, tuple) else (index,)
        index = tuple(int(v) if isinstance(v, (np.ndarray, np.integer)) else v for v in parts)  # as they are now
        found = RecordedArray(self._buffer, where, self._part) if is_array else None
        if found is None:
            value = getitem(self._tensor(), index) if self._buffer.live else self._tensor()
            return RecordedArray._fresh(value, where, True, session) if self._buffer.live else value.array[index]
        if self._buffer.live:
            found._seen, found._version = getitem(self._tensor(), index), self._buffer.version
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._scalar:
            raise TypeError(f"'{self.dtype.name}' object does not support item assignment")
        at = self._positions()[replaced(index, RecordedArray._plain)]
        self._assign(np.array(at), value)

    def __bool__(self) -> bool:
        watch = in_force.get()
        truth = bool(self._plain())
        if watch is not None and self._here() is not None:
            watch.decided(self._tensor())
        return truth

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __index__(self) -> int:
        return operator.index(self._plain())

    def __hash__(self) -> int:
        if not self._scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._left("hash()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Plain:
        values = np.asarray(self._left("plain memory"))
        return values if dtype is None else values.astype(dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: Any = True
    ) -> Any:
        wanted, plain = np.dtype(dtype), self._plain()
        expected = plain.astype(wanted, order=order, casting=casting) if self.ndim else plain.astype(wanted)
        session = self._here()
        if session is None:
            return expected
        if not copy and wanted == self.dtype and not self._scalar:
            return self
        if wanted not in BY_NUMPY:
            return self._left(f"astype({wanted.name})").astype(wanted)
        if self.dtype.kind == "c" and wanted.kind not in "cb" and self._buffer.live:
            return RecordedArray._fresh(astype(real(self._tensor()), wanted), expected, True, session)
        return RecordedArray._fresh(astype(self._tensor(), wanted), expected, self._buffer.live, session)

    def copy(self, order: Any = "C") -> Any:
        return np.copy(self, order=order) if not self._scalar else self

    def flatten(self, order: Any = "C") -> Any:
        return self.copy().ravel(order) if order in ("C", "F") else np.copy(self.ravel(order))

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        if (not args and not kwargs) or args[:1] == (np.ndarray,) or args[:1] == (self.dtype,):
            return self if self._scalar else self[...]
        return self._left("view()").view(*args, **kwargs)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis, out)

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = np.sort(self, axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        self[...] = np.partition(self, kth, axis, kind, order)

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """As NumPy does it, where the size stays."""
        wanted = shape[0] if len(shape) == 1 else shape
        if np.prod(wanted) != self.size:
            self._left(".resize")
            raise NotImplementedError("an array that grows or shrinks cannot be recorded")
        self.shape = wanted

    def setflags(self, **flags: Any) -> None:
        self._positions().setflags(**flags)

    def __getattr__(self, name: str) -> Any:
        plain = type(self._plain())
        if name.startswith("__") or not hasattr(plain, name):
            raise AttributeError(f"'{plain.__module__}.{plain.__name__}' object has no attribute '{name}'")
        return getattr(self._left(f".{name}"), name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._left("pickling").__reduce_ex__(protocol)

    __repr__, __str__, __format__ = leaving(repr), leaving(str), leaving(format)
    __float__, __int__, __complex__ = leaving(float), leaving(int), leaving(complex)

    def __round__(self, digits: int | None = None) -> Any:
        return int(self) if digits is None else np.round(self, digits)

    __iadd__, __isub__, __imul__ = in_place(np.add), in_place(np.subtract), in_place(np.multiply)
    __itruediv__, __ifloordiv__ = in_place(np.true_divide), in_place(np.floor_divide)
    __imod__, __ipow__, __imatmul__ = in_place(np.remainder), in_place(np.power), in_place(np.matmul)
    __iand__, __ior__, __ixor__ = in_place(np.bitwise_and), in_place(np.bitwise_or), in_place(np.bitwise_xor)
    __ilshift__, __irshift__ = in_place(np.left_shift), in_place(np.right_shift)


METHODS = "all any argmax argmin argpartition argsort choose clip conj conjugate cumprod cumsum diagonal dot max mean"
METHODS += " min nonzero prod put ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
for _name in METHODS.split():
    setattr(RecordedArray, _name, method(_name))


class Flat:
    """The elements of an array in order, as ``x.flat`` gives them."""

    def __init__(self, array: RecordedArray) -> None:
        self.array = array
        self.at = self.ended = iter(range(array.size))

    def __len__(self) -> int:
        return int(self.array.size)

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        return self[next(self.at)]

    def __getitem__(self, index: Any) -> Any:
        where = self.array._positions().flat[replaced(index, RecordedArray._plain)]
        return RecordedArray._view(self.array, np.asarray(where))[() if np.ndim(where) == 0 else ...].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        at = np.asarray(self.array._positions().flat[replaced(index, RecordedArray._plain)])
        values = np.ravel(value) if np.ndim(value) else value
        if np.ndim(value) and values.size != at.size:  # NumPy repeats what is too short
            values = np.resize(values, at.shape)
        self.array._assign(at, values)

    def copy(self) -> Any:
        return self.array.flatten()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.array.flatten().__array__(dtype)


def axes_order(before: Plain, after: Plain) -> list[int] | None:
    """The order of axes in which `before` is `after`, if it is in one."""
    if sorted(before.shape) != sorted(after.shape):
        return None
    axes: list[int] = []
    for size, stride in zip(after.shape, after.strides, strict=True):
        for k, (n, s) in enumerate(zip(before.shape, before.strides, strict=True)):
            if n == size and s == stride and k not in axes:
                axes.append(k)
                break
        else:
            return None
    return axes if np.array_equal(before.transpose(axes), after) else None
