"""An array that stands for a Tensor in NumPy code: what NumPy does to it is done to the Tensor, and so recorded.

Arrays that are views of each other share one `Buffer`. A view knows the position in the buffer of each of its elements:
an array of integers, on which NumPy itself does the indexing, transposing and reshaping. So a view is a view exactly
where it is one in NumPy, a write through any of them reaches the buffer, and a read after it sees it.
"""

from __future__ import annotations

import functools
import operator
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
Dispatched = type(np.sum)
"""The type of NumPy's functions that know the protocol for functions."""


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

    def leak(self, tensor: Tensor, what: str) -> None:
        """Tell that `what` took the values of `tensor` out of the recording."""
        if self.watch is not None:
            self.watch.left(tensor, what)

    def handed(self, tensor: Tensor) -> Any:
        """An array that stands for a copy of the Tensor's values."""
        live = tensor.array.dtype.kind in "fcV" and not (records_all() and tensor.stop_gradient)
        copy = as_it_is(tensor)
        copy.array = tensor.array if records_all() else tensor.array.copy()  # which in-place operations write to
        return RecordedArray(Buffer(copy, live, self))

    def taken(self, value: Any, whole: bool) -> Any:
        """See `pylayer.watch.Exchange`."""
        if whole and isinstance(value, (list, tuple)) and holds_recorded(value):
            value = gathered(value)
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
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from recorded_in(item)


def holds_recorded(value: Any) -> bool:
    """Whether a value is a recorded array, or holds one."""
    return next(recorded_in(value), None) is not None


def like(value: Any, items: list[Any]) -> Any:
    """Items in the same kind of list or tuple."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def replaced(value: Any, by: Callable[[RecordedArray], Any]) -> Any:
    """`value` with something else in place of each recorded array in it."""
    if type(value) is RecordedArray:
        return by(value)
    if not holds_recorded(value):
        return value
    if isinstance(value, dict):
        return {k: replaced(v, by) for k, v in value.items()}
    return like(value, [replaced(v, by) for v in value])


def plain(value: Any) -> Any:
    """`value` with the values of recorded arrays in their place, as NumPy has them; nobody may write to them."""
    return replaced(value, RecordedArray._plain)


def gathered(items: Any) -> Any:
    """An array of a list of arrays and numbers."""
    return np.stack([gathered(v) if isinstance(v, (list, tuple)) else v for v in items])


def fresh(tensor: Tensor, like: Any, live: bool, session: Session) -> Any:
    """The result of an operation, laid out in memory as NumPy's own result `like`; a plain number if nothing depends on
    it."""
    live = live and tensor.array.dtype.kind in "fcV" and not (records_all() and tensor.stop_gradient)
    scalar = not isinstance(like, np.ndarray)
    if not live:
        if scalar:
            return tensor.array[()]
        tensor = Tensor(tensor.array)
    buffer = Buffer(tensor, live, session)
    if not scalar and not like.flags.c_contiguous:
        buffer.places = np.empty_like(like, dtype=np.intp, subok=False)
        buffer.places[...] = np.arange(like.size).reshape(like.shape)
    return RecordedArray(buffer, None, None, scalar)


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


def part_of(part: Callable[[Any], Any]) -> Any:
    """The attribute that is the real or the imaginary part: a view."""

    def get(self: RecordedArray) -> Any:
        if self.dtype.kind != "c":
            return self if part is real else np.zeros_like(self)
        session = self._here()
        if self._scalar and session is not None:
            return fresh(part(self._tensor()), self._plain().real, self._buffer.live, session)
        return RecordedArray(self._buffer, self._positions(), part)

    def put(self: RecordedArray, value: Any) -> None:
        get(self)[...] = value

    return property(get, put)


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

    # ----------------------------------------------------------------- reading and writing
    def _here(self) -> Session | None:
        """The session in force here, to which this belongs. Other threads that touch this are told of."""
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

    def _positions(self) -> Any:
        """The positions of its elements in the buffer."""
        if self._where is not None:
            return self._where
        buffer = self._buffer
        if buffer.places is None:
            buffer.places = np.arange(buffer.tensor.size).reshape(buffer.tensor.array.shape)
        return buffer.places[()] if self._scalar else buffer.places

    def _gathered(self, where: Any) -> Tensor:
        """The values at positions of the buffer, in their shape; of all if there are none."""
        found = self._buffer.tensor
        found = found if where is None else getitem(reshape(found, [-1]), np.array(where, order="C"))
        return found if self._part is None else self._part(found)

    def _tensor(self) -> Tensor:
        """Its present values."""
        if self._seen is None or self._version != self._buffer.version:
            self._seen, self._version = self._gathered(self._where), self._buffer.version
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

    def _at(self, where: Any, index: Any = None) -> Any:
        """What is at positions that NumPy made of its own: a view if they are one, else a new array or number.

        Args:
            index: that of ints and slices by which they were made, if they were.
        """
        mine, buffer, session = self._positions(), self._buffer, self._here()
        if where is mine:
            return self
        view = isinstance(where, np.ndarray) and np.may_share_memory(where, mine)
        found = RecordedArray(buffer, where, self._part)
        if buffer.live or not view:
            found._seen, found._version = self._moved(where, index), buffer.version
        if view:
            return found
        return found._copied()[()] if session is None else fresh(found._tensor(), where, buffer.live, session)

    def _moved(self, where: Any, index: Any) -> Tensor:
        """Its values at these positions, or this index: by the engine's operation, if it has one that does that."""
        mine, now = self._positions(), self._tensor()
        if index is not None:
            return getitem(now, index)
        if np.size(where) == mine.size:
            if np.array_equal(np.ravel(where), mine.ravel()):
                return now if np.shape(where) == mine.shape else reshape(now, list(np.shape(where)))
            before = list(zip(mine.shape, mine.strides, strict=True))
            axes = [before.index(axis) for axis in zip(where.shape, where.strides, strict=True) if axis in before]
            if sorted(axes) == list(range(where.ndim)) and np.array_equal(mine.transpose(axes), where):
                return transpose(now, axes)
        return self._gathered(where)

    def _write(self, value: Tensor, at: Plain, live: bool) -> None:
        """Have the elements at these positions be `value`, of the same shape and dtype."""
        self._here()
        buffer = self._buffer
        base = buffer.tensor
        if self._part is not None:
            there = RecordedArray(buffer, at)._tensor()
            value = complex_(value, imag(there)) if self._part is real else complex_(real(there), value)
        shape = list(base.array.shape)
        if at.size == base.size and np.array_equal(at.ravel(), np.arange(at.size)):
            written = reshape(value, shape)
        else:
            written = reshape(setitem_(reshape(base, [-1]), np.array(at, order="C"), value), shape)
        buffer.tensor = written if written.array.dtype.kind in "fcV" else Tensor(written.array)
        buffer.live = buffer.live or live
        buffer.version += 1

    def _assign(self, value: Any, at: Any = None) -> None:
        """Write a value at positions of the buffer, its own if none are given, cast and broadcast as NumPy does it."""
        mine = self._positions()
        if not mine.flags.writeable:
            raise ValueError("assignment destination is read-only")
        at, session, dtype = np.asarray(mine if at is None else at), self._here(), self.dtype
        if isinstance(value, (list, tuple)) and holds_recorded(value):
            value = gathered(value)
        if isinstance(value, Tensor) and session is not None:
            value = session.handed(value)
        staged = np.empty(at.shape, dtype)
        staged[...] = plain(value)
        if type(value) is not RecordedArray or not value._buffer.live or session is None:
            self._write(Tensor(staged), at, False)
            return
        given = astype(value._tensor(), dtype)  # which is told of, if it is one to integers
        if dtype.kind not in "fcV":
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
    def flat(self) -> Any:
        return RecordedArray(self._buffer, self._positions().ravel(), self._part)

    @flat.setter
    def flat(self, values: Any) -> None:
        self[...] = np.resize(values, self.shape)

    real, imag = part_of(real), part_of(imag)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.intp)))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    flags = property(lambda self: self._positions().flags)
    T = property(lambda self: self.transpose())
    mT = property(lambda self: np.matrix_transpose(self))  # noqa: N815
    base = property(lambda self: None if self._where is None else self[...])
    device = property(lambda self: "cpu")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        mine, index = self._positions(), plain(index)
        where = mine[index]
        if isinstance(where, np.ndarray) and not np.may_share_memory(where, mine):
            return self._at(where)
        parts = index if isinstance(index, tuple) else (index,)
        return self._at(where, tuple(int(v) if isinstance(v, (np.ndarray, np.integer)) else v for v in parts))

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._scalar:
            raise TypeError(f"'{self.dtype.name}' object does not support item assignment")
        self._assign(value, self._positions()[plain(index)])

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
        wanted = np.dtype(dtype)
        expected = self._plain().astype(wanted, order=order, casting=casting)
        session = self._here()
        if session is None:
            return expected
        if not copy and wanted == self.dtype and not self._scalar:
            return self
        if wanted not in BY_NUMPY:
            return self._left(f"astype({wanted.name})").astype(wanted)
        given = self._tensor()
        given = real(given) if self.dtype.kind == "c" and wanted.kind not in "cb" else given
        return fresh(astype(given, wanted), expected, self._buffer.live, session)

    def copy(self, order: Any = "C") -> Any:
        return self if self._scalar else np.copy(self, order=order)

    def flatten(self, order: Any = "C") -> Any:
        return np.copy(np.ravel(self, order))

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

    def sort(self, *args: Any, **kwargs: Any) -> None:
        self[...] = np.sort(self, *args, **kwargs)

    def partition(self, *args: Any, **kwargs: Any) -> None:
        self[...] = np.partition(self, *args, **kwargs)

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """As NumPy does it, where the size stays; else it raises."""
        self.shape = shape[0] if len(shape) == 1 else shape

    def setflags(self, **flags: Any) -> None:
        self._positions().setflags(**flags)

    def __getattr__(self, name: str) -> Any:
        kind = type(self._plain())
        if name.startswith("__") or not hasattr(kind, name):
            raise AttributeError(f"'{kind.__module__}.{kind.__name__}' object has no attribute '{name}'")
        function = getattr(np, name, None)
        if isinstance(function, (Dispatched, np.ufunc)):
            return functools.partial(function, self)
        return getattr(self._left(f".{name}"), name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._left("pickling").__reduce_ex__(protocol)

    def __round__(self, digits: int | None = None) -> Any:
        return int(self) if digits is None else np.round(self, digits)


def in_place(operate: Callable[[Any, Any], Any]) -> Any:
    """``x ∘= y`` by ``x ∘ y``; of a number a new one, and of a Tensor what it makes of it."""

    def call(self: RecordedArray, other: Any) -> Any:
        found = operate(self, other)
        if self._scalar or found is NotImplemented:
            return found
        self[...] = found
        return self

    return call


def leaving(function: Callable[..., Any]) -> Any:
    """What takes the values out of the recording: Python's ``float()``, ``str()`` and the like."""

    def call(self: RecordedArray, *args: Any) -> Any:
        return function(self._left(f"{function.__name__}()"), *args)

    return call


IN_PLACE = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
for _name in IN_PLACE.split():
    setattr(RecordedArray, f"__i{_name}__", in_place(getattr(RecordedArray, f"__{_name}__")))
for _function in (repr, str, format, float, int, complex):
    setattr(RecordedArray, f"__{_function.__name__}__", leaving(_function))
