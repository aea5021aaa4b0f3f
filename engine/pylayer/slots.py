"""Which arguments and outputs of a PyLayer own a gradient: the slots of backward."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from pylayer.array import XP
from pylayer.tensor import Tensor


class Slot(NamedTuple):
    """One place in backward's arguments or results: a Tensor, or a list or tuple that directly holds at least one."""

    name: str
    tensors: list[Tensor]
    is_list: bool


def input_slots(layer: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Slot], list[str]]:
    """The arguments that own a gradient slot, in call order, and the names of the others (observed rules 9 and 10).

    Warns:
        UserWarning: a dict, or a list in a list, holds Tensors: their gradients are not tracked.
    """
    slots: list[Slot] = []
    slotless: list[str] = []
    for name, value in [*((f"#{k}", value) for k, value in enumerate(args)), *kwargs.items()]:
        slot = as_slot(name, value)
        if slot:
            slots.append(slot)
        else:
            slotless.append(name)
        if isinstance(value, (dict, list, tuple)) and any(isinstance(v, Tensor) for v in deeper(value)):
            kind = "a dict" if isinstance(value, dict) else "a list inside a list"
            warnings.warn(
                f"{layer}: Tensors in {kind} (argument {name}) are not tracked and get no gradient. "
                f"Pass them as arguments of their own, or in one flat list.",
                UserWarning,
                stacklevel=3,
            )
    return slots, slotless


def output_slots(layer: str, returned: Any) -> list[Slot]:
    """What forward returned as the slots of backward's arguments (observed rules 13 to 16).

    Raises:
        ValueError: there is no Tensor in it.
    """
    values = returned if isinstance(returned, (list, tuple)) else [returned]
    slots = [slot for k, value in enumerate(values) if (slot := as_slot(f"output {k}", value))]
    if not slots:
        found = ", ".join(type(v).__name__ for v in values) or "nothing"
        raise ValueError(
            f"{layer} : At least one output of `PyLayer.forward` is a `Tensor`. But forward returned {found}: return "
            f"the Tensor, alone or in a list or tuple."
        )
    return slots


def as_slot(name: str, value: Any) -> Slot | None:
    """The slot that `value` owns, if any."""
    if isinstance(value, Tensor):
        return Slot(name, [value], False)
    if isinstance(value, (list, tuple)):
        tensors = [v for v in value if isinstance(v, Tensor)]
        if tensors:
            return Slot(name, tensors, True)
    return None


def deeper(value: Any) -> Iterator[Any]:
    """What lies in a dict, or below the first level of a list."""
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict):
        yield from items
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from item
        if isinstance(item, (dict, list, tuple)):
            yield from deeper(item)


class Like(NamedTuple):
    """What the gradient of one Tensor must look like."""

    shape: tuple[int, ...]
    dtype: Any
    xp: ModuleType

    def zeros(self) -> Tensor:
        """A gradient of zeros."""
        return Tensor(self.xp.zeros(self.shape, self.dtype))


def likes(slots: Sequence[Slot]) -> list[list[Like]]:
    """The shape and dtype of every Tensor, slot by slot, without holding the Tensors."""
    return [[Like(t.array.shape, t.array.dtype, XP[type(t.array)]) for t in slot.tensors] for slot in slots]
