"""The options with which a layer is put in a world of ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from gradcheck.spec.draft import InWorld

OPTIONS = (
    click.option("--world", default="", metavar="RANKS", help="Run the layer on so many ranks: 4, or mp=2,dp=2."),
    click.option(
        "--outputs", default="", metavar="WORD[,WORD]",
        help="In a world: split (default) or replicated, for all outputs or one for each.",
    ),
    click.option(
        "--random", type=click.Choice(["by-rank", "same"]),
        help="In a world: whether each rank draws its own random numbers.",
    ),
)  # fmt: skip


def world_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options, as one argument `world`."""

    @functools.wraps(command)
    def with_world(*, world: str, outputs: str, random: str | None, **others: Any) -> Any:
        return command(world=InWorld(world, outputs, random or ""), **others)

    for option in reversed(OPTIONS):
        with_world = option(with_world)
    return with_world
