"""Words of the format that the command line takes as well. Loads nothing that a command would wait for."""

from __future__ import annotations

from typing import Literal

DType = Literal[
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool",
    "complex64", "complex128",
]  # fmt: skip
Stands = Literal["split", "replicated", "partial"]
"""What an input stands for in a world of ranks; an output is never partial."""
OutputStands = Literal["split", "replicated"]

MAX_DIMENSIONS = 8
