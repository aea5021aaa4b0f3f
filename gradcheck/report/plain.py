"""The report for pipes and logs: one line per result, status word first, then its name; failures as indented blocks."""

from __future__ import annotations

from gradcheck.report.text import entry_name, failure_block, one_line, place
from gradcheck.result import Result


def result_line(result: Result) -> str:
    """``FAIL lstm-cell@numpy specs/rnn.grad.yaml:12:5 W_hh[1,2] rel=3.2e-02 bar=5e-13 0.41s``, never truncated."""
    parts = [str(result.status), result.name, place(result)]
    if result.gradient is not None and result.gradient.wrong and not result.status.green:
        worst = max(result.gradient.wrong, key=lambda entry: entry.relative_error)
        parts.append(f"{entry_name(worst)} rel={worst.relative_error:.1e} bar={worst.bar:.0e}")
    elif result.message:
        parts.append(one_line(result.message))
    return " ".join([*parts, f"{result.seconds:.2f}s"])


def result_lines(result: Result, *, verbose: bool = False, allow_code: bool = False) -> list[str]:
    """The line of a result, and its block where it is not as expected."""
    lines = [result_line(result)]
    if not result.status.green or (verbose and result.details):
        lines += [f"    {line}" for text in failure_block(result, allow_code=allow_code) for line in text.splitlines()]
    return lines
