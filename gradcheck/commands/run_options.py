"""What the values of the options of ``gradcheck run`` mean."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from gradcheck.backends.base import BACKENDS, missing, unsupported
from gradcheck.commands.specs import fail
from gradcheck.config import Config
from gradcheck.report.files import FORMATS


def chosen_backends(names: Sequence[str], ids: Sequence[str], config: Config, required: bool) -> list[str]:
    """Those of ``-b``, or of the case names among `ids`, or of the configuration, or numpy; commas separate as well.

    Raises:
        SystemExit: there is no such backend, or one that is required, or the bundled engine itself, cannot be used.
    """
    wanted = [name.strip() for word in names for name in word.split(",")]
    in_cases = [name for name in (id.rpartition("@")[2] for id in ids if "@" in id) if name in BACKENDS]
    chosen = list(dict.fromkeys(wanted or in_cases or config.backends or ["numpy"]))
    for name in chosen:
        if name not in BACKENDS:
            near = difflib.get_close_matches(name, BACKENDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"the backends are {', '.join(BACKENDS)}"
            raise fail(f"there is no backend {name!r}; {hint}")
        reason = missing(name) or unsupported(name)
        if reason and (required or not BACKENDS[name].extra):
            raise fail(f"backend {name}: {reason}")
    return chosen


def report_file(text: str) -> tuple[str, Path]:
    """The format and the path in ``FORMAT:PATH``.

    Raises:
        SystemExit: there is no such format, or no such folder.
    """
    name, _, path = text.partition(":")
    if name not in FORMATS or not path:
        raise fail(
            f"--report {text}: write FORMAT:PATH, such as json:results.json; the formats are {', '.join(FORMATS)}"
        )
    if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
        raise fail(f"--report {text}: {path} cannot be a file: it is a folder, or its folder does not exist")
    return name, Path(path)


def number_of_jobs(jobs: str | int) -> int:
    """How many cases run at a time.

    Raises:
        SystemExit: `jobs` is neither ``auto`` nor a number from 1 on.
    """
    if jobs == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not str(jobs).isdecimal() or int(jobs) < 1:
        raise fail(f"-j {jobs}: write a number from 1 on, or auto")
    return int(jobs)


def shard_numbers(text: str) -> tuple[int, int]:
    """The two numbers of ``I/N``.

    Raises:
        ValueError: it is not that, or I is not from 1 to N.
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"--shard {text}: write I/N, such as 1/4 to 4/4")
    return int(match[1]), int(match[2])
