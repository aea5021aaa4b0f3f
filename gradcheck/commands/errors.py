"""Usage errors and exit codes: advice on unknown options, and what the system refuses."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from typing import IO, Any

import click

from gradcheck.support.ascii_fallback import HANDLER
from gradcheck.support.escape import one_line
from gradcheck.support.suggest import nearest

USAGE, BUG, NOTHING_SELECTED, INTERRUPTED = 2, 3, 5, 130
"""Exit codes for a wrong call or file, a bug in gradcheck, nothing to do, and Ctrl-C. Exit codes of
`gradcheck run` are in its help.
"""

# Messages of click, and ours in their place, which say what to do in fewer terms of a programmer.
ADVICE = (
    (r"is not a valid float range\.", "is not a number."),
    (r"is not a valid integer range\.", "is not a whole number."),
    (
        r"(Got unexpected extra arguments? \((\w+=[^ )]+).*\))",
        r"\1: write -i before each input, as in -i \2",
    ),
    (
        r"(Got unexpected extra argument \((\d+(?:x\d+)*)\))",
        r"\1: write an input as one word, as in -i x=\2",
    ),
    (r"(No such command '.*')\.$", r"\1: the commands are add and remove."),
    (
        r"(.*'--format'.* '(json|html)' is not one of '(auto|table)'.*)",
        r"\1 A report is written by --report \2:PATH.",
    ),
)


def advised(error: click.ClickException) -> click.ClickException:
    """Return an error, with advice where it is one that is often made."""
    if not isinstance(error, click.UsageError):
        return error
    message = one_line(error.format_message())  # it may quote characters that steer a terminal
    if isinstance(error, click.NoSuchOption):
        message = f"No such option {error.option_name!r}{meant_option(error)}"
    for pattern, better in ADVICE:
        message = re.sub(pattern, better, message, flags=re.DOTALL)
    return click.UsageError(message, error.ctx)


NO_TOLERANCE = "every estimate has a bound of its error; `rtol: 1e-3` in a scenario widens it"
OPTION_ADVICE = {
    **dict.fromkeys(("--rtol", "--atol", "--tol", "--tolerance"), NO_TOLERANCE),
    **dict.fromkeys(
        ("--eps", "--epsilon", "--delta", "--step"),
        "steps are chosen for every entry, each with a bound of its error",
    ),
    "--nondet-tol": "write --nondet 1e-6: a share of the largest entry",
    "--dtype": "`dtype: float32` at an input of a scenario, or its word -i x=2x3:float32",
    "--shape": "write -i x=2x3",
    **dict.fromkeys(("--numprocesses", "--parallel", "--workers", "-n"), "write -j N"),
    **dict.fromkeys(("--html", "--json"), "write --report html:PATH or --report json:PATH"),
    **dict.fromkeys(("--junit", "--junitxml"), "write --report junit:PATH"),
    **dict.fromkeys(("--out", "--output", "-o"), "write --report FORMAT:PATH"),
    **dict.fromkeys(("--failed", "--failed-first", "--ff"), "write --lf"),
    **dict.fromkeys(("--id", "--only"), "write the id without an option"),
    **dict.fromkeys(
        ("--collect-only", "--dry-run", "--list"), "`gradcheck list` shows what there is"
    ),
    **dict.fromkeys(
        ("--cpu", "--cuda", "--device", "--gpu"), "write -b numpy, or -b cupy for a GPU"
    ),
    "-m": "write -t TAG",
    "--allow-code": "this command needs no permission",
    "--verbosity": "write -v",
    "--fail-fast": "write -x",
}
"""Options of other tools, and what to write here: an option only where the command has it."""


def meant_option(error: click.NoSuchOption) -> str:
    """Return what to write in place of an unknown option, as the end of a sentence."""
    context, name = error.ctx, error.option_name
    if context is None:
        return "."
    if isinstance(context.command, click.Group):
        run = context.command.get_command(context, "run")
        if run is not None and any(name in option.opts for option in run.params):
            return f": options stand behind their command, gradcheck run {name}"
    from difflib import SequenceMatcher  # slow to import

    known = list[str]()
    for option in context.command.get_params(context):
        known += [*option.opts, *option.secondary_opts]
    advice = OPTION_ADVICE.get(name, "")
    needed = re.match(r"write (-\S+)", advice)
    if advice and (needed is None or needed[1] in known):
        return f": {advice}."
    near = nearest(name, [word for word in known if word.startswith("--")])
    is_near = near.startswith(name) or SequenceMatcher(None, name, near).ratio() >= LEAST_ALIKE
    return f"; did you mean {near}?" if near and is_near else "."


LEAST_ALIKE = 0.8
"""The similarity, by difflib's measure, from which one option may be a misspelling of another."""


# ------------------------------------------------------------------------- what the system refuses
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing to a file or stream on a full disk."""
REFUSALS = NO_ROOM | {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR,
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
}  # fmt: skip
"""Errors that the system causes: permissions, disk space, limits."""
LONGEST_FILE_NAME = 200
"""Characters of a file's name that a message shows; the name may be refused because it is too
long."""


class Refused(click.ClickException):
    """The system refuses something that a command needs, or a file is not as the user says."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Report it, unless the reader has only stopped reading, as in ``| head``."""
        if self.message:
            click.echo(f"gradcheck: {self.message}", file=file, err=True)


def refusal(error: OSError) -> Refused | None:
    """Return how to report an error of the system; None if it may be a bug in gradcheck."""
    reason = error.strerror or str(error)
    match error.errno:
        case errno.EPIPE:
            return Refused("")
        case errno.ENOENT if not has_current_folder():
            return Refused("the current folder does not exist any more: go to another one")
        case errno.ENOENT if error.filename is None:  # no usable folder for temporary files
            return Refused(reason)
        case number if number not in REFUSALS:
            return None
    if error.filename is not None:
        return Refused(f"{ascii(error.filename)[:LONGEST_FILE_NAME]}: {reason}")
    if error.errno in NO_ROOM:
        return Refused(f"the output could not be written: {reason}")
    return Refused(reason)


def has_current_folder() -> bool:
    """Whether the current folder is still there."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def prepare_streams() -> None:
    """Make sure that the three standard streams are open, and that stdout can show any character,
    if need be as its escape.

    The next file that is opened would get the number of a closed stream, and output would be
    written into it.

    Raises:
        Refused: stdout is closed.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise Refused(
            "stdout is closed, so nothing can be shown: write >/dev/null if that is meant"
        )
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=HANDLER)  # type: ignore[union-attr]


def drop_unwritten() -> None:
    """Drop the text that a stream could not write, so that Python does not try again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
