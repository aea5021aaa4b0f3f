"""A process left as it was by the cases that run in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from unrepaired import no_fix_is_searched

from pylayer import uninstall_paddle
from pylayer.layer.py_layer import PyLayer

__all__ = ["no_fix_is_searched", "process_as_before"]


@pytest.fixture
def process_as_before() -> Iterator[None]:
    """`execute` changes its process, which in a run is a child of its own."""
    path, counted = [*sys.path], vars(PyLayer).get("__init_subclass__")
    yield
    sys.path[:] = path
    uninstall_paddle()
    if counted is None and "__init_subclass__" in vars(PyLayer):
        del PyLayer.__init_subclass__
