"""What all reports say alike: the lines of one result, safe to print."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gradcheck.resources import bundled_specs
from gradcheck.result import Result, Status, WrongEntry


def safe(text: str) -> str:
    """`text` without control characters, which come from specs and layers and could steer a terminal."""
    return "".join(c if c == "\n" or (c.isprintable() and ord(c) != 0x7F) else f"\\x{ord(c):02x}" for c in text)


def one_line(text: str) -> str:
    """`text` on one line."""
    return safe(" ".join(text.split()))


def shown_path(path: str) -> str:
    """A path as briefly as it can be told: bundled specs as ``specs/…``, others relative to the current folder."""
    bundled = bundled_specs()
    full = Path(path).absolute()
    if full.is_relative_to(bundled):
        return str(Path("specs") / full.relative_to(bundled))
    relative = os.path.relpath(full)
    return safe(relative if len(relative) < len(path) else path)


def place(result: Result) -> str:
    """Where the scenario stands: ``file:line:col``."""
    return f"{shown_path(result.path)}:{result.line}:{result.column}"


def entry_name(entry: WrongEntry) -> str:
    """An element of an input: ``W_hh[1,2]``."""
    return f"{entry.input}[{','.join(map(str, entry.index))}]" if entry.index else entry.input


def number(value: complex | float, digits: int = 8) -> str:
    """A derivative's value."""
    if isinstance(value, complex):
        return f"{value.real:.{digits}g}{value.imag:+.{digits}g}j"
    return f"{value:.{digits}g}"


def entry_table(result: Result, limit: int = 5) -> list[str]:
    """The wrong entries of a gradient as a table: analytic, numeric with its bar, and the relative error."""
    gradient = result.gradient
    if gradient is None or not gradient.wrong:
        return []
    entries = sorted(gradient.wrong, key=lambda entry: -entry.relative_error)[:limit]
    several_outputs = any(entry.output_index or entry.output != "out" for entry in gradient.wrong)
    rows = [("", "analytic", "numeric ± bar", "rel. error")]
    for k, entry in enumerate(entries):
        output = f"{entry.output}[{','.join(map(str, entry.output_index))}]" if entry.output_index else entry.output
        what = f"d {output} / d {entry_name(entry)}" if several_outputs else f"d / d {entry_name(entry)}"
        numeric = f"{number(entry.numeric)} ± {entry.bar:.0e}"
        rows.append((what, number(entry.analytic), numeric, f"{entry.relative_error:.1e}{'  ◀ worst' if not k else ''}"))
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    lines = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]
    total = sum(count for count, _ in gradient.wrong_counts.values())
    return [*lines, *([f"  … and {total - len(entries)} more"] if total > len(entries) else [])]


def failure_block(result: Result, *, allow_code: bool) -> list[str]:
    """What there is to say about a result that is not as expected, line by line."""
    lines = [safe(result.message), *map(safe, result.details), *map(safe, entry_table(result))]
    gradient = result.gradient
    if gradient is not None and result.status is Status.INCONCLUSIVE and gradient.why not in lines:
        lines.append(safe(gradient.why))
    if result.status in (Status.CRASH, Status.TIMEOUT, Status.ERROR) and result.output.strip():
        lines += ["the last it printed:", *(f"  {safe(line)}" for line in result.output.strip().splitlines()[-10:])]
    seed = f" --seed {gradient.seed}" if gradient is not None else ""
    outside = "" if shown_path(result.path).startswith("specs" + os.sep) else f" {shown_path(result.path)}"
    code = " --allow-code" if outside and allow_code else ""
    command = f"gradcheck run{outside}" + (f" -k {result.name}" if outside else f" {result.name}")
    return [*lines, f"again: {command}{seed}{code} -v"]


def summary(results: Iterable[Result], seconds: float) -> str:
    """The last line: how many of each status, worst first, and the time."""
    counts = Counter(result.status for result in results)
    order = [s for s in Status if not s.green] + [s for s in Status if s.green]
    words = [f"{counts[status]} {status}" for status in order if counts[status]]
    return f"{', '.join(words)} in {seconds:.1f} s"
