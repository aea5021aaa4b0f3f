"""The scenario format ``gradcheck/v1`` as a model: what `read` returns, and where the JSON Schema
comes from.

Objects are frozen and survive ``model_dump_json`` / ``model_validate_json``, positions included.
Numbers are strict: text never passes for a number, or a number for a boolean. Rules of one value
are its validators; those that relate several keys of a scenario are in
`gradcheck.spec.scenario_rules`, and apply when a file is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import inf, prod
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from gradcheck.codes import CODES
from gradcheck.spec.data import DataPath
from gradcheck.spec.literals import (
    INTEGER_RANGE,
    MAX_DIMENSIONS,
    MOST_RANKS,
    DType,
    Layout,
    OutputStands,
    Stands,
)
from gradcheck.spec.python import static_forward
from gradcheck.spec.value_rules import (
    expected_value_mistakes,
    matrix_mistakes,
    number_mistakes,
    optional_number_mistakes,
)
from gradcheck.spec.versions import within
from gradcheck.spec.violation import Violation, as_validator, raise_mistakes
from gradcheck.support.entry_points import installed_operations

KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
LAX = Strict(False)  # a list may stand for a tuple; what is in it stays strict

Number = Annotated[float | int, Field(description="A number; .inf and .nan are allowed.")]
Numbers = TypeAliasType("Numbers", "Annotated[tuple[Numbers, ...], LAX] | bool | int | float")
"""A number (or a boolean) or nested lists of them."""
Elements = Annotated[Numbers, BeforeValidator(as_validator(number_mistakes))]
"""Numbers in lists of the same length and depth."""
YamlValue = TypeAliasType(
    "YamlValue", "Annotated[tuple[YamlValue, ...], LAX] | bool | int | float | str | None"
)
"""What an expression may be expected to give: null, a boolean, a number, text, or nested lists of
these.
"""

TagName = Annotated[str, Field(pattern=KEBAB, max_length=60)]
Reason = Annotated[str, Field(min_length=1, pattern=r"\S")]
REASON = "Why, in one sentence."


class Format(BaseModel):
    """A part of the format: every key is known, every value strict; it is frozen."""

    # Built on first use: a validator of SpecFile has no need of the separate ones of its parts.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, ser_json_inf_nan="constants", defer_build=True
    )

    @property
    def written(self) -> set[str]:
        """The keys that the file gives."""
        return {name.rstrip("_") for name in self.model_fields_set} - READER_FIELDS


_TYPES: dict[str, tuple[type, ...]] = {
    "mapping": (dict, BaseModel),
    "list": (list, tuple),
    "text": (str,),
}


def told_by_type(otherwise: str | None = None, **tags: str) -> Discriminator:
    """Which member of a union is meant: by what stands there, ``mapping``, ``list`` or ``text``,
    its tag.

    Mistakes are then reported of that member alone.
    """
    return Discriminator(
        lambda value: next(
            (tag for kind, tag in tags.items() if isinstance(value, _TYPES[kind])), otherwise
        )
    )


# --------------------------------------------------------------------------- inputs
class Aliased(Format):
    """The memory of another input, and with it its shape, dtype and values."""

    aliased: str = Field(min_length=1, description="The name of an input above.")


AnyLayout = Annotated[
    Annotated[Layout, Tag("(layout)")] | Annotated[Aliased, Tag("(aliased)")],
    told_by_type(mapping="(aliased)", otherwise="(layout)"),
]

ITEM_BYTES: dict[str, int] = {
    "float16": 2, "float32": 4, "float64": 8, "bfloat16": 2, "int8": 1, "int16": 2, "int32": 4,
    "int64": 8, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
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
    Annotated[int, Tag("(size)"), Field(ge=0)]
    | Annotated[str, Tag("(parameter)"), Field(pattern=rf"^{NAME}$")],
    Discriminator(_size_kind),
]
"""The length of a dimension: a number, or the parameter of the matrix that gives it."""
Shape = Annotated[tuple[Size, ...], LAX, Field(max_length=MAX_DIMENSIONS)]


class Input(Format):
    """One tensor that goes into the layer: random numbers of a shape, or given values."""

    model_config = ConfigDict(
        populate_by_name=True
    )  # as a server is sent it; the reader takes no `from_`

    shape: Annotated[tuple[Size, ...], LAX] | None = Field(
        default=None,
        max_length=MAX_DIMENSIONS,
        description="Lengths of the dimensions, or parameters of the matrix that give them; [] is "
        "a scalar.",
    )
    values: Elements | None = Field(
        default=None, description="The elements themselves, in place of shape and init."
    )
    from_: str | None = Field(
        default=None,
        alias="from",
        pattern=r"^[^/\\~].*\.np[yz]$",
        description="A file with the elements, below the spec's folder: .npy, or .npz with the "
        "key; in place of shape "
        "and init.",
    )
    key: str | None = Field(
        default=None, min_length=1, description="The name of the array in an .npz file."
    )
    init: Literal[
        "normal", "uniform", "linspace", "zeros", "ones", "integers", "sorted", "distinct", "ties",
        "positive-definite", "orthogonal", "one-hot", "probabilities",
    ] = Field(
        default="normal",
        description="How elements are drawn: normal (mean 0, variance 1), uniform in [low, high), "
        "linspace from low to high in row-major order, zeros, ones, or integers from low to "
        "high − 1. sorted (along the last axis), distinct (no two nearer than 1/16) and ties (each "
        "of four numbers several times) are normal or nearly so. positive-definite and orthogonal "
        "are matrices along the last two axes, one-hot and probabilities (above 0, with sum 1) "
        "rows along the last.",
    )  # fmt: skip
    range: Annotated[tuple[Number, Number], LAX] | None = Field(
        default=None, description="[low, high], short for init: uniform with these limits."
    )
    below: int | None = Field(
        default=None,
        ge=1,
        description="Short for init: integers from 0 to this number, which is not drawn.",
    )
    low: Number | None = Field(
        default=None, description="Lower limit of uniform, linspace (−1) or integers (0)."
    )
    high: Number | None = Field(
        default=None, description="Upper limit of uniform, linspace (1) or integers (10)."
    )
    near: Annotated[tuple[Number, ...], LAX] = Field(
        default=(),
        description="Numbers that the elements are put next to, in turn, within about 1e-3: [0] "
        "for a kink at 0.",
    )
    dtype: DType = Field(
        default="float64",
        description="Element type; by default that of the matrix, defaults, or float64.",
    )
    stop_gradient: bool = Field(
        default=False, description="Whether the input takes part without a gradient."
    )
    layout: AnyLayout = Field(
        default="contiguous",
        description="How the elements lie in memory: contiguous, transposed (axes in reverse "
        "order), strided (every "
        "other element of a larger Tensor), expanded (one row, which the first axis repeats), or "
        "{aliased: x} (the "
        "memory of the input x, with its values). By default that of the matrix.",
    )
    ranks: Stands = Field(
        default="split",
        description="In a world, what it stands for: split (each rank has values of its own: the "
        "shape is that of one "
        "rank, values have a first axis of ranks), replicated (the same on all ranks, with one "
        "complete gradient) or "
        "partial (the same on all ranks, whose gradients add up to the derivative).",
    )
    dtype_written: SkipJsonSchema[bool] = False
    """Set by the reader: the input names its dtype itself, so that a matrix does not change it."""
    layout_written: SkipJsonSchema[bool] = False
    """The same for its layout."""

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is defined for it: stop_gradient is false and the dtype is floating or
        complex.
        """
        return not self.stop_gradient and self.dtype.startswith(("float", "bfloat", "complex"))

    @property
    def written(self) -> set[str]:
        """The keys that the file gives."""
        return super().written - (set() if self.dtype_written else {"dtype"})

    @property
    def alias_of(self) -> str:
        """The name of the input whose memory it shares; empty for none."""
        return self.layout.aliased if isinstance(self.layout, Aliased) else ""

    @property
    def drawn(self) -> str:
        """How elements are drawn, `range` and `below` in the words of `init`."""
        return (
            "uniform"
            if self.range is not None
            else "integers"
            if self.below is not None
            else self.init
        )

    @property
    def limits(self) -> tuple[float, float]:
        """(low, high) of uniform, linspace and integers, defaults filled in. Raises KeyError for
        other inits.
        """
        if self.range is not None:
            return self.range
        if self.below is not None:
            return 0, self.below
        low, high = INIT_LIMITS[self.init]
        return (low if self.low is None else self.low, high if self.high is None else self.high)

    def at(self, parameters: Mapping[str, Any]) -> Input:
        """The input at a point of the matrix, which gives sizes by name, and dtype and layout where
        it has none.

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
InputEntry = Annotated[
    Input, BeforeValidator(_written_out, json_schema_input_type=Input | Shape | Several)
]
"""An input; a list of sizes is its shape alone. The reader makes an input of each in a list or dict
of them.
"""


# --------------------------------------------------------------------------- worlds
Axis = Literal["dp", "pp", "sharding", "sep", "mp"]
"""The axes of fleet's topology."""
Random = Literal["by-rank", "same"]
"""Whether each rank draws random numbers of its own."""

Ranks = Annotated[int, Field(ge=1, le=MOST_RANKS)]


World = TypeAliasType(
    "World",
    Annotated[
        Annotated[Ranks, Tag("(ranks)")]
        | Annotated[dict[Axis, Ranks], Tag("(axes)"), Field(min_length=1)],
        told_by_type(mapping="(axes)", otherwise="(ranks)"),
    ],
)
"""A number of ranks, or of ranks along axes."""


class Output(Format):
    """An output of a layer in a world."""

    ranks: OutputStands = Field(
        description="What it stands for: split (every rank's values count in the loss) or "
        "replicated (all ranks have "
        "the same values, which count once)."
    )


# `scenario_rules` checks that there is one: pydantic counts only those without mistakes.
SeveralOutputs = Annotated[tuple[Output, ...], LAX, Field(json_schema_extra={"minItems": 1})]
Outputs = Annotated[
    Annotated[Output, Tag("(output)")] | Annotated[SeveralOutputs, Tag("(outputs)")],
    told_by_type(mapping="(output)", list="(outputs)"),
]
"""What all outputs are, or each of them."""


def size_of(world: int | dict[Axis, int]) -> int:
    """The number of ranks."""
    return world if isinstance(world, int) else prod(world.values())


# --------------------------------------------------------------------------- expectations
BackendName = Literal["numpy", "cupy", "paddle"]
Verdict = Literal["matches", "differs", "straight-through", "zero", "unchecked"]

MAX_PATTERN = 1000
"""Characters of a regular expression."""


class Regex(Format):
    """A regular expression that must be found in a message."""

    re: str = Field(
        min_length=1, max_length=MAX_PATTERN, description="Python regular expression, searched for."
    )


Message = Annotated[
    Annotated[str, Tag("(text)"), Field(min_length=1)] | Annotated[Regex, Tag("(re)")],
    told_by_type(text="(text)", mapping="(re)"),
]
_TYPE = Field(
    pattern=rf"^{NAME}(\.{NAME})*$", description="Class of the exception, such as ValueError."
)
_MESSAGE = Field(
    default=None, description="Text that the message must contain, or {re: …} to search for."
)


class Raises(Format):
    """The exception that must end the program."""

    type: str = _TYPE
    phase: Literal["forward", "backward", "any"] = Field(
        default="any",
        description="When: while the forward runs, while gradients are computed, or at any time.",
    )
    message: Message | None = _MESSAGE


class Warns(Format):
    """A warning that must be given."""

    type: str = _TYPE
    message: Message | None = _MESSAGE


class Calls(Format):
    """How often the layer's functions run in one forward and backward pass."""

    forward: int | None = Field(default=None, ge=0, description="Runs of forward.")
    backward: int | None = Field(
        default=None, ge=0, description="Runs of backward; 0 where it must not run."
    )


class Tolerance(Format):
    """An expected value with a tolerance of its own."""

    value: YamlValue = Field(description="The expected value.")
    rtol: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="|got − want| ≤ rtol·|want|; by default 1e-6 for float32, 1e-12 for float64.",
    )


Expected = Annotated[
    Annotated[YamlValue, Tag("(value)")] | Annotated[Tolerance, Tag("(tolerance)")],
    told_by_type(mapping="(tolerance)", otherwise="(value)"),
    BeforeValidator(as_validator(expected_value_mistakes)),
]


class Differs(Format):
    """In which way a backward is not the derivative."""

    code: str | None = Field(
        json_schema_extra={"enum": [*CODES, None]},
        default=None,
        description="The diagnosis that must be among those given, as in `gradcheck explain`.",
    )
    inputs: tuple[str, ...] = Field(
        default=(), description="The inputs whose gradients are wrong, and no others."
    )


class Expect(Format):
    """What must hold when the scenario has run."""

    gradient: Verdict = Field(
        default="unchecked",
        description="What backward is: it matches the derivative; it differs from it; it is "
        "straight-through, the "
        "cotangent unchanged of a function in steps; it is zero; or it is unchecked. By default "
        "matches for a layer "
        "with a differentiable input, else unchecked.",
    )
    precision: Literal["strict", "loose"] = Field(
        default="strict",
        description="loose: a backward that is right but loses digits, as one that computes in "
        "float32 in a layer of "
        "float64, is let pass, and marked.",
    )
    differs: Differs | None = Field(
        default=None, description="What `gradient: differs` must be found to be."
    )
    grads: dict[
        str, Annotated[Numbers | None, BeforeValidator(as_validator(optional_number_mistakes))]
    ] = Field(default={}, description="Input → its documented gradient; null for none.")
    cotangent: Elements | None = Field(
        default=None, description="Cotangent that belongs to grads; by default ones."
    )
    order: Literal[1, 2] = Field(
        default=1, description="2: the derivative of the gradient is checked as well."
    )
    calls: Calls = Field(default_factory=Calls, description="How often forward and backward run.")
    raises: Raises | None = Field(default=None, description="The exception that must end the run.")
    warns: Warns | None = Field(default=None, description="A warning that must be given.")
    values: dict[str, Expected] = Field(
        default={},
        description="Python expression → its value in the program's namespace after the run.",
    )

    @property
    def written_gradient(self) -> str | None:
        """The verdict that the file gives; None for none."""
        return self.gradient if "gradient" in self.model_fields_set else None


class Xfail(Format):
    """A known deviation: the case must fail, and says so."""

    reason: Reason = Field(description=REASON)
    strict: bool = Field(
        default=True, description="Whether a case that passes all the same fails the run."
    )


class Skip(Format):
    """A case that is not run."""

    reason: Reason = Field(description=REASON)


Signal = Annotated[str, Field(pattern=r"^SIG[A-Z0-9]+$")]


class Observed(Expect):
    """What a backend does in place of what is documented: as `expect`, by itself, or how the case ends.

    The gradient is unchecked here where nothing is said of it.
    """  # noqa: E501 - in the schema

    crash: Annotated[tuple[Signal, ...], LAX] = Field(
        default=(),
        description="The signals of which one kills the process, such as [SIGSEGV]; which, may be "
        "chance.",
    )
    hang: Annotated[bool, Field(description="It does not come to an end within the timeout.")] = (
        False
    )


class Policy(Format):
    """Why documents and releases differ on purpose."""

    documents: Reason = Field(
        description="Why the documents ask for what they do, in one sentence."
    )
    releases: Reason = Field(description="Why releases do something else, in one sentence.")


class BackendExpectation(Format):
    """What is different on one backend, or on some of its versions."""

    versions: str | None = Field(
        default=None,
        min_length=1,
        description="The versions that this is about, by PEP 440, such as '>=3.0,<3.3'; by "
        "default all.",
    )
    xfail: Xfail | None = Field(default=None, description="The case is known to fail here.")
    skip: Skip | None = Field(default=None, description="The case is not run here.")
    expect: Expect | None = Field(
        default=None,
        description="Expectations that replace, key by key, those of the scenario; read as the "
        "complete ones.",
    )
    observed: Observed | None = Field(
        default=None,
        description="What the backend does in place of what is documented. The case must fail as "
        "documented, and do "
        "exactly this: an XFAIL; doing what is documented it is an XPASS, anything else a FAIL.",
    )
    reason: Reason | None = Field(
        default=None,
        description="Why, in one sentence; needed beside `observed`, unless it is `policy`.",
    )
    policy: Policy | None = Field(
        default=None,
        description="In place of `reason` where what is observed is policy, and no mistake of a "
        "release: why either "
        "side does as it does. The matrix does not count it as a failure.",
    )
    issue: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="Where it is discussed."
    )

    @property
    def why(self) -> str:
        """The reason of what is observed, or those of both sides."""
        if self.policy is None:
            return self.reason or ""
        return f"{self.policy.releases}; the documents: {self.policy.documents}"


BackendEntries = Annotated[
    Annotated[BackendExpectation, Tag("(one)")]
    | Annotated[
        tuple[BackendExpectation, ...],
        LAX,
        Tag("(several)"),
        Field(json_schema_extra={"minItems": 1}),
    ],
    told_by_type(list="(several)", otherwise="(one)"),
]
"""What is different on a backend: for all of its versions, or a list of entries, each with versions
of its own.
"""
Backends = dict[BackendName, BackendEntries]


# --------------------------------------------------------------------------- scenarios
def _operation(line: str) -> tuple[str, tuple[int, float]]:
    name, least, most = line.split()
    return name, (int(least), inf if most == "*" else int(most))


OPERATIONS = dict(
    map(
        _operation,
        Path(__file__).with_name("operations.txt").read_text(encoding="utf-8").splitlines(),
    )
)
"""By their names under ``paddle``, the same on every backend: the least and the most arguments, but
for `name`.

They compute Tensors from Tensors, sizes and numbers, and change nothing else; no other thing that
the module `paddle` gives access to is reached by name. ``tests/engine/test_operations.py`` makes
the file from the engine's public names: a line for each, with the least and the most arguments.
"""


Seed = Annotated[int, Field(ge=0, lt=2**32)]
Timeout = Annotated[float, Field(gt=0, le=3600)]
Rtol = Annotated[float, Field(gt=0, lt=1)]
_SEED = "Seed of the case's random numbers, 0 to 2**32 − 1."
_TIMEOUT = "Wall-clock limit of a case, in seconds."
_RTOL = "Relative tolerance that widens (never narrows) the error bar of the gradient check."


class Source(Format):
    """What a scenario is held against: the passage of a document, or a formula's origin."""

    document: str = Field(
        min_length=1, description="The document, such as paddle.autograd.PyLayer."
    )
    section: str | None = Field(default=None, description="The section or heading in it.")
    quote: str | None = Field(default=None, description="The sentence itself, verbatim.")
    url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="Where it can be read."
    )


REFERENCE = rf"^{NAME}(\.{NAME})*:{NAME}(\.{NAME})*$"


class LayerRef(Format):
    """A layer that lies in an importable module."""

    ref: str = Field(pattern=REFERENCE, description="Module and class, as pkg.mod:Class.")


def _known_operation(name: str) -> str:
    if name not in OPERATIONS and name not in installed_operations():
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
    Annotated[TagName, Tag("(rule)")]
    | Annotated[
        dict[TagName, Annotated[str, Field(min_length=1)]],
        Tag("(passage)"),
        Field(min_length=1, max_length=1),
    ],
    told_by_type(mapping="(passage)", otherwise="(rule)"),
]
"""A rule of the catalogue; or, under its name, the passage of the rule's document that is meant."""


def _layer_kind(value: object) -> str | None:
    if isinstance(value, str):
        return "(source)"
    if isinstance(value, LayerRef) or (isinstance(value, dict) and "ref" in value):
        return "(ref)"
    return (
        "(op)"
        if isinstance(value, LayerOp) or (isinstance(value, dict) and "op" in value)
        else None
    )


Layer = Annotated[
    Annotated[str, Tag("(source)")]
    | Annotated[LayerRef, Tag("(ref)")]
    | Annotated[LayerOp, Tag("(op)")],
    Discriminator(_layer_kind),
]
LayerName = TagName
MatrixValue = TypeAliasType("MatrixValue", "bool | int | float | str")
Matrix = Annotated[
    dict[str, Annotated[tuple[MatrixValue, ...], LAX]],
    BeforeValidator(as_validator(matrix_mistakes)),
]
Length = Annotated[int, Field(ge=0)]


def is_static(layer: object) -> bool:
    """Whether a layer is Python source that defines ``forward_fn``, as ``static_pylayer`` takes."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return (
            isinstance(layer, str)
            and "forward_fn" in layer
            and static_forward(ast.parse(layer)) is not None
        )
    return False


def _scenario_schema(schema: dict[str, Any]) -> None:
    """A scenario has code: its own, that of the scenario it extends, or that of its cases."""
    schema["anyOf"] = [{"required": [key]} for key in ("layer", "script", "extends", "cases")]


def _case_schema(schema: dict[str, Any]) -> None:
    """The case without an id is called as the scenario."""
    schema["properties"]["id"].pop("default", None)


class _Keys(Format):
    id: str = Field(
        pattern=KEBAB,
        max_length=100,
        description="Its name everywhere: kebab-case, unique in a run.",
    )
    title: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        pattern=r"^[^\n]*$",
        description="One line of plain English.",
    )
    source: Source | None = Field(default=None, description="What the scenario is held against.")
    rules: Annotated[tuple[Citation, ...], LAX] = Field(
        default=(),
        description="Rules of the catalogue that the scenario holds an implementation to, which "
        "become tags: a name, "
        "or {name: the passage of its document that is meant}.",
    )
    tags: Annotated[tuple[TagName, ...], LAX] = Field(
        default=(), description="Words to select by; added to the defaults'."
    )
    world: World | None = Field(
        default=None,
        description="How many ranks the layer runs on: a number, or ranks along fleet's axes, "
        "such as {mp: 2, dp: 2}.",
    )
    layer: Layer | None = Field(
        default=None,
        description="The layer: Python source of a PyLayer class, or of forward_fn and "
        "backward_fn for static_pylayer; "
        "the name of one of the file's layers; {ref: pkg.mod:Class}; or {op: name}.",
    )
    script: str | None = Field(
        default=None,
        description="A whole program in Python, run from top to bottom; beside a layer's source, "
        "behind that.",
    )
    inputs: dict[str, InputEntry] = Field(
        default={},
        description="Name → tensor that the layer is applied to; a list is its shape alone.",
    )
    outputs: Outputs | None = Field(
        default=None,
        description="In a world, what the outputs stand for: {ranks: split} (which they are if "
        "nothing is said) or "
        "{ranks: replicated} for all of them, or a list with one for each.",
    )
    random: Random = Field(
        default="by-rank",
        description="In a world, whether each rank draws its own random numbers, or all the same.",
    )
    call: str | None = Field(
        default=None,
        description="Python expression that applies the layer; by default its only PyLayer "
        "class's apply with all "
        "inputs in order, for an op paddle.<op> with them, for forward_fn static_pylayer with a "
        "list of them.",
    )
    sizes: dict[str, Length] = Field(
        default={},
        description="Name → the length that it stands for in shapes; a name in the code, too.",
    )
    matrix: Matrix = Field(
        default={},
        description="Parameter → its values, such as dtype: [float32, float64]; one case per "
        "combination. dtype and "
        "layout are those of all inputs that name none, world is the number of ranks; others are "
        "sizes in shapes, or "
        "names in the code.",
    )
    expect: Expect = Field(default_factory=Expect, description="What must hold.")
    backends: Backends = Field(default={}, description="What is different on a backend.")
    seed: Seed = Field(default=0, description=_SEED)
    timeout: Timeout | None = Field(default=None, description=_TIMEOUT)
    rtol: Rtol | None = Field(default=None, description=_RTOL)


class ScenarioCase(_Keys):
    """One of several looks at what a scenario gives: its own keys go before those of the scenario."""  # noqa: E501 - in the schema

    model_config = ConfigDict(json_schema_extra=_case_schema)

    id: str = Field(
        default="",
        pattern=KEBAB,
        max_length=100,
        description="Its name, put behind that of the scenario with a hyphen; the case without "
        "one has the latter.",
    )


class RuleBook(Protocol):
    """The rules that the reader applies: the context of its validation."""

    def find_mistakes(self, scenario: Scenario) -> Iterator[Violation]:
        """Yield what is wrong with a scenario whose values are all of the format."""


class Scenario(_Keys):
    """One layer or program, where it comes from, and what must hold."""

    model_config = ConfigDict(json_schema_extra=_scenario_schema)

    extends: str | None = Field(
        default=None, description="Id of a scenario of this file whose keys this one takes over."
    )
    cases: Annotated[tuple[ScenarioCase, ...], LAX] = Field(
        default=(),
        json_schema_extra={"minItems": 1},
        description="Several looks at what the scenario gives, each a scenario with what it says "
        "itself in its place. "
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
    """``expect.gradient`` → (line, column), 1-based. For a block of code: the line of its first
    line.
    """

    @model_validator(mode="after")
    def _obey_rules(self, info: ValidationInfo) -> Scenario:
        rules: RuleBook | None = info.context
        if rules is not None:
            raise_mistakes(rules.find_mistakes(self))
        return self

    def line_of(self, key: str) -> int:
        """The file line of `key` (``layer``, ``expect.raises``); for a block of code, that of its
        first line.

        A key that the file does not give has the line of what it would stand in, in the end the
        scenario's own.
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
        """An input at a point of the matrix. One that is split has a leading axis of the world's
        ranks.
        """
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

    def paths_and_entries(self, backend: str) -> list[tuple[DataPath, BackendExpectation]]:
        """Return all that is different on the versions of `backend`, with the path of each."""
        entries = self.entries_of(backend)
        if isinstance(self.backends[backend], BackendExpectation):  # type: ignore[index]
            return [(("backends", backend), entries[0])]
        return [(("backends", backend, index), entry) for index, entry in enumerate(entries)]

    def expectations(self) -> Iterator[tuple[DataPath, Expect]]:
        """Yield what it expects and what it says of each backend, expectations and observations,
        with their paths.
        """
        yield ("expect",), self.expect
        for backend in self.backends:
            for path, entry in self.paths_and_entries(backend):
                if entry.expect is not None:
                    yield (*path, "expect"), entry.expect
                if entry.observed is not None:
                    yield (*path, "observed"), entry.observed

    def dtypes_of(self, input: Input) -> list[str]:
        """Return the dtypes that an input takes over the matrix."""
        several = (
            [] if input.dtype_written else [str(dtype) for dtype in self.matrix.get("dtype", ())]
        )
        return several or [input.dtype]

    @property
    def differentiable(self) -> set[str]:
        """The names of the inputs that have a gradient, for one of their dtypes."""
        names = set()
        for name, input in self.inputs.items():
            if not input.stop_gradient and not INTEGER_RANGE.keys() >= {*self.dtypes_of(input)}:
                names.add(name)
        return names

    @property
    def usual_gradient(self) -> Verdict:
        """What is expected of the gradient where nothing is said."""
        return (
            "matches"
            if self.layer is not None and self.script is None and self.differentiable
            else "unchecked"
        )

    @property
    def world_sizes(self) -> list[int]:
        """The numbers of ranks of its world over the matrix; none without a world."""
        if "world" in self.matrix:
            return [size for size in self.matrix["world"] if isinstance(size, int)]
        return [] if self.world is None else [size_of(self.world)]

    def on(self, backend: str, version: str = "") -> BackendExpectation | None:
        """What is different on a version of `backend`, if anything."""
        return next(
            (entry for entry in self.entries_of(backend) if within(version, entry.versions)), None
        )


class Defaults(Format):
    """Values for all scenarios of the file that give none of their own."""

    dtype: DType | None = Field(
        default=None, description="Element type of inputs; float64 if not given."
    )
    seed: Seed | None = Field(default=None, description=_SEED)
    tags: Annotated[tuple[TagName, ...], LAX] = Field(
        default=(), description="Tags of every scenario."
    )
    source: dict[Literal["document", "section", "quote", "url"], str] = Field(
        default={},
        description="Keys that a scenario's source lacks; of no effect where it names a document "
        "of its own.",
    )
    matrix: Matrix = Field(
        default={},
        description="Parameters that a scenario's matrix lacks; of no effect where it has a "
        "script.",
    )
    backends: Backends = Field(
        default={}, description="Taken over for each backend that the scenario says nothing about."
    )
    timeout: Timeout | None = Field(default=None, description=_TIMEOUT)
    rtol: Rtol | None = Field(default=None, description=_RTOL)


class SpecFile(Format):
    """A ``*.grad.yaml`` file: scenarios on one topic."""

    schema_: Literal["gradcheck/v1"] = Field(
        alias="schema", description="The version of the format."
    )
    defaults: Defaults = Field(
        default_factory=Defaults,
        description="Values for all scenarios that give none of their own.",
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


READER_FIELDS = frozenset(
    {"path", "line", "column", "begins", "positions", "dtype_written", "layout_written"}
)
"""Fields that the reader sets and no file may give."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a ``*.grad.yaml`` file, descriptions included."""
    schema = SpecFile.model_json_schema(by_alias=True)
    # Half a source may come from the file's defaults, which a schema cannot follow.
    schema["$defs"]["Source"].pop("required", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "gradcheck/v1",
    }
