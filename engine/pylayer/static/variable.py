"""Variables: Tensors of a program, which have a shape and a dtype but no values."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from pylayer.static.sizes import SymbolicSize
from pylayer.tape.location import user_location
from pylayer.tape.symbol import Symbol, recording
from pylayer.tensor.array import XP
from pylayer.tensor.dtype import BY_NUMPY
from pylayer.tensor.nested import mapped
from pylayer.tensor.size import Size
from pylayer.tensor.tensor import Tensor

Shape = tuple[int | SymbolicSize, ...]


class Spec:
    """The known properties of a Variable's array, which operations read while a program is
    built.
    """

    __slots__ = ("dtype", "shape", "variable")

    def __init__(self, variable: Variable, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.variable = variable
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    def get(self) -> np.ndarray[Any, Any]:
        """Values of a constant; called by `to_numpy`.

        Raises:
            RuntimeError: there are none.
        """
        if self.variable.constant is not None:
            return self.variable.constant
        raise RuntimeError(
            f"{self.variable.describe()} has a value only while its program runs. Fetch it: "
            f"Executor.run(program, feed=…, fetch_list=[{self.variable.name!r}])."
        )

    def __getattr__(self, name: str) -> Any:
        if self.variable.constant is not None:
            return getattr(self.variable.constant, name)
        raise AttributeError(
            f"{self.variable.describe()} has a shape and a dtype, but no {name} before its "
            "program runs: what was called needs values, and cannot be part of a program."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.get(), dtype)


XP[Spec] = np


class Variable(Tensor, Symbol):
    """A Tensor of a program. A Variable.

    Operations on it are recorded; `Executor.run` computes and fetches it. Sizes that are known only
    in the run are -1 in `shape`. `block` is the `Block` that it belongs to.
    """

    constant: np.ndarray[Any, Any] | None = None
    """The Variable's values, if they are known while the program is built because they are the same
    in every run.
    """

    replacement: Variable | None = None
    """Replace the Variable in the rest of the program, by a copy with some elements set (``x[0] =
    y``).
    """

    def __init__(
        self, block: Any, name: str, shape: Shape, dtype: Any, stop_gradient: bool = True
    ) -> None:
        self._spec = Spec(self, tuple(shape), np.dtype(dtype))
        self.node = None
        self._stop_gradient = stop_gradient
        self.block = block
        self.where = user_location()
        self.is_data, self.fed_as = False, ""
        self.__dict__["name"] = name
        block.program.add_variable(self)

    @property
    def array(self) -> Any:
        """The `Spec`.

        Raises:
            RuntimeError: the mode is dynamic.
        """
        if recording.get() is None:
            raise RuntimeError(
                f"{self.describe()} belongs to a static program, but the mode is dynamic. Call "
                f"paddle.enable_static() before using it, or fetch its value with Executor.run."
            )
        return self._spec

    @property
    def shape(self) -> Any:
        """The Variable's shape, with -1 for sizes that are known only in the run."""
        return Size(self._spec.shape)  # type: ignore[arg-type]

    @property
    def dtype(self) -> Any:
        """Its data type."""
        return BY_NUMPY[self._spec.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    @property
    def size(self) -> Any:
        """The number of elements, as far as it is known."""
        return self._spec.size

    @property
    def is_leaf(self) -> bool:
        """Whether the Variable is fed, rather than computed."""
        return self.is_data

    def describe(self) -> str:
        """The Variable's name, shape and dtype, and where the user's program made it."""
        shape = ", ".join(map(str, self._spec.shape))
        return (
            f"Variable {self.name!r} of shape [{shape}] and dtype {self.dtype.name}, created at "
            f"{self.where}"
        )

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self._spec.shape))
        return (
            f"Variable(name={self.name!r}, shape=[{shape}], dtype={self.dtype.name}, "
            f"stop_gradient={self._stop_gradient})"
        )

    def detach(self) -> Tensor:
        """A Variable with the same values, with stop_gradient True."""
        recorder = recording.get()
        return self.array if recorder is None else recorder.detach(self)  # type: ignore[no-any-return]

    def declaration(self) -> str:
        """The Variable's line in a printed program: name, dtype, shape, and whether gradients stop
        there.
        """
        shape = ", ".join(map(str, self._spec.shape))
        return (
            f"{self.name} : "
            f"{self.dtype.name}[{shape}]{' stop_gradient' if self._stop_gradient else ''}"
        )

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse methods that compute a Tensor's gradient immediately.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"{self.describe()}: a program's gradients are Variables too. Ask for them with "
            f"paddle.static.gradients or paddle.static.append_backward."
        )

    backward = gradient = register_hook = retain_grads = clear_grad = clear_gradient = refuse

    def __bool__(self) -> bool:
        if self.constant is not None:
            return super().__bool__()
        raise RuntimeError(
            f"{self.describe()} cannot decide an if or while of Python: it has a value only while "
            "its program runs. Use paddle.static.nn.cond."
        )

    def current(self) -> Variable:
        """The Variable that replaces this one at present."""
        return self if self.replacement is None else self.replacement.current()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise RuntimeError(f"{self.describe()} cannot be copied; use paddle.assign.")


def describe(tensor: Tensor) -> str:
    """Describe a Variable, or a Tensor that a program uses, for messages."""
    if isinstance(tensor, Variable):
        return tensor.describe()
    return f"{tensor.name}, a Tensor of shape {tensor.shape}"


def current(value: Any) -> Any:
    """A value with each Variable in it replaced by its current one, also inside containers."""
    return mapped(value, lambda v: v.current() if isinstance(v, Variable) else v)
