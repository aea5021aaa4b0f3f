"""Mistakes in the words of a command line that are found before it is parsed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import click

from gradcheck.commands.advice import find_option
from gradcheck.support.escape import one_line
from gradcheck.support.suggest import nearest, require_one_name
from gradcheck.support.user_error import UserError

_PARTS = r"([A-Za-z_]\w*)(?:\n=\n|\n=|=\n|\n)([^-=:\s][^=\s]*|-\d[^=\s]*)(?=\n|$)"
"""A name and its value on lines of their own, perhaps with the sign between them."""
PREFIX, VARIABLES = "GRADCHECK_", ("ALLOW_CODE", "ENVIRONMENTS", "START")
"""The names of the environment variables that gradcheck reads: their beginning, and each ending."""


def is_quoted_line(word: str) -> bool:
    """Whether a word is a layer together with options, as in ``"$ARGUMENTS"``."""
    from gradcheck.commands.specs import layer_of_word

    first, *others = word.split() or [""]
    has_options = any(re.fullmatch("-[a-z]|--[a-z-]+", other) for other in others)
    return has_options and bool(layer_of_word(first))


def require_whole_words(words: Sequence[str]) -> None:
    """Raise UserError if a word is empty, several words or in quotes, or sets a short option with
    ``=``.
    """
    words = [one_line(word) for word in words]
    for before, word in zip(["gradcheck", *words], words, strict=False):
        if not word:
            without = (
                f"remove {before} as well" if before.startswith("-") else "remove the argument"
            )
            raise UserError(
                f"an empty argument follows {before}: is a shell variable unset? Set it, "
                f"or {without}"
            )
        if " " in word and is_quoted_line(word):
            raise UserError(f"{word!r} is one argument: write {word} without quotes")
        if re.fullmatch("--[a-z-]+=", word):
            raise UserError(f"{word} has no value: is a shell variable unset?")
        if re.fullmatch("(--[a-z-]+=)?['\"‘’“”].*['\"‘’“”]", word, re.DOTALL):
            raise UserError(f"{word}: these quotes are part of the word; remove them")
        if short := re.fullmatch("(-[a-z])=(.*)", word, re.DOTALL):
            raise UserError(f"{word}: write {short[1]} {short[2]}")


def require_values(command: click.Command | None, words: Sequence[str]) -> None:
    """Raise UserError if a value follows an option that takes none, an option one that takes a
    value, or if an option has too many or too few dashes.
    """
    for option, word in pairwise(["", *words]):
        if dashed := re.fullmatch(r"[-–—]{1,2}(\w[\w-]*)", word.partition("=")[0]):
            right = ("-" if len(dashed[1]) == 1 else "--") + dashed[1]
            if dashed[0] != right and find_option(command, right):
                raise UserError(f"{word}: write {right}")
        found = find_option(command, option)
        if found is None or found.count:
            continue
        if found.is_flag and word in ("yes", "no", "true", "false", "on", "off", "0", "1"):
            raise UserError(f"{option} takes no value: remove {word}")
        if not found.is_flag and find_option(command, word):
            raise UserError(f"{option} has no value: {word} follows it")


def require_joined_values(command: click.Command | None, words: Sequence[str]) -> None:
    """Raise UserError if the value of an option such as ``--kwarg NAME=VALUE`` is several words."""
    for place, word in enumerate(words):
        option = find_option(command, word)
        if option is None or not (option.metavar or "").startswith("NAME="):
            continue
        parts = re.match(_PARTS, "\n".join(words[place + 1 :]))
        if parts and is_value(parts[1], parts[2], option):
            typed = " ".join(parts[0].split())
            raise UserError(f"{word} {typed}: write {word} {parts[1]}={parts[2]}")


def is_value(name: str, word: str, option: click.Option) -> bool:
    """Whether a word can be a value of ``--kwarg``, or an input of ``-i``."""
    from gradcheck.commands.specs import layer_of_word
    from gradcheck.spec.input_words import InputWordError, inputs_of_words  # loads the model

    if option.metavar == "NAME=VALUE":
        return not layer_of_word(word)
    with suppress(InputWordError):
        return bool(inputs_of_words([f"{name}={word}"], letters=True))
    return False


def require_fitting_quotes(command: click.Command | None, words: Sequence[str]) -> None:
    """Raise UserError if quotes join several paths, or words of which one is an option; or if they
    are missing around a path with a space, or around an expression.
    """
    has_names = find_option(command, "-k")  # words of other commands may be code, such as x -i
    for before, word in pairwise(["", *words]):
        path = f"{before} {word}"
        if os.path.exists(path) and not (os.path.exists(before) or os.path.exists(word)):
            raise UserError(f"{path!r} is one path with a space: write it in quotes")
        option = find_option(command, before)
        is_value = before.startswith("-") and not (option and option.is_flag)
        is_alone = is_value or word.startswith("-") or os.path.exists(word)
        operators = {"and", "or", "not"}.intersection([word] if is_alone else word.split())
        if operators and has_names:
            raise UserError(f"{word!r}: write the whole expression after -k or -t, in quotes")
        options = [each for each in word.split()[1:] if has_names or each.startswith("--")]
        if any(find_option(command, each) for each in options):
            raise UserError(f"{word!r} is not one word; write its words separately")
        if not is_alone:
            require_one_name(word, os.path.exists)


def report_misspelt_variables() -> None:
    """Print which variables of the environment may be misspelt ones of gradcheck."""
    for name in os.environ:
        ending = name.removeprefix(PREFIX)
        if ending == name or ending in VARIABLES:
            continue
        if near := nearest(ending, VARIABLES):
            text = f"{one_line(name)} is not read; did you mean {PREFIX}{near}?"
            click.echo(f"gradcheck: {text}", err=True)
