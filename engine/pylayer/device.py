"""Devices by Paddle's names. `array.set_device` chooses where new Tensors are made."""

from __future__ import annotations

from typing import Any

from pylayer.array import get_device


class Place:
    """Where a Tensor lies; prints as Paddle does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Place({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def is_cpu_place(self) -> bool:
        """Whether it is host memory."""
        return self.name == "cpu"

    def is_gpu_place(self) -> bool:
        """Whether it is a GPU."""
        return not self.is_cpu_place()


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
