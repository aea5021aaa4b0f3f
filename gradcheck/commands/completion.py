"""What a shell completes: scenarios, codes, backends, formats of reports. Nothing is run, and no model is loaded."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


def begun(words: Iterable[str], typed: str) -> list[CompletionItem]:
    """Those of `words` that begin as what is typed does."""
    return [CompletionItem(word) for word in words if word.startswith(typed)]


def scenarios(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Ids of the project's scenarios and of gradcheck's own; and files, which the shell completes by itself."""
    from gradcheck.commands.specs import find_specs
    from gradcheck.spec.diagnostic import SpecError
    from gradcheck.spec.outline import outlines
    from gradcheck.support.pyproject import ConfigError
    from gradcheck.support.resources import bundled_files

    ids: dict[str, None] = {}
    try:
        files = find_specs(())[0]
    except ConfigError:
        files = []
    for file in [*files, *bundled_files()]:
        try:
            ids |= dict.fromkeys(one.id for one in outlines(file) or ())
        except SpecError:
            continue  # `gradcheck validate` says what is wrong with it
    return [*begun(ids, typed), CompletionItem(typed, type="file")]


def codes_and_scenarios(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Codes of diagnoses, in small letters or capitals, and ids of scenarios."""
    from gradcheck.codes import CODES

    found = begun(CODES, typed.upper())
    return found or scenarios(context, parameter, typed)


def complete_backends(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Backends, and releases that have an environment; the last of those that commas separate."""
    from gradcheck.backends.base import BACKENDS
    from gradcheck.backends.environments import made_environments

    before = typed[: typed.rfind(",") + 1]
    return begun((before + name for name in [*BACKENDS, *made_environments()]), typed)


def reports(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Formats of reports, each with its colon."""
    from gradcheck.report.files import FORMATS

    return begun((f"{name}:" for name in FORMATS), typed)
