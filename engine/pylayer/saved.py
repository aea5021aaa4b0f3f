"""What is kept for backward may be packed: `saved_tensors_hooks` for built-in operations and PyLayers alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from pylayer.array import XP
from pylayer.grad_mode import grad_mode
from pylayer.tensor import Tensor
from pylayer.watch import watching


class Hooks(NamedTuple):
    """The functions in force where a Tensor is saved."""

    pack: Callable[[Tensor], Any]
    unpack: Callable[[Any], Tensor]


active_hooks: ContextVar[Hooks | None] = ContextVar("saved_tensors_hooks", default=None)


class saved_tensors_hooks:  # noqa: N801 - Paddle's name
    """Within the ``with`` block, each Tensor saved for backward goes through `pack_hook`, and what that returns through
    `unpack_hook` each time it is read (``paddle.autograd.saved_tensors_hooks``; observed rule 53).

    Raises, when entered:
        ValueError: others are in force, as in Paddle.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._hooks = Hooks(pack_hook, unpack_hook)
        self._tokens: list[Token[Hooks | None]] = []

    def __enter__(self) -> None:
        if active_hooks.get() is not None:
            raise ValueError(
                "(InvalidArgument) paddle.autograd.saved_tensors_hooks only one pair of hooks is allowed at a time."
            )
        watching.append(self._hooks)
        self._tokens.append(active_hooks.set(self._hooks))

    def __exit__(self, *raised: object) -> None:
        active_hooks.reset(self._tokens.pop())
        watching.remove(self._hooks)


class Packed(NamedTuple):
    """One saved Tensor as its pack hook left it."""

    value: Any
    unpack: Callable[[Any], Tensor]

    def unpacked(self) -> Tensor:
        """The Tensor again. Raises TypeError where the unpack hook returned something else."""
        tensor = self.unpack(self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"The unpack hook of saved_tensors_hooks must return a Tensor, but got {type(tensor).__name__}."
            )
        return tensor


def packed(tensor: Any, hooks: Hooks) -> Packed:
    """`tensor` through the pack hook, which records nothing."""
    token = grad_mode.set(False)
    try:
        return Packed(hooks.pack(tensor), hooks.unpack)
    finally:
        grad_mode.reset(token)


class PackedSaved(list[tuple[Any, ...]]):
    """What the vjps of one operation read, the arrays packed."""

    def unpacked(self) -> list[tuple[Any, ...]]:
        """The values that the vjps read."""
        return [tuple(v.unpacked().array if type(v) is Packed else v for v in values) for values in self]


def packed_saved(saved: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """What the vjps of a built-in operation read, with every array through the pack hook in force, if any."""
    hooks = active_hooks.get()
    if hooks is None:
        return saved
    return PackedSaved(tuple(packed(Tensor(v), hooks) if type(v) in XP else v for v in values) for values in saved)
