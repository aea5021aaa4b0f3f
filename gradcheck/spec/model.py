"""The scenario format ``gradcheck/v1`` as a model: the objects that `read` returns, and the source
of the JSON Schema.

Objects are frozen and survive ``model_dump_json`` / ``model_validate_json``, positions included.
Numbers are strict: text never passes for a number, or a number for a boolean. Rules of one value
or one object are here; those that relate several objects of a scenario are in
`gradcheck.spec.scenario_rules`. Both apply when a file is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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
from typing_extensions import TypeAliasType

from gradcheck.codes import CODES
from gradcheck.spec import value_rules
from gradcheck.spec.data import DataPath, Map
from gradcheck.spec.diagnostic import listing, quote, suggest
from gradcheck.spec.literals import (
    INTEGER_RANGE,
    MAX_DIMENSIONS,
    MOST_RANKS,
    NAMES_OF_FRAMEWORKS,
    DType,
    FrameworkName,
    Layout,
    OutputPlacement,
    Placement,
    layouts_of,
)
from gradcheck.spec.python import static_forward
from gradcheck.spec.versions import is_range, within
from gradcheck.spec.violation import Violation, find_conflicts, forbid, raise_mistakes
from gradcheck.support.entry_points import installed_operations
from gradcheck.support.suggest import nearest

KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
LAX = Strict(False)  # a list is accepted for a tuple; its items stay strict

# These select the member of a union: only mistakes of that member are then reported.
MAPPING_OR_OTHER = Discriminator(
    lambda value: "(mapping)" if isinstance(value, (dict, BaseModel)) else "(other)"
)
LIST_OR_OTHER = Discriminator(
    lambda value: "(list)" if isinstance(value, (list, tuple)) else "(other)"
)
Number = Annotated[
    float | int,
    BeforeValidator(value_rules.require_number),
    Field(description="A number; .inf and .nan are allowed."),
]
Limit = Annotated[
    float | int,
    BeforeValidator(value_rules.require_finite),
    Field(description="A finite number."),
]
Numbers = TypeAliasType(
    "Numbers",
    "Annotated[Annotated[tuple[Numbers, ...], LAX, Tag('(list)')] | Annotated[bool | int | float, "
    "BeforeValidator(value_rules.require_number), Tag('(other)')], LIST_OR_OTHER]",
)
"""A number (or a boolean) or nested lists of them."""
Elements = Annotated[Numbers, forbid(value_rules.find_uneven_rows)]
"""Numbers in lists of the same length and depth."""
YamlValue = TypeAliasType(
    "YamlValue",
    "Annotated[Annotated[tuple[YamlValue, ...], LAX, Tag('(list)')] | Annotated[bool | int | float "
    "| str | None, BeforeValidator(value_rules.refuse_mapping), Tag('(other)')], "
    "LIST_OR_OTHER]",
)
"""The expected value of an expression: null, a boolean, a number, text, or nested lists of these.
"""

KebabName = Annotated[str, Field(pattern=KEBAB, max_length=60)]
TagName = KebabName
Reason = Annotated[str, Field(min_length=1, pattern=r"\S")]
REASON = "Why, in one sentence."
NOT_EMPTY = forbid(value_rules.find_empty)
Variable = Annotated[str, forbid(value_rules.find_unusable_name)]
"""The name of a variable of the program."""
READER_FIELDS = frozenset(
    {"path", "line", "column", "begins", "positions", "dtype_written", "layout_written"}
)
"""Fields that the reader sets and that no file may contain."""


ScenarioRules = Callable[["Scenario"], Iterator[Violation]]
"""A function that finds the mistakes of a whole scenario; the context of the reader's
validation.
"""


class Format(BaseModel):
    """A part of the format: every key is known, values are strict, and objects are frozen."""

    # Built on first use: the validator of SpecFile does not need separate validators of its parts.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, ser_json_inf_nan="constants", defer_build=True
    )
    noun: ClassVar[str]
    """The name of the part in messages."""
    example: ClassVar[str] = "{…}"
    excluded: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Key → keys that make it useless."""
    needed: ClassVar[Mapping[str, str]] = {}
    """Key → the key without which it has no effect."""
    by_name: ClassVar[dict[str, type[Format]]] = {}
    """The parts of the format by the names of their classes."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        cls.by_name[cls.__name__] = cls

    @model_validator(mode="before")
    @classmethod
    def _note_kind(cls, data: object) -> object:
        """Record in the document which class a mapping belongs to, for messages; refuse the
        reader's own keys.
        """
        if isinstance(data, Map):
            data.kind = cls
            raise_mistakes(cls.unknown_key(key) for key in data.marks.keys() & READER_FIELDS)
        return data

    @model_validator(mode="after")
    def _obey_rules(self, info: ValidationInfo) -> Format:
        if info.context is not None:
            raise_mistakes(self.find_mistakes(info.context))
        return self

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield the mistakes of an object whose values are all valid in the format."""
        yield from find_conflicts(self.written, self.excluded, self.needed)

    @classmethod
    @cache
    def keys(cls) -> dict[str, str]:
        """The keys that a file may give, with their descriptions."""
        return {
            field.alias or name: field.description or ""
            for name, field in cls.model_fields.items()
            if name not in READER_FIELDS
        }

    @classmethod
    def unknown_key(cls, key: str) -> Violation:
        """The mistake of a key that the format does not have."""
        several = len(cls.keys()) > 1
        help = f"the keys of {cls.noun} are " if several else f"the only key of {cls.noun} is "
        help += listing(cls.keys(), "and")
        return Violation((key,), f"unknown key {quote(key)} in {cls.noun}", help, at_key=True)

    @property
    def written(self) -> set[str]:
        """The keys that the file gives."""
        return {name.rstrip("_") for name in self.model_fields_set} - READER_FIELDS


# --------------------------------------------------------------------------- inputs
class Aliased(Format):
    """The memory of another input, and therefore its shape, dtype and values."""

    noun = "layout"

    aliased: str = Field(min_length=1, description="The name of an input above.")


AnyLayout = Annotated[
    Annotated[Layout, Tag("(other)")] | Annotated[Aliased, Tag("(mapping)")], MAPPING_OR_OTHER
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
"""Default (low, high) of the inits that have limits."""
GIVES_WHOLE = ("zeros", "ones", "integers", "one-hot")
"""The inits that give whole numbers."""


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
    """One Tensor that is passed to the layer: random numbers of a shape, or given values."""

    noun = "an input"
    example = "{shape: [2, 3]}"
    excluded: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "shape": ("aliased", "values", "from"),
        "from": ("aliased", "values"),
        "range": ("aliased", "values", "from", "init", "low", "high", "below"),
        "below": ("aliased", "values", "from", "init", "low", "high"),
        **dict.fromkeys(("init", "low", "high", "near"), ("aliased", "values", "from")),
        **dict.fromkeys(("values", "key", "dtype", "ranks"), ("aliased",)),
    }

    # A server receives it by field name; the reader does not take `from_`.
    model_config = ConfigDict(populate_by_name=True)

    shape: Annotated[tuple[Size, ...], LAX] | None = Field(
        default=None,
        max_length=MAX_DIMENSIONS,
        description="Lengths of the dimensions, or parameters of the matrix that give them, such "
        "as [2, N]; [] is a scalar. The elements themselves are 'values'.",
    )
    values: Elements | None = Field(
        default=None,
        description="The elements themselves, such as [[0, 1], [2, 3]], in place of shape and "
        "init.",
    )
    from_: str | None = Field(
        default=None,
        alias="from",
        pattern=r"^[^/\\~].*\.np[yz]$",
        description="A file with the elements, such as data/x.npy, below the spec's folder: .npy, "
        "or .npz with the key; in place of shape and init.",
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
        "high − 1. sorted (along the last axis), distinct (no two closer than 1/16) and ties (each "
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
    low: Limit | None = Field(
        default=None, description="Lower limit of uniform, linspace (−1) or integers (0)."
    )
    high: Limit | None = Field(
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
    ranks: Placement = Field(
        default="split",
        description="In a world, how it is placed: split (each rank has its own values: the "
        "shape is that of one "
        "rank, values have a first axis of ranks), replicated (the same on all ranks, with one "
        "complete gradient) or "
        "partial (the same on all ranks, whose gradients add up to the derivative).",
    )
    dtype_written: SkipJsonSchema[bool] = False
    """Set by the reader: whether the input names its dtype itself, so that a matrix does not change
    it.
    """
    layout_written: SkipJsonSchema[bool] = False
    """Set by the reader: whether the input names its layout itself."""

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is defined for the input: stop_gradient is false and the dtype is
        floating or complex.
        """
        return not self.stop_gradient and self.dtype.startswith(("float", "bfloat", "complex"))

    @property
    def written(self) -> set[str]:
        """The keys that the file gives."""
        return super().written - (set() if self.dtype_written else {"dtype"})

    @property
    def alias_of(self) -> str:
        """The name of the input whose memory this one shares; empty if there is none."""
        return self.layout.aliased if isinstance(self.layout, Aliased) else ""

    @property
    def drawn(self) -> str:
        """How elements are drawn, with `range` and `below` expressed as `init`."""
        if self.range is not None:
            return "uniform"
        return self.init if self.below is None else "integers"

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

    @property
    def known_shape(self) -> tuple[int, ...] | None:
        """The shape at every point of the matrix; None if it is not known there."""
        if self.values is not None:
            return value_rules.shape_of(self.values)
        if self.shape is None:
            return None
        lengths = tuple(size for size in self.shape if isinstance(size, int))
        return lengths if len(lengths) == len(self.shape) else None

    def at(self, parameters: Mapping[str, Any]) -> Input:
        """The input at a point of the matrix, which sets sizes by name, and dtype and layout if the
        input names none.

        Sizes that are still to be drawn keep their names.
        """
        known: dict[str, Any] = {}
        if self.shape is not None:
            known["shape"] = tuple(parameters.get(str(size), size) for size in self.shape)
        for key, written in (("dtype", self.dtype_written), ("layout", self.layout_written)):
            if not written and key in parameters:
                known[key] = parameters[key]
        return self.model_copy(update=known)

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield keys that exclude each other, and a shape that the init does not support."""
        keys = self.written | ({"aliased"} if self.alias_of else set())
        yield from find_conflicts(keys, self.excluded, self.needed)
        if keys.isdisjoint(("values", "from", "shape", "aliased")):
            help = "add 'shape: [2, 3]', or 'values' with the numbers"
            yield Violation((), "an input needs 'shape' or 'values'", help)
        if (self.from_ or "").endswith(".npz") != (self.key is not None):
            help = "add 'key: x', or remove it: an .npy file holds one array"
            yield Violation((), "'key' names the array of an .npz file", help)
        yield from self._unfit_shape()

    def _unfit_shape(self) -> Iterator[Violation]:
        """Yield a violation if the init does not support the shape."""
        shape = self.known_shape
        if shape is None:
            return
        is_square = len(shape) >= 2 and shape[-1] == shape[-2] > 0
        needs = {
            "positive-definite": ("a square matrix along the last two axes", is_square),
            "orthogonal": ("two axes", len(shape) >= 2 and shape[-1] > 0),
            "one-hot": ("rows", shape[-1:] > (0,)),
            "probabilities": ("rows", shape[-1:] > (0,)),
        }
        needed, is_fit = needs.get(self.init, ("", True))
        if not is_fit:
            message = f"'init: {self.init}' needs {needed}, not shape {[*shape]}"
            yield Violation(("init",), message, "write a shape such as [3, 3]")


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
"""An input; a list of sizes gives only its shape. The reader makes an input of each entry of a list
or dict.
"""


# --------------------------------------------------------------------------- worlds
Axis = Literal["dp", "pp", "sharding", "sep", "mp"]
"""The axes of fleet's topology."""
Random = Literal["by-rank", "same"]
"""Whether each rank draws its own random numbers."""

Ranks = Annotated[int, Field(ge=1, le=MOST_RANKS)]


World = TypeAliasType(
    "World",
    Annotated[
        Annotated[Ranks, Tag("(other)")]
        | Annotated[dict[Axis, Ranks], Tag("(mapping)"), Field(min_length=1)],
        MAPPING_OR_OTHER,
    ],
)
"""A number of ranks, or of ranks along axes."""


class Output(Format):
    """An output of a layer in a world."""

    noun = "an output"
    example = "{ranks: replicated}"

    ranks: OutputPlacement = Field(
        description="How the output is placed: split (every rank's values count in the loss) or "
        "replicated (all ranks have "
        "the same values, which count once)."
    )


def _as_list(value: object) -> object:
    return value if isinstance(value, (list, tuple)) else (value,)


SeveralOutputs = Annotated[tuple[Output, ...], LAX, Field(json_schema_extra={"minItems": 1})]
Outputs = Annotated[
    SeveralOutputs,
    NOT_EMPTY,
    BeforeValidator(_as_list, json_schema_input_type=Output | SeveralOutputs),
]
"""The placement of all outputs, or of each."""


def size_of(world: int | dict[Axis, int]) -> int:
    """The number of ranks."""
    return world if isinstance(world, int) else prod(world.values())


# --------------------------------------------------------------------------- expectations
BackendName = Literal["numpy", "cupy", "paddle", "torch"]
Verdict = Literal["matches", "differs", "straight-through", "zero", "unchecked"]

MAX_COMBINATIONS = 256
"""The most cases of one scenario on one backend."""
MAX_PATTERN = 1000
"""The most characters of a regular expression."""


class Regex(Format):
    """A regular expression that must be found in a message."""

    noun = "message"
    example = "{re: …}"

    re: str = Field(
        min_length=1, max_length=MAX_PATTERN, description="Python regular expression, searched for."
    )


Message = Annotated[
    Annotated[str, Tag("(other)"), Field(min_length=1)] | Annotated[Regex, Tag("(mapping)")],
    MAPPING_OR_OTHER,
]
_TYPE = Field(
    pattern=rf"^{NAME}(\.{NAME})*$", description="Class of the exception, such as ValueError."
)
_MESSAGE = Field(
    default=None, description="Text that the message must contain, or {re: …} to search for."
)


class Raises(Format):
    """The exception that must end the program."""

    noun = "raises"
    example = "{type: ValueError}"

    type: str = _TYPE
    phase: Literal["forward", "backward", "any"] = Field(
        default="any",
        description="When: while the forward runs, while gradients are computed, or at any time.",
    )
    message: Message | None = _MESSAGE


class Warns(Format):
    """A warning that must be given."""

    noun = "warns"
    example = "{type: UserWarning}"

    type: str = _TYPE
    message: Message | None = _MESSAGE


class Wording(Format):
    """The words of the exception or warning, by implementation. Documents do not specify them."""

    noun = "wording"
    example = "{engine: …, paddle: …}"

    engine: Message | None = Field(
        default=None, description="In the message of the bundled engine: text, or {re: …}."
    )
    paddle: Message | None = Field(
        default=None, description="In the message of Paddle, in every release: text, or {re: …}."
    )

    def words_of(self, kind: str) -> Message | None:
        """Return the words of a kind of backend; None if any message is accepted."""
        return {"numpy": self.engine, "cupy": self.engine, "paddle": self.paddle}.get(kind)


def _same_words(value: object) -> object:
    is_message = isinstance(value, str) or (isinstance(value, dict) and "re" in value)
    return {"engine": value, "paddle": value} if is_message else value


class Calls(Format):
    """How often the layer's functions run in one forward and backward pass."""

    noun = "calls"
    example = "{forward: 1, backward: 1}"

    forward: int | None = Field(default=None, ge=0, description="Runs of forward.")
    backward: int | None = Field(
        default=None, ge=0, description="Runs of backward; 0 if it must not run."
    )

    @property
    def counted(self) -> dict[str, int]:
        """How often each counted function must run."""
        return {name: number for name, number in self if number is not None}


class Tolerance(Format):
    """An expected value with its tolerance."""

    noun = "an expected value"

    value: YamlValue = Field(description="The expected value.")
    rtol: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="|actual − expected| ≤ rtol·|expected|; by default 1e-6 for float32, 1e-12 "
        "for float64.",
    )


Expected = Annotated[
    Annotated[YamlValue, Tag("(other)")] | Annotated[Tolerance, Tag("(mapping)")], MAPPING_OR_OTHER
]


def _find_unknown_code(code: str) -> Iterator[Violation]:
    if code not in CODES:
        help = suggest(code, CODES, "'gradcheck explain' lists all codes")
        yield Violation((), f"there is no diagnosis {quote(code)}", help)


class Differs(Format):
    """How a backward differs from the derivative."""

    noun = "differs"
    example = "{code: GC101}"

    code: Annotated[str, forbid(_find_unknown_code)] | None = Field(
        json_schema_extra={"enum": [*CODES, None]},
        default=None,
        description="The diagnosis that must be among those given, such as GC101; see `gradcheck "
        "explain`.",
    )
    inputs: Annotated[tuple[str, ...], LAX] = Field(
        default=(), description="The inputs whose gradients are wrong, and no others."
    )


class Expect(Format):
    """Conditions that must hold when the scenario has run."""

    noun = "expect"
    needed: ClassVar[Mapping[str, str]] = {"cotangent": "grads"}
    example = "{gradient: matches}, or {raises: {type: ValueError}}"

    gradient: Verdict = Field(
        default="unchecked",
        description="The expected result of backward: the derivative (matches), something else "
        "(differs), the cotangent unchanged for a step function (straight-through), zero, or "
        "anything (unchecked). By default matches for a layer with a differentiable input, "
        "otherwise unchecked.",
    )
    precision: Literal["strict", "loose"] = Field(
        default="strict",
        description="loose: a backward that is right but loses digits, such as one that computes "
        "in float32 in a float64 layer, passes with a mark.",
    )
    differs: Differs = Field(
        default_factory=Differs, description="The finding that `gradient: differs` must have."
    )
    grads: dict[str, Elements | None] = Field(
        default={},
        description="Input → its documented gradient, such as {x: [1, 1]}; null if there is none.",
    )
    cotangent: Elements | None = Field(
        default=None,
        description="Cotangent that belongs to grads, such as [1, 2]; by default ones.",
    )
    order: int = Field(
        default=1, ge=1, le=2, description="2: the derivative of the gradient is checked as well."
    )
    calls: Calls = Field(default_factory=Calls, description="How often forward and backward run.")
    raises: Raises | None = Field(default=None, description="The exception that must end the run.")
    warns: Warns | None = Field(default=None, description="A warning that must be given.")
    wording: Annotated[
        Wording, BeforeValidator(_same_words, json_schema_input_type=Wording | Message)
    ] = Field(
        default_factory=Wording,
        description="Text of the message of `raises` or `warns`, or {engine: …, paddle: …} if "
        "they differ.",
    )
    values: dict[str, Expected] = Field(
        default={},
        description="Python expression → its value in the program's namespace after the run, such "
        "as {x.grad: [1, 2]}.",
    )

    @property
    def written_gradient(self) -> str | None:
        """The expectation of the gradient in the file; None if the file has none."""
        return self.gradient if "gradient" in self.written else None

    @property
    def checks(self) -> list[str]:
        """The keys that ask for a check of gradients."""
        is_asked = {
            "gradient": self.gradient != "unchecked",
            "grads": bool(self.grads),
            "differs": bool(self.differs.written),
            "order": self.order == 2,
            "precision": self.precision == "loose",
        }
        return [key for key, is_requested in is_asked.items() if is_requested]

    def complete(self, usual: Verdict) -> Expect:
        """Return the expectation with its `gradient` set: `usual` unless other keys determine
        it.
        """
        if self.written_gradient is not None:
            return self
        if self.raises is not None:
            usual = "unchecked"
        elif "differs" in self.checks:
            usual = "differs"
        return self.model_copy(update={"gradient": usual})

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield expectations that cannot hold together."""
        yield from super().find_mistakes(rules)
        verdict = self.written_gradient
        if "wording" in self.written and self.raises is None and self.warns is None:
            help = "add 'raises' or 'warns'"
            message = "'wording' is the text of an exception or a warning: there is none"
            yield Violation(("wording",), message, help, at_key=True)
        if "differs" in self.written and verdict not in (None, "differs"):
            message = f"'differs' and 'gradient: {verdict}' exclude each other"
            yield Violation(("differs",), message, "write 'gradient: differs'", at_key=True)


class Xfail(Format):
    """A known deviation: the case is expected to fail."""

    noun = "xfail"
    example = "{reason: …}"

    reason: Reason = Field(description=REASON)
    strict: bool = Field(
        default=True, description="Whether the run fails if the case passes after all."
    )


class Skip(Format):
    """A case that is not run."""

    noun = "skip"
    example = "{reason: …}"

    reason: Reason = Field(description=REASON)


Signal = Annotated[str, Field(pattern=r"^SIG[A-Z0-9]+$")]


class Observed(Expect):
    """A backend's deviation from the documents: a complete expectation, with the keys of `expect`,
    or the way in which the case ends.

    The gradient is not checked unless a key requests it.
    """

    noun = "observed"
    example = "{values: {x.grad: null}}, or {crash: [SIGSEGV]}"

    crash: Annotated[tuple[Signal, ...], LAX, NOT_EMPTY] = Field(
        default=(),
        description="The signals of which one kills the process, such as [SIGSEGV]; which of them "
        "may vary.",
    )
    hang: Annotated[bool, Field(description="It does not end within the timeout.")] = False

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield observations that are empty or contradict each other."""
        yield from super().find_mistakes(rules)
        if not self.written:
            yield Violation((), "observed must not be empty", "write the observed behaviour")
        if "hang" in self.written and not self.hang:
            yield Violation(("hang",), "'hang: false' has no meaning", "remove it", at_key=True)
        ends = sorted(self.written & {"crash", "hang"})
        other_keys = sorted(self.written - {*ends[:1]})
        if ends and other_keys:
            message = (
                f"{quote(other_keys[0])} cannot be seen in a case that ends by {quote(ends[0])}"
            )
            yield Violation((other_keys[0],), message, "keep one of the two", at_key=True)


class Policy(Format):
    """Why documents and releases differ on purpose."""

    noun = "policy"
    example = "{documents: …, releases: …}"

    documents: Reason = Field(
        description="Why the documents require their behaviour, in one sentence."
    )
    releases: Reason = Field(description="Why releases behave differently, in one sentence.")


class BackendExpectation(Format):
    """Deviations of one backend, or of some of its versions."""

    noun = "a backend's expectations"
    example = "{skip: {reason: …}}"
    excluded: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "skip": ("xfail", "observed"),
        "xfail": ("observed",),
        "expect": ("observed",),
        "reason": ("policy",),
    }
    needed: ClassVar[Mapping[str, str]] = dict.fromkeys(("reason", "policy", "issue"), "observed")

    versions: str | None = Field(
        default=None,
        min_length=1,
        description="The versions that this applies to, by PEP 440, such as '>=3.0,<3.3'; by "
        "default all.",
    )
    xfail: Xfail | None = Field(default=None, description="The case is known to fail here.")
    skip: Skip | None = Field(default=None, description="The case is not run here.")
    expect: Expect | None = Field(
        default=None,
        description="Expectations that override those of the scenario, key by key; the reader "
        "completes them.",
    )
    observed: Observed | None = Field(
        default=None,
        description="The behaviour of the backend that differs from the documented one. A case "
        "that fails as documented and behaves exactly like this is an XFAIL; one that behaves as "
        "documented is an XPASS, anything else a FAIL.",
    )
    reason: Reason | None = Field(
        default=None,
        description="Why, in one sentence; required with `observed`, unless `policy` is given.",
    )
    policy: Policy | None = Field(
        default=None,
        description="In place of `reason` if the observed behaviour is a policy, not a mistake of "
        "a release: the reasons of both sides. The matrix does not count it as a failure.",
    )
    issue: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="The address of a discussion, https://…",
    )

    @property
    def why(self) -> str:
        """The reason for the observed behaviour, or the reasons of both sides."""
        if self.policy is None:
            return self.reason or ""
        return f"{self.policy.releases}; the documents: {self.policy.documents}"

    def complete(self, usual: Verdict) -> BackendExpectation:
        """Return the deviation with its expectation of the gradient."""
        expect = self.expect and self.expect.complete(usual)
        observed = self.observed and self.observed.complete("unchecked")
        return self.model_copy(update={"expect": expect, "observed": observed})

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield the mistakes of an entry for versions of a backend."""
        yield from super().find_mistakes(rules)
        if self.versions is not None and not is_range(self.versions):
            help = "write '>=3.0,<3.3' or '==3.0.0': comparisons of PEP 440, joined by commas"
            message = f"versions: {quote(self.versions)} is not a range of versions"
            yield Violation(("versions",), message, help)
        if self.observed is not None and self.written.isdisjoint(("reason", "policy")):
            message = "'observed' needs a 'reason' next to it"
            help = "add 'reason: …': why, in one sentence"
            yield Violation(("observed",), message, help, at_key=True)


NO_DEVIATION = BackendExpectation.model_construct()
"""The entry for a backend without deviations."""

SeveralEntries = Annotated[
    tuple[BackendExpectation, ...], LAX, Field(json_schema_extra={"minItems": 1})
]
BackendEntries = Annotated[
    SeveralEntries,
    NOT_EMPTY,
    BeforeValidator(_as_list, json_schema_input_type=BackendExpectation | SeveralEntries),
]
"""Deviations of a backend: one for all versions, or a list of entries, each with its versions.
"""
Backends = dict[BackendName, BackendEntries]


# --------------------------------------------------------------------------- scenarios
OPERATIONS = frozenset(
    Path(__file__).with_name("operations.txt").read_text(encoding="utf-8").splitlines()
)
"""Names of operations under ``paddle``; the same on every backend.

They compute Tensors from Tensors, sizes and numbers, and have no other effect. No other name in
the module `paddle` can be reached. ``tests/engine/test_operations.py`` makes
the file from the engine's public names.
"""


Seed = Annotated[int, Field(ge=0, lt=2**32)]
Timeout = Annotated[float, Field(gt=0, le=3600)]
Rtol = Annotated[float, Field(gt=0, lt=1)]
Nondet = Annotated[float, Field(ge=0, lt=1)]
_SEED = "Seed of the case's random numbers, 0 to 2**32 − 1."
_TIMEOUT = "Wall-clock limit of a case, in seconds, such as 60."
_RTOL = (
    "Relative tolerance, such as 1e-6, that widens (never narrows) the error bound of the gradient "
    "check."
)
_NONDET = (
    "How far results of two identical runs may differ, such as 1e-6, relative to the largest entry "
    "of an output or gradient; it widens the error bound by as much. By default they must be the "
    "same."
)


class Source(Format):
    """The origin of a scenario's expectation: a passage of a document, or the source of a
    formula.
    """

    noun = "source"
    example = "{document: a book}"

    document: str = Field(
        min_length=1, description="The document, such as paddle.autograd.PyLayer."
    )
    section: str | None = Field(default=None, description="The section or heading of the document.")
    quote: str | None = Field(default=None, description="The sentence itself, verbatim.")
    url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="The address of the document, https://…",
    )


REFERENCE = rf"^{NAME}(\.{NAME})*:{NAME}(\.{NAME})*$"


class LayerRef(Format):
    """A layer, or a function of NumPy arrays and its backward, from an importable module."""

    noun = "layer"

    ref: str = Field(pattern=REFERENCE, description="Module and class, as pkg.mod:Class.")
    backward: str | None = Field(
        default=None,
        pattern=REFERENCE,
        description="Of a function of NumPy arrays: module and function of its backward, as "
        "pkg.mod:gradient. It takes the arguments, then the gradients of the outputs, and returns "
        "a gradient per array.",
    )

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.ref.replace(":", ".").rpartition(".")[2]

    @property
    def references(self) -> list[str]:
        """The references to import."""
        return [self.ref, self.backward] if self.backward else [self.ref]


def _find_unknown_operation(name: str) -> Iterator[Violation]:
    """Suggest an operation with the same last part of the name, or with a similar name."""
    if name not in OPERATIONS and name not in installed_operations():
        by_last = {known.rpartition(".")[2]: known for known in sorted(OPERATIONS)}
        near = nearest(name.rpartition(".")[2], by_last)
        help = "name a function of Tensors from paddle; write others as source"
        if near:
            help = f"did you mean '{by_last[near]}'?"
        yield Violation((), f"unknown op {quote(name)}", help)


def _require_known_operation(name: str) -> str:
    """Refuse unknown names, whether from code or from files, as an operation is looked up by its
    name.
    """
    raise_mistakes(_find_unknown_operation(name))
    return name


class LayerOp(Format):
    """One of the framework's own operations."""

    noun = "layer"

    op: Annotated[str, AfterValidator(_require_known_operation)] = Field(
        pattern=rf"^{NAME}(\.{NAME})*$",
        json_schema_extra={"enum": [*sorted(OPERATIONS)]},
        description="Its name under paddle, such as tanh.",
    )

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.op.rpartition(".")[2]


ExpectationClass = Literal[
    "sentence", "decided", "precondition", "wording", "design", "recorded", "verdict"
]
CLASSES: dict[ExpectationClass, str] = {
    "sentence": "stated in a document; the only class that counts against a release",
    "decided": "documents contradict one another, or we follow the release against the sentence",
    "precondition": "the behaviour if the caller does what a document forbids",
    "wording": "the class or the message of an error",
    "design": "the engine's behaviour where documents are silent and the release fails",
    "recorded": "the behaviour of Paddle 3.3.1 where documents are silent",
    "verdict": "the findings of gradcheck itself",
}
"""The origin of the expectation, which determines the meaning of a deviation."""
RuleName = Annotated[KebabName, forbid(value_rules.find_unknown_rule)]
Citation = Annotated[
    Annotated[RuleName, Tag("(other)")]
    | Annotated[
        dict[RuleName, Annotated[str, Field(min_length=1)]],
        Tag("(mapping)"),
        Field(min_length=1, max_length=1),
    ],
    MAPPING_OR_OTHER,
]
"""A rule of the catalogue; or its name with the intended passage of the rule's document."""


def _layer_kind(value: object) -> str | None:
    if isinstance(value, str):
        return "(source)"
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    kinds = {"ref": "(ref)", "op": "(op)", "backward": "(ref)"}
    return next((kind for key, kind in kinds.items() if key in keys), None)


def _find_reference(source: str) -> Iterator[Violation]:
    if re.fullmatch(REFERENCE, source):
        message = "this is the name of a layer, and not Python source"
        yield Violation((), message, f"write {{ref: '{source}'}}")
    elif re.fullmatch(r"[\w./\\-]+\.py", source):
        message = "this is the name of a file, and not Python source"
        yield Violation((), message, "write {ref: 'pkg.mod:Class'}, with the module and the class")
    elif source.strip() in OPERATIONS:
        message = "this is the name of an operation, and not Python source"
        yield Violation((), message, f"write {{op: {source.strip()}}}")


Layer = Annotated[
    Annotated[str, forbid(_find_reference), Tag("(source)")]
    | Annotated[LayerRef, Tag("(ref)")]
    | Annotated[LayerOp, Tag("(op)")],
    Discriminator(
        _layer_kind,
        custom_error_type="layer",
        custom_error_message="layer must be Python source, a layer's name, {ref: …} or {op: …}",
    ),
]
MatrixValue = TypeAliasType("MatrixValue", "bool | int | float | str")
MatrixValues = Annotated[
    tuple[Annotated[MatrixValue, BeforeValidator(value_rules.require_scalar)], ...],
    LAX,
    Field(max_length=MAX_COMBINATIONS),
    NOT_EMPTY,
]
Matrix = Annotated[dict[Variable, MatrixValues], forbid(value_rules.find_matrix_mistakes)]
Length = Annotated[int, Field(ge=0)]


def is_static(layer: object) -> bool:
    """Whether a layer is Python source that defines ``forward_fn``, for ``static_pylayer``."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return (
            isinstance(layer, str)
            and "forward_fn" in layer
            and static_forward(ast.parse(layer)) is not None
        )
    return False


def _scenario_schema(schema: dict[str, Any]) -> None:
    """A scenario must have code: its own, that of the scenario it extends, or that of its cases."""
    schema["anyOf"] = [{"required": [key]} for key in ("layer", "script", "extends", "cases")]


def _case_schema(schema: dict[str, Any]) -> None:
    """A case without an id has the scenario's name."""
    schema["properties"]["id"].pop("default", None)


TagList = Annotated[tuple[Annotated[TagName, forbid(value_rules.find_selection_word)], ...], LAX]


class _Keys(Format):
    # A case is sent to its process with the names of the fields; a file has their aliases.
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    noun = "a scenario"
    example = "{id: …, layer: …}"
    excluded: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "inputs": ("script",),
        "call": ("script",),
        "kwargs": ("script", "call"),
    }

    id: str = Field(
        pattern=KEBAB,
        max_length=100,
        description="The name of the scenario: kebab-case, unique in a run.",
    )
    title: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        pattern=r"^[^\n]*$",
        description="One line of plain English.",
    )
    source: Source | None = Field(
        default=None, description="The text from which the expectations come."
    )
    rules: Annotated[tuple[Citation, ...], LAX] = Field(
        default=(),
        description="Rules of the catalogue that the scenario tests, which become tags: a name, "
        "or {name: the intended passage of its document}.",
    )
    class_: ExpectationClass | None = Field(
        alias="class",
        default=None,
        description="The origin of the expectation, if it is not the class of its rules: only a "
        "deviation from a sentence counts against a release.",
    )
    tags: TagList = Field(
        default=(),
        description="Words for selection; added to those of the defaults.",
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
        description="A whole program in Python, run from top to bottom; if there is a layer's "
        "source, it runs after that.",
    )
    inputs: dict[Variable, InputEntry] = Field(
        default={},
        description="Name → tensor that the layer is applied to, such as {x: {shape: [2, 3]}}; "
        "a list is short for its shape.",
    )
    outputs: Outputs | None = Field(
        default=None,
        description="In a world, how the outputs are placed: {ranks: split} (the default) or "
        "{ranks: replicated} for all of them, or a list with one for each.",
    )
    random: Random = Field(
        default="by-rank",
        description="In a world, whether each rank draws its own random numbers, or all the same.",
    )
    call: str | None = Field(
        default=None,
        description="Python expression that applies the layer, such as Scale.apply(x, 2.5); by "
        "default its only PyLayer class's apply with all inputs in order, for an op paddle.<op> "
        "with them, for forward_fn static_pylayer with a list of them.",
    )
    kwargs: dict[Variable, YamlValue] = Field(
        default={},
        description="Keyword → plain value that the layer is called with in addition to its "
        "inputs, such as {axis: -1}.",
    )
    sizes: dict[Variable, Length] = Field(
        default={},
        description="Name → the length that it stands for in shapes, such as {B: 4}; also a "
        "variable in the code. Several lengths are a parameter of the matrix.",
    )
    matrix: Matrix = Field(
        default={},
        description="Parameter → its values, such as dtype: [float32, float64]; one case per "
        "combination. dtype and layout apply to all inputs that name none, world is the number "
        "of ranks; others are sizes in shapes, or variables in the code.",
    )
    expect: Expect = Field(default_factory=Expect, description="The expected results.")
    backends: Backends = Field(
        default={},
        description="Exceptions for certain backends, such as {paddle: {skip: {reason: …}}}; "
        "-b chooses where scenarios run.",
    )
    seed: Seed = Field(default=0, description=_SEED)
    timeout: Timeout | None = Field(default=None, description=_TIMEOUT)
    rtol: Rtol | None = Field(default=None, description=_RTOL)
    nondet: Nondet = Field(default=0.0, description=_NONDET)


class ScenarioCase(_Keys):
    """One of several variants of a scenario: its keys override the scenario's."""

    model_config = ConfigDict(json_schema_extra=_case_schema)

    id: str = Field(
        default="",
        pattern=KEBAB,
        max_length=100,
        description="The name of the case, appended to the scenario's with a hyphen; a case "
        "without a name has the scenario's.",
    )


class Scenario(_Keys):
    """One layer or program, its origin, and its expected behaviour."""

    model_config = ConfigDict(json_schema_extra=_scenario_schema)

    extends: str | None = Field(
        default=None, description="Id of a scenario of this file whose keys this one takes over."
    )
    cases: Annotated[tuple[ScenarioCase, ...], LAX, NOT_EMPTY] = Field(
        default=(),
        json_schema_extra={"minItems": 1},
        description="Variants of the scenario: the keys given here override the scenario's. "
        "Reading a file turns each into a scenario.",
    )

    path: SkipJsonSchema[str] = ""
    """The file. Set by the reader, like the following fields."""
    line: SkipJsonSchema[int] = 1
    """1-based line of the scenario's ``- id``."""
    column: SkipJsonSchema[int] = 1
    begins: SkipJsonSchema[int] = 1
    """The first line of the entry; for one of several `cases`, of the scenario that has them."""
    positions: SkipJsonSchema[dict[str, Annotated[tuple[int, int], LAX]]] = Field(default={})
    """Key, such as ``expect.gradient`` → (line, column), 1-based. For a block of code: the line of
    its first line.
    """

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield the mistakes of the scenario."""
        return rules(self)

    def complete(self, defaults: Defaults) -> Scenario:
        """Return the scenario with all tags, and with the gradient set in each expectation."""
        cited = [rule if isinstance(rule, str) else next(iter(rule)) for rule in self.rules]
        tags = tuple(dict.fromkeys((*defaults.tags, *self.tags, *cited)))
        usual = self.usual_gradient
        backends = {
            name: tuple(entry.complete(usual) for entry in entries)
            for name, entries in self.backends.items()
        }
        expect = self.expect.complete(usual)
        update = {"tags": tags, "expect": expect, "backends": backends}
        return self.model_copy(update=update)

    def line_of(self, key: str) -> int:
        """The file line of `key` (``layer``, ``expect.raises``); for a block of code, that of its
        first line.

        For a key that is not in the file: the line of the mapping that would contain it, otherwise
        the line of the scenario.
        """
        while key:
            if key in self.positions:
                return self.positions[key][0]
            key = key.rpartition(".")[0]
        return self.line

    def world_at(self, parameters: Mapping[str, Any]) -> World | None:
        """The world that the layer runs in at a point of the matrix; None if there is none."""
        world: World | None = parameters.get("world", self.world)
        return world

    def input_at(self, name: str, parameters: Mapping[str, Any]) -> Input:
        """An input at a point of the matrix; a split one has a leading axis of ranks."""
        input, world = self.inputs[name].at({**self.sizes, **parameters}), self.world_at(parameters)
        if world is None or input.ranks != "split" or input.shape is None:
            return input
        return input.model_copy(update={"shape": (size_of(world), *input.shape)})

    @property
    def layer_source(self) -> str | None:
        """The Python source of the layer; None if it has none in this file."""
        return self.layer if isinstance(self.layer, str) else None

    @property
    def output_placements(self) -> tuple[OutputPlacement, ...]:
        """The outputs' placements in a world: one word for all, or one for each."""
        return tuple(output.ranks for output in self.outputs) if self.outputs else ("split",)

    def entries_of(self, backend: str) -> tuple[BackendExpectation, ...]:
        """All entries for versions of `backend`."""
        return self.backends.get(backend, ())  # type: ignore[call-overload, no-any-return]

    def expectations(self) -> Iterator[tuple[DataPath, Expect]]:
        """Yield the scenario's expectations and, for each backend, its expectations and
        observations, with their paths.
        """
        yield ("expect",), self.expect
        for backend, entries in self.backends.items():
            for index, entry in enumerate(entries):
                for key in ("expect", "observed"):
                    if (expect := getattr(entry, key)) is not None:
                        yield ("backends", backend, index, key), expect

    def dtypes_of(self, input: Input) -> list[str]:
        """Return the dtypes that an input takes over the matrix."""
        several = () if input.dtype_written else self.matrix.get("dtype", ())
        return [str(dtype) for dtype in several] or [input.dtype]

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
        """The default expectation of the gradient."""
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

    def on(self, backend: str, version: str = "") -> BackendExpectation:
        """The first entry about a version of `backend`; `NO_DEVIATION` if there is none."""
        entries = (e for e in self.entries_of(backend) if within(version, e.versions))
        return next(entries, NO_DEVIATION)


class Defaults(Format):
    """Values for all scenarios of the file that do not set them."""

    noun = "defaults"
    example = "{dtype: float32}"

    dtype: DType | None = Field(
        default=None, description="Element type of inputs; float64 if not given."
    )
    seed: Seed | None = Field(default=None, description=_SEED)
    tags: TagList = Field(default=(), description="Tags of every scenario.")
    source: dict[Literal["document", "section", "quote", "url"], str] = Field(
        default={},
        description="Keys for sources that lack them; without effect if a scenario names its own "
        "document.",
    )
    matrix: Matrix = Field(
        default={},
        description="Parameters that a scenario's matrix lacks; without effect if it has a script.",
    )
    backends: Backends = Field(
        default={},
        description="Entries for backends that the scenario does not mention, such as {paddle: "
        "{skip: {reason: …}}}.",
    )
    timeout: Timeout | None = Field(default=None, description=_TIMEOUT)
    rtol: Rtol | None = Field(default=None, description=_RTOL)


class SpecFile(Format):
    """A ``*.grad.yaml`` file: scenarios on one topic."""

    noun = "a spec file"

    schema_: Literal["gradcheck/v1"] = Field(
        alias="schema", description="The version of the format: gradcheck/v1."
    )
    framework: FrameworkName = Field(
        default="paddle",
        description="The framework of the scenarios' layers. They run only on that framework, and "
        "their code can use paddle and PyLayer, torch and Function, or jax and jnp.",
    )
    defaults: Defaults = Field(
        default_factory=Defaults,
        description="Values for all scenarios that do not set them.",
    )
    layers: dict[KebabName, Layer] = Field(
        default={}, description="Name → layer that scenarios of this file name under `layer`."
    )
    scenarios: Annotated[tuple[Scenario, ...], LAX, NOT_EMPTY] = Field(
        description="The scenarios.", json_schema_extra={"minItems": 1}
    )

    path: SkipJsonSchema[str] = ""
    """The file, set by the reader."""

    def find_mistakes(self, rules: ScenarioRules) -> Iterator[Violation]:
        """Yield keys and values that the file's framework does not support."""
        other_frameworks = NAMES_OF_FRAMEWORKS.keys() - {self.framework}
        for index, scenario in enumerate(self.scenarios):
            layer = scenario.layer
            only_paddle = {
                "a world of ranks": ("world", bool(scenario.world_sizes)),
                "{op: …}": ("layer", isinstance(layer, LayerOp)),
                "forward_fn of static_pylayer": ("layer", is_static(layer)),
            }
            for feature, (key, is_given) in only_paddle.items():
                if is_given and self.framework != "paddle":
                    help = "remove it, or move the scenario into a file without 'framework'"
                    message = (
                        f"{feature} is for layers of Paddle, but this file is {self.framework}'s"
                    )
                    yield Violation(("scenarios", index, key), message, help)
            laid_out: list[DataPath] = [
                ("inputs", name, "layout")
                for name, input in scenario.inputs.items()
                if input.layout != "contiguous"
            ]
            laid_out += [("matrix", "layout")] if "layout" in scenario.matrix else []
            for path in () if len(layouts_of(self.framework)) > 1 else laid_out:
                message = "an array of JAX has no layout in memory"
                yield Violation(("scenarios", index, *path), message, "remove it", at_key=True)
            for backend in scenario.backends.keys() & other_frameworks:
                message = (
                    f"scenarios of this file are {self.framework}'s, and do not run on {backend}"
                )
                yield Violation(("scenarios", index, "backends", backend), message, "remove it")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a ``*.grad.yaml`` file, descriptions included."""
    schema = SpecFile.model_json_schema(by_alias=True)
    # Half a source may come from the file's defaults, which a schema cannot follow.
    schema["$defs"]["Source"].pop("required", None)
    schema["$defs"]["BackendExpectation"]["dependentSchemas"] = {
        "observed": {"anyOf": [{"required": ["reason"]}, {"required": ["policy"]}]}
    }
    for kind in ("Scenario", "ScenarioCase"):
        rules = schema["$defs"][kind]["properties"]["rules"]["items"]
        for cited in rules.get("oneOf", rules.get("anyOf", ())):
            if cited.get("type") == "string":
                cited["enum"] = value_rules.rule_ids()  # for completion in editors
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "gradcheck/v1",
    }
