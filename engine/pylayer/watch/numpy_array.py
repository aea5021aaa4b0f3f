"""An array that represents a Tensor in NumPy code: a NumPy array, together with its values on the
tape.

NumPy's own array provides the form (shape, strides, flags, which array is a view of which) and
makes every view. Arrays that are views of each other share one `Buffer`, which has a Tensor of all
its values. The start of a view's memory and its strides give the positions of its elements in the
buffer, so a write through any view changes the Tensor, and later reads get the new values.
"""

from __future__ import annotations

import copy
import functools
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from pylayer.ops.complexes import complex_, imag, real
from pylayer.ops.indexing import getitem, setitem_
from pylayer.ops.shape import astype, broadcast_to, reshape, transpose
from pylayer.tape.symbol import Symbol
from pylayer.tape.vjp import OPS
from pylayer.tensor.nested import leaves_in, mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import NOBODY, recording_all, watchers

Plain = np.ndarray[Any, Any]
BASIC = {int, slice, NoneType, EllipsisType}
"""The types of parts of an index that gives a view."""
Dispatched = type(np.sum)
"""The type of NumPy functions that support ``__array_function__``."""


class Session:
    """The recording of NumPy code during one call, in one thread. It converts Tensors to arrays and
    back.

    `is_users` determines whether a file of code is the user's. `exact` means that no perturbation
    changes the results of operations, so that they can be compared with NumPy's.
    """

    def __init__(self, is_users: Callable[[str], bool], exact: bool = True) -> None:
        self.is_users = is_users
        self.exact = exact
        self.thread = threading.get_ident()
        self.watch = watchers.get().observer
        self.open = True
        self.is_used = False
        """Whether a Tensor was passed to NumPy code."""

    def leak(self, tensor: Tensor, how: str) -> None:
        """Report that `how` took the values of `tensor` out of the recording."""
        self.watch.left(tensor, how)

    def to_numpy_hook(self, tensor: Tensor) -> Any:
        """An array that represents a copy of the Tensor's values."""
        self.is_used = True
        copy = as_it_is(tensor)
        # In-place operations write to this array.
        copy.array = tensor.array if recording_all() else tensor.array.copy()
        return fresh(copy, np.array(tensor.array), self)

    def from_numpy_hook(self, value: Any, with_lists: bool) -> Any:
        """See `pylayer.watch.from_numpy_hook`."""
        if not holds_recorded(value):
            return value
        return mapped(stack_recorded(value) if with_lists else value, self.tensor_of)

    def tensor_of(self, value: Any) -> Any:
        """The Tensor that a recorded array represents; anything else unchanged."""
        if type(value) is not RecordedArray:
            return value
        cut = self.watch is not NOBODY.observer and not self.watch.records
        return Tensor(value._tensor().array) if cut else as_it_is(value._tensor())


def current_session() -> Session | None:
    """The current session of this thread."""
    session: Session | None = watchers.get().numpy
    return session if session and session.thread == threading.get_ident() else None


def as_it_is(tensor: Tensor) -> Tensor:
    """A Tensor with the same value and place in the graph, which in-place operations on the
    original do not change.
    """
    if isinstance(tensor, Symbol):  # its class determines its place in the graph
        return copy.copy(tensor)
    return Tensor(
        tensor.array, tensor if tensor.node is None else tensor.node, tensor._stop_gradient
    )


def recorded_in(value: Any) -> list[RecordedArray]:
    """The recorded arrays in a value: the value itself, or those in containers at any depth."""
    return [leaf for leaf in leaves_in(value) if type(leaf) is RecordedArray]


def holds_recorded(value: Any) -> bool:
    """Whether a value is a recorded array, or holds one."""
    return RecordedArray in map(type, leaves_in(value))


def replace_recorded(value: Any, function: Callable[[RecordedArray], Any]) -> Any:
    """`value` with each recorded array in it replaced."""
    return mapped(value, lambda leaf: function(leaf) if type(leaf) is RecordedArray else leaf)


def plain(value: Any) -> Any:
    """`value` with NumPy's own arrays in place of recorded ones."""
    return replace_recorded(value, lambda array: array._memory)


def stack_recorded(value: Any) -> Any:
    """A list of arrays and numbers as an array, if recorded ones are among them; anything else
    unchanged.
    """
    is_list = isinstance(value, (list, tuple)) and holds_recorded(value)
    return np.stack([stack_recorded(v) for v in value]) if is_list else value


def is_usual_index(parts: Sequence[Any]) -> bool:
    """Whether the parts of an index are ints, None, ``...``, and slices of these."""
    for item in parts:
        kind = type(item)
        if kind is slice:
            if not {int, NoneType}.issuperset(map(type, (item.start, item.stop, item.step))):
                return False
        elif kind not in BASIC:
            return False
    return True


# Three operations of the engine at usual arguments, for which the result is known. Operations on a
# Symbol go to its tracer, which must receive the call itself.
def usual_item(tensor: Tensor, index: tuple[Any, ...]) -> Any:
    """``tensor[index]``."""
    if isinstance(tensor, Symbol):
        return getitem(tensor, index)
    array = tensor.array[index if ... in index else (*index, ...)]
    return OPS["getitem"].result((tensor,), (tensor, index), [tensor.array, index], array)


def usual_write(tensor: Tensor, index: tuple[Any, ...], value: Tensor) -> Any:
    """The Tensor with `value`, of the right shape, at an index."""
    if isinstance(tensor, Symbol) or isinstance(value, Symbol):
        return setitem_(tensor, index, value)
    array = tensor.array.copy()
    array[index] = value.array
    raw = [tensor.array, index, value.array]
    return OPS["setitem"].result((tensor, value), (tensor, index, value), raw, array)


def usual_transpose(tensor: Tensor) -> Any:
    """The Tensor with its axes in reverse order."""
    axes = [*reversed(range(tensor.array.ndim))]
    if isinstance(tensor, Symbol):
        return transpose(tensor, axes)
    return OPS["transpose"].result((tensor,), (tensor, axes), [tensor.array, axes], tensor.array.T)


def is_live(dtype: np.dtype[Any]) -> bool:
    """Whether values of this dtype can carry a derivative."""
    return dtype.kind in "fcV"


def fresh(tensor: Tensor, like: Any, session: Session) -> Any:
    """The result of an operation, laid out in memory as NumPy's own result `like`."""
    memory = tensor.array[()]
    if isinstance(like, np.ndarray):
        memory = like.astype(tensor.array.dtype, subok=False)
        memory[...] = tensor.array
    if memory.dtype.kind not in "fcV" or (tensor._stop_gradient and recording_all()):
        return constant(memory, session)
    return RecordedArray(Buffer(memory, tensor, session), memory)


def constant(memory: Any, session: Session) -> Any:
    """A plain NumPy array as a recorded one, into which recorded values can be written; a number
    unchanged.
    """
    if not isinstance(memory, np.ndarray):
        return memory
    if not (memory.flags.c_contiguous or memory.flags.f_contiguous):
        memory = memory.copy(order="K")
    return RecordedArray(Buffer(memory, None, session), memory)


class Buffer:
    """The memory that views share, its values as a Tensor, and how often they were changed.

    The Tensor is None if the values do not depend on any Tensor of the session; then they are only
    in the memory.
    """

    __slots__ = ("memory", "numbers", "session", "tensor", "version")

    def __init__(self, memory: Any, tensor: Tensor | None, session: Session) -> None:
        self.memory = memory
        self.tensor = tensor
        self.session = session
        self.version = 0
        self.numbers: Plain | None = None

    def element_numbers(self) -> Plain:
        """The number of each element, in the order of the memory."""
        if self.numbers is None:
            laid_out = np.empty_like(self.memory, dtype=np.intp)
            laid_out[...] = np.arange(laid_out.size).reshape(laid_out.shape)
            self.numbers = laid_out.ravel("K")
        return self.numbers

    def values(self) -> Tensor:
        """All its values."""
        return Tensor(np.array(self.memory)) if self.tensor is None else self.tensor


def address(memory: Plain) -> int:
    """The address at which memory begins."""
    return int(memory.__array_interface__["data"][0])


class RecordedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """See the file. A recorded array. Its `_memory` is a plain NumPy array, or a NumPy scalar for a
    single element.
    """

    __slots__ = ("__weakref__", "_buffer", "_cached", "_memory", "_version")
    __array_priority__ = 1000.0
    __array_ufunc__: Any
    __array_function__: Any
    _call: Callable[..., Any]
    _power = np.lib.mixins.NDArrayOperatorsMixin.__pow__

    def __init__(self, buffer: Buffer, memory: Any) -> None:
        self._buffer = buffer
        self._memory = memory
        self._cached: Tensor | None = None
        self._version = -1

    # ----------------------------------------------------------------- reading and writing
    def _current_session(self) -> Session | None:
        """The session that the array belongs to. A use by another thread is reported."""
        buffer, current = self._buffer, current_session()
        if buffer.session is current:
            return current
        if buffer.session.open:
            if buffer.tensor is not None:
                buffer.session.leak(buffer.tensor, "another thread")
        elif current is not None:  # kept from an earlier call: a constant of this one
            buffer.tensor, buffer.session, self._cached = None, current, None
        return current

    def _positions(self) -> Any:
        """The positions of the array's elements in the buffer."""
        base, memory = self._buffer.memory, self._memory
        if not memory.size:
            return np.zeros(memory.shape, np.intp)
        numbers, step = self._buffer.element_numbers(), base.itemsize
        first = (
            0 if memory is base else (address(memory) - address(base)) // step * numbers.itemsize
        )
        return np.ndarray(
            memory.shape,
            np.intp,
            numbers,
            first,
            [n // step * numbers.itemsize for n in memory.strides],
        )

    def _component(self) -> Any:
        """A function from the buffer's values to the array's, if these are the real or imaginary
        parts of complex values.
        """
        base, memory = self._buffer.memory, self._memory
        if memory.dtype == base.dtype:
            return None
        return imag if (address(memory) - address(base)) % base.itemsize else real

    def _tensor(self) -> Tensor:
        """Its present values."""
        buffer = self._buffer
        if buffer.tensor is None:
            return Tensor(np.array(self._memory))
        if self._cached is None or self._version != buffer.version:
            is_whole = self._memory is buffer.memory
            self._cached = buffer.tensor if is_whole else self._values_at(self._positions())
            self._version = buffer.version
        return self._cached

    def _values_at(self, where: Any) -> Tensor:
        """The values at positions of the buffer."""
        values, component = (
            getitem(reshape(self._buffer.values(), [-1]), np.array(where, order="C")),
            self._component(),
        )
        return values if component is None else component(values)

    def _rearrange(self, where: Any) -> Tensor:
        """The array's values at these positions, by a single operation of the engine if
        possible.
        """
        positions, values = self._positions(), self._tensor()
        if np.size(where) == positions.size:
            if np.array_equal(np.ravel(where), positions.ravel()):
                shape = np.shape(where)
                return values if shape == positions.shape else reshape(values, list(shape))
            before = list(zip(positions.shape, positions.strides, strict=True))
            axes = [
                before.index(axis)
                for axis in zip(where.shape, where.strides, strict=True)
                if axis in before
            ]
            if sorted(axes) == list(range(where.ndim)) and np.array_equal(
                positions.transpose(axes), where
            ):
                return transpose(values, axes)
        return self._values_at(where)

    def _view(self, memory: Plain, make: Callable[[Tensor], Tensor] | None = None) -> Any:
        """A recorded array for a part of its memory; a copy if the part is read as other numbers.

        Args:
            make: computes its values from those of this array, if known.
        """
        if memory is self._memory:
            return self
        base, session = self._buffer.memory, self._buffer.session
        # The array may be written to through this view as well.
        if memory.dtype.kind in "biu" and type(memory) is np.ndarray:
            if self._buffer.tensor is not None:
                session.leak(self._tensor(), f".view({memory.dtype.name})")
                self._buffer.tensor = None
            return memory
        needs_copy = make is None and (
            memory.dtype not in (base.dtype, base.real.dtype)
            or any(n % base.itemsize for n in memory.strides)
        )
        if needs_copy or type(memory) is not np.ndarray:
            return memory.copy(order="K")
        view = RecordedArray(self._buffer, memory)
        if self._buffer.tensor is not None and memory.dtype == self._memory.dtype:
            view._cached = make(self._tensor()) if make else self._rearrange(view._positions())
            view._version = self._buffer.version
        return view

    def _write(self, value: Tensor, positions: Plain) -> None:
        """Set the elements at these positions of the buffer to `value`, of the same shape and
        dtype.
        """
        buffer, component = self._buffer, self._component()
        base = buffer.values()
        if component is not None:
            old = getitem(reshape(base, [-1]), np.array(positions, order="C"))
            value = complex_(value, imag(old)) if component is real else complex_(real(old), value)
        shape = list(base.array.shape)
        if positions.size == base.size and np.array_equal(
            positions.ravel(), np.arange(positions.size)
        ):
            written = reshape(value, shape)
        else:
            written = reshape(
                setitem_(reshape(base, [-1]), np.array(positions, order="C"), value), shape
            )
        self._become(written)

    def _become(self, written: Tensor) -> None:
        """Set all values of the buffer."""
        buffer = self._buffer
        buffer.tensor = written
        buffer.version += 1
        buffer.memory[...] = written.array

    def _assign(self, value: Any, index: Any = ...) -> None:
        """Write a value at an index, cast and broadcast like NumPy."""
        session, dtype = self._current_session(), self._memory.dtype
        value = (
            session.to_numpy_hook(value)
            if issubclass(type(value), Tensor) and session is not None
            else stack_recorded(value)
        )
        live = (
            type(value) is RecordedArray
            and value._buffer.tensor is not None
            and session is not None
        )
        # A cast to integers is reported.
        tensor = astype(value._tensor(), dtype) if live else None
        self._memory[index] = plain(value)
        if (tensor is None and self._buffer.tensor is None) or not is_live(dtype):
            return
        parts = index if type(index) is tuple else (index,)
        usual = self._memory is self._buffer.memory and is_usual_index(parts)
        positions = np.asarray(self._memory[index] if usual else self._positions()[index])
        if tensor is None:
            staged = np.empty(positions.shape, dtype)
            staged[...] = plain(value)
            tensor = Tensor(staged)
        extra = tensor.array.ndim - positions.ndim
        tensor = reshape(tensor, tensor.shape[extra:]) if extra > 0 else tensor
        if tensor.array.shape != positions.shape:
            tensor = broadcast_to(tensor, list(positions.shape))
        if usual:
            values = self._buffer.values()
            is_whole = tensor.array.shape == values.array.shape and index is ...
            self._become(tensor if is_whole else usual_write(values, parts, tensor))
        else:
            self._write(tensor, positions)

    def _copy_out(self, how: str) -> Any:
        """A private copy of the array's values, for code outside the recording."""
        session = self._current_session()
        if session is not None and self._buffer.tensor is not None:
            session.leak(self._tensor(), how)
        return (
            self._memory.copy(order="K") if isinstance(self._memory, np.ndarray) else self._memory
        )

    # ---------------------------------------------------------------- the interface for NumPy code
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._memory)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(
                f"'{type(self._memory).__name__}' object has no attribute '{name}'"
            )
        value = getattr(self._memory, name)
        if callable(value):
            return functools.partial(self._call, name)
        if name in ("data", "ctypes"):
            return getattr(self._copy_out(f".{name}"), name)
        if name == "base":
            return None if value is None else RecordedArray(self._buffer, self._buffer.memory)
        if isinstance(value, np.generic):  # the transpose of a number
            return self
        make = usual_transpose if name == "T" else None
        return self._view(value, make) if isinstance(value, np.ndarray) else value

    def _view_component(self, name: str) -> Any:
        """The real or imaginary part: a view, except for a number."""
        component, session = getattr(self._memory, name), self._current_session()
        if isinstance(component, np.ndarray):
            return (
                self._view(component) if np.may_share_memory(component, self._memory) else component
            )
        if session is None or self.dtype.kind != "c":
            return self if name == "real" else component
        return fresh((real if name == "real" else imag)(self._tensor()), component, session)

    real = property(
        lambda self: self._view_component("real"),
        lambda self, value: self.real.__setitem__(..., value),
    )
    imag = property(
        lambda self: self._view_component("imag"),
        lambda self, value: self.imag.__setitem__(..., value),
    )
    flat = property(lambda self: Flat(self), lambda self, value: self.flat.__setitem__(..., value))

    def _set_shape(self, shape: Any) -> None:
        self._memory, self._cached = self._memory.view(), None
        self._memory.shape = shape

    shape = property(lambda self: self._memory.shape, _set_shape)

    def __len__(self) -> int:
        return len(self._memory)

    def __iter__(self) -> Iterator[Any]:
        iter(self._memory)  # raises if the array has no axes
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        session, parts = self._current_session(), index if type(index) is tuple else (index,)
        if not BASIC.issuperset(map(type, parts)):
            index = plain(index)
            parts = tuple(
                int(v) if isinstance(v, (np.ndarray, np.integer)) and not np.ndim(v) else v
                for v in (index if isinstance(index, tuple) else (index,))
            )
        item = self._memory[index]
        if isinstance(item, np.ndarray) and np.may_share_memory(item, self._memory):
            make = usual_item if is_usual_index(parts) else getitem
            return self._view(item, functools.partial(make, index=parts))
        if session is None:
            return item
        if self._buffer.tensor is None:
            # A value computed from indices or booleans is a choice, as they are.
            if not is_live(self._memory.dtype):
                item = np.array(item)
                watchers.get().observer.computed(OPS["getitem"], (self._tensor(), index), item)
                item = item[()]
            return constant(item, session)
        is_number = not isinstance(item, np.ndarray)
        tensor = (
            getitem(self._tensor(), parts)
            if is_number
            else self._rearrange(self._positions()[index])
        )
        return fresh(tensor, item, session)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(self._memory, np.ndarray):
            raise TypeError(f"'{self.dtype.name}' object does not support item assignment")
        self._assign(value, plain(index))

    def __bool__(self) -> bool:
        truth = bool(self._memory)
        if self._current_session() is not None:
            watchers.get().observer.decided(self._tensor())
        return truth

    def __pow__(self, other: Any) -> Any:
        # NumPy computes this square in the same way.
        return np.square(self) if type(other) in (int, float) and other == 2 else self._power(other)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __index__(self) -> int:
        return operator.index(self._memory)

    def __hash__(self) -> int:
        if isinstance(self._memory, np.ndarray):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._copy_out("hash()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Plain:
        values = np.asarray(self._copy_out("plain memory"))
        return values if dtype is None else values.astype(dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array

    def sort(self, *args: Any, **kwargs: Any) -> None:
        self[...] = np.sort(self, *args, **kwargs)

    def partition(self, *args: Any, **kwargs: Any) -> None:
        self[...] = np.partition(self, *args, **kwargs)

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Resize as NumPy does if the size stays; otherwise raise."""
        self.shape = shape[0] if len(shape) == 1 else shape

    def setflags(self, **flags: Any) -> None:
        self._memory.setflags(**flags)

    def __copy__(self) -> Any:
        return self.copy("K") if isinstance(self._memory, np.ndarray) else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._copy_out("pickling").__reduce_ex__(protocol)

    def __round__(self, digits: int | None = None) -> Any:
        return int(self) if digits is None else np.round(self, digits)


class Flat:
    """The elements of an array in the order of ``array.flat``."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array.ravel(), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Plain:
        return np.asarray(self.array.ravel(), dtype)

    def __getitem__(self, index: Any) -> Any:
        return self.array.ravel()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        positions = np.arange(self.array.size)[plain(index)]
        self.array[np.unravel_index(positions, self.array.shape)] = (
            np.resize(value, positions.shape) if np.ndim(value) else value
        )


def in_place(operate: Callable[[Any, Any], Any], into: Callable[[Any, Any], Any]) -> Any:
    """``x ∘= y``: a number gives a new number; a Tensor operand gives a Tensor.

    A result of the same shape and dtype is computed, and then written.
    """

    def call(self: RecordedArray, other: Any) -> Any:
        memory = self._memory
        if not isinstance(memory, np.ndarray) or isinstance(other, Tensor):
            return operate(self, other)
        # Read-only memory raises below.
        result = operate(self, other) if memory.flags.writeable else None
        form = memory.dtype, memory.shape
        if type(result) is RecordedArray and (result.dtype, result.shape) == form:
            self._assign(result)
            return self
        return into(self, other)

    return call


def leaving(function: Callable[..., Any]) -> Any:
    """Wrap a conversion that takes values out of the recording: ``float()``, ``str()`` and
    others.
    """

    def call(self: RecordedArray, *args: Any) -> Any:
        return function(self._copy_out(f"{function.__name__}()"), *args)

    return call


IN_PLACE = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
for _name in IN_PLACE.split():
    _operate, _into = (getattr(RecordedArray, f"__{_kind}{_name}__") for _kind in ("", "i"))
    setattr(RecordedArray, f"__i{_name}__", in_place(_operate, _into))
for _function in (repr, str, format, float, int, complex):
    setattr(RecordedArray, f"__{_function.__name__}__", leaving(_function))
