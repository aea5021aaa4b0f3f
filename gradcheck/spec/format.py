"""What the models of the format share: their base, and the kinds of values that stand in many places."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict
from typing_extensions import TypeAliasType

KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
LAX = Strict(False)  # a list may stand for a tuple; what is in it stays strict

Number = Annotated[float | int, Field(description="A number; .inf and .nan are allowed.")]
Numbers = TypeAliasType("Numbers", "Annotated[tuple[Numbers, ...], LAX] | bool | int | float")
"""A number (or a boolean) or nested lists of them."""
YamlValue = TypeAliasType("YamlValue", "Annotated[tuple[YamlValue, ...], LAX] | bool | int | float | str | None")
"""What an expression may be expected to give: null, a boolean, a number, text, or nested lists of these."""

TagName = Annotated[str, Field(pattern=KEBAB, max_length=60)]
Reason = Annotated[str, Field(min_length=1, pattern=r"\S")]
REASON = "Why, in one sentence."


class Format(BaseModel):
    """A part of the format: every key is known, every value strict; it is frozen."""

    # Built on first use: a validator of SpecFile has no need of the separate ones of its parts.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, ser_json_inf_nan="constants", defer_build=True)


_TYPES: dict[str, tuple[type, ...]] = {"mapping": (dict, BaseModel), "list": (list, tuple), "text": (str,)}


def told_by_type(otherwise: str | None = None, **tags: str) -> Discriminator:
    """Which member of a union is meant: by what stands there, ``mapping``, ``list`` or ``text``, its tag.

    Mistakes are then reported of that member alone.
    """
    return Discriminator(
        lambda value: next((tag for kind, tag in tags.items() if isinstance(value, _TYPES[kind])), otherwise)
    )
