"""``gradcheck fmt``: spec files in their canonical form."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gradcheck.commands.exits import USAGE


@click.command("fmt")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Change nothing; list the files that are not in canonical form.")
@click.pass_context
def fmt(context: click.Context, paths: tuple[str, ...], check: bool) -> None:
    """Write spec files, or all *.grad.yaml files below folders, in canonical form; what they say stays the same.

    Keys stand in the order of `gradcheck schema`, short values on one line, code as a block; comments are kept. Without
    a PATH, the project's files: what [tool.gradcheck] names, or else all below its root. A file is replaced as a whole
    or not at all. Exits with 0; with 1 if --check found something to change; with 2 if a file has mistakes, which are
    shown as by `gradcheck validate`, and stays as it is; with 5 if there is no file.
    """
    from gradcheck.commands.specs import fail, find_specs, nothing_found
    from gradcheck.escape import escape
    from gradcheck.pyproject import ConfigError
    from gradcheck.shown import count
    from gradcheck.spec.diagnostic import SpecError
    from gradcheck.spec.read import read
    from gradcheck.spec.write import NotKeptError, formatted
    from gradcheck.whole_file import replace

    try:
        files, mistakes = find_specs(paths)
    except ConfigError as error:
        raise fail(str(error)) from None
    if not files and not mistakes:
        raise nothing_found()
    changed = 0
    for file in files:
        try:
            read(file)
            before = file.read_bytes()
            after = formatted(before, str(file)).encode()
            if after != before:
                changed += 1
                if not check:
                    replace(Path(os.path.realpath(file)), after)  # a link stays one
                click.echo(f"{escape(str(file))}: {'is not in canonical form' if check else 'written'}")
        except SpecError as error:
            mistakes += error.diagnostics
        except NotKeptError:
            raise fail(f"{file} would lose something, which is a bug of gradcheck's; it stays as it is") from None
        except OSError as error:
            raise fail(f"{file}: {error.strerror or error}; it stays as it is") from None
    for mistake in mistakes:
        click.echo(mistake.render(), err=True)
    if not mistakes:
        click.echo(f"{count(len(files), 'file')}, {changed} {'to write' if check else 'written'}")
    context.exit(USAGE if mistakes else int(check and changed > 0))
