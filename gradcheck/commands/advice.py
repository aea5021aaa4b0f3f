"""Advice on usage errors: what to write in place of an unknown option or a surplus word."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
        r"(No such command '.*')\.$",
        r"\1: the commands are add and remove; `gradcheck backends` alone lists all.",
    ),
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
NOT_OVERWRITTEN = "an existing file is not overwritten: remove it first"
ONLY_FOR = {WHERE_INIT_WRITES: ("init",), NOT_OVERWRITTEN: ("explore", "init", "new")}
"""Advice → the commands for which it is right."""
ID_ALONE = "write the id without an option"
TYPED_WORDS = "gradcheck.commands.words"
"""The key of ``Context.meta`` for the words of the command line."""
LISTED_BY = {"backends": "list backends", "explain": "list codes", "run": "list", "show": "list"}
"""Command → the one that lists its subjects."""
OPTION_ADVICE = {
    **dict.fromkeys(
        ("--eps", "--epsilon", "--delta", "--step"),
        "steps are chosen for every entry, each with an error bound",
    ),
    "--nondet-tol": "write --nondet 1e-6, which is relative to the largest entry",
    **dict.fromkeys(
        ("--dtype", "--dtypes"),
        (
            "write -i x=2x3:float32, the dtype after the shape",
            "`dtype: float32` at an input of a scenario sets it",
        ),
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
    "--output-format": "write --report FORMAT:PATH",
    **dict.fromkeys(
        OUTPUT_OPTIONS,
        (
            "write -o FILE",
            "write --save FILE",
            "write --report FORMAT:PATH",
            "write --pytest DIR",
            WHERE_INIT_WRITES,
            "write > FILE after the command",
        ),
    ),
    "--save": "write -o FILE",
    **dict.fromkeys(("--fast", "--fast-mode", "--fast_mode"), "write --mode probe"),
    **dict.fromkeys(("--gradgrad", "--gradgradcheck", "--second-order"), "write --order 2"),
    "--ff": "write --lf",
    **dict.fromkeys(("--case", "--id", "--only", "--scenario", "--select"), ID_ALONE),
    **dict.fromkeys(("--deselect", "--exclude", "--skip"), "write -k 'not ID'"),
    **dict.fromkeys(("--filter", "--keyword", "--keywords"), "write -k EXPR"),
    **dict.fromkeys(
        ("--cpu", "--cuda", "--device", "--gpu"),
        "write -b cupy for Paddle's layers on a GPU, and nothing for the CPU",
    ),
    "-m": "write -t TAG",
    "--allow-code": "this command needs no permission",
    "--verbosity": "write -v",
    "--silent": "write -q",
    "--kwarg": (
        "write --call CODE, such as --call 'Own.apply(x, 3)'",
        "`kwargs: {axis: -1}` in the scenario sets it",
    ),
    "--nondet": "`nondet: 1e-6` in the scenario sets it",
    "--no-color": "write --color never",
    "--force": NOT_OVERWRITTEN,
    **dict.fromkeys(("--fail-fast", "--failfast"), "write -x"),
    **dict.fromkeys(("--apply", "--fix", "--in-place"), "write --write"),
    "--random-seed": "write --seed N",
    "--time-limit": "write --timeout SECONDS",
    **dict.fromkeys(("--duration", "--max-time", "--time"), "write --seconds N"),
}
"""Options of other tools → the equivalent, or several, of which the first that applies is meant."""
OPTION_PATTERNS = (
    (
        r"--(?:\w+-)?[ar]?tol(?:erances?)?(?:-\w+)?",
        "every estimate has an error bound; `rtol: 1e-3` in a scenario widens it",
    ),
    (
        r"--(?:(?:last|only|re-?play|re-?run|re-?try)-)?fail(?:ed|ing|ures)(?:-(?:first|only))?",
        "write --lf",
    ),
)
"""Patterns of such options that are not in the table."""


def add_advice(error: click.ClickException) -> click.ClickException:
    """Return an error, with advice added if the mistake is common."""
    if not isinstance(error, click.UsageError):
        return error
    message = one_line(error.format_message())  # it may quote terminal control characters
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Option):
        wrong, choices = re.search("'([^']*)' is not one of", message), choices_of(error.param)
        if wrong and (near := nearest(wrong[1], choices)):
            message += f" Did you mean {near}?"
        elif error.param.metavar:
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
    if isinstance(command, click.Group) and context.parent is None:
        return early_option(name, context)
    if advice := advice_on_option(name, context):
        return f"{message}: {advice}."
    if near := near_option(name, context):
        return f"{message}; did you mean {near}?"
    if context.parent and (other := command_with_option(context.parent, name)):
        message += f"; it is an option of gradcheck {other}"
    elif word.isidentifier() and find_option(command, "--kwarg"):
        argument = f"if {word} is another argument of the layer, write --kwarg {word}=VALUE"
        return f"{message}. An input is written -i x=2x3; {argument}."
    options = [option.opts[-1] for option in command.params if isinstance(option, click.Option)]
    if 0 < len(options) <= MOST_LISTED_OPTIONS:
        message += f"; the options of {command.name} are {', '.join(options)}"
    return f"{message}."


def early_option(name: str, context: click.Context) -> str:
    """Return the message for an unknown option in front of the command."""
    group, message = context.command, f"No such option {name!r}"
    assert isinstance(group, click.Group)
    words = context.meta.get(TYPED_WORDS, ())
    typed = {word: command for word in words if (command := group.get_command(context, word))}
    having = [word for word, command in typed.items() if find_option(command, name)]
    if not typed and (first := command_with_option(context, name)):
        having = [first]
    for follows in having:
        return f"{message}. Options follow their command, as in gradcheck {follows} {name}."
    if near := near_option(name, context):
        return f"{message}; did you mean {near}?"
    for word, command in typed.items():
        return unknown_option(name, click.Context(command, context, word))
    is_command = group.get_command(context, name.lstrip("-"))
    return f"{message}. Write gradcheck {name.lstrip('-')}." if is_command else f"{message}."


def advice_on_option(name: str, context: click.Context) -> str:
    """Return the equivalent of an option that a command does not have; empty if none is known."""
    command, word = context.command, name.lstrip("-")
    if context.parent and find_option(context.parent.command, name):
        return f"write gradcheck {name}"
    lists = LISTED_BY.get(command.name or "", "")
    if lists and name in ("--collect-only", "--dry-run", "--list"):
        return f"write gradcheck {lists}"
    if lists not in ("", "list") and name == "--json":
        return f"write gradcheck {lists} --json"
    advice = OPTION_ADVICE.get(name, ())
    several = [advice] if isinstance(advice, str) else [*advice]
    several += [each for pattern, each in OPTION_PATTERNS if re.fullmatch(pattern, name)]
    for each in several:
        if applies(each, command):
            return each
    option = option_with_choice(command, word)
    return f"write {option.opts[-1]} {word}" if option else ""


def applies(advice: str, command: click.Command) -> bool:
    """Whether advice is right for a command: the command has the option that it names."""
    if advice == ID_ALONE:
        return find_option(command, "--call") is None  # with it, the command takes a layer
    if advice in ONLY_FOR:
        return command.name in ONLY_FOR[advice]
    advised = re.match(r"write (-\S+)( \S)?", advice)
    option = find_option(command, advised[1]) if advised else None
    return advised is None or (option is not None and option.is_flag is not bool(advised[2]))


def near_option(name: str, context: click.Context) -> str:
    """Return the option of a command that was likely meant; empty if none is similar."""
    options = context.command.get_params(context)  # with --help
    words = [word for option in options for word in (*option.opts, *option.secondary_opts)]
    form = r"--\w.*" if name.startswith("--") else r"-\w"
    known = {word.lstrip("-"): word for word in words if re.fullmatch(form, word)}
    near = known.get(nearest(name.lstrip("-"), known), "")
    return near or " or ".join(word for word in known.values() if word.startswith(name))


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

    if word in ("all", "everything"):
        return "leave it out: without a name, all scenarios of the project are meant"
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
        if isinstance(option, click.Option) and word in choices_of(option):
            return option
    return None


def choices_of(option: click.Option) -> Sequence[str]:
    """Return the words that an option takes; none if it takes any."""
    choices: Sequence[str] = getattr(option.type, "choices", ())
    return choices


def find_option(command: click.Command | None, name: str) -> click.Option | None:
    """Return the option of a command with a name; None if it has none."""
    options = command.params if command is not None else ()
    return next((o for o in options if isinstance(o, click.Option) and name in o.opts), None)


def is_format(word: str) -> bool:
    """Whether a word is the name of a report format."""
    from gradcheck.report.files import FORMATS  # completing ids needs no report

    return word in FORMATS
