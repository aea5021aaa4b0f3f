"""Advice on usage errors: what to write in place of an unknown option or a surplus word."""

from __future__ import annotations

import re

import click

from gradcheck.support.escape import one_line
from gradcheck.support.suggest import nearest

# Replacements for messages of click, with advice and less jargon.
ADVICE = (
    (r"is not a valid float range\.", "is not a number."),
    (r"is not a valid integer range\.", "is not a whole number."),
    (
        r"(Got unexpected extra arguments? \((\w+=[^ )]+).*\))",
        r"\1: write -i before each input, as in -i \2",
    ),
    (
        r"(Got unexpected extra arguments? \((?:= )?(\d+(?:x\d+)*)(?: .*)?\))",
        r"\1: an input is one word, as in -i x=\2",
    ),
    (r"(No such command '.*')\.$", r"\1: the commands are add and remove."),
    (
        r"(.*'--format'.* '(json|html)' is not one of '(auto|table)'.*)",
        r"\1 A report is written by --report \2:PATH.",
    ),
)
MOST_LISTED_OPTIONS = 6
"""The most options of a command that a message lists; ``--help`` shows more."""
OUTPUT_OPTIONS = ("--out", "--output", "--output-file", "-o")
"""Options of other tools for a file to write to."""
WHERE_INIT_WRITES = "it sets up the current folder; go to another one first"
ID_ALONE = "write the id without an option"
NO_TOLERANCE = "every estimate has an error bound; `rtol: 1e-3` in a scenario widens it"
OPTION_ADVICE = {
    **dict.fromkeys(
        ("--eps", "--epsilon", "--delta", "--step"),
        "steps are chosen for every entry, each with an error bound",
    ),
    "--nondet-tol": "write --nondet 1e-6, which is relative to the largest entry",
    **dict.fromkeys(
        ("--dtype", "--dtypes"),
        "`dtype: float32` at an input of a scenario, or its word -i x=2x3:float32",
    ),
    **dict.fromkeys(
        ("--nproc", "--nproc-per-node", "--ranks", "--world-size"), "write --world RANKS"
    ),
    **dict.fromkeys(("--lib", "--library", "--template"), "write --framework NAME"),
    **dict.fromkeys(("--grad", "--gradient", "--vjp"), "write --backward PACKAGE.MODULE:FUNCTION"),
    **dict.fromkeys(("--input-shape", "--shape", "--shapes", "--size"), "write -i x=2x3"),
    **dict.fromkeys(("--numprocesses", "--parallel", "--threads", "--workers", "-n"), "write -j N"),
    **dict.fromkeys(("--html", "--json"), "write --report html:PATH or --report json:PATH"),
    **dict.fromkeys(("--junit", "--junitxml", "--xml"), "write --report junit:PATH"),
    **dict.fromkeys((*OUTPUT_OPTIONS, "--output-format"), "write --report FORMAT:PATH"),
    **dict.fromkeys(("--failed", "--failed-first", "--ff", "--last-failed"), "write --lf"),
    **dict.fromkeys(("--case", "--id", "--only", "--scenario", "--select"), ID_ALONE),
    **dict.fromkeys(("--deselect", "--exclude", "--skip"), "write -k 'not ID'"),
    **dict.fromkeys(("--filter", "--keyword", "--keywords"), "write -k EXPR"),
    **dict.fromkeys(
        ("--collect-only", "--dry-run", "--list"),
        "`gradcheck list` shows the scenarios, `gradcheck list codes` the codes",
    ),
    **dict.fromkeys(
        ("--cpu", "--cuda", "--device", "--gpu"),
        "write -b cupy for Paddle's layers on a GPU, and nothing for the CPU",
    ),
    "-m": "write -t TAG",
    "--allow-code": "this command needs no permission",
    "--verbosity": "write -v",
    "--silent": "write -q",
    "--kwarg": "write --call CODE, such as --call 'Own.apply(x, 3)'",
    "--no-color": "write --color never",
    "--force": "an existing file is not overwritten: remove it first",
    **dict.fromkeys(("--fail-fast", "--failfast"), "write -x"),
    **dict.fromkeys(("--apply", "--fix", "--in-place"), "write --write"),
    "--random-seed": "write --seed N",
    "--time-limit": "write --timeout SECONDS",
    **dict.fromkeys(("--duration", "--max-time", "--time"), "write --seconds N"),
}
"""Options of other tools → the equivalent; an equivalent option only if the command has it."""


def add_advice(error: click.ClickException) -> click.ClickException:
    """Return an error, with advice added if the mistake is common."""
    if not isinstance(error, click.UsageError):
        return error
    message = one_line(error.format_message())  # it may quote terminal control characters
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Option):
        if error.param.metavar:
            message += f" Write {error.param.opts[-1]} {error.param.metavar}."
    elif isinstance(error, click.NoSuchOption) and error.ctx:
        message = unknown_option(one_line(error.option_name), error.ctx)
    elif error.ctx and (extra := re.match(r"Got unexpected extra arguments? \(([^ =)]+)", message)):
        advice = advice_on_extra_word(extra[1], error.ctx)
        message = f"{message}: {advice}".removesuffix(": ")
    for pattern, better in ADVICE:
        message = re.sub(pattern, better, message, flags=re.DOTALL)
    return click.UsageError(message, error.ctx)


def unknown_option(name: str, context: click.Context) -> str:
    """Return the message for an option that a command does not have."""
    command, word = context.command, name.lstrip("-")
    message = f"No such option {name!r}"
    if advice := advice_on_option(name, context):
        return f"{message}: {advice}."
    if near := near_option(name, context):
        return f"{message}; did you mean {near}?"
    if isinstance(command, click.Group):
        if command.get_command(context, word):
            return f"{message}. Write gradcheck {word}."
        if follows := command_with_option(context, name):
            return f"{message}. Options follow their command, as in gradcheck {follows} {name}."
    if context.parent and (other := command_with_option(context.parent, name)):
        message += f"; it is an option of gradcheck {other}"
    elif word.isidentifier() and find_option(command, "--kwarg"):
        argument = f"another argument of the layer --kwarg {word}=VALUE"
        return f"{message}. An input is written -i x=2x3, {argument}."
    options = [option.opts[-1] for option in command.params if isinstance(option, click.Option)]
    if 0 < len(options) <= MOST_LISTED_OPTIONS:
        message += f"; the options of {command.name} are {', '.join(options)}"
    return f"{message}."


def advice_on_option(name: str, context: click.Context) -> str:
    """Return the equivalent of an option that a command does not have; empty if none is known."""
    command, word, advice = context.command, name.lstrip("-"), OPTION_ADVICE.get(name, "")
    if advice == ID_ALONE and find_option(command, "--call"):  # it takes a layer
        advice = ""
    if "tol" in name and not advice:
        advice = NO_TOLERANCE
    if advised := re.match(r"write (-\S+)( \S)?", advice):
        option = find_option(command, advised[1])
        if option is None or option.is_flag is bool(advised[2]):
            advice = ""
    if name in OUTPUT_OPTIONS and not advice and not find_option(command, "-o"):
        advice = WHERE_INIT_WRITES if command.name == "init" else "write > FILE after the command"
        advice = "write --save FILE" if find_option(command, "--save") else advice
    if context.parent and find_option(context.parent.command, name):
        advice = f"write gradcheck {name}"
    elif re.fullmatch(r"-\d+", name) and find_option(command, "--kwarg"):
        advice = f"write NAME=VALUE as one word, as in --kwarg axis={name}"
    elif not advice and (option := option_with_choice(command, word)):
        advice = f"write {option.opts[-1]} {word}"
    return advice


def near_option(name: str, context: click.Context) -> str:
    """Return the option of a command that was likely meant; empty if none is similar."""
    options = context.command.get_params(context)  # with --help
    words = [word for option in options for word in (*option.opts, *option.secondary_opts)]
    form = r"--\w.*" if name.startswith("--") else r"-\w"
    known = {word.lstrip("-"): word for word in words if re.fullmatch(form, word)}
    near = known.get(nearest(name.lstrip("-"), known), "")
    is_opposite = name.startswith("--no") and not near.startswith("--no")
    return "" if is_opposite else near


def advice_on_extra_word(word: str, context: click.Context) -> str:
    """Return how to write the first surplus word of a command; empty if that is unknown."""
    command, suffix = context.command, word.rpartition(".")[2]
    if word.startswith("-"):
        return "write options before --"
    if advice := advice_on_bare_word(word, command):
        return advice
    if word in ("split", "replicated") and find_option(command, "--outputs"):
        return "join the words by commas, as in --outputs split,replicated"
    if find_option(command, "--report") and is_format(suffix):
        return f"write --report {suffix}:{word}"
    if command.name == "init":
        return WHERE_INIT_WRITES
    return advice_on_second_name(word, context.params.get("reference", ""), command)


def advice_on_bare_word(word: str, command: click.Command) -> str:
    """Return how to write an option, or the value of one, that was written as a bare word; empty
    if it is neither.
    """
    from gradcheck.backends.environments import name_problem  # few mistakes need it

    if find_option(command, f"--{word}"):
        return f"did you mean --{word}?"
    if option := option_with_choice(command, word):
        return f"write {option.opts[-1]} {word}"
    return f"write -b {word}" if find_option(command, "-b") and not name_problem(word) else ""


def advice_on_second_name(word: str, reference: str, command: click.Command) -> str:
    """Return how to write a word that follows the reference to a layer; empty if that is
    unknown.
    """
    if reference == "lambda":
        return "write the whole lambda in quotes"
    if word.endswith(".yaml") and find_option(command, "-o"):
        return f"write -o {word}"
    joined = ""
    if reference.endswith(".yaml"):
        joined = f"{reference}::{word}"
    elif reference and word.endswith(".yaml"):
        joined = f"{word}::{reference}"
    elif reference and word.isidentifier() and ":" not in reference:
        joined = f"{reference}:{word}"
    return joined and f"write one word, as in {joined}"


def command_with_option(context: click.Context, name: str) -> str:
    """Return the first command in a context's group that has an option; empty if none does."""
    group = context.command
    if not isinstance(group, click.Group):
        return ""
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


def is_format(word: str) -> bool:
    """Whether a word is the name of a report format."""
    from gradcheck.report.files import FORMATS  # completing ids needs no report

    return word in FORMATS
