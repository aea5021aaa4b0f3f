"""The scenario format ``gradcheck/v1`` as a model: what `read` returns, and where the JSON Schema comes from.

Objects are frozen and survive ``model_dump_json`` / ``model_validate_json``, positions included. Numbers are
strict: no text passes for a number, no number for a boolean. What takes more than one field to judge is in
`gradcheck.spec.scenario_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from gradcheck.spec.expectations import BackendExpectation, Backends, Expect
from gradcheck.spec.format import KEBAB, LAX, NAME, Format, TagName, told_by_type
from gradcheck.spec.inputs import Input, InputEntry
from gradcheck.spec.literals import DType, OutputStands
from gradcheck.spec.operations import OPERATIONS
from gradcheck.spec.versions import within
from gradcheck.spec.world import Outputs, Random, World, size_of

Seed = Annotated[int, Field(ge=0, lt=2**32)]
Timeout = Annotated[float, Field(gt=0, le=3600)]
Rtol = Annotated[float, Field(gt=0, lt=1)]
_SEED = "Seed of the case's random numbers, 0 to 2**32 − 1."
_TIMEOUT = "Wall-clock limit of a case, in seconds."
_RTOL = "Relative tolerance that widens (never narrows) the error bar of the gradient check."


class Source(Format):
    """What a scenario is held against: the passage of a document, or a formula's origin."""

    document: str = Field(min_length=1, description="The document, such as paddle.autograd.PyLayer.")
    section: str | None = Field(default=None, description="The section or heading in it.")
    quote: str | None = Field(default=None, description="The sentence itself, verbatim.")
    url: str | None = Field(default=None, pattern=r"^https?://\S+$", description="Where it can be read.")


REFERENCE = rf"^{NAME}(\.{NAME})*:{NAME}(\.{NAME})*$"


class LayerRef(Format):
    """A layer that lies in an importable module."""

    ref: str = Field(pattern=REFERENCE, description="Module and class, as pkg.mod:Class.")


def _known_operation(name: str) -> str:
    if name not in OPERATIONS:
        raise PydanticCustomError("unknown_operation", "unknown operation")
    return name


class LayerOp(Format):
    """One of the framework's own operations."""

    op: Annotated[str, AfterValidator(_known_operation)] = Field(
        pattern=rf"^{NAME}(\.{NAME})*$",
        json_schema_extra={"enum": [*sorted(OPERATIONS)]},
        description="Its name under paddle, such as tanh.",
    )


Citation = Annotated[
    Annotated[str, Tag("(rule)"), Field(pattern=KEBAB, max_length=60)]
    | Annotated[
        dict[TagName, Annotated[str, Field(min_length=1)]], Tag("(passage)"), Field(min_length=1, max_length=1)
    ],
    told_by_type(mapping="(passage)", otherwise="(rule)"),
]
"""A rule of the catalogue; or, under its name, the passage of the rule's document that is meant."""


def _layer_kind(value: object) -> str | None:
    if isinstance(value, str):
        return "(source)"
    if isinstance(value, LayerRef) or (isinstance(value, dict) and "ref" in value):
        return "(ref)"
    return "(op)" if isinstance(value, LayerOp) or (isinstance(value, dict) and "op" in value) else None


Layer = Annotated[
    Annotated[str, Tag("(source)")] | Annotated[LayerRef, Tag("(ref)")] | Annotated[LayerOp, Tag("(op)")],
    Discriminator(_layer_kind),
]
LayerName = Annotated[str, Field(pattern=KEBAB, max_length=60)]
MatrixValue = TypeAliasType("MatrixValue", "bool | int | float | str")
Matrix = dict[str, Annotated[tuple[MatrixValue, ...], LAX]]
Length = Annotated[int, Field(ge=0)]


class Explore(Format):
    """How long to look for inputs at which a gradient is wrong."""

    examples: int = Field(default=100, ge=1, le=1_000_000, description="How many are tried at most.")
    seconds: float = Field(default=20, gt=0, le=3600, description="How long to look: after that none is tried.")


def _scenario_schema(schema: dict[str, Any]) -> None:
    """A scenario has code: its own, that of the scenario it extends, or that of its cases."""
    schema["anyOf"] = [{"required": [key]} for key in ("layer", "script", "extends", "cases")]


def _case_schema(schema: dict[str, Any]) -> None:
    """The case without an id is called as the scenario."""
    schema["properties"]["id"].pop("default", None)


class _Keys(Format):
    id: str = Field(pattern=KEBAB, max_length=100, description="Its name everywhere: kebab-case, unique in a run.")
    title: str | None = Field(
        default=None, min_length=1, max_length=200, pattern=r"^[^\n]*$", description="One line of plain English."
    )
    source: Source | None = Field(default=None, description="What the scenario is held against.")
    rules: Annotated[tuple[Citation, ...], LAX] = Field(
        default=(),
        description="Rules of the catalogue that the scenario holds an implementation to, which become tags: a name, "
        "or {name: the passage of its document that is meant}.",
    )
    tags: Annotated[tuple[TagName, ...], LAX] = Field(
        default=(), description="Words to select by; added to the defaults'."
    )
    world: World | None = Field(
        default=None,
        description="How many ranks the layer runs on: a number, or ranks along fleet's axes, such as {mp: 2, dp: 2}.",
    )
    layer: Layer | None = Field(
        default=None,
        description="The layer: Python source of a PyLayer class, or of forward_fn and backward_fn for static_pylayer; "
        "the name of one of the file's layers; {ref: pkg.mod:Class}; or {op: name}.",
    )
    script: str | None = Field(
        default=None,
        description="A whole program in Python, run from top to bottom; beside a layer's source, behind that.",
    )
    inputs: dict[str, InputEntry] = Field(
        default={}, description="Name → tensor that the layer is applied to; a list is its shape alone."
    )
    outputs: Outputs | None = Field(
        default=None,
        description="In a world, what the outputs stand for: {ranks: split} (which they are if nothing is said) or "
        "{ranks: replicated} for all of them, or a list with one for each.",
    )
    random: Random = Field(
        default="by-rank", description="In a world, whether each rank draws its own random numbers, or all the same."
    )
    call: str | None = Field(
        default=None,
        description="Python expression that applies the layer; by default its only PyLayer class's apply with all "
        "inputs in order, for an op paddle.<op> with them, for forward_fn static_pylayer with a list of them.",
    )
    sizes: dict[str, Length] = Field(
        default={}, description="Name → the length that it stands for in shapes; a name in the code, too."
    )
    explore: Explore | None = Field(
        default=None,
        description="Look for sizes and values at which the gradient is wrong: sizes in shapes that are capital "
        "letters are drawn, and so are the values, dtypes and layouts of inputs that do not say what they are.",
    )
    matrix: Matrix = Field(
        default={},
        description="Parameter → its values, such as dtype: [float32, float64]; one case per combination. dtype and "
        "layout are those of all inputs that name none, world is the number of ranks; others are sizes in shapes, or "
        "names in the code.",
    )
    expect: Expect = Field(default_factory=Expect, description="What must hold.")
    backends: Backends = Field(default={}, description="What is different on a backend.")
    seed: Seed = Field(default=0, description=_SEED)
    timeout: Timeout | None = Field(default=None, description=_TIMEOUT)
    rtol: Rtol | None = Field(default=None, description=_RTOL)


class ScenarioCase(_Keys):
    """One of several looks at what a scenario gives: its own keys go before those of the scenario."""

    model_config = ConfigDict(json_schema_extra=_case_schema)

    id: str = Field(
        default="",
        pattern=KEBAB,
        max_length=100,
        description="Its name, put behind that of the scenario with a hyphen; the case without one has the latter.",
    )


class Scenario(_Keys):
    """One layer or program, where it comes from, and what must hold."""

    model_config = ConfigDict(json_schema_extra=_scenario_schema)

    extends: str | None = Field(
        default=None, description="Id of a scenario of this file whose keys this one takes over."
    )
    cases: Annotated[tuple[ScenarioCase, ...], LAX] = Field(
        default=(),
        json_schema_extra={"minItems": 1},
        description="Several looks at what the scenario gives, each a scenario with what it says itself in its place. "
        "The reader makes them so; there are none in what it returns.",
    )

    path: SkipJsonSchema[str] = ""
    """Set by the reader, as the following: the file."""
    line: SkipJsonSchema[int] = 1
    """1-based line of the scenario's ``- id``."""
    column: SkipJsonSchema[int] = 1
    begins: SkipJsonSchema[int] = 1
    """The same, but for one of several `cases`: of the scenario that they are written in."""
    positions: SkipJsonSchema[dict[str, tuple[int, int]]] = Field(default={})
    """``expect.gradient`` → (line, column), 1-based. For a block of code: the line of its first line."""

    def line_of(self, key: str) -> int:
        """The file line of `key` (``layer``, ``expect.raises``); for a block of code, that of its first line.

        A key that the file does not give has the line of what it would stand in, in the end the scenario's own.
        """
        while key:
            if key in self.positions:
                return self.positions[key][0]
            key = key.rpartition(".")[0]
        return self.line

    def world_at(self, parameters: Mapping[str, Any]) -> World | None:
        """The world that the layer runs in at a point of the matrix; None for none."""
        world: World | None = parameters.get("world", self.world)
        return world

    def input_at(self, name: str, parameters: Mapping[str, Any]) -> Input:
        """An input at a point of the matrix. One that is split has a leading axis of the world's ranks."""
        input, world = self.inputs[name].at({**self.sizes, **parameters}), self.world_at(parameters)
        if world is None or input.ranks != "split" or input.shape is None:
            return input
        return input.model_copy(update={"shape": (size_of(world), *input.shape)})

    @property
    def output_stands(self) -> tuple[OutputStands, ...]:
        """What the outputs stand for in a world: one word for all, or one for each."""
        outputs = self.outputs
        if outputs is None:
            return ("split",)
        return tuple(one.ranks for one in (outputs if isinstance(outputs, tuple) else (outputs,)))

    def entries_of(self, backend: str) -> tuple[BackendExpectation, ...]:
        """All that is different on the versions of `backend`."""
        entries = next((entries for name, entries in self.backends.items() if name == backend), ())
        return (entries,) if isinstance(entries, BackendExpectation) else entries

    def on(self, backend: str, version: str = "") -> BackendExpectation | None:
        """What is different on a version of `backend`, if anything."""
        return next((entry for entry in self.entries_of(backend) if within(version, entry.versions)), None)


class Defaults(Format):
    """Values for all scenarios of the file that give none of their own."""

    dtype: DType | None = Field(default=None, description="Element type of inputs; float64 if not given.")
    seed: Seed | None = Field(default=None, description=_SEED)
    tags: Annotated[tuple[TagName, ...], LAX] = Field(default=(), description="Tags of every scenario.")
    source: dict[Literal["document", "section", "quote", "url"], str] = Field(
        default={},
        description="Keys that a scenario's source lacks; of no effect where it names a document of its own.",
    )
    matrix: Matrix = Field(
        default={}, description="Parameters that a scenario's matrix lacks; of no effect where it has a script."
    )
    backends: Backends = Field(
        default={}, description="Taken over for each backend that the scenario says nothing about."
    )
    timeout: Timeout | None = Field(default=None, description=_TIMEOUT)
    rtol: Rtol | None = Field(default=None, description=_RTOL)


class SpecFile(Format):
    """A ``*.grad.yaml`` file: scenarios on one topic."""

    schema_: Literal["gradcheck/v1"] = Field(alias="schema", description="The version of the format.")
    defaults: Defaults = Field(
        default_factory=Defaults, description="Values for all scenarios that give none of their own."
    )
    layers: dict[LayerName, Layer] = Field(
        default={}, description="Name → layer that scenarios of this file name under `layer`."
    )
    # The reader checks that there is one: pydantic counts only those without mistakes.
    scenarios: Annotated[tuple[Scenario, ...], LAX] = Field(
        description="The scenarios.", json_schema_extra={"minItems": 1}
    )

    path: SkipJsonSchema[str] = ""
    """The file, set by the reader."""


READER_FIELDS = frozenset({"path", "line", "column", "begins", "positions", "dtype_written", "layout_written"})
"""Fields that the reader sets and no file may give."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a ``*.grad.yaml`` file, descriptions included."""
    schema = SpecFile.model_json_schema(by_alias=True)
    # Half a source may come from the file's defaults, which a schema cannot follow.
    schema["$defs"]["Source"].pop("required", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "gradcheck/v1"}
