"""The command line. Commands are loaded when they are used, so that each pays for its own imports alone."""

from __future__ import annotations

import difflib
import os
import platform
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from gradcheck import __version__

COMMANDS = {
    "run": ("gradcheck.commands.run:run", "Run scenarios and check their gradients (default: the bundled ones)."),
    "replay": ("gradcheck.commands.replay:replay", "Run a failed case of the last run again, in full detail."),
    "validate": ("gradcheck.commands.validate:validate", "Check spec files without running anything in them."),
    "list": ("gradcheck.commands.list:list_scenarios", "List scenarios."),
    "show": ("gradcheck.commands.show:show", "Show one scenario: its source, code and expectations."),
    "explain": ("gradcheck.commands.explain:explain", "Explain a diagnosis code, such as GC104."),
    "rules": ("gradcheck.commands.rules:rules", "List the rules of the documents and the scenarios that assert them."),
    "schema": ("gradcheck.commands.schema:schema", "Print the JSON Schema of spec files."),
}
"""Name → where the command is, and the line that ``--help`` shows for it without loading it."""

USAGE, BUG, INTERRUPTED = 2, 3, 130
"""Exit codes that any command may have."""


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

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it; a name that is not there brings up the nearest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"The commands are {', '.join(COMMANDS)}."
            context.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line. What goes wrong ends in a message and an exit code, never in a traceback."""
        standalone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False
        if not standalone:
            return super().main(*args, **kwargs)
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character gets its escape
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            status = super().main(*args, **kwargs)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            if os.environ.get("GRADCHECK_TRACEBACK"):
                raise
            if isinstance(error, ModuleNotFoundError) and not is_ours(error.name):
                click.echo(f"gradcheck: the package {error.name} is missing: pip install {error.name}", err=True)
                sys.exit(USAGE)
            stop_for_bug("".join(traceback.format_exception(error)))
        sys.exit(status if isinstance(status, int) else 0)


def is_ours(module: str | None) -> bool:
    """Whether a module belongs to gradcheck, so that its absence is a bug."""
    return (module or "gradcheck").partition(".")[0] in ("gradcheck", "pylayer")


def stop_for_bug(report: str) -> NoReturn:
    """Keep the report of a bug of ours in a file, name it, and leave with exit code 3.

    Raises:
        SystemExit: always.
    """
    text = (
        f"gradcheck {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {sys.argv[1:]}\n\n{report}"
    )
    path = Path(".gradcheck") / f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        path = Path(tempfile.gettempdir()) / path.name
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    click.echo(f"gradcheck: this is a bug in gradcheck. Please report it with the file {path}", err=True)
    sys.exit(BUG)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradcheck")
def main() -> None:
    """Check the gradients of custom autograd layers, and that the layers keep the documented rules."""
