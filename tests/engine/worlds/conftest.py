"""A world of the engine's own: ``on_ranks(size, function)`` gives what the function returns on each rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pylayer.distributed.world import World
from pylayer.tensor.tensor import Tensor


def plain(value: Any) -> Any:
    """Tensors as NumPy's arrays, in lists too."""
    if isinstance(value, Tensor):
        return np.array(value.numpy())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


@pytest.fixture
def on_ranks() -> Callable[..., list[Any]]:
    return lambda size, function, **options: plain(World(size, **options).run(function))
