"""What must hold of a scenario, and what backends do in its place."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from gradcheck.codes import CODES
from gradcheck.spec.format import LAX, NAME, REASON, Format, Numbers, Reason, YamlValue, told_by_type

BackendName = Literal["numpy", "cupy", "paddle"]
Verdict = Literal["matches", "differs", "straight-through", "zero", "unchecked"]

MAX_PATTERN = 1000
"""Characters of a regular expression."""


class Regex(Format):
    """A regular expression that must be found in a message."""

    re: str = Field(min_length=1, max_length=MAX_PATTERN, description="Python regular expression, searched for.")


Message = Annotated[
    Annotated[str, Tag("(text)"), Field(min_length=1)] | Annotated[Regex, Tag("(re)")],
    told_by_type(text="(text)", mapping="(re)"),
]
_TYPE = Field(pattern=rf"^{NAME}(\.{NAME})*$", description="Class of the exception, such as ValueError.")
_MESSAGE = Field(default=None, description="Text that the message must contain, or {re: …} to search for.")


class Raises(Format):
    """The exception that must end the program."""

    type: str = _TYPE
    phase: Literal["forward", "backward", "any"] = Field(
        default="any", description="When: while the forward runs, while gradients are computed, or at any time."
    )
    message: Message | None = _MESSAGE


class Warns(Format):
    """A warning that must be given."""

    type: str = _TYPE
    message: Message | None = _MESSAGE


class Calls(Format):
    """How often the layer's functions run in one forward and backward pass."""

    forward: int | None = Field(default=None, ge=0, description="Runs of forward.")
    backward: int | None = Field(default=None, ge=0, description="Runs of backward; 0 where it must not run.")


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
]


class Differs(Format):
    """In which way a backward is not the derivative."""

    code: str | None = Field(
        json_schema_extra={"enum": [*CODES, None]},
        default=None,
        description="The diagnosis that must be among those given, as in `gradcheck explain`.",
    )
    inputs: tuple[str, ...] = Field(default=(), description="The inputs whose gradients are wrong, and no others.")


class Expect(Format):
    """What must hold when the scenario has run."""

    gradient: Verdict = Field(
        default="unchecked",
        description="What backward is: it matches the derivative; it differs from it; it is straight-through, the "
        "cotangent unchanged of a function in steps; it is zero; or it is unchecked. By default matches for a layer "
        "with a differentiable input, else unchecked.",
    )
    precision: Literal["strict", "loose"] = Field(
        default="strict",
        description="loose: a backward that is right but loses digits, as one that computes in float32 in a layer of "
        "float64, is let pass, and marked.",
    )
    differs: Differs | None = Field(default=None, description="What `gradient: differs` must be found to be.")
    grads: dict[str, Numbers | None] = Field(default={}, description="Input → its documented gradient; null for none.")
    cotangent: Numbers | None = Field(default=None, description="Cotangent that belongs to grads; by default ones.")
    order: Literal[1, 2] = Field(default=1, description="2: the derivative of the gradient is checked as well.")
    calls: Calls = Field(default_factory=Calls, description="How often forward and backward run.")
    raises: Raises | None = Field(default=None, description="The exception that must end the run.")
    warns: Warns | None = Field(default=None, description="A warning that must be given.")
    values: dict[str, Expected] = Field(
        default={}, description="Python expression → its value in the program's namespace after the run."
    )


class Xfail(Format):
    """A known deviation: the case must fail, and says so."""

    reason: Reason = Field(description=REASON)
    strict: bool = Field(default=True, description="Whether a case that passes all the same fails the run.")


class Skip(Format):
    """A case that is not run."""

    reason: Reason = Field(description=REASON)


Signal = Annotated[str, Field(pattern=r"^SIG[A-Z0-9]+$")]


class Observed(Expect):
    """What a backend does in place of what is documented: as `expect`, by itself, or how the case ends.

    The gradient is unchecked here where nothing is said of it.
    """

    crash: Annotated[tuple[Signal, ...], LAX] = Field(
        default=(), description="The signals of which one kills the process, such as [SIGSEGV]; which, may be chance."
    )
    hang: Annotated[bool, Field(description="It does not come to an end within the timeout.")] = False


class Policy(Format):
    """Why documents and releases differ on purpose."""

    documents: Reason = Field(description="Why the documents ask for what they do, in one sentence.")
    releases: Reason = Field(description="Why releases do something else, in one sentence.")


class BackendExpectation(Format):
    """What is different on one backend, or on some of its versions."""

    versions: str | None = Field(
        default=None,
        min_length=1,
        description="The versions that this is about, by PEP 440, such as '>=3.0,<3.3'; by default all.",
    )
    xfail: Xfail | None = Field(default=None, description="The case is known to fail here.")
    skip: Skip | None = Field(default=None, description="The case is not run here.")
    expect: Expect | None = Field(
        default=None,
        description="Expectations that replace, key by key, those of the scenario; read as the complete ones.",
    )
    observed: Observed | None = Field(
        default=None,
        description="What the backend does in place of what is documented. The case must fail as documented, and do "
        "exactly this: an XFAIL; doing what is documented it is an XPASS, anything else a FAIL.",
    )
    reason: Reason | None = Field(
        default=None, description="Why, in one sentence; needed beside `observed`, unless it is `policy`."
    )
    policy: Policy | None = Field(
        default=None,
        description="In place of `reason` where what is observed is policy, and no mistake of a release: why either "
        "side does as it does. The matrix does not count it as a failure.",
    )
    issue: str | None = Field(default=None, pattern=r"^https?://\S+$", description="Where it is discussed.")

    @property
    def why(self) -> str:
        """The reason of what is observed, or those of both sides."""
        if self.policy is None:
            return self.reason or ""
        return f"{self.policy.releases}; the documents: {self.policy.documents}"


BackendEntries = Annotated[
    Annotated[BackendExpectation, Tag("(one)")]
    | Annotated[tuple[BackendExpectation, ...], LAX, Tag("(several)"), Field(json_schema_extra={"minItems": 1})],
    told_by_type(list="(several)", otherwise="(one)"),
]
"""What is different on a backend: for all of its versions, or a list of entries, each with versions of its own."""
Backends = dict[BackendName, BackendEntries]
