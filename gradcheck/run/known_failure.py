"""A failure as a baseline holds it: enough to see that a later one is another mistake, and nothing else.

A baseline must not hide a new mistake behind an old one, and must not fail where gradcheck alone has become better. So
it holds what is wrong, and never why: the status, the input gradients that are wrong, the outputs through which they
are, and the codes of broken contracts. Wording, lines, factors, counts and the codes of causes (GC101 to GC124, GC151
to GC153) may all change: a cause is an explanation of a wrong gradient that is held anyway.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gradcheck.codes import says_what_is_wrong
from gradcheck.result import MOST_LISTED, GradientSummary, Result, Status


class KnownFailure(BaseModel):
    """What is known of a failure; `codes` and `wrong` are None where the status alone is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status
    codes: tuple[str, ...] | None = None
    """Codes of broken contracts, and of a wrong second derivative, in order."""
    wrong: dict[str, tuple[str, ...]] | None = None
    """The inputs whose gradient is wrong, each with the outputs through which it is; none if these are not known."""

    @classmethod
    def of(cls, result: Result, status: Status | None = None) -> KnownFailure:
        """The failure that a result is; `status` where it has another by now."""
        status, gradient = status or result.status, result.gradient
        if gradient is None:
            return cls(status=status)
        codes, wrong = broken_codes(gradient), wrong_gradients(gradient)
        is_named = gradient.verdict.green or (gradient.verdict is Status.FAIL and (codes or wrong))
        if not is_named or gradient.unfinished:
            return cls(status=status)
        return cls(status=status, codes=codes, wrong=wrong)

    def new_in(self, result: Result) -> list[str]:
        """What is wrong in a later result of this status, and is not known: codes, gradients of inputs."""
        if self.codes is None or self.wrong is None or result.gradient is None:
            return []
        new = [code for code in broken_codes(result.gradient) if code not in self.codes]
        for name, outputs in wrong_gradients(result.gradient).items():
            if name not in self.wrong:
                new.append(f"gradient of {name}")
            elif others := [
                one for one in outputs if self.wrong[name] and one not in self.wrong[name]
            ]:
                new.append(f"gradient of {name} through {', '.join(others)}")
        return new


def broken_codes(gradient: GradientSummary) -> tuple[str, ...]:
    """The codes in a summary that say that something is wrong, rather than why."""
    return tuple(
        sorted({cause.code for cause in gradient.diagnosis if says_what_is_wrong(cause.code)})
    )


def wrong_gradients(gradient: GradientSummary) -> dict[str, tuple[str, ...]]:
    """The inputs whose gradient is wrong, and through which outputs; none where not all wrong entries are listed."""
    if gradient.verdict is not Status.FAIL:
        return {}
    found = {}
    for name, (count, _) in gradient.wrong_counts.items():
        entries = [entry for entry in gradient.wrong if entry.input == name]
        all_listed = gradient.exhaustive and len({entry.index for entry in entries}) == count
        known = (
            {entry.output for entry in entries} if all_listed and len(entries) < MOST_LISTED else ()
        )
        if count:
            found[name] = tuple(sorted(known))
    return found
