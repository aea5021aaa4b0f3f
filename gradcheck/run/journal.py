"""The record of the last run, ``.gradcheck/last.jsonl``: a line per result, written at once.

A line is written with one system call, so that it is complete whatever happens to this process
afterwards. A new run begins a new file that replaces the old one, so that concurrent runs do not
mix their lines.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.result import Result
from gradcheck.support.user_error import UserError, refusals_of
from gradcheck.support.work_folder import FOLDER_PATH, make_folder

JOURNAL_PATH = FOLDER_PATH / "last.jsonl"
"""The journal's path."""


class Record(BaseModel):
    """A result, and the case that it belongs to."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    key: str
    """The digest of the case, from `key`."""
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    timeout: Annotated[float, Field(gt=0, le=86_400)]
    memory: Annotated[int, Field(gt=0, lt=2**60)]
    result: Result


@dataclass(frozen=True)
class JournalContents:
    """Contents of the file."""

    records: Sequence[Record] = ()
    """The last record of each case, in the order of writing."""
    skipped: int = 0
    """The number of lines that are not records, such as one cut short when the machine stopped."""

    def failures(self) -> dict[str, str]:
        """Return the names of the cases that failed, each with the file of its scenario."""
        red = [record.result for record in self.records if not record.result.status.green]
        return {name: result.path for result in red for name in result.cases}

    def known_results(self, cases: Iterable[Case]) -> dict[str, Result]:
        """Return, by name, the results of the cases that have not changed since they were
        recorded.
        """
        recorded = {
            record.key: record.result for record in self.records if not record.result.compared_with
        }
        keys = {case.name: key(case) for case in cases}
        return {name: recorded[key] for name, key in keys.items() if key in recorded}


def key(case: Case) -> str:
    """Return a digest of everything that determines a case: scenario, parameters and limits."""
    return hashlib.sha256(f"{__version__}\n{case.model_dump_json()}".encode()).hexdigest()[:32]


def read_journal(path: Path = JOURNAL_PATH) -> JournalContents:
    """Return the content of the file. Raises UserError: there is no such file, or it cannot be
    read.
    """
    records: dict[str, Record] = {}
    skipped = 0
    if not path.exists():
        raise UserError(
            f"no last run is recorded in this folder ({path}): `gradcheck run` records one"
        )
    with refusals_of(path), path.open("rb") as file:
        for line in file:
            try:
                record = Record.model_validate_json(line)
            except ValidationError:
                skipped += 1
                continue
            records.pop(record.result.name, None)
            records[record.result.name] = record
    return JournalContents(tuple(records.values()), skipped)


def skipped_message(count: int) -> str:
    """Return the message about the lines that were skipped."""
    lines, they = ("a line", "it is") if count == 1 else (f"{count} lines", "they are")
    return f"{JOURNAL_PATH}: {lines} incomplete, or of another version of gradcheck: {they} skipped"


@dataclass
class Journal:
    """The open file. If writing fails, the record is lost, but the run continues."""

    descriptor: int = field(default_factory=lambda: os.open(os.devnull, os.O_WRONLY))
    """The file descriptor; that of the null device if nothing is recorded."""
    problem: str = ""
    """The reason why nothing is recorded any more."""

    def append(self, case: Case, result: Result) -> None:
        """Record the result of `case`."""
        record = Record.model_construct(
            key=key(case), seed=case.seed, timeout=case.timeout, memory=case.memory, result=result
        )
        line = record.model_dump_json().encode() + b"\n"
        try:
            if os.write(self.descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, "the disk is full")
        except OSError as error:
            self.problem = (
                f"{JOURNAL_PATH}: {error.strerror}; results from here on are not recorded"
            )
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.descriptor)


def open_journal(*, go_on: bool = False, path: Path = JOURNAL_PATH) -> Journal:
    """Open a new file, or with `go_on` the existing one."""
    try:
        make_folder(path.parent)
        return Journal(open_for_append(path) if go_on else open_new(path))
    except OSError as error:
        return Journal(problem=f"{path}: {error.strerror}; this run is not recorded")


def open_new(path: Path) -> int:
    """Open a new file in place of `path`; a run that is still writing the old one keeps it."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    os.replace(new, path)
    return descriptor


def open_for_append(path: Path) -> int:
    """Open the existing file for appending, after a last line that may be incomplete. Raises
    OSError.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return descriptor
