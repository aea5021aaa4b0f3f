"""The result of one case: the record that its process sends, that reports show and that files
store.
"""

from __future__ import annotations

import re
from enum import StrEnum
from math import inf, isfinite, isnan
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Status(StrEnum):
    """The outcome of a case, always shown as this word."""

    PASS = "PASS"
    FAIL = "FAIL"
    KINK = "KINK"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    SKIP = "SKIP"
    UNSUPPORTED = "UNSUPPORTED"
    XFAIL = "XFAIL"
    XPASS = "XPASS"

    @property
    def green(self) -> bool:
        """Whether a run exits with 0 if every case has such a status."""
        return self in GREEN


GREEN = frozenset({Status.PASS, Status.KINK, Status.SKIP, Status.UNSUPPORTED, Status.XFAIL})
NOT_RUN = frozenset({Status.SKIP, Status.UNSUPPORTED})
AS_DOCUMENTED = frozenset({Status.PASS, Status.KINK})


Count = Annotated[int, Field(ge=0, le=2**53)]
"""A count, an index or a seed: an integer that every reader of JSON represents exactly."""
Index = tuple[Count, ...]
"""The index of an element of a tensor."""


ErrorSize = float
"""An error or its bound, at least 0; infinite or NaN if the compared numbers are."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    @model_validator(mode="before")
    @classmethod
    def _escape_surrogates(cls, fields: Any) -> Any:
        """Text that JSON can represent: file names that are not UTF-8, and messages of layers, may
        contain lone surrogates, which are replaced.
        """
        if not isinstance(fields, dict):
            return fields
        return {
            k: v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v
            for k, v in fields.items()
        }


def element(name: str, index: tuple[int, ...]) -> str:
    """An element of a tensor in the notation of reports: ``W_hh[1,2]``; for a scalar just
    ``W_hh``.
    """
    return f"{name}[{','.join(map(str, index))}]" if index else name


def absolute_error(analytic: float, numeric: float) -> float:
    """Return |analytic − numeric|; inf if one is not finite."""
    error = abs(analytic - numeric)
    return inf if isnan(error) else error


class _JacobianEntry(_Record):
    input: str
    index: Index
    output: str
    output_index: Index
    analytic: float

    @property
    def derivative(self) -> str:
        """The entry in the notation of reports: ``d out[2,1] / d x[2,0]``."""
        return f"d {element(self.output, self.output_index)} / d {element(self.input, self.index)}"


class WrongEntry(_JacobianEntry):
    """One entry of the Jacobian on which backward and the numerical derivative disagree by more
    than the error bound.
    """

    numeric: float
    error_bound: ErrorSize

    @property
    def relative_error(self) -> float:
        """|analytic − numeric| over the larger one; inf if both are 0 or one is not finite."""
        largest = max(abs(self.analytic), abs(self.numeric))
        return self.error / largest if largest and isfinite(self.error) else float("inf")

    @property
    def error(self) -> float:
        """|analytic − numeric|; inf if one is not finite."""
        return absolute_error(self.analytic, self.numeric)


class Value(_Record):
    """One output or gradient, made by `gradcheck.case.values`: dtype, shape, and elements in
    row-major order.
    """

    name: str
    dtype: str = ""
    """The name of the dtype; empty without an output or gradient."""
    shape: Index = ()
    data: str = ""
    """The bytes of the elements, or of some of them, in base64."""


class StepScan(_JacobianEntry):
    """One entry of the Jacobian by central differences at steps of all sizes: how its numerical
    value was obtained.
    """

    steps: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """The step sizes h by which the element of the input was moved, the smallest first."""
    differences: tuple[float, ...]
    """(f(x + h) − f(x − h)) / 2h for each step."""
    rounding: tuple[ErrorSize, ...]
    """The largest error by rounding in each difference."""
    chosen: Positive
    """The step from which the value was extrapolated."""
    value: float
    error_bound: ErrorSize


class Diagnosis(_Record):
    """A likely cause of a wrong gradient, or a broken contract: a code of `gradcheck.codes`, and
    the evidence.
    """

    code: str
    text: str
    inputs: tuple[str, ...] = ()
    line: str = ""
    """``file:line`` of forward's operation whose share of the gradient is wrong, or of backward's
    line that breaks a contract; empty if none is known.
    """
    source_line: str = ""
    column: Count = 0
    end_column: Count = 0
    """The columns of the operation in the line: from 0, the end excluded."""
    operation: str = ""
    """The function that your code calls there, otherwise the operation's name in the op table."""
    detail: str = ""
    """The text to show under that part of the line."""

    @classmethod
    def of(cls, code: str, text: str, inputs: tuple[str, ...] = ()) -> Diagnosis:
        return cls(code=code, text=text, inputs=inputs)


class Fix(_Record):
    """An edit of the user's backward that repairs it: the edited backward passes."""

    path: str
    line: Count
    column: Count
    """The start of the replaced text: lines count from 1, columns from 0."""
    end_line: Count
    end_column: Count
    """The end of the replaced text; its column is excluded."""
    replacement: str
    source_line: str
    """The corrected line, without its indent."""


UNFINISHED = "diagnosis stopped"
"""The start of the mark of an unfinished diagnosis; the reason follows."""


SECOND_ORDER = {"backward": "double backward", "forward": "backward", "the output": "the gradient"}
"""Words for the function, its vjp and its value if the function is the gradient of a layer.
"""


def of_gradient(text: str) -> str:
    """Reword a sentence about a function for the case that it is the gradient of a layer; quoted
    code stays.
    """
    words = "|".join(SECOND_ORDER)
    return re.sub(rf"`[^`]*`|\b({words})\b", lambda m: SECOND_ORDER.get(m[1], m[0]), text)


MOST_LISTED = 20
"""The most wrong entries per input that the summary of a case lists; all are counted."""


class GradientSummary(_Record):
    """The gradient check of a case: its verdict, what was compared, and the wrong entries."""

    verdict: Status
    wrong: tuple[WrongEntry, ...] = ()
    scan: StepScan | None = None
    """The differences of the worst listed entry, if it could be scanned."""
    wrong_counts: dict[str, tuple[Count, Count]] = {}
    """The numbers of wrong elements and of all elements, per input. An input with 0 wrong elements
    is right; an input that is not listed was not checked.
    """
    exhaustive: bool = True
    """Whether the counts are exact; otherwise they are lower bounds."""
    worst_error: ErrorSize = 0.0
    """The largest observed ratio of |analytic − numeric| to its bound: at most 1 on a PASS."""
    why: str = ""
    diagnosis: tuple[Diagnosis, ...] = ()
    """Broken contracts first, then the causes that reproduce the numerical derivative."""
    fix: Fix | None = None
    """The edit that repairs a backward that is wrong or raises, if one was found."""
    certified: bool = False
    """Whether every entry of the Jacobian was compared with a numerical value."""
    marks: tuple[str, ...] = ()
    """Marks next to the verdict on how it was reached: by the tape, next to a kink, expected to
    differ.
    """
    patterns: tuple[str, ...] = ()
    """Whole slices that are wrong: ``all of x[:, 3]``."""
    seed: Count = 0
    evaluations: Count = 0
    where: str = ""
    """The point or dtype, among several, at which this was found: ``point 2 of 3, float32``. Empty
    on a PASS.
    """

    @property
    def unfinished(self) -> bool:
        """Whether the diagnosis is unfinished."""
        return any(mark.startswith(UNFINISHED) for mark in self.marks)

    def of_second_order(self) -> GradientSummary:
        """Return the summary of a second-order check: the gradient is right, its derivative was
        checked.
        """
        if self.verdict is not Status.FAIL:
            return self
        text = "the first derivative is right, the derivative of the gradient is not"
        causes = [
            cause.model_copy(
                update={"text": of_gradient(cause.text), "detail": of_gradient(cause.detail)}
            )
            for cause in self.diagnosis
        ]
        return self.model_copy(update={"diagnosis": (Diagnosis.of("GC140", text), *causes)})

    def headline(self) -> str:
        """Return one line: the wrong and the right gradients, or the first broken contract."""
        return f"{self._finding()} (at {self.where})" if self.where else self._finding()

    def _finding(self) -> str:
        parts = [
            self._input_finding(name) for name, (wrong, _) in self.wrong_counts.items() if wrong
        ]
        right = [name for name, (wrong, _) in self.wrong_counts.items() if not wrong]
        if parts:
            parts += [f"{', '.join(right)} right"] if right else []
            return f"gradient of {'; '.join(parts)}"
        if self.diagnosis:
            return self.diagnosis[0].text
        if self.why or self.verdict is not Status.FAIL:
            return self.why
        entries = "" if self.unfinished else "; no single entry is outside of its error bound"
        return f"the gradient is wrong along a random direction{entries}"

    def _input_finding(self, name: str) -> str:
        """The count for an input, such as ``x: 2 of 6 entries wrong (all of x[:, 3])``."""
        wrong, total = self.wrong_counts[name]
        at_least = "" if self.exhaustive or wrong == total else "at least "
        slices = [f" ({text})" for text in self.patterns if text.startswith(f"all of {name}[")]
        return f"{name}: {at_least}{wrong} of {total} entries wrong{''.join(slices[:1])}"


NOT_CHECKED = GradientSummary(verdict=Status.INCONCLUSIVE, worst_error=inf)
"""The summary without a gradient check: nothing is wrong, nothing was measured."""


class Result(_Record):
    """One case's outcome. `message` is one line; `details` are further lines for the panel."""

    name: str
    scenario: str
    backend: str
    path: str
    line: Count
    column: Count
    status: Status
    message: str = ""
    details: tuple[str, ...] = ()
    gradient: GradientSummary | None = None
    output: str = ""
    """The last output of the case, for a panel."""
    raised_at: str = ""
    """``file:line`` of the user's code that raised, crashed or did not end; empty if unknown."""
    signal: str = ""
    """The signal that killed the process, such as ``SIGSEGV``; empty if none did."""
    values: tuple[Value, ...] = ()
    """Outputs and gradients, if they are to be compared with those of other backends."""
    compared_with: str = ""
    """The other backend of a comparison; empty for the result of a case."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    instead: dict[str, Any] = {}
    """The backend's behaviour if it differs from the expected one, in the form of `observed` in
    release files; empty unless a run records it.
    """
    missing_name: str = ""
    """The name in Paddle that the engine lacks, if the case is UNSUPPORTED for that reason."""
    internal_error: str = ""
    """The traceback of a bug in gradcheck; empty otherwise."""

    @property
    def checked(self) -> GradientSummary:
        """The gradient check; an empty summary without error if there was none."""
        return self.gradient or NOT_CHECKED

    @property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases that the result is about: one, or the two that were compared."""
        if not self.compared_with:
            return (self.name,)
        stem = self.name.removesuffix(f"@{self.compared_with},{self.backend}")
        return f"{stem}@{self.compared_with}", f"{stem}@{self.backend}"
