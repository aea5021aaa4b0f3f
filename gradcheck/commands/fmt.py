"""``gradcheck fmt``: the format of spec files."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gradcheck.commands.exits import USAGE


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
    from gradcheck.commands.specs import fail, find_specs, nothing_found
    from gradcheck.spec.diagnostic import SpecError
    from gradcheck.spec.formatter import NotKeptError, formatted
    from gradcheck.spec.read import read
    from gradcheck.support.display_paths import count
    from gradcheck.support.escape import escape
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
            raise fail(f"{file} would lose something, which is a bug of gradcheck's; it stays as it is") from None
        except OSError as error:
            raise fail(f"{file}: {error.strerror or error}; it stays as it is") from None
    for mistake in mistakes:
        click.echo(mistake.render(), err=True)
    if not mistakes:
        click.echo(f"{count(len(files), 'file')}, {changed} {'to change' if check else 'changed'}")
    context.exit(USAGE if mistakes else int(check and changed > 0))
