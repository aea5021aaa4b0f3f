"""The record of the last run, ``.gradcheck/last.jsonl``: a line per result, written as soon as it is there.

A line is written with one call to the system and is there whatever happens to this process afterwards. A new run
begins a new file and puts it in the place of the old one, so that two runs side by side do not mix their lines.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.result import Result

PATH = Path(".gradcheck") / "last.jsonl"
"""Where the record is, below the current folder."""


class Record(BaseModel):
    """A result, and what it is a result of."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    key: str
    """What `key` gives for the case."""
    seed: int
    timeout: float
    memory: int
    result: Result


class JournalError(Exception):
    """There is no usable record of a run; the message says what to do."""


def key(case: Case) -> str:
    """A digest of everything that a case consists of: the scenario as it stands in the file, parameters and limits."""
    return hashlib.sha256(f"{__version__}\n{case.model_dump_json()}".encode()).hexdigest()[:32]


def read(path: Path = PATH) -> list[Record]:
    """The records in the order in which they were written, the last one for each case.

    A line that is no record, such as one that was being written when the machine stopped, is passed over.

    Raises:
        JournalError: there is no such file, or it cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        raise JournalError(f"there is no {path}: no run has been recorded in this folder") from None
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror or error}") from None
    records: dict[str, Record] = {}
    for line in lines:
        try:
            record = Record.model_validate_json(line)
        except ValidationError:
            continue
        records.pop(record.result.name, None)
        records[record.result.name] = record
    return list(records.values())


def known_results(cases: Iterable[Case], records: Iterable[Record]) -> dict[str, Result]:
    """Name → result of the cases that are recorded just as they are now."""
    recorded = {record.key: record.result for record in records}
    found = ((case.name, recorded.get(key(case))) for case in cases)
    return {name: result for name, result in found if result is not None}


class Journal:
    """The open file: a new one, or with `append` that of the last run.

    A folder in which nothing can be written costs the record, not the run: `problem` says so.
    """

    def __init__(self, *, append: bool, path: Path = PATH) -> None:
        self.problem = ""
        self.fd: int | None = None
        try:
            path.parent.mkdir(exist_ok=True)
            ignore = path.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            if not append:
                new = path.with_name(f"{path.name}.{os.getpid()}")
                self.fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
                new.replace(path)
            else:
                self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
                self._end_last_line()
        except OSError as error:
            self.problem = f"{path}: {error.strerror or error}; this run is not recorded"

    def _end_last_line(self) -> None:
        """A line that the last run did not finish must not spoil the first of this one."""
        assert self.fd is not None
        size = os.lseek(self.fd, 0, os.SEEK_END)
        if size and os.pread(self.fd, 1, size - 1) != b"\n":
            os.write(self.fd, b"\n")

    def append(self, case: Case, result: Result) -> None:
        """Record the result of `case`."""
        if self.fd is None:
            return
        record = Record.model_construct(
            key=key(case), seed=case.seed, timeout=case.timeout, memory=case.memory, result=result
        )
        line = memoryview(record.model_dump_json().encode() + b"\n")
        try:
            while line:
                line = line[os.write(self.fd, line) :]
        except OSError as error:
            self.problem = f"{PATH}: {error.strerror or error}; results from here on are not recorded"
            self.close()

    def close(self) -> None:
        """Close the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
