"""The literal values of the format, such as backends and dtypes, that the command line uses too.
Imports nothing slow.
"""

from __future__ import annotations

from typing import Literal, get_args

DType = Literal[
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool",
    "complex64", "complex128",
]  # fmt: skip
Placement = Literal["split", "replicated", "partial"]
"""How an input is placed on the ranks of a world; an output is never partial."""
OutputPlacement = Literal["split", "replicated"]

MAX_DIMENSIONS = 8
Layout = Literal["contiguous", "transposed", "strided", "expanded"]
MOST_RANKS = 64
"""The most ranks of a world; they share a process, or have one each."""

ELEMENT_TYPES: tuple[str, ...] = get_args(DType)
INTEGER_RANGE = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1), "uint8": (0, 2**8 - 1), "bool": (0, 1),
}  # fmt: skip
"""The smallest and the largest value of each dtype without a gradient."""
FrameworkName = Literal["paddle", "torch", "jax"]
"""The frameworks whose layers a spec file may contain."""
NAMES_OF_FRAMEWORKS: dict[FrameworkName, tuple[str, ...]] = {
    "paddle": ("paddle", "PyLayer"),
    "torch": ("torch", "Function"),
    "jax": ("jax", "jnp"),
}
"""Names that code in a framework's files can use without importing them, in addition to ``np``."""


def layouts_of(framework: str) -> tuple[str, ...]:
    """The layouts in memory that inputs of a framework can have; an array of JAX has no other."""
    return ("contiguous",) if framework == "jax" else get_args(Layout)
