"""The option ``--report`` and its values."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gradcheck.commands.shared_options import begun
from gradcheck.report.files import FORMATS, list_formats
from gradcheck.support.file_io import require_folder
from gradcheck.support.suggest import nearest
from gradcheck.support.user_error import UserError

STDOUT = Path("/dev/stdout")
"""The file of the report ``FORMAT:-``; the screen of the run then goes to stderr."""


def complete_reports(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Formats of reports, each with its colon."""
    return begun((f"{name}:" for name in list_formats()), typed)


report_option = click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH", shell_complete=complete_reports,
    help=f"Write {', '.join(FORMATS)}, or a format of an installed package; repeatable.",
)  # fmt: skip


def report_files(
    texts: Sequence[str], formats: Sequence[str] = (), in_folder: str = ""
) -> list[tuple[str, Path]]:
    """Return the format and the path of each ``FORMAT:PATH``; the paths must differ.

    `formats` are the available formats, by default those of a run's reports; for the format
    `in_folder`, the path is a folder.
    """
    files: dict[Path, str] = {}
    known = formats or (list_formats() if texts else ())
    for text in texts:
        name, path = report_file(text, known, in_folder)
        if path in files:
            first = f"{files[path]}:{path}"
            raise UserError(
                f"--report {first}: another report is written to {path}, too: name another file"
            )
        files[path] = name
    return [(name, path) for path, name in files.items()]


def results_shown(files: Sequence[tuple[str, Path]]) -> AbstractContextManager[object]:
    """Return a block in which results are shown: on stderr if a report goes to stdout."""
    is_taken = any(path == STDOUT for _, path in files)
    return redirect_stdout(sys.stderr) if is_taken else nullcontext()


def report_file(text: str, formats: Sequence[str], in_folder: str) -> tuple[str, Path]:
    """Return the format and the path of a ``FORMAT:PATH``."""
    name, _, path = text.partition(":")
    if name not in formats or not path:
        raise UserError(f"--report {text}: {meant_report(text, formats)}")
    if another := re.search(rf"[,;\s]+(?=({'|'.join(formats)}):)", path):
        each = f"--report {name}:{path[: another.start()]} --report {path[another.end() :]}"
        raise UserError(f"--report {text}: write each report separately, as in {each}")
    file = Path(path.strip())
    if path == "-":
        return name, STDOUT
    if (file.is_dir() or path.endswith("/")) and name != in_folder:
        raise UserError(f"--report {text}: {path} is a folder: name a file in it")
    folder = file if name == in_folder else file.parent
    require_folder(folder, f"--report {text}")
    return name, file


def require_bare_path(option: str, text: str, prefixes: Collection[str] = FORMATS) -> None:
    """Raise UserError if a format precedes a path where only a path is expected."""
    prefix, _, path = text.partition(":")
    if path and prefix in prefixes and not Path(text).exists():
        raise UserError(f"{option}{text}: write the path alone: {option}{path}")


def meant_report(text: str, formats: Sequence[str]) -> str:
    """Return the advice for a ``--report`` without a known format or a path."""
    name, _, path = text.replace("=", ":").partition(":")
    suffix = Path(text).suffix.removeprefix(".")
    if not path and suffix in formats:
        name, path = suffix, text
    if path in formats:
        return f"did you mean {path}:{name}?"
    if path and (near := nearest(name, formats)):
        return f"did you mean {near}:{path}?"
    known = ", ".join(formats)
    return f"write FORMAT:PATH, such as json:results.json; the formats are {known}"
