"""``gradcheck validate``: every mistake in spec files; nothing that they hold is run."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from gradcheck.commands.errors import USAGE
from gradcheck.commands.shared_options import bundled_option
from gradcheck.commands.specs import find_specs, nothing_found
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.read import Given, given_in, interpret, shared_ids
from gradcheck.spec.text import MAX_BYTES, decode, read_text
from gradcheck.support.display_paths import count
from gradcheck.support.escape import WithoutCommands, escape

_MOST_SHOWN = 100


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@bundled_option
@click.option(
    "--format", "layout", type=click.Choice(["text", "json", "github"]), default="text",
    help="How mistakes are printed: for a reader, for programs, or as annotations on GitHub.",
)  # fmt: skip
@click.pass_context
def validate(context: click.Context, paths: tuple[str, ...], bundled: bool, layout: str) -> None:
    """Check spec files, or all *.grad.yaml files below folders, without running anything; ``-`` reads one from stdin.

    Without a PATH those of the project are checked: what [tool.gradcheck] names, or else all below its root. Exits with
    0 if all is well, with 2 if there are mistakes, with 5 if there is no file.
    """
    named = [path for path in paths if path != "-"]
    files, unfit = ([], []) if paths and not named else find_specs(named, bundled=bundled)
    if not files and not unfit and not paths:
        raise nothing_found("validate")
    given: dict[str, list[Given]] = {}
    results: dict[str, list[Diagnostic]] = {one.path: [one] for one in unfit}
    for name in [*map(str, files), *("-" for path in paths if path == "-")]:
        results[name] = []
        try:
            text = (
                read_text(Path(name), name)
                if name != "-"
                else decode(sys.stdin.buffer.read(MAX_BYTES + 1), "-")
            )
            given[name] = given_in(interpret(text))
        except SpecError as error:
            results[name] = error.diagnostics
    for shared in shared_ids(one for ids in given.values() for one in ids):
        results[shared.path].append(shared)
    counts = {path: len(ids) for path, ids in given.items()}
    show = {"text": show_text, "json": show_json, "github": show_github}[layout]
    show(results, counts, context)
    context.exit(USAGE if any(results.values()) else 0)


def show_text(
    results: dict[str, list[Diagnostic]], counts: dict[str, int], context: click.Context
) -> None:
    """Each mistake with its line, a line for each file, and the sum."""
    color = context.color if context.color is not None else sys.stdout.isatty()
    for path, mistakes in results.items():
        for mistake in mistakes[:_MOST_SHOWN]:
            click.echo(mistake.render(color), color=color)
        if len(mistakes) > _MOST_SHOWN:
            click.echo(f"{escape(path)}: and {len(mistakes) - _MOST_SHOWN} more errors")
        verdict = (
            count(len(mistakes), "error") if mistakes else f"ok, {count(counts[path], 'scenario')}"
        )
        click.echo(f"{escape(path)}: {verdict}")
    total = sum(map(len, results.values()))
    scenarios = count(sum(counts.values()), "scenario")
    click.echo(
        f"{count(total, 'error')} in {count(sum(map(bool, results.values())), 'file')} of {len(results)}"
        if total
        else f"{count(len(results), 'file')}, {scenarios}: all valid"
    )


def show_json(
    results: dict[str, list[Diagnostic]], counts: dict[str, int], context: click.Context
) -> None:
    """An object for each file: its path, how many scenarios it has, its mistakes."""
    import json  # here: text does without

    files = [
        {
            "path": path,
            "scenarios": counts.get(path, 0),
            "errors": [asdict(one) for one in mistakes],
        }
        for path, mistakes in results.items()
    ]
    click.echo(json.dumps(files, indent=1))


def show_github(
    results: dict[str, list[Diagnostic]], counts: dict[str, int], context: click.Context
) -> None:
    """An annotation for each mistake; past `without_commands`, which takes commands out of what is printed."""
    from gradcheck.report.github import command

    stream = sys.__stdout__ if isinstance(sys.stdout, WithoutCommands) else sys.stdout
    for mistakes in results.values():
        for one in mistakes:
            said = " ".join(filter(None, [one.message, one.help and f"({one.help})"]))
            print(
                command(one.path, max(one.line, 1), max(one.column, 1), "gradcheck validate", said),
                file=stream,
            )
