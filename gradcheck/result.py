"""Result of one case: the record that its process sends, reports render and files keep."""

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
        """Whether a run in which every case has such a status exits with 0."""
        return self in GREEN


GREEN = frozenset({Status.PASS, Status.KINK, Status.SKIP, Status.UNSUPPORTED, Status.XFAIL})
NOT_RUN = frozenset({Status.SKIP, Status.UNSUPPORTED})
AS_DOCUMENTED = frozenset({Status.PASS, Status.KINK})


Count = Annotated[int, Field(ge=0, le=2**53)]
"""A count, an index or a seed: an integer that every reader of JSON represents exactly."""
Index = tuple[Count, ...]
"""The index of an element of a tensor."""


ErrorSize = float
"""An error or its bound, at least 0; infinite or NaN where the numbers compared are."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    @model_validator(mode="before")
    @classmethod
    def _whole_characters(cls, given: Any) -> Any:
        """Text that JSON can hold: file names that are not UTF-8, and messages of layers, may
        contain lone surrogates.
        """
        if not isinstance(given, dict):
            return given
        return {
            k: v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v
            for k, v in given.items()
        }


def element(name: str, index: tuple[int, ...]) -> str:
    """An element of a tensor as reports write it: ``W_hh[1,2]``; of a scalar just ``W_hh``."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def absolute_error(analytic: float, numeric: float) -> float:
    """Return |analytic − numeric|; inf where one is not finite."""
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
        """The entry as reports write it: ``d out[2,1] / d x[2,0]``."""
        return f"d {element(self.output, self.output_index)} / d {element(self.input, self.index)}"


class WrongEntry(_JacobianEntry):
    """One entry of the Jacobian on which backward and the numerical derivative disagree by more
    than the error bound.
    """

    numeric: float
    error_bound: ErrorSize

    @property
    def relative_error(self) -> float:
        """|analytic − numeric| over the larger of the two; inf where both are 0 or one is not
        finite.
        """
        largest = max(abs(self.analytic), abs(self.numeric))
        return self.error / largest if largest and isfinite(self.error) else float("inf")

    @property
    def error(self) -> float:
        """|analytic − numeric|; inf where one is not finite."""
        return absolute_error(self.analytic, self.numeric)


class Value(_Record):
    """One output or gradient, as `gradcheck.case.values` makes it: dtype, shape, and elements in
    row-major order.
    """

    name: str
    dtype: str = ""
    """The name of its dtype; empty without an output or gradient."""
    shape: Index = ()
    data: str = ""
    """The bytes of the elements, or of some, in base64."""


class StepScan(_JacobianEntry):
    """One entry of the Jacobian by central differences at steps of all sizes: how its numerical
    value came about.
    """

    steps: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """The step sizes h by which the element of the input was moved, the smallest first."""
    differences: tuple[float, ...]
    """(f(x + h) − f(x − h)) / 2h for each step."""
    rounding: tuple[ErrorSize, ...]
    """The error that rounding alone may cause in each difference."""
    chosen: Positive
    """The step from which the value was extrapolated."""
    value: float
    error_bound: ErrorSize


class Diagnosis(_Record):
    """A likely cause of a wrong gradient, or a broken contract: a code of `gradcheck.codes`, and
    what was seen.
    """

    code: str
    text: str
    inputs: tuple[str, ...] = ()
    line: str = ""
    """``file:line`` of the forward's operation whose share of the gradient is wrong; empty if none
    is known.
    """
    source_line: str = ""
    column: Count = 0
    end_column: Count = 0
    """The part of the line that is the operation, columns from 0, the last not included."""
    operation: str = ""
    """The function that your code calls there, otherwise its name in the op table."""
    detail: str = ""
    """The text under that part of the line."""

    @classmethod
    def of(cls, code: str, text: str, inputs: tuple[str, ...] = ()) -> Diagnosis:
        return cls(code=code, text=text, inputs=inputs)


class Fix(_Record):
    """One edit of the user's backward that repairs it: the edited backward passes."""

    path: str
    line: Count
    column: Count
    """Where the replaced text begins: the line from 1, the column from 0."""
    end_line: Count
    end_column: Count
    """Where it ends, the last column not included."""
    replacement: str
    source_line: str
    """The line as it should be, without its indent."""


UNFINISHED = "diagnosis stopped"
"""The beginning of the mark of a diagnosis that did not finish; the reason follows."""


SECOND_ORDER = {"backward": "double backward", "forward": "backward", "the output": "the gradient"}
"""Names of the function, its vjp and its value where the function is the gradient of a
layer.
"""


def of_gradient(text: str) -> str:
    """Reword a sentence on a function for the gradient of a layer; quoted code stays."""
    words = "|".join(SECOND_ORDER)
    return re.sub(rf"`[^`]*`|\b({words})\b", lambda m: SECOND_ORDER.get(m[1], m[0]), text)


MOST_LISTED = 20
"""Wrong entries per input that the summary of a case lists; all are counted."""


class GradientSummary(_Record):
    """The gradient check of a case: its verdict, what was compared, and every entry listed as
    wrong.
    """

    verdict: Status
    wrong: tuple[WrongEntry, ...] = ()
    scan: StepScan | None = None
    """The differences of the most wrong entry that is listed, where it could be scanned."""
    wrong_counts: dict[str, tuple[Count, Count]] = {}
    """Elements found wrong and elements in all, per input. An input with 0 wrong is right; one that
    is not listed was not checked.
    """
    exhaustive: bool = True
    """Whether the counts are exact; if not, they are lower bounds."""
    worst_error: ErrorSize = 0.0
    """Largest |analytic − numeric| over its bound that was seen: at most 1 on a PASS."""
    why: str = ""
    diagnosis: tuple[Diagnosis, ...] = ()
    """Broken contracts first, then the causes that reproduce the numerical derivative."""
    fix: Fix | None = None
    """The edit that repairs backward, if one was searched for and found for a FAIL."""
    certified: bool = False
    """Whether every entry of the Jacobian was compared with a numerical value."""
    marks: tuple[str, ...] = ()
    """Words next to the verdict on how it came about: by the tape, next to a kink, expected to
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
        """Whether the diagnosis did not finish."""
        return any(mark.startswith(UNFINISHED) for mark in self.marks)

    def of_second_order(self) -> GradientSummary:
        """Return the summary of the derivative of a gradient, which is right itself."""
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
        """Return one line: the gradients that are wrong and right, or the first broken contract."""
        return f"{self._finding()} (at {self.where})" if self.where else self._finding()

    def _finding(self) -> str:
        parts = [self._part(name) for name, (wrong, _) in self.wrong_counts.items() if wrong]
        right = [name for name, (wrong, _) in self.wrong_counts.items() if not wrong]
        if parts:
            parts += [f"{', '.join(right)} right"] if right else []
            return f"gradient of {'; '.join(parts)}"
        if self.diagnosis:
            return self.diagnosis[0].text
        if self.why or self.verdict is not Status.FAIL:
            return self.why
        entries = "" if self.unfinished else "; no single entry is outside of its own error bound"
        return f"the gradient is wrong along a random direction{entries}"

    def _part(self, name: str) -> str:
        """``x: 2 of 6 entries wrong (all of x[:, 3])``."""
        wrong, total = self.wrong_counts[name]
        at_least = "" if self.exhaustive or wrong == total else "at least "
        slices = [f" ({text})" for text in self.patterns if text.startswith(f"all of {name}[")]
        return f"{name}: {at_least}{wrong} of {total} entries wrong{''.join(slices[:1])}"


NOT_CHECKED = GradientSummary(verdict=Status.INCONCLUSIVE, worst_error=inf)
"""Stands in for the gradient check where none was made: nothing is wrong, nothing measured."""


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
    """The end of what the case printed, for a panel."""
    raised_at: str = ""
    """``file:line`` of the user's code that raised, crashed or did not end; empty if unknown."""
    signal: str = ""
    """The signal that killed the process, such as ``SIGSEGV``; empty if none did."""
    values: tuple[Value, ...] = ()
    """Outputs and gradients, where they are to be compared with those of other backends."""
    compared_with: str = ""
    """The other backend of a comparison; empty for the result of a case."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    instead: dict[str, Any] = {}
    """The backend's behaviour that differs from the expected one, as `observed` in release files;
    empty unless a run records it.
    """
    missing_name: str = ""
    """The name in Paddle that the engine lacks, for which the case is UNSUPPORTED."""
    internal_error: str = ""
    """The traceback of a bug in gradcheck; empty otherwise."""

    @property
    def checked(self) -> GradientSummary:
        """The gradient check; an empty one, of no error, where none was made."""
        return self.gradient or NOT_CHECKED

    @property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases that it is about: one, or the two that were compared."""
        if not self.compared_with:
            return (self.name,)
        stem = self.name.removesuffix(f"@{self.compared_with},{self.backend}")
        return f"{stem}@{self.compared_with}", f"{stem}@{self.backend}"
