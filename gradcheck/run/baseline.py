"""A baseline: failures that a project knows and has not mended yet, so that a gate sees only new ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from gradcheck.result import Result, Status
from gradcheck.support.bounded import UnfitFileError, read_bounded
from gradcheck.support.user_error import UserError
from gradcheck.support.whole_file import write_whole

FORMAT = "gradcheck-baseline/1"
MOST_BASELINE_BYTES = 10_000_000
"""Some 100,000 failures."""


class BaselineError(UserError):
    """A baseline that cannot be used; the message says what to do."""


class Baseline:
    """Case → the status with which it is known to fail."""

    def __init__(self, path: Path, known: Mapping[str, str]) -> None:
        self.path, self.known = path, dict(known)
        self.mended: list[str] = []
        """Known failures that have passed since."""

    @classmethod
    def read(cls, path: Path, *, new: bool = False) -> Baseline:
        """The baseline in a file; an empty one if there is no such file and `new` says that it is to be written.

        Raises:
            BaselineError: there is no such file, or it is no baseline.
        """
        if new and not path.exists():
            return cls(path, {})
        try:
            content = json.loads(read_bounded(path, MOST_BASELINE_BYTES, plain=False))
            failures = content["failures"] if content["format"] == FORMAT else None
        except OSError as error:
            hint = "" if path.exists() else "; --baseline-update writes one"
            raise BaselineError(f"--baseline {path}: {error.strerror or error}{hint}") from None
        except UnfitFileError as error:
            raise BaselineError(f"--baseline {path}: {error}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            failures = None
        if not isinstance(failures, dict) or not all(one in [*Status] for one in failures.values()):
            raise BaselineError(f"--baseline {path}: this is no baseline; --baseline-update writes one")
        return cls(path, failures)

    def judged(self, result: Result) -> Result:
        """`result` as an XFAIL if it is a failure that is known, with the same status; else as it is."""
        known = self.known.get(result.name)
        if known is not None and result.status in (Status.PASS, Status.KINK):
            self.mended.append(result.name)
        if known != result.status:
            return result
        message = f"in the baseline ({result.status}): {result.message}".removesuffix(": ")
        return result.model_copy(update={"status": Status.XFAIL, "message": message})

    def write(self, results: Iterable[Result], *, prune: bool) -> None:
        """Write it anew: with `prune` without what passes now, else with all failures among `results` as well.

        Cases that are not among `results` stay as they are.
        """
        found = {result.name: result for result in results}
        kept = {name: status for name, status in self.known.items() if name not in found or self._fails(found[name])}
        if not prune:
            kept |= {name: str(result.status) for name, result in found.items() if not result.status.green}
        text = json.dumps({"format": FORMAT, "failures": dict(sorted(kept.items()))}, indent=1)
        write_whole(self.path, text + "\n")
        self.known = kept

    def _fails(self, result: Result) -> bool:
        return not result.status.green or (result.status is Status.XFAIL and result.name in self.known)
