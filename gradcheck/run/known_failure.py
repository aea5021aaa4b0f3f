"""The record of a failure in a baseline: enough to tell whether a later failure is a different
mistake.

A baseline must not hide a new mistake behind an old one, and must not fail only because gradcheck
has improved. So it records what is wrong, but not why: the status, the wrong input gradients, the
outputs through which they are wrong, and the codes of broken contracts. Wording, lines, factors,
counts and the codes of causes (`codes.is_cause`) may all change: a cause explains a wrong gradient
that is recorded anyway.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gradcheck.codes import says_what_is_wrong
from gradcheck.result import MOST_LISTED, GradientSummary, Result, Status


class KnownFailure(BaseModel):
    """A known failure; `codes` and `wrong` are None if only the status is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status
    codes: tuple[str, ...] | None = None
    """Codes of broken contracts, and of a wrong second derivative, in order."""
    wrong: dict[str, tuple[str, ...]] | None = None
    """Inputs whose gradient is wrong, each with the outputs through which it is wrong, if known."""

    @classmethod
    def of(cls, result: Result, status: Status | None = None) -> KnownFailure:
        """Return the failure that a result shows; `status` replaces the result's own."""
        status, gradient = status or result.status, result.checked
        codes, wrong = broken_codes(gradient), wrong_gradients(gradient)
        if gradient.unfinished or not (codes or wrong or gradient.verdict.green):
            return cls(status=status)
        return cls(status=status, codes=codes, wrong=wrong)

    def new_in(self, result: Result) -> list[str]:
        """Return the mistakes of a later result of this status that are not known yet."""
        if self.codes is None or self.wrong is None:
            return []
        new = [code for code in broken_codes(result.checked) if code not in self.codes]
        for name, outputs in wrong_gradients(result.checked).items():
            new_outputs = {*outputs} - {*(self.wrong.get(name) or outputs)}
            if name not in self.wrong:
                new.append(f"gradient of {name}")
            elif new_outputs:
                new.append(f"gradient of {name} through {', '.join(sorted(new_outputs))}")
        return new


def broken_codes(gradient: GradientSummary) -> tuple[str, ...]:
    """Return the codes in a summary that are mistakes, not causes."""
    if gradient.verdict is Status.INCONCLUSIVE:
        return ()
    codes = {cause.code for cause in gradient.diagnosis if says_what_is_wrong(cause.code)}
    return tuple(sorted(codes))


def wrong_gradients(gradient: GradientSummary) -> dict[str, tuple[str, ...]]:
    """Return the inputs whose gradient is wrong, each with its wrong outputs; with none if not all
    wrong entries are listed.
    """
    if gradient.verdict is not Status.FAIL:
        return {}
    wrong = {}
    for name, (number, _) in gradient.wrong_counts.items():
        entries = [entry for entry in gradient.wrong if entry.input == name]
        elements = {entry.index for entry in entries}
        is_complete = gradient.exhaustive and len(elements) == number and len(entries) < MOST_LISTED
        outputs = {entry.output for entry in entries} if is_complete else ()
        if number:
            wrong[name] = tuple(sorted(outputs))
    return wrong
