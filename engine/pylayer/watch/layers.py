"""Observers of hand-written backwards: they learn which layers are applied, and whose backward
runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class LayerObserver(Protocol):
    """A layer is a PyLayer class, or the `backward_fn` of a `static_pylayer`."""

    def applied(self, layer: Any, context: Any) -> None:
        """The forward of a layer is about to run, with this context, so that its backward may run
        later."""

    def pulled_back(self, layer: Any) -> None:
        """The backward of a layer is about to run."""


layer_observers: list[LayerObserver] = []
"""The layer_observers in force, in any thread and on all ranks of a world."""


@contextmanager
def observing_layers(observer: LayerObserver) -> Iterator[None]:
    """Have `observer` in force in the ``with`` block."""
    layer_observers.append(observer)
    try:
        yield
    finally:
        layer_observers.remove(observer)
