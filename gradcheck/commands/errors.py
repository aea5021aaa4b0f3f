"""Usage errors, errors of the operating system, and exit codes; with advice on unknown options."""

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
        r"(Got unexpected extra arguments? \((?:= )?(\d+(?:x\d+)*)\))",
        r"\1: write an input as one word, as in -i x=\2",
    ),
    (r"(No such command '.*')\.$", r"\1: the commands are add and remove."),
    (
        r"(.*'--format'.* '(json|html)' is not one of '(auto|table)'.*)",
        r"\1 A report is written by --report \2:PATH.",
    ),
)


def add_advice(error: click.ClickException) -> click.ClickException:
    """Return an error, with advice added if the mistake is common."""
    if not isinstance(error, click.UsageError):
        return error
    message = one_line(error.format_message())  # it may quote characters that steer a terminal
    command = error.ctx.command if error.ctx else None
    if isinstance(error, click.NoSuchOption) and command is not None:
        message = unknown_option(one_line(error.option_name), command)
        if (
            error.ctx
            and error.ctx.parent
            and find_option(error.ctx.parent.command, error.option_name)
        ):
            message = f"{error.option_name} stands alone: gradcheck {error.option_name}"
    elif isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        message += f" Write {error.param.opts[-1]} {error.param.metavar}."
    elif extra := re.match(r"Got unexpected extra arguments? \(([^ =)]+)", message):
        message += advice_on_extra_word(extra[1], command)
        reference = error.ctx.params.get("reference") if error.ctx else None
        if reference and extra[1].isidentifier() and ":" not in reference:
            message += f": write one word, as in {reference}:{extra[1]}"
    for pattern, better in ADVICE:
        message = re.sub(pattern, better, message, flags=re.DOTALL)
    return click.UsageError(message, error.ctx)


def advice_on_extra_word(word: str, command: click.Command | None) -> str:
    """Return how to write a word, which is no argument of a command, as an option; empty if it is
    none.
    """
    from gradcheck.backends.environments import name_problem  # few mistakes need it

    if word.startswith("-"):
        return ": write options before --"
    if find_option(command, f"--{word}"):
        return f": did you mean --{word}?"
    if option := option_with_choice(command, word):
        return f": write {option.opts[-1]} {word}"
    if word.endswith(".yaml") and find_option(command, "-o"):
        return f": write -o {word}"
    is_backend = find_option(command, "-b") is not None and not name_problem(word)
    return f": write -b {word}" if is_backend else ""


def unknown_option(name: str, command: click.Command) -> str:
    """Return the message for an option that a command does not have."""
    advice = OPTION_ADVICE.get(name, "")
    if advised := re.match(r"write (-\S+)( \S)?", advice):
        option = find_option(command, advised[1])
        if option is None or option.is_flag is bool(advised[2]):
            advice = ""
    if re.fullmatch(r"-\d+", name) and find_option(command, "--kwarg"):
        advice = f"write NAME=VALUE as one word, as in --kwarg axis={name}"
    if advice:
        return f"No such option {name!r}: {advice}."
    words = [word for option in command.params for word in (*option.opts, *option.secondary_opts)]
    form = r"--\w.*" if name.startswith("--") else r"-\w"
    known = {word.lstrip("-"): word for word in words if re.fullmatch(form, word)}
    near = nearest(name.lstrip("-"), known)
    if near:
        return f"No such option {name!r}; did you mean {known[near]}?"
    if find_option(command, "--kwarg"):
        argument = f"--kwarg {name.lstrip('-')}=VALUE"
        advice = f" An input is written -i x=2x3, another argument of the layer {argument}."
    if isinstance(command, click.Group):
        word = name.lstrip("-")
        with click.Context(command) as context:
            if command.get_command(context, word):
                advice = f" Write gradcheck {word}."
            elif follows := command_with_option(command, context, name):
                advice = f" Options follow their command, as in gradcheck {follows} {name}."
    return f"No such option {name!r}.{advice}"


def command_with_option(group: click.Group, context: click.Context, name: str) -> str:
    """Return the first command of a group that has an option; empty if none has it."""
    for command in group.list_commands(context):
        if find_option(group.get_command(context, command), name):
            return command
    return ""


def option_with_choice(command: click.Command | None, word: str) -> click.Option | None:
    """Return the option of a command that has a word among its choices; None if it has none."""
    for option in command.params if command is not None else ():
        choices = getattr(option.type, "choices", ())
        if isinstance(option, click.Option) and word in choices:
            return option
    return None


def find_option(command: click.Command | None, name: str) -> click.Option | None:
    """Return the option of a command with a name; None if it has none."""
    options = command.params if command is not None else ()
    return next((o for o in options if isinstance(o, click.Option) and name in o.opts), None)


NO_TOLERANCE = "every estimate has an error bound; `rtol: 1e-3` in a scenario widens it"
OPTION_ADVICE = {
    **dict.fromkeys(("--rtol", "--atol", "--tol", "--tolerance"), NO_TOLERANCE),
    **dict.fromkeys(
        ("--eps", "--epsilon", "--delta", "--step"),
        "steps are chosen for every entry, each with an error bound",
    ),
    "--nondet-tol": "write --nondet 1e-6: a share of the largest entry",
    "--dtype": "`dtype: float32` at an input of a scenario, or its word -i x=2x3:float32",
    "--shape": "write -i x=2x3",
    **dict.fromkeys(("--numprocesses", "--parallel", "--workers", "-n"), "write -j N"),
    **dict.fromkeys(("--html", "--json"), "write --report html:PATH or --report json:PATH"),
    **dict.fromkeys(("--junit", "--junitxml"), "write --report junit:PATH"),
    **dict.fromkeys(
        ("--out", "--output", "--output-file", "--output-format", "-o"),
        "write --report FORMAT:PATH",
    ),
    **dict.fromkeys(("--failed", "--failed-first", "--ff"), "write --lf"),
    **dict.fromkeys(("--id", "--only", "--select"), "write the id without an option"),
    **dict.fromkeys(("--deselect", "--exclude", "--skip"), "write -k 'not ID'"),
    **dict.fromkeys(("--filter", "--keyword", "--keywords"), "write -k EXPR"),
    **dict.fromkeys(
        ("--collect-only", "--dry-run", "--list"), "`gradcheck list` shows what there is"
    ),
    **dict.fromkeys(
        ("--cpu", "--cuda", "--device", "--gpu"), "write -b numpy, or -b cupy for a GPU"
    ),
    "-m": "write -t TAG",
    "--allow-code": "this command needs no permission",
    "--verbosity": "write -v",
    "--kwarg": "write --call CODE, such as --call 'Own.apply(x, 3)'",
    "--no-color": "write --color never",
    "--force": "existing files stay as they are: remove the file first, to have it anew",
    "--fail-fast": "write -x",
}
"""Options of other tools, with the equivalent here: an option only where the command has it."""


# ------------------------------------------------------------------------- what the system refuses
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing to a file or stream on a full disk."""
REFUSALS = NO_ROOM | {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR,
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
}  # fmt: skip
"""Errors that the operating system causes: permissions, disk space, limits."""
LONGEST_FILE_NAME = 200
"""Characters of a file's name that a message shows; the name may be refused because it is too
long.
"""


class Refused(click.ClickException):
    """The operating system refused something that a command needs, or the user named a wrong
    file.
    """

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Report the error, unless it is only that the reader of a pipe stopped, as in ``|
        head``.
        """
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
    """Whether the current folder still exists."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def prepare_streams() -> None:
    """Make sure that the three standard streams are open, and that stdout can show any character,
    escaped if necessary.

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
            "stdout is closed, so nothing can be shown: write >/dev/null if that is intended"
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
