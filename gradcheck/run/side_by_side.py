"""The outputs and gradients of a scenario on several backends, side by side: what differs is a result of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradcheck.case.case import Case
from gradcheck.result import Result, Status

COMPARED = (Status.PASS, Status.KINK)
"""Statuses of cases whose values are compared: they do as documented. What others do, their own results say."""


class SideBySide:
    """Results on their way: after those of one scenario on all backends come the differences between them."""

    def __init__(self) -> None:
        self.compared = 0
        """Pairs of cases whose values were compared."""

    def beside(self, cases: Sequence[Case], results: Iterable[Result]) -> Iterator[Result]:
        """The results, which come in the order of `cases`, without their values; and the differences."""
        group: list[Result] = []
        for at, result in enumerate(results):
            if result.beside:
                yield result
                continue
            if at and group and point(cases[at]) != point(cases[at - 1]):
                group = []
            group.append(result)
            yield result.model_copy(update={"values": ()}) if result.values else result
            if at + 1 == len(cases) or point(cases[at + 1]) != point(cases[at]):
                yield from self.between(group)
                group = []

    def between(self, group: Sequence[Result]) -> Iterator[Result]:
        """A result for each backend whose values are not those of the first one that does as documented."""
        sound = [one for one in group if one.status in COMPARED and one.values]
        if len(sound) < 2:
            return
        from gradcheck.case.values import differences  # it needs NumPy, which is not imported where nothing is compared

        for other in sound[1:]:
            self.compared += 1
            lines = differences(sound[0].values, other.values, (sound[0].backend, other.backend))
            if lines:
                yield different(sound[0], other, lines)


def point(case: Case) -> tuple[str, str]:
    """A key that is the same for the cases of one scenario at one point of its matrix, whatever their backend."""
    return case.scenario.path, case.name.removesuffix(f"@{case.backend}")


def different(one: Result, other: Result, lines: Sequence[str]) -> Result:
    """``id@numpy,paddle@3.0.0``: a FAIL that says what differs."""
    stem = one.name.removesuffix(f"@{one.backend}")
    return Result(
        name=f"{stem}@{one.backend},{other.backend}",
        scenario=other.scenario,
        backend=other.backend,
        beside=one.backend,
        path=other.path,
        line=other.line,
        column=other.column,
        status=Status.FAIL,
        message=f"both do as documented, but {lines[0]}",
        details=tuple(lines[1:]),
    )
