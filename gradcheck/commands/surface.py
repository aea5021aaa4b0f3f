"""``gradcheck surface``: which of Paddle's names a file uses that the bundled engine lacks, before anything runs."""

from __future__ import annotations

import click

from gradcheck.commands.errors import USAGE

MOST_HINTS = 50
"""Missing names of which the nearest are looked for: each takes a millisecond or two."""


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="FILE.py|FOLDER|pkg.module...")
@click.pass_context
def surface(context: click.Context, targets: tuple[str, ...]) -> None:
    """List the names of Paddle's that files use and the bundled engine lacks.

    The files are read, not imported: nothing in them runs. Names of modules, functions and classes are looked up, the
    keyword arguments of functions, and what is asked of contexts and of what is told to be a Tensor: what a function
    returned, and what backward is given. Exits with 0 if the engine has all names, with 1 if it lacks some, with 2 if a
    file cannot be read.
    """
    import pylayer.paddle as facade
    from gradcheck.support import gc_pause as garbage
    from gradcheck.support.bounded import read_bounded
    from gradcheck.support.display_paths import count
    from gradcheck.support.escape import escape
    from gradcheck.support.missing_names import MOST_CODE, files_of, missing_in, near_to, uses_in

    files = []
    for target in targets:
        try:
            files += files_of(target)
        except FileNotFoundError as error:
            raise click.UsageError(escape(str(error))) from None
    unread, places = 0, 0
    hints: dict[str, str] = {}
    for file in dict.fromkeys(files):
        shown = escape(str(file))
        try:
            text = read_bounded(file, MOST_CODE).decode("utf-8-sig")
            with garbage.kept():
                uses = uses_in(text, str(file), facade)
        except (SyntaxError, RecursionError, MemoryError, OverflowError, OSError, ValueError) as error:
            click.echo(f"{shown}:{escape(why_unread(error))}", err=True)
            unread += 1
            continue
        for use in uses:
            found = (f"paddle.{use.name}", None) if use.of_object else missing_in(facade, use.name)
            if found is None:
                continue
            name, module = found
            if name not in hints:
                near = near_to(name, module) if module is not None and len(hints) < MOST_HINTS else []
                hints[name] = f" Did you mean {' or '.join(near)}?" if near else ""
            click.echo(f"{shown}:{use.line}:{use.column}: {name} is not part of the bundled engine.{hints[name]}")
            places += 1
    read = len(dict.fromkeys(files)) - unread
    counted = f"{count(read, 'file')} read"
    if hints:
        click.echo(f"{count(len(hints), 'name')} missing, used in {count(places, 'place')}; {counted}")
    elif read:
        click.echo(f"the bundled engine has all names; {counted}")
    context.exit(USAGE if unread else 1 if hints else 0)


def why_unread(error: Exception) -> str:
    """Where and why a file is no Python that can be read, to stand behind its name and a colon."""
    match error:
        case SyntaxError():
            return f"{error.lineno or 1}:{error.offset or 1}: {error.msg}: this is no Python"
        case RecursionError() | MemoryError() | OverflowError():
            return " cannot be read: it is too deeply nested for Python's parser"
        case OSError():
            return f" cannot be read: {error.strerror or error}"
    return f" cannot be read: {error}"
