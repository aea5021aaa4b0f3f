"""The results of a run, compared across backends and with a ``--baseline``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from gradcheck.result import AS_DOCUMENTED, Result, Status
from gradcheck.run.known_failure import KnownFailure
from gradcheck.support.file_io import read_limited, require_folder, write_whole
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError, refusals_of

# ------------------------------------------- outputs and gradients of several backends side by side


class SideBySide:
    """Adds results for the differences between backends on one scenario."""

    def __init__(self) -> None:
        self.compared = 0
        """The number of pairs of cases whose values were compared."""

    def with_comparisons(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yield the results without their values, grouped by scenario and point of its matrix, each
        group followed by its differences.
        """
        for _, group in groupby(results, key=point):
            comparable = []
            for result in group:
                if result.status in AS_DOCUMENTED and result.values:
                    comparable.append(result)
                yield result.model_copy(update={"values": ()})
            yield from self.compare_group(comparable)

    def compare_group(self, group: Sequence[Result]) -> Iterator[Result]:
        """Yield a result for each backend whose values differ from those of the first."""
        if len(group) < 2:
            return
        from gradcheck.case.values import differences  # needs NumPy, without which a run is quicker

        first = group[0]
        for other in group[1:]:
            self.compared += 1
            lines = differences(first.values, other.values, (first.backend, other.backend))
            if lines:
                yield different(first, other, lines)


def point(result: Result) -> tuple[str, str]:
    """Return a key that identifies a scenario at one point of its matrix, whatever the backend."""
    return result.path, result.name.removesuffix(f"@{result.backend}")


def different(first: Result, other: Result, lines: Sequence[str]) -> Result:
    """Return the FAIL for ``id@numpy,paddle@3.0.0``, with the differences."""
    return Result(
        name=f"{first.name},{other.backend}",
        scenario=other.scenario,
        backend=other.backend,
        compared_with=first.backend,
        path=other.path,
        line=other.line,
        column=other.column,
        status=Status.FAIL,
        message=f"both behave as documented, but {lines[0]}",
        details=tuple(lines[1:]),
    )


# -------------------------------------------------------------------------------------- a baseline
BASELINE_FORMAT = "gradcheck-baseline/2"
MOST_BASELINE_BYTES = 10_000_000
"""Some 100,000 failures."""


class Baseline:
    """Known failures by case, so that a gate sees only new ones."""

    def __init__(self, path: Path, known: Mapping[str, KnownFailure]) -> None:
        self.path, self.known = path, dict(known)
        self.fixed: list[str] = []
        """Known failures that now pass."""

    @classmethod
    def read(cls, path: Path, *, new: bool = False) -> Baseline:
        """Return the baseline in a file; with `new` an empty one if there is no such file."""
        if not path.exists():
            if new:
                require_folder(path.parent, f"--baseline {path}")
                return cls(path, {})
            others = [file.name for file in path.parent.glob(f"*{path.suffix}")]
            advice = hint(path.name, others, "--baseline-update writes one")
            raise UserError(f"--baseline {path}: no such file; {advice}")
        try:
            with refusals_of(f"--baseline {path}"):
                content = json.loads(read_limited(path, MOST_BASELINE_BYTES))
            if content["format"] != BASELINE_FORMAT:
                raise ValueError(content["format"])
            failures = content["failures"].items()
            known = {name: KnownFailure.model_validate(value) for name, value in failures}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            problem = "this is not a baseline: name another file, which --baseline-update writes"
            raise UserError(f"--baseline {path}: {problem}") from None
        return cls(path, known)

    def mark_if_known(self, result: Result) -> Result:
        """Return a known failure as an XFAIL unless something new is wrong; other results
        unchanged.
        """
        if result.name not in self.known:
            return result
        known = self.known[result.name]
        if result.status in AS_DOCUMENTED:
            self.fixed.append(result.name)
        if known.status is not result.status:
            return result
        if new := known.new_in(result):
            line = f"in the baseline, but not with this: {', '.join(new)}"
            return result.model_copy(update={"details": (line, *result.details)})
        message = f"in the baseline ({result.status}): {result.message}".removesuffix(": ")
        return result.model_copy(update={"status": Status.XFAIL, "message": message})

    def update(self, results: Iterable[Result]) -> None:
        """Add or update the failures among the results of a run, and remove cases that pass."""
        results = list(results)
        self.prune(results)
        for result in results:
            if result.name in self.known and result.status is Status.XFAIL:
                status = self.known[result.name].status
                self.known[result.name] = KnownFailure.of(result, status)
            elif not result.status.green:
                self.known[result.name] = KnownFailure.of(result)

    def prune(self, results: Iterable[Result]) -> None:
        """Remove cases that pass among the results of a run; cases that were not run stay."""
        for result in results:
            if result.status.green and result.status is not Status.XFAIL:
                self.known.pop(result.name, None)

    def write(self) -> None:
        """Write the file. Raises OSError."""
        failures = {
            name: known.model_dump(mode="json", exclude_none=True)
            for name, known in sorted(self.known.items())
        }
        text = json.dumps({"format": BASELINE_FORMAT, "failures": failures}, indent=1)
        write_whole(self.path, text + "\n")


NO_BASELINE = Baseline(Path(), {})
