"""Devices by Paddle's names. `array.set_device` chooses where new Tensors are made."""

from __future__ import annotations

from typing import Any

from pylayer.array import get_device
from pylayer.tensor import Place


def CPUPlace() -> Place:  # noqa: N802 - Paddle's name
    """Host memory."""
    return Place("cpu")


def CUDAPlace(id: int = 0) -> Place:  # noqa: N802 - Paddle's name
    """The memory of one GPU."""
    return Place(f"gpu:{id}")


def is_compiled_with_cuda() -> bool:
    """Whether the current device is a GPU: the engine is not compiled, and uses one when told to."""
    return get_device() != "cpu"


def check_place(place: Any) -> None:
    """Check that `place`, a Place or a name or None, is the current device.

    Raises:
        ValueError: it is another.
    """
    if place is None:
        return
    name = place.name if isinstance(place, Place) else str(place)
    current = get_device()
    if name != current and not (name == "gpu" and current.startswith("gpu:")):
        raise ValueError(
            f"Tensors are made on the current device, {current}, but the place is {name}. Call set_device({name!r})."
        )
