"""The results of a run: kept small, compared across backends, and held against the failures that a project knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from gradcheck.result import Result, Status
from gradcheck.run.known_failure import KnownFailure
from gradcheck.support.file_io import FileTooLargeError, read_limited, write_whole
from gradcheck.support.user_error import UserError


class Results(Sequence[Result]):
    """A sequence of results that takes a few hundred bytes for each, an eighth of what the objects take."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def append(self, result: Result) -> None:
        """Add a result at the end."""
        self._lines.append(result.model_dump_json(exclude_defaults=True).encode())

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice):
            return [Result.model_validate_json(line) for line in self._lines[index]]
        return Result.model_validate_json(self._lines[index])

    def __len__(self) -> int:
        return len(self._lines)


# ----------------------------------------------------------- outputs and gradients of several backends side by side
COMPARED = (Status.PASS, Status.KINK)
"""Statuses of cases whose values are compared: they do as documented. What others do, their own results say."""


class SideBySide:
    """Results on their way: after those of one scenario on all backends come the differences between them."""

    def __init__(self) -> None:
        self.compared = 0
        """Pairs of cases whose values were compared."""

    def beside(self, results: Iterable[Result]) -> Iterator[Result]:
        """The results, of which those of one scenario at one point of its matrix stand together, without their values;
        and the differences."""
        group: list[Result] = []
        for result in results:
            if result.beside:
                yield result
                continue
            if group and point(result) != point(group[0]):
                yield from self.between(group)
                group = []
            group.append(result)
            yield result.model_copy(update={"values": ()}) if result.values else result
        yield from self.between(group)

    def between(self, group: Sequence[Result]) -> Iterator[Result]:
        """A result for each backend whose values are not those of the first one that does as documented."""
        sound = [one for one in group if one.status in COMPARED and one.values]
        if len(sound) < 2:
            return
        from gradcheck.case.values import (
            differences,
        )  # it needs NumPy, which is not imported where nothing is compared

        for other in sound[1:]:
            self.compared += 1
            lines = differences(sound[0].values, other.values, (sound[0].backend, other.backend))
            if lines:
                yield different(sound[0], other, lines)


def point(result: Result) -> tuple[str, str]:
    """A key that is the same for the results of one scenario at one point of its matrix, whatever their backend."""
    return result.path, result.name.removesuffix(f"@{result.backend}")


def different(one: Result, other: Result, lines: Sequence[str]) -> Result:
    """``id@numpy,paddle@3.0.0``: a FAIL that says what differs."""
    return Result(
        name=f"{one.name},{other.backend}",
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


# --------------------------------------------------------------------------------------------------- a baseline
BASELINE_FORMAT = "gradcheck-baseline/2"
STATUSES_ALONE = "gradcheck-baseline/1"
"""The format that held statuses alone. Of its failures the status alone is known, until an update."""
MOST_BASELINE_BYTES = 10_000_000
"""Some 100,000 failures."""


class Baseline:
    """Case → the failure that is known of it, so that a gate sees only new ones."""

    def __init__(self, path: Path, known: Mapping[str, KnownFailure]) -> None:
        self.path, self.known = path, dict(known)
        self.mended: list[str] = []
        """Known failures that have passed since."""

    @classmethod
    def read(cls, path: Path, *, new: bool = False) -> Baseline:
        """The baseline in a file; an empty one if there is no such file and `new` says that it is to be written."""
        if new and not path.exists():
            return cls(path, {})
        try:
            content = json.loads(read_limited(path, MOST_BASELINE_BYTES))
            if content["format"] not in (BASELINE_FORMAT, STATUSES_ALONE):
                raise ValueError
            return cls(
                path, {name: known_failure(value) for name, value in content["failures"].items()}
            )
        except OSError as error:
            hint = "" if path.exists() else "; --baseline-update writes one"
            raise UserError(f"--baseline {path}: {error.strerror or error}{hint}") from None
        except FileTooLargeError as error:
            raise UserError(f"--baseline {path}: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(
                f"--baseline {path}: this is no baseline; --baseline-update writes one"
            ) from None

    def judged(self, result: Result) -> Result:
        """`result` as an XFAIL if it is a failure that is known, and nothing new is wrong in it; else as it is."""
        known = self.known.get(result.name)
        if known is not None and result.status in (Status.PASS, Status.KINK):
            self.mended.append(result.name)
        if known is None or known.status is not result.status:
            return result
        if new := known.new_in(result):
            line = f"in the baseline, but not with this: {', '.join(new)}"
            return result.model_copy(update={"details": (line, *result.details)})
        message = f"in the baseline ({result.status}): {result.message}".removesuffix(": ")
        return result.model_copy(update={"status": Status.XFAIL, "message": message})

    def write(self, results: Iterable[Result], *, prune: bool) -> None:
        """Write it anew: with `prune` without what passes now, else with all failures among `results` as well.

        Cases that are not among `results` stay as they are.
        """
        found = {result.name: result for result in results}
        kept = {
            name: known
            for name, known in self.known.items()
            if name not in found or self._fails(found[name])
        }
        if not prune:
            kept |= {
                name: KnownFailure.of(result)
                for name, result in found.items()
                if not result.status.green
            }
            for name in kept.keys() & found.keys():
                if found[name].status is Status.XFAIL:  # known, and held as it fails now
                    kept[name] = KnownFailure.of(found[name], kept[name].status)
        failures = {
            name: known.model_dump(mode="json", exclude_none=True)
            for name, known in sorted(kept.items())
        }
        text = json.dumps({"format": BASELINE_FORMAT, "failures": failures}, indent=1)
        write_whole(self.path, text + "\n")
        self.known = kept

    def _fails(self, result: Result) -> bool:
        return not result.status.green or (
            result.status is Status.XFAIL and result.name in self.known
        )


def known_failure(value: Any) -> KnownFailure:
    """A failure as a baseline writes it, in either format."""
    return KnownFailure.model_validate({"status": value} if isinstance(value, str) else value)
