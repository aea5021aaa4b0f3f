"""The names of cases and layers. Loads nothing that a command waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

LAYER_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""A layer in a module: ``package.module:Layer``."""


def is_file(spec: str) -> bool:
    """Whether a scenario comes from a file: one that ``gradcheck check`` makes is named after its
    layer.
    """
    return LAYER_REFERENCE.fullmatch(Path(spec).name) is None


def points(matrix: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The points of a scenario's matrix; each is one case."""
    return [dict(zip(matrix, point, strict=True)) for point in product(*matrix.values())]


def case_name(scenario: str, parameters: Mapping[str, Any], backend: str) -> str:
    """``id@backend``, or ``id/dtype=float32@backend``: no brackets, no colons, no spaces."""
    point = ",".join(f"{key}={value}" for key, value in parameters.items())
    return f"{scenario}{'/' if point else ''}{point}@{backend}"
