"""The command line. Each command is imported when it is used, so that the others cost nothing."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from gradcheck import __version__
from gradcheck.commands.advice import TYPED_WORDS, add_advice, command_with_option
from gradcheck.commands.command_words import (
    report_misspelt_variables,
    require_fitting_quotes,
    require_joined_values,
    require_values,
    require_whole_words,
)
from gradcheck.commands.errors import (
    INTERRUPTED,
    Refused,
    drop_unwritten,
    prepare_streams,
    refusal,
)
from gradcheck.support.escape import WithoutCommands, one_line, safe
from gradcheck.support.suggest import nearest
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "run": ("run:run", "Run scenarios and check their gradients (default: the project's)."),
    "check": ("check:check", "Check one layer of your module, without a spec file."),
    "explore": ("explore:explore", "Search for sizes and values at which a layer is wrong."),
    "derive": (
        "derive:derive",
        "Print the right backward of a layer, or the edit that repairs it.",
    ),
    "new": ("check:new", "Write a commented scenario for a layer, from its signature."),
    "init": ("init:init", "Lay out a project: specs, schema, settings, workflow."),
    "replay": ("replay:replay", "Run a failed case of the last run again, in full detail."),
    "validate": ("validate:validate", "Check spec files without running anything in them."),
    "list": ("listing:list_all", "List scenarios, rules, codes or backends."),
    "show": ("show:show", "Show a scenario, a rule or a diagnosis code in full."),
    "compare": ("compare:compare", "Show what has changed from one JSON report to another."),
    "explain": ("show:explain", "Explain a diagnosis code such as GC104."),
    "backends": ("backends:backends", "List backends; add releases of Paddle."),
    "matrix": ("matrix:matrix", "Show the behaviour of each release under each rule."),
    "export": ("export:export", "Write the suite as plain pytest files that need only Paddle."),
    "schema": ("init:schema", "Print the JSON Schema of spec files."),
}
"""Name → the command's attribute in this package, and its line in ``--help``."""
OTHER_COMMANDS = {
    "help": "`gradcheck COMMAND --help` shows the options of a command",
    "lint": "`gradcheck validate` checks spec files",
    "test": "`gradcheck run` runs scenarios",
    "version": "`gradcheck --version` prints it",
    "rules": "`gradcheck list rules` lists the rules, `gradcheck show RULE` shows one",
    "fmt": "yamlfmt or prettier format spec files",
    "trust": "write `allow-code = true` under [tool.gradcheck] in pyproject.toml, or run with "
    "--allow-code",
    **dict.fromkeys(
        ("complete", "completion", "completions"),
        'add eval "$(_GRADCHECK_COMPLETE=bash_source gradcheck)" to ~/.bashrc, or with zsh_source '
        "to ~/.zshrc",
    ),
    "surface": "`gradcheck run` lists at its end the names that the bundled engine lacks",
}
"""Commands that were removed, or that only other tools have, with the replacement."""


class LazyGroup(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return [*COMMANDS]  # not `list`: that is the module of the command here, once it is loaded

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names with their lines of help; no command is imported."""
        from click.shell_completion import CompletionItem  # slow to import

        items = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items()]
        if incomplete.startswith("-"):
            return super().shell_complete(context, incomplete)
        return [item for item in items if item.value.startswith(incomplete)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), attribute)
        return command

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse the words in front of the command; all words are kept for advice."""
        context.meta[TYPED_WORDS] = [*args]
        return super().parse_args(context, args)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, with a suggestion for an unknown name."""
        if not context.resilient_parsing:  # True during shell completion
            require_whole_words(args)
            if args[0] not in COMMANDS and not args[0].startswith("-"):
                context.fail(self.unknown_command(context, args))
        name, command, words = super().resolve_command(context, args)
        if not context.resilient_parsing:
            require_values(command, words)
            require_joined_values(command, words)
            require_fitting_quotes(command, words)
        return name, command, words

    def unknown_command(self, context: click.Context, args: list[str]) -> str:
        """Return the message for arguments that do not begin with a command."""
        from gradcheck.commands.specs import layer_of_word, parse_target

        name = one_line(args[0])
        layer, path = layer_of_word(name), parse_target(name).path
        advice = OTHER_COMMANDS.get(name, "")
        if name.partition(" ")[0] in COMMANDS:
            advice = f"write {name} without quotes"
        elif layer:
            advice = f"write {command_first([layer, *args[1:]], 'check')}"
        elif path:
            advice = f"write {command_first(args, 'run')}"
        if command := command_with_option(context, f"--{name}"):
            advice = advice or f"it is an option, `gradcheck {command} --{name}`"
        near = nearest(name, COMMANDS)
        if not near and not COMMANDS.keys().isdisjoint(args):
            advice = advice or f"write {command_first(args, '')}"
        if advice:
            return f"There is no command {name!r}: {advice}."
        commands = f"the commands are {', '.join(COMMANDS)}"
        if "-" in name or "@" in name:
            commands += f"; if this is a scenario, `gradcheck run {name}` runs it"
        meant = f"did you mean {near}?" if near else commands
        return f"No such command {name!r}; {meant}."

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        """Run the command; user errors and errors of the operating system are not reported as bugs.

        Raises Refused: a user error, or an error of the operating system.
        """
        try:
            return super().invoke(context)
        except UserError as error:
            raise Refused(safe(str(error)), error.status) from error
        except OSError as error:
            refused = refusal(error)
            if refused is None:
                raise
            raise refused from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line. Every error ends in a message and an exit code, never in a
        traceback.
        """
        standalone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False
        if not standalone:
            return super().main(*args, **kwargs)
        try:
            prepare_streams()
            if os.environ.get("GITHUB_ACTIONS"):  # its runner executes commands in the log
                sys.stdout, sys.stderr = WithoutCommands(sys.stdout), WithoutCommands(sys.stderr)
            status = super().main(*args, **kwargs)
        except click.ClickException as error:
            with suppress(OSError):  # stderr is closed too
                add_advice(error).show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            from gradcheck.commands.bugs import stop_for

            stop_for(error)
        finally:
            drop_unwritten()
        sys.exit(status if isinstance(status, int) else 0)


def command_first(words: list[str], usual: str) -> str:
    """Return a command line with the command among its words in front, or else the usual one."""
    command = next((word for word in words if word in COMMANDS), usual)
    others = [word for word in words if word != command]
    return one_line(shlex.join(["gradcheck", command, *others]))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradcheck")
def main() -> None:
    """Check the gradients of custom autograd layers, and that the layers keep the documented
    rules.
    """
    report_misspelt_variables()
