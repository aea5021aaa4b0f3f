"""Parameters: Tensors that are trained."""

from __future__ import annotations

from pylayer.array import Array
from pylayer.symbol import Recordable, recording
from pylayer.tensor import Tensor


class Parameter(Tensor, Recordable):
    """A leaf that is trained: stop_gradient is the opposite of `trainable`."""

    __slots__ = ()

    persistable = True

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
        """As of a Tensor; in static mode a Variable."""
        recorder = recording.get()
        return super().detach() if recorder is None else recorder.detached(self)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()
