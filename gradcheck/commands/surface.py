"""``gradcheck surface``: which of Paddle's names a file uses that the bundled engine lacks, before anything runs."""

from __future__ import annotations

import click

from gradcheck.commands.exits import USAGE


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="FILE.py|FOLDER|pkg.module...")
@click.pass_context
def surface(context: click.Context, targets: tuple[str, ...]) -> None:
    """List the names of Paddle's that files use and the bundled engine lacks.

    The files are read, not imported: nothing in them runs. Names of modules, functions and classes are looked up; the
    methods of a Tensor are not, as a file does not say what is one. Exits with 0 if the engine has all names, with 1 if
    it lacks some, with 2 if a file cannot be read.
    """
    import pylayer.paddle as facade
    from gradcheck.escape import escape
    from gradcheck.shown import count
    from gradcheck.surface import files_of, missing_in, uses_in

    files = []
    for target in targets:
        try:
            files += files_of(target)
        except FileNotFoundError as error:
            raise click.UsageError(escape(str(error))) from None
    unread, places = 0, 0
    lacking: dict[str, int] = {}
    for file in dict.fromkeys(files):
        shown = escape(str(file))
        try:
            uses = uses_in(file.read_text(encoding="utf-8"), str(file))
        except SyntaxError as error:
            click.echo(f"{shown}:{error.lineno or 1}:{error.offset or 1}: {error.msg}: this is no Python", err=True)
            unread += 1
            continue
        except (OSError, ValueError, RecursionError) as error:
            click.echo(f"{shown}: cannot be read: {escape(str(error))}", err=True)
            unread += 1
            continue
        for use in uses:
            found = missing_in(facade, use.name)
            if found is None:
                continue
            name, near = found
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            click.echo(f"{shown}:{use.line}:{use.column}: {name} is not part of the bundled engine.{hint}")
            places += 1
            lacking[name] = lacking.get(name, 0) + 1
    read = len(dict.fromkeys(files)) - unread
    counted = f"{count(read, 'file')} read"
    if lacking:
        click.echo(f"{count(len(lacking), 'name')} missing, used in {count(places, 'place')}; {counted}")
    elif read:
        click.echo(f"the bundled engine has all names; {counted}")
    context.exit(USAGE if unread else 1 if lacking else 0)
