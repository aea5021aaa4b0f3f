"""Tensor: an array, its place in the graph, and whether it needs a gradient. Its operators and
methods come from `ops`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pylayer.tape.graph import Cotangent, Node, summed
from pylayer.tape.versions import version_of
from pylayer.tensor.array import XP, Array, Place, as_array, constructed, place_of, to_numpy
from pylayer.tensor.dtype import BY_NUMPY, DType
from pylayer.tensor.printing import text_of
from pylayer.tensor.size import Size, TensorSize
from pylayer.watch import recording_all, watchers

_names, _NOTHING = itertools.count(), np.empty(0, np.float32)


class Tensor:
    """An array with a place in the graph.

    `array` is the raw array, `node` the node that made it (None for a leaf). Users make Tensors by
    `paddle.to_tensor`; ``Tensor(data)`` in user code returns the result of `constructed`.
    """

    __slots__ = ("__dict__", "__weakref__", "_stop_gradient", "array", "node")

    _grad: Tensor | None = (
        None  # class attributes: few Tensors set them, and each saves a write per Tensor
    )
    _hooks: dict[int, Callable[[Cotangent], Cotangent]] | None = None

    persistable = False
    """Whether the Tensor is kept across training steps, like a parameter."""

    __array_priority__ = 1000  # so that ndarray + Tensor calls the Tensor's operator
    __array_ufunc__ = None

    def __init__(
        self, array: Any = _NOTHING, node: Any = None, stop_gradient: bool = True, *sizes: int
    ) -> None:
        if type(array) is not np.ndarray and type(array) not in XP:  # called by a user
            rest = [
                given
                for given, default in ((node, None), (stop_gradient, True))
                if given is not default
            ]
            array, node, stop_gradient = constructed(array, *rest, *sizes), None, True
        self.array = array
        self.node = node
        self._stop_gradient = stop_gradient

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # operators and methods are attached by `ops.methods`

        def _operator(self, other: Any) -> Tensor: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = (
            __rtruediv__
        ) = _operator
        __floordiv__ = __mod__ = __pow__ = __rpow__ = __matmul__ = __and__ = __or__ = __xor__ = (
            _operator
        )
        __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = _operator
        __eq__ = __ne__ = _operator  # type: ignore[assignment]

        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    # ----------------------------------------------------------------- properties
    @property
    def shape(self) -> Size:
        """The shape."""
        return Size(self.array.shape)

    @property
    def dtype(self) -> DType:
        """The data type."""
        return BY_NUMPY[self.array.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.array.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """The number of elements; when called, as ``x.size()``, the shape."""
        return TensorSize(self.array.shape)

    @property
    def place(self) -> Place:
        """The device that holds the Tensor."""
        return Place(place_of(self.array))

    @property
    def name(self) -> str:
        """The name, generated on first use if none was given."""
        return self.__dict__.setdefault("name", f"generated_tensor_{next(_names)}")  # type: ignore[no-any-return]

    @name.setter
    def name(self, value: str) -> None:
        self.__dict__["name"] = value

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made the Tensor."""
        return not isinstance(self.node, Node)

    @property
    def grad_fn(self) -> Node | None:
        """The node that made the Tensor, or None."""
        return self.node if isinstance(self.node, Node) else None

    @property
    def inplace_version(self) -> int:
        """How often the Tensor's memory was changed in place."""
        return version_of(self.array)

    @property
    def stop_gradient(self) -> bool:
        """Whether gradients stop here. True for Tensors that users make; setting it to True on a
        result cuts the graph.
        """
        return self._stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        value = False if value is None else value  # as in Paddle
        if not isinstance(value, bool):
            raise TypeError(
                f"(InvalidType) stop_gradient: argument (position 1) must be bool, but got "
                f"{type(value).__name__}"
            )
        if not (value and self.node is not None and recording_all()):
            self._stop_gradient = value

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf; for a result after `retain_grads`, that of the latest
        backward.
        """
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise ValueError(
                f"(InvalidArgument) grad must be Tensor or None, but got {type(value).__name__}."
            )
        # as in Paddle
        stops = (value if self._grad is None else self._grad)._stop_gradient
        self._grad = Tensor(value.array, None, stops)

    # --------------------------------------------------------------------- values
    def numpy(self, force: bool = False) -> np.ndarray[Any, Any]:
        """Return a copy of the values on the host; `force` is ignored."""
        session = watchers.get().numpy
        return (
            np.array(self._values(".numpy()")) if session is None else session.to_numpy_hook(self)
        )

    def _values(self, how: str) -> np.ndarray[Any, Any]:
        """The values on the host, not to be changed, for the method `how`."""
        watchers.get().observer.left(self, how)
        return to_numpy(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = np.array(self._values("NumPy"))
        return values if dtype is None else values.astype(dtype)

    def item(self, *index: int) -> Any:
        """Return the only element, or the one at `index`, as a Python number.

        Raises:
            ValueError: there are several elements and no index is given, or the index is out of
                range.
        """
        return self._element(".item()", *index)

    def _element(self, how: str, *index: int) -> Any:
        """The value of `item`, as the method `how` returns it."""
        values = self._values(how)
        if not index and values.size != 1:
            raise ValueError(
                f"item() needs an index for a Tensor of {values.size} elements (shape "
                f"{self.shape})."
            )
        try:
            return values.item(*index)
        except IndexError as error:
            raise ValueError(f"(InvalidArgument) {error} (shape {self.shape}).") from None

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers."""
        return self._values(".tolist()").tolist()

    def __float__(self) -> float:
        return float(self._element("float()"))

    def __int__(self) -> int:
        return int(self._element("int()"))

    def __index__(self) -> int:
        value = self._element("an index")
        if not isinstance(value, int):
            raise TypeError(f"only integer Tensors can be used as an index, not {self.dtype}.")
        return value

    def __complex__(self) -> complex:
        return complex(self._element("complex()"))

    def __bool__(self) -> bool:
        if self.size != 1:  # observed rule 84
            raise AssertionError(
                f"When Variable is used as the condition of if/while, it must have one element, "
                f"not {self.size}."
            )
        watchers.get().observer.decided(self)
        return bool(to_numpy(self.array).item())

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-D Tensor.")
        return int(self.array.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-D Tensor.")
        return (self[k] for k in range(len(self)))

    def __format__(self, spec: str) -> str:
        if not self.ndim:
            return format(to_numpy(self.array).item(), spec)
        if spec:
            raise TypeError(
                f"unsupported format string {spec!r} for a Tensor of shape {self.shape}."
            )
        return str(self)

    def __repr__(self) -> str:
        values = to_numpy(self.array)
        if values.dtype.name == "bfloat16":
            values = values.astype(np.float32)
        head = f"Tensor(shape={list(values.shape)}, dtype={self.dtype.name}, place={self.place}, "
        return f"{head}stop_gradient={self._stop_gradient},\n       {text_of(values, 7)})"

    def __deepcopy__(self, memo: Any) -> Tensor:
        copy = type(self).__new__(type(self))
        copy.array, copy.node, copy._stop_gradient = self.array.copy(), None, self._stop_gradient
        copy.__dict__.update(
            {k: v for k, v in self.__dict__.items() if k not in ("_grad", "_hooks", "name")}
        )
        return copy

    # ----------------------------------------------------------------- the gradient
    def detach(self) -> Tensor:
        """Return a leaf with stop_gradient True that shares the memory."""
        if recording_all():
            return Tensor(self.array, self if self.node is None else self.node, self._stop_gradient)
        return Tensor(self.array)

    def gradient(self) -> np.ndarray[Any, Any] | None:
        """Return the gradient's values on the host, or None."""
        return None if self._grad is None else self._grad.numpy()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradient to zeros, or to None (observed rule 80)."""
        if not set_to_zero:
            self._grad = None
        elif self._grad is not None:
            array = self._grad.array
            self._grad = Tensor(XP[type(array)].zeros_like(array), None, False)

    clear_gradient = clear_grad

    def accumulate(self, gradient: Array) -> None:
        """Add `gradient`, an array with no other references, to `grad`, which stays the same Tensor
        object, so that earlier references to it are updated.
        """
        if self._grad is None:
            self._grad = Tensor(gradient, None, False)
        else:
            self._grad = self._grad._replaced(summed(self._grad.array, gradient))

    def _replaced(self, array: Any) -> Tensor:
        self.array, self.node = (
            array if type(array) in XP else as_array(array, type(self.array)),
            None,
        )
        return self
