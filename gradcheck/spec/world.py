"""The world that a layer runs in: how many ranks there are, and what its Tensors stand for on them."""

from __future__ import annotations

from math import prod
from typing import Annotated, Literal

from pydantic import Field, Tag
from typing_extensions import TypeAliasType

from gradcheck.spec.format import LAX, Format, told_by_type
from gradcheck.spec.literals import OutputStands

Axis = Literal["dp", "pp", "sharding", "sep", "mp"]
"""The axes of fleet's topology."""
Random = Literal["by-rank", "same"]
"""Whether each rank draws random numbers of its own."""

MOST_RANKS = 64
"""Ranks of one world: they share a process, or are one each."""

Ranks = Annotated[int, Field(ge=1, le=MOST_RANKS)]


World = TypeAliasType(
    "World",
    Annotated[
        Annotated[Ranks, Tag("(ranks)")] | Annotated[dict[Axis, Ranks], Tag("(axes)"), Field(min_length=1)],
        told_by_type(mapping="(axes)", otherwise="(ranks)"),
    ],
)
"""A number of ranks, or of ranks along axes."""


class Output(Format):
    """An output of a layer in a world."""

    ranks: OutputStands = Field(
        description="What it stands for: split (every rank's values count in the loss) or replicated (all ranks have "
        "the same values, which count once)."
    )


# `world_rules` checks that there is one: pydantic counts only those without mistakes.
SeveralOutputs = Annotated[tuple[Output, ...], LAX, Field(json_schema_extra={"minItems": 1})]
Outputs = Annotated[
    Annotated[Output, Tag("(output)")] | Annotated[SeveralOutputs, Tag("(outputs)")],
    told_by_type(mapping="(output)", list="(outputs)"),
]
"""What all outputs are, or each of them."""


def size_of(world: int | dict[Axis, int]) -> int:
    """The number of ranks."""
    return world if isinstance(world, int) else prod(world.values())
