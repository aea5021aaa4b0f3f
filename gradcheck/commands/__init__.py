"""The command line. Commands are loaded when they are used, so that each pays for its own imports alone."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from importlib import import_module
from typing import Any

import click

from gradcheck import __version__

COMMANDS = {
    "run": ("gradcheck.commands.run:run", "Run scenarios and check their gradients (default: the bundled ones)."),
    "validate": ("gradcheck.commands.validate:validate", "Check spec files without running anything in them."),
    "list": ("gradcheck.commands.list:list_scenarios", "List scenarios."),
    "show": ("gradcheck.commands.show:show", "Show one scenario: its source, code and expectations."),
    "schema": ("gradcheck.commands.schema:schema", "Print the JSON Schema of spec files."),
}
"""Name → where the command is, and the line that ``--help`` shows for it without loading it."""


class LazyGroup(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line; a bug of ours leaves a report in a file and exit status 3."""
        try:
            return super().main(*args, **kwargs)
        except Exception:
            if os.environ.get("GRADCHECK_TRACEBACK"):
                raise
            path = write_bug_report(traceback.format_exc())
            click.echo(f"gradcheck: this is a bug in gradcheck. Please report it with the file {path}", err=True)
            sys.exit(3)


def write_bug_report(text: str) -> str:
    """Keep the traceback of a bug of ours in a file; returns its path."""
    with tempfile.NamedTemporaryFile("w", prefix="gradcheck-bug-", suffix=".txt", delete=False) as file:
        file.write(f"gradcheck {__version__}, Python {sys.version}\narguments: {sys.argv[1:]}\n\n{text}")
    return file.name


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradcheck")
def main() -> None:
    """Check the gradients of custom autograd layers, and that the layers keep the documented rules."""
