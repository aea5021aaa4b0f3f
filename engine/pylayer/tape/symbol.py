"""The interface of operations to static mode, in which operations and functions that create Tensors
are recorded, not computed.

Operations on Tensors from dynamic mode, except parameters, are computed as usual. `pylayer.static`
sets the recorder; operations know nothing else of static mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.vjp import OpDef
from pylayer.tensor.array import Array, check_place
from pylayer.tensor.nested import leaves_in
from pylayer.tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Symbol:
    """A placeholder that has a value only while a program runs: a Variable, or one of its sizes."""

    __slots__ = ()

    def describe(self) -> str:
        """Describe the symbol for messages: its name and kind, and where the user's program made
        it.
        """
        raise NotImplementedError


class Recorder(Protocol):
    """The object that records calls in static mode."""

    def operation(self, op: OpDef, arguments: Sequence[Any]) -> Any:
        """Record an operation, its arguments checked and of one dtype; returns the Variables of its
        outputs.
        """

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        repeatable: bool = True,
    ) -> Any:
        """Record the call of a function that gives a Tensor through which no gradient flows.

        Args:
            repeatable: whether each call gives the same result.
        """

    def detach(self, value: Any) -> Any:
        """A Variable with the value of another, with stop_gradient True."""

    def replace(self, old: Any, new: Any) -> Any:
        """Let one Variable replace another from now on."""


recording: ContextVar[Recorder | None] = ContextVar("recording", default=None)
"""The recorder of static mode; None in dynamic mode, and while a program runs."""


class Parameter(Tensor):
    """A leaf that is trained: stop_gradient is the opposite of `trainable`."""

    __slots__ = ()

    persistable = True
    is_parameter = True

    def __init__(self, array: Array, trainable: bool = True) -> None:
        super().__init__(array, None, not trainable)

    @property
    def trainable(self) -> bool:
        """Whether it takes a gradient."""
        return not self._stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._stop_gradient = not value

    def detach(self) -> Tensor:
        """Return the Tensor without its graph; in static mode a Variable."""
        recorder = recording.get()
        return super().detach() if recorder is None else recorder.detach(self)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def symbols_in(value: Any) -> Iterable[Symbol]:
    """The symbols in a value, including those inside lists, tuples, dicts and slices."""
    return (leaf for leaf in leaves_in(value) if isinstance(leaf, Symbol))


def is_of_a_program(value: Any) -> bool:
    """Whether a value contains a symbol or a parameter."""
    return any(isinstance(leaf, (Symbol, Parameter)) for leaf in leaves_in(value))


def named(value: Any) -> str:
    """The symbols in a value, described for the end of a message; empty if there are none."""
    descriptions = list(dict.fromkeys(symbol.describe() for symbol in symbols_in(value)))
    return f" ({'; '.join(descriptions)})" if descriptions else ""


def creates(function: F, repeatable: bool = True, like: bool = False) -> F:
    """Let a function that makes a Tensor be recorded in static mode, and accept the arguments that
    all such functions accept.

    A Tensor made `like` its argument ``x`` has the stop_gradient of ``x``, as in Paddle. A `device`
    must be the current one.
    """

    @functools.wraps(function)
    def call(
        *args: Any,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **kwargs: Any,
    ) -> Any:
        if device is not None:
            check_place(device)
        recorder = recording.get()
        if recorder is None:
            tensor = function(*args, **kwargs)
            if requires_grad:
                tensor.stop_gradient = False
            return tensor
        tensor = recorder.call(function, args, kwargs, repeatable)
        if like:
            tensor._stop_gradient = (
                args[0] if args else kwargs["x"]
            )._stop_gradient or not grad_mode.get()
        return tensor

    return call  # type: ignore[return-value]


creates_like = functools.partial(creates, like=True)
"""Register an operation that makes a Tensor like its first argument."""
draws = functools.partial(creates, repeatable=False)
"""Register an operation that draws random numbers: each run draws new ones."""


def at_once(function: F) -> F:
    """Let a function compute even in static mode."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = recording.set(None)
        try:
            return function(*args, **kwargs)
        finally:
            recording.reset(token)

    return call  # type: ignore[return-value]
