"""One rank's call of a collective, or its side of a message; and the error classes for mismatches
and deadlocks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pylayer.tape.location import user_location
from pylayer.tensor.tensor import Tensor

SUM, MAX, MIN, PROD, AVG = range(5)
"""Values of ``paddle.distributed.ReduceOp``."""
NAMES = ("SUM", "MAX", "MIN", "PROD", "AVG")


class CommunicationError(RuntimeError):
    """The calls of ranks do not match; `ranks` are those that the message is about."""

    def __init__(self, text: str, ranks: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.ranks = tuple(ranks)

    def anew(self) -> CommunicationError:
        """Copy the error for another rank to raise."""
        return type(self)(str(self), self.ranks)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.ranks)


class MismatchError(CommunicationError):
    """Ranks make different calls where all must make the same call, or pass Tensors that do not
    match.
    """


class DeadlockError(CommunicationError):
    """Every rank is waiting or has ended, and no pending call can be answered."""


@dataclass(eq=False)
class Call:
    """A rank's call of a collective, or of a send or receive.

    Args:
        kind: a key of `collectives.COLLECTIVES`.
        rank: the calling rank's number in the world.
        members: the ranks of the world that take part, in the order of the group.
        place: the calling rank's position among `members`.
        key: identifies the group, or the pair of ranks: calls are matched in order, key by
            key. It begins with 0 for the group of all ranks.
        inputs: the values that the rank passes, as they are at the call: Tensors, or any
            objects.
        likes: shape and dtype of each Tensor that takes part, whether given or to be filled.
        agreed: the properties that must be equal on all members, such as the root.
        where: ``file:line`` of the user's code.
    """

    kind: str
    rank: int
    members: tuple[int, ...]
    place: int
    key: tuple[Any, ...]
    inputs: list[Any]
    likes: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    agreed: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    results: list[Any] = field(default_factory=list)
    """The result for the rank, once `done`."""
    error: CommunicationError | None = None
    done: bool = False
    number: int = 0
    """The call's number, set by the rank if answers come from another process."""

    def agreed_value(self, name: str) -> Any:
        """The call's value of a property that must be equal on all members."""
        value = self.agreed.get(name)
        return NAMES[value] if name == "op" and value is not None else value

    def dtypes(self) -> str:
        """The dtypes of the call's Tensors, as text."""
        return " and ".join(sorted({dtype for _, dtype in self.likes}))

    def shapes(self) -> str:
        """The shapes of the call's Tensors, as text."""
        return " and ".join(
            str(list(shape)) for shape in sorted({shape for shape, _ in self.likes})
        )

    def describe(self, peers: bool) -> str:
        """Describe the call in words; with `peers`, also name the ranks that take part."""
        if self.kind == "message":
            name, preposition = ("recv", "from") if self.place else ("send", "to")
            suffix = f" {preposition} rank {self.members[1 - self.place]}"
        else:
            properties = ", ".join(f"{name}={self.agreed_value(name)}" for name in self.agreed)
            name, suffix = f"{self.kind}({properties})", f" of group {list(self.members)}"
        return f"{name}{suffix if peers and self.key[0] else ''} in {self.where}"

    def __str__(self) -> str:
        return self.describe(True)


def snapshot(tensor: Tensor) -> Tensor:
    """A snapshot of a Tensor: its values and its place in the graph."""
    return Tensor(tensor.array.copy(), tensor.node, tensor._stop_gradient)


def users_line() -> str:
    """``file:line`` of the innermost code outside of the engine, relative to the current folder if
    below it.
    """
    return user_location().removeprefix(f"{os.getcwd()}{os.sep}")
