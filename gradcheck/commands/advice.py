"""What click says of a command line, with what to write."""

from __future__ import annotations

import re

import click

# What click says, and what is said in its place: more of what to do, and in fewer terms of a programmer.
ADVICE = (
    (r"is not a valid float range\.", "is not a number."),
    (r"is not a valid integer range\.", "is not a whole number."),
    (r"(Got unexpected extra argument \((\w+=[^)]+)\))", r"\1: an input stands behind -i, as in -i \2"),
    (r"(.*'--format'.* '(json|html)' is not one of '(auto|table)'.*)", r"\1 A report is written by --report \2:PATH."),
)


def advised(error: click.ClickException) -> click.ClickException:
    """An error, with advice where it is one that is often made."""
    if not isinstance(error, click.UsageError):
        return error
    message = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.parent is None:
        run = error.ctx.command.get_command(error.ctx, "run") if isinstance(error.ctx.command, click.Group) else None
        if run is not None and any(error.option_name in option.opts for option in run.params):
            message += f" Options stand behind their command: gradcheck run {error.option_name}"
    for said, better in ADVICE:
        message = re.sub(said, better, message, flags=re.DOTALL)
    return click.UsageError(message, error.ctx)
