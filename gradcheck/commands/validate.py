"""``gradcheck validate`` and ``fmt``: every mistake in spec files, and their format; nothing that they hold is run."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from gradcheck.commands.errors import USAGE
from gradcheck.commands.shared_options import bundled_option
from gradcheck.commands.specs import find_specs, nothing_found
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.text import MAX_BYTES, SpecText, decode, read_text
from gradcheck.spec.validated import Given, Validated, shared_ids
from gradcheck.support.display_paths import count
from gradcheck.support.escape import WithoutCommands, escape
from gradcheck.support.user_error import UserError

_MOST_SHOWN = 100


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@bundled_option
@click.option(
    "--format", "layout", type=click.Choice(["text", "json", "github"]), default="text",
    help="How mistakes are printed: for a reader, for programs, or as annotations on GitHub.",
)  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Look at every file, also at those that were valid before.")
@click.pass_context
def validate(context: click.Context, paths: tuple[str, ...], bundled: bool, layout: str, no_cache: bool) -> None:
    """Check spec files, or all *.grad.yaml files below folders, without running anything; ``-`` reads one from stdin.

    Without a PATH those of the project are checked: what [tool.gradcheck] names, or else all below its root. Exits with
    0 if all is well, with 2 if there are mistakes, with 5 if there is no file.
    """
    named = [path for path in paths if path != "-"]
    files, unfit = ([], []) if paths and not named else find_specs(named, bundled=bundled)
    if not files and not unfit and not paths:
        raise nothing_found("validate")
    given: dict[str, list[Given]] = {}
    before = None if no_cache else Validated()
    results: dict[str, list[Diagnostic]] = {one.path: [one] for one in unfit}
    for name in [*map(str, files), *("-" for path in paths if path == "-")]:
        results[name] = []
        try:
            text = read_text(Path(name), name) if name != "-" else decode(sys.stdin.buffer.read(MAX_BYTES + 1), "-")
            given[name] = ids_in(text, before)
        except SpecError as error:
            results[name] = error.diagnostics
    if before is not None:
        before.write()
    for shared in shared_ids(one for ids in given.values() for one in ids):
        results[shared.path].append(shared)
    counts = {path: len(ids) for path, ids in given.items()}
    show = {"text": show_text, "json": show_json, "github": show_github}[layout]
    show(results, counts, context)
    context.exit(USAGE if any(results.values()) else 0)


def ids_in(text: SpecText, before: Validated | None) -> list[Given]:
    """Where a valid file gives its ids: as found before, or by reading it now. Raises SpecError: it has mistakes."""
    if before is not None and (known := before.get(text)) is not None:
        return known
    from gradcheck.spec.read import given_in, interpret  # here: it loads the model

    ids = given_in(interpret(text))
    if before is not None:
        before.add(text, ids)
    return ids


def show_text(results: dict[str, list[Diagnostic]], counts: dict[str, int], context: click.Context) -> None:
    """Each mistake with its line, a line for each file, and the sum."""
    color = context.color if context.color is not None else sys.stdout.isatty()
    for path, mistakes in results.items():
        for mistake in mistakes[:_MOST_SHOWN]:
            click.echo(mistake.render(color), color=color)
        if len(mistakes) > _MOST_SHOWN:
            click.echo(f"{escape(path)}: and {len(mistakes) - _MOST_SHOWN} more errors")
        verdict = count(len(mistakes), "error") if mistakes else f"ok, {count(counts[path], 'scenario')}"
        click.echo(f"{escape(path)}: {verdict}")
    total = sum(map(len, results.values()))
    scenarios = count(sum(counts.values()), "scenario")
    click.echo(
        f"{count(total, 'error')} in {count(sum(map(bool, results.values())), 'file')} of {len(results)}"
        if total
        else f"{count(len(results), 'file')}, {scenarios}: all valid"
    )


def show_json(results: dict[str, list[Diagnostic]], counts: dict[str, int], context: click.Context) -> None:
    """An object for each file: its path, how many scenarios it has, its mistakes."""
    import json  # here: text does without

    files = [
        {"path": path, "scenarios": counts.get(path, 0), "errors": [asdict(one) for one in mistakes]}
        for path, mistakes in results.items()
    ]
    click.echo(json.dumps(files, indent=1))


def show_github(results: dict[str, list[Diagnostic]], counts: dict[str, int], context: click.Context) -> None:
    """An annotation for each mistake; past `without_commands`, which takes commands out of what is printed."""
    from gradcheck.report.github import command

    stream = sys.__stdout__ if isinstance(sys.stdout, WithoutCommands) else sys.stdout
    for mistakes in results.values():
        for one in mistakes:
            said = " ".join(filter(None, [one.message, one.help and f"({one.help})"]))
            print(command(one.path, max(one.line, 1), max(one.column, 1), "gradcheck validate", said), file=stream)


@click.command("fmt")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Change nothing; list the files that would be changed.")
@click.pass_context
def fmt(context: click.Context, paths: tuple[str, ...], check: bool) -> None:
    """Mend the format of spec files, or of all *.grad.yaml files below folders; what they say stays the same.

    Indentation is by two, no line ends with spaces, and where one is longer than 110 characters the brackets in it are
    opened, and its text goes on in the next. Style, quotes, order, blank lines and comments stay. Without a PATH, the
    project's files: what [tool.gradcheck] names, or else all below its root. A file is replaced as a whole or not at
    all. Exits with 0; with 1 if --check found something to change; with 2 if a file has mistakes, which are shown as by
    `gradcheck validate`, and stays as it is; with 5 if there is no file.
    """
    from gradcheck.spec.formatter import NotKeptError, formatted
    from gradcheck.spec.read import read
    from gradcheck.support.whole_file import replace

    files, mistakes = find_specs(paths)
    if not files and not mistakes:
        raise nothing_found()
    changed = 0
    for file in files:
        try:
            read(file)
            before = file.read_bytes()
            after = formatted(before, str(file))
            if after != before:
                changed += 1
                if not check:
                    replace(Path(os.path.realpath(file)), after)  # a link stays one
                click.echo(f"{escape(str(file))}: {'would be changed' if check else 'changed'}")
        except SpecError as error:
            mistakes += error.diagnostics
        except NotKeptError:
            raise UserError(f"{file} would lose something, which is a bug of gradcheck's; it stays as it is") from None
        except OSError as error:
            raise UserError(f"{file}: {error.strerror or error}; it stays as it is") from None
    for mistake in mistakes:
        click.echo(mistake.render(), err=True)
    if not mistakes:
        click.echo(f"{count(len(files), 'file')}, {changed} {'to change' if check else 'changed'}")
    context.exit(USAGE if mistakes else int(check and changed > 0))
