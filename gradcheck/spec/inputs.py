"""The inputs of a scenario: tensors by their shapes or values, and how these depend on its matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypeAliasType

from gradcheck.spec.format import LAX, NAME, Format, Number, Numbers, told_by_type
from gradcheck.spec.literals import MAX_DIMENSIONS, DType, Stands

Layout = Literal["contiguous", "transposed", "strided", "expanded"]


class Aliased(Format):
    """The memory of another input, and with it its shape, dtype and values."""

    aliased: str = Field(min_length=1, description="The name of an input above.")


AnyLayout = Annotated[
    Annotated[Layout, Tag("(layout)")] | Annotated[Aliased, Tag("(aliased)")],
    told_by_type(mapping="(aliased)", otherwise="(layout)"),
]

ITEM_BYTES: dict[str, int] = {
    "float16": 2, "float32": 4, "float64": 8, "bfloat16": 2, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes per element of each dtype."""

INIT_LIMITS: dict[str, tuple[float, float]] = {
    "uniform": (-1.0, 1.0),
    "linspace": (-1.0, 1.0),
    "integers": (0.0, 10.0),
}
"""Default (low, high) of the inits that have them."""


def _size_kind(value: object) -> str:
    return "(parameter)" if isinstance(value, str) and re.fullmatch(NAME, value) else "(size)"


Size = Annotated[
    Annotated[int, Tag("(size)"), Field(ge=0)] | Annotated[str, Tag("(parameter)"), Field(pattern=rf"^{NAME}$")],
    Discriminator(_size_kind),
]
"""The length of a dimension: a number, or the parameter of the matrix that gives it."""
Shape = Annotated[tuple[Size, ...], LAX, Field(max_length=MAX_DIMENSIONS)]


class Input(Format):
    """One tensor that goes into the layer: random numbers of a shape, or given values."""

    model_config = ConfigDict(populate_by_name=True)  # as workers write it; the reader takes no `from_`

    shape: Annotated[tuple[Size, ...], LAX] | None = Field(
        default=None,
        max_length=MAX_DIMENSIONS,
        description="Lengths of the dimensions, or parameters of the matrix that give them; [] is a scalar.",
    )
    values: Numbers | None = Field(default=None, description="The elements themselves, in place of shape and init.")
    from_: str | None = Field(
        default=None,
        alias="from",
        pattern=r"^[^/\\~].*\.np[yz]$",
        description="A file with the elements, below the spec's folder: .npy, or .npz with the key; in place of shape "
        "and init.",
    )
    key: str | None = Field(default=None, min_length=1, description="The name of the array in an .npz file.")
    init: Literal[
        "normal", "uniform", "linspace", "zeros", "ones", "integers", "sorted", "distinct", "ties", "positive-definite",
        "orthogonal", "one-hot", "probabilities",
    ] = Field(
        default="normal",
        description="How elements are drawn: normal (mean 0, variance 1), uniform in [low, high), linspace from low "
        "to high in row-major order, zeros, ones, or integers from low to high − 1. sorted (along the last axis), "
        "distinct (no two nearer than 1/16) and ties (each of four numbers several times) are normal or nearly so. "
        "positive-definite and orthogonal are matrices along the last two axes, one-hot and probabilities (above 0, "
        "with sum 1) rows along the last.",
    )  # fmt: skip
    range: Annotated[tuple[Number, Number], LAX] | None = Field(
        default=None, description="[low, high], short for init: uniform with these limits."
    )
    below: int | None = Field(
        default=None, ge=1, description="Short for init: integers from 0 to this number, which is not drawn."
    )
    low: Number | None = Field(default=None, description="Lower limit of uniform, linspace (−1) or integers (0).")
    high: Number | None = Field(default=None, description="Upper limit of uniform, linspace (1) or integers (10).")
    near: Annotated[tuple[Number, ...], LAX] = Field(
        default=(),
        description="Numbers that the elements are put next to, in turn, within about 1e-3: [0] for a kink at 0.",
    )
    dtype: DType = Field(
        default="float64", description="Element type; by default that of the matrix, defaults, or float64."
    )
    stop_gradient: bool = Field(default=False, description="Whether the input takes part without a gradient.")
    layout: AnyLayout = Field(
        default="contiguous",
        description="How the elements lie in memory: contiguous, transposed (axes in reverse order), strided (every "
        "other element of a larger Tensor), expanded (one row, which the first axis repeats), or {aliased: x} (the "
        "memory of the input x, with its values). By default that of the matrix.",
    )
    ranks: Stands = Field(
        default="split",
        description="In a world, what it stands for: split (each rank has values of its own: the shape is that of one "
        "rank, values have a first axis of ranks), replicated (the same on all ranks, with one complete gradient) or "
        "partial (the same on all ranks, whose gradients add up to the derivative).",
    )
    dtype_written: SkipJsonSchema[bool] = False
    """Set by the reader: the input names its dtype itself, so that a matrix does not change it."""
    layout_written: SkipJsonSchema[bool] = False
    """The same for its layout."""

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is defined for it: stop_gradient is false and the dtype is floating or complex."""
        return not self.stop_gradient and self.dtype.startswith(("float", "bfloat", "complex"))

    @property
    def alias_of(self) -> str:
        """The name of the input whose memory it shares; empty for none."""
        return self.layout.aliased if isinstance(self.layout, Aliased) else ""

    @property
    def drawn(self) -> str:
        """How elements are drawn, `range` and `below` in the words of `init`."""
        return "uniform" if self.range is not None else "integers" if self.below is not None else self.init

    @property
    def limits(self) -> tuple[float, float]:
        """(low, high) of uniform, linspace and integers, defaults filled in. Raises KeyError for other inits."""
        if self.range is not None:
            return self.range
        if self.below is not None:
            return 0, self.below
        low, high = INIT_LIMITS[self.init]
        return (low if self.low is None else self.low, high if self.high is None else self.high)

    def at(self, parameters: Mapping[str, Any]) -> Input:
        """The input at a point of the matrix, which gives sizes by name, and dtype and layout where it has none.

        Sizes that are to be drawn keep their names.
        """
        known: dict[str, Any] = {}
        if self.shape is not None:
            known["shape"] = tuple(parameters.get(str(size), size) for size in self.shape)
        for key, written in (("dtype", self.dtype_written), ("layout", self.layout_written)):
            if not written and key in parameters:
                known[key] = parameters[key]
        return self.model_copy(update=known)


def _written_out(value: object) -> object:
    return {"shape": value} if isinstance(value, (list, tuple)) else value


Several = TypeAliasType(
    "Several",
    "Annotated[list[Input | Several], Field(min_length=1)] | "
    "Annotated[dict[str, Input | Several], Field(min_length=1)]",
)
"""A list or a dict of Tensors."""
InputEntry = Annotated[Input, BeforeValidator(_written_out, json_schema_input_type=Input | Shape | Several)]
"""An input; a list of sizes is its shape alone. The reader makes an input of each in a list or dict of them."""
