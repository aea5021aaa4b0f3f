"""The record of the last run, ``.gradcheck/last.jsonl``: a line per result, written as soon as it is there.

A line is written with one call to the system and is there whatever happens to this process afterwards. A new run
begins a new file and puts it in the place of the old one, so that two runs side by side do not mix their lines.

This process alone writes it. Lines of other hands, such as a case that appends some or whoever gave us the folder, are
not believed: each of ours carries the run it belongs to, and a digest under a key that only this user can read. It lies
outside every project, and is no secret from code that runs as this user and goes to read it: no file can be.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.result import Result
from gradcheck.run.answer import AnswerError, result_from_answer
from gradcheck.run.child import MOST_ANSWER
from gradcheck.run.folder import FOLDER_PATH, NO_LINK, Folder, FolderError
from gradcheck.run.limits import shown_size
from gradcheck.support.user_dirs import is_this_users, state_folder
from gradcheck.support.user_error import UserError
from gradcheck.support.whole_file import write_all

JOURNAL_PATH = FOLDER_PATH / "last.jsonl"
"""Where the record is, below the current folder."""


class Record(BaseModel):
    """A result, and what it is a result of."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    run: str
    """Which run: a random name that `--resume` and `--lf` keep."""
    key: str
    """What `key` gives for the case."""
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    timeout: Annotated[float, Field(gt=0, le=86_400)]
    memory: Annotated[int, Field(gt=0, lt=2**60)]
    result: Result


class JournalContents(NamedTuple):
    """What is to be believed of the file."""

    run: str
    """The run that began it."""
    records: list[Record]
    """The last one for each case, in the order in which they were written."""
    passed_over: int
    """How many lines are not whole, or not of that run."""


MOST_JOURNAL_BYTES = 1 << 30
"""Bytes of the file that are read: a million results, or ten thousand with the values of large Tensors."""
MOST_STRANGE = 100_000
"""Lines that may be no records of the run; where more are, something else writes the file."""
MOST_LINE = 2 * MOST_ANSWER
"""Bytes of a line: an answer, and what stands around it."""
NOTHING = JournalContents("", [], 0)
"""What a run begins with that does not go on with an earlier one."""


def key(case: Case) -> str:
    """A digest of everything that a case consists of: the scenario as it stands in the file, parameters and limits."""
    return hashlib.sha256(f"{__version__}\n{case.model_dump_json()}".encode()).hexdigest()[:32]


def read_journal(path: Path = JOURNAL_PATH) -> JournalContents:
    """What the file has of the run that began it. Raises UserError: there is no such file, or it cannot be read.

    A line that is no record of it is passed over, such as one that was being written when the machine stopped, or one
    that something else than gradcheck wrote.
    """
    try:
        seal = Seal()
        with Folder(path.parent) as where, open(where.open(path.name, os.O_RDONLY), "rb") as file:
            return contents_of(file, seal)
    except FileNotFoundError:
        raise UserError(f"no last run is recorded in this folder ({path}): `gradcheck run` records one") from None
    except (FolderError, SealError) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def contents_of(file: BinaryIO, seal: Seal) -> JournalContents:
    """What is to be believed of an open file, of which no more is held than a line and the last record of each case.

    Raises UserError: it is larger than `MOST_JOURNAL_BYTES`, or next to nothing in it is a record.
    """
    records: dict[str, Record] = {}
    run, strange = "", 0
    if os.fstat(file.fileno()).st_size > MOST_JOURNAL_BYTES:
        raise UserError(f"{JOURNAL_PATH} is larger than {shown_size(MOST_JOURNAL_BYTES)}: remove it")
    while line := file.readline(MOST_LINE):  # one that is longer comes in pieces, none of which is a record
        record = record_in(line, seal)
        run = run or (record.run if record else "")
        if record is None or record.run != run:
            strange += 1
            if strange > MOST_STRANGE:
                raise UserError(f"{JOURNAL_PATH} is no record of a run: remove it")
            continue
        records.pop(record.result.name, None)
        records[record.result.name] = record
    return JournalContents(run, list(records.values()), strange)


def passed_over(recorded: JournalContents) -> str:
    """A word about the lines that are not believed."""
    count = recorded.passed_over
    lines, they = (f"{count} lines", "they are") if count > 1 else ("a line", "it is")
    return f"{JOURNAL_PATH}: {lines} not written by this user's run, or not whole: {they} passed over"


# ------------------------------------------------------------------------------------- a line, and its digest
KEY_SIZE = 32
"""Bytes of the key: as many as SHA-256 gives; RFC 2104 advises against fewer."""


class SealError(Exception):
    """There is no usable key; the message says why."""


class Seal:
    """This user's key, made if there is none yet. Raises SealError: it cannot be had, or others could read it."""

    def __init__(self) -> None:
        try:
            kept = state_folder()
            kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.key = read_key(kept / "journal.key")
        except OSError as error:
            raise SealError(f"{error.filename or 'the key of the record'}: {error.strerror or error}") from None

    def digest(self, line: bytes) -> bytes:
        """The 64 hexadecimal digits that only this key gives for `line` (HMAC-SHA-256)."""
        return hmac.digest(self.key, line, "sha256").hex().encode()

    def fits(self, line: bytes, digest: bytes) -> bool:
        """Whether `digest` is that of `line`."""
        return hmac.compare_digest(self.digest(line), digest)


def read_key(path: Path) -> bytes:
    """The key in the file, made if there is none. Raises SealError: the file is not this user's alone."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINK, 0o600)
    try:
        status = os.fstat(fd)
        if not is_this_users(status) or (os.name == "posix" and status.st_mode & 0o077):
            raise SealError(f"{path} is open to other users: remove it, and a new one is made")
        if status.st_size < KEY_SIZE:  # of several runs that append at the same time, all read what the first one wrote
            os.write(fd, os.urandom(KEY_SIZE))
        os.lseek(fd, 0, os.SEEK_SET)
        return os.read(fd, KEY_SIZE)
    finally:
        os.close(fd)


BEFORE, BETWEEN, AFTER = b'{"seal":"', b'","record":', b"}"
DIGITS = 64


def record_line(record: Record, seal: Seal) -> bytes:
    """A line of the file: JSON, with the digest of the record's own bytes."""
    text = record.model_dump_json().encode()
    return b"".join((BEFORE, seal.digest(text), BETWEEN, text, AFTER, b"\n"))


def record_in(line: bytes, seal: Seal) -> Record | None:
    """The record that `line` holds; None if it is not whole, or the digest is not that of the record.

    A last line that lacks only its end of line is whole: its digest says so, and the next line is written below it.
    """
    line = line.removesuffix(b"\n")
    if not line.startswith(BEFORE):
        return None
    digest = line[len(BEFORE) : len(BEFORE) + DIGITS]
    text = line[len(BEFORE) + DIGITS + len(BETWEEN) : -len(AFTER)]
    if not seal.fits(text, digest) or line != b"".join((BEFORE, digest, BETWEEN, text, AFTER)):
        return None
    try:
        return Record.model_validate_json(text)
    except ValidationError:  # of another version
        return None


def known_results(cases: Iterable[Case], records: Iterable[Record]) -> dict[str, Result]:
    """Name → result of the cases that are recorded just as they are now."""
    recorded = {record.key: record.result for record in records if not record.result.beside}
    found = {}
    for case in cases:
        if (result := recorded.get(key(case))) is not None:
            with suppress(AnswerError):  # it is none of this case, whoever has written it
                found[case.name] = result_from_answer(case, result.model_dump(exclude_defaults=True))
    return found


class Journal:
    """The open file: a new one, or that of the `run` to go on with.

    What cannot be written safely costs the record, not the run: `problem` says so.
    """

    def __init__(self, run: str = "", path: Path = JOURNAL_PATH) -> None:
        self.run, self.path = run or os.urandom(8).hex(), path
        self.problem = ""
        self.fd: int | None = None
        try:
            self.seal = Seal()
            with Folder(path.parent, create=True) as where:
                where.keep_out_of_git()
                self.fd = self._open(where, go_on=bool(run))
        except (FolderError, SealError) as error:
            self.problem = f"{error}; this run is not recorded"
        except OSError as error:
            self.problem = f"{path}: {error.strerror or error}; this run is not recorded"

    def _open(self, where: Folder, go_on: bool) -> int:
        if not go_on:
            return where.replace(self.path.name, os.O_WRONLY | os.O_APPEND)
        fd = where.open(self.path.name, os.O_RDWR | os.O_APPEND)
        size = os.lseek(fd, 0, os.SEEK_END)
        os.lseek(fd, max(0, size - 1), os.SEEK_SET)
        if os.read(fd, 1) not in (b"", b"\n"):  # a line that was not finished must not spoil the next one
            os.write(fd, b"\n")
        return fd

    def append(self, case: Case, result: Result) -> None:
        """Record the result of `case`."""
        if self.fd is None:
            return
        record = Record.model_construct(
            run=self.run, key=key(case), seed=case.seed, timeout=case.timeout, memory=case.memory, result=result
        )
        try:
            write_all(self.fd, record_line(record, self.seal))
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror or error}; results from here on are not recorded"
            self.close()

    def close(self) -> None:
        """Close the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
