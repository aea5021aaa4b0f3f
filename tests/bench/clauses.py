"""Take each clause of the verdict (docs/numerics.md, V1 to V30) out of the code, and show which of its tests notice.

    python tests/bench/clauses.py          # all of them
    python tests/bench/clauses.py V9 V12   # some

A test belongs to a clause by its mark: ``@pytest.mark.clause(id="V9")``. Exits with 1 if no test
notices that a clause is gone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ROOM = "gradcheck/checking"


class Clause(NamedTuple):
    """A clause, and the edits that take it out: a file, seen from the room, its text, and what stands there instead."""

    id: str
    edits: tuple[tuple[str, str, str], ...]


def without(id: str, file: str, old: str, new: str, *more: tuple[str, str, str]) -> Clause:
    """A clause that one edit takes out, or several."""
    return Clause(id, ((file, old, new), *more))


CLAUSES = [
    without("V1", "precision.py", "bound = MANY * ", "bound = 0 * MANY * "),
    without("V2", "precision.py", "if not size.ndim or size.shape[-1] < 2:", "if True:"),
    without("V3", "precision.py", "if self.lost().any():", "if False:"),
    without("V4", "precision.py", "output[...] = known", "pass"),
    without("V5", "precision.py", "not is_exact(name.removeprefix(VJP), output)", "True"),
    without("V6", "probe.py", "noise = from_close_values(", "noise = 0 * from_close_values("),
    without("V7", "point.py", "attempts = [(self.inputs, self.runs), ", "attempts = ["),
    without("V8", "point.py", "if tape is None or not self.agrees(tape.outputs):", "if tape is None:",
            ("point.py", ">= FEWEST and self.jumps_carry()", "< 0")),
    without("V9", "probe.py", "if tape is not None and tape.rejects and", "if False and"),
    without("V10", "differences.py", "where=agrees)", "where=finite[1:])"),
    without("V11", "probe.py", "power = known and differences.bar <= POWER * size", "power = known"),
    without("V12", "probe.py", "and not (power and differences.excludes(tape.value))", ""),
    without("V13", "verdict.py", "if comparison.unsure is not None:\n", "if False:\n"),
    without("V14", "verdict.py", "if second.wrong is not None:", "if False:"),
    without("V15", "verdict.py", "in self.parts(masks, probe, second):", "in ():"),
    without("V16", "probe.py", "MOST_PROBES = 3", "MOST_PROBES = 1"),
    without("V17", "verdict.py", "if stays and ", "if False and "),
    without("V18", "kinks.py", "    if tape is None:\n        return None\n", "    if True:\n        return None\n"),
    without("V19", "kinks.py", "        if wrong:\n            text", "        if False:\n            text"),
    without("V20", "kinks.py", "jumps |= abs(values - self.outputs) > CLEAR * explained", "pass"),
    without("V21", "kinks.py", "(beside := wrong_beside(prober, masks))", "(beside := None)"),
    without("V22", "kinks.py", "if value in (slope for slope, _ in sides.values()):", "if True:"),
    without("V23", "verdict.py", "outcome = self.check_own_precision(outcome)", "pass"),
    without("V24", "contracts.py", "differ = [not same(a, b, problem.nondet) for a, b in pairs]", "differ = [False]",
            ("contracts.py", "names = self.names_where(lambda k: not same(first[k], second[k], nondet))",
             "names = ()")),
    without("V25", "contracts.py", "names = self.names_where(is_broken)", "names = ()"),
    without("V26", "contracts.py", "                *self.check_undefined_cotangents(),\n", ""),
    without("V27", "contracts.py", "return [*observed, *diagnoses]", "return diagnoses"),
    without("V28", "../case/never_ran.py", "    if missing:\n", "    if False:\n"),
    without("V29", "../case/function.py", "knows_leaves = False", "knows_leaves = True"),
    without("V30", "contracts.py", '"GC138" if observation.interrupted else "GC132", once', '"GC132", once'),
]  # fmt: skip
"""In the order of docs/numerics.md."""


def take_out(clause: Clause, tree: Path) -> None:
    """Take a clause out of a copy of the code.

    Raises:
        ValueError: its text does not stand there exactly once.
    """
    for file, old, new in clause.edits:
        path = tree / ROOM / file
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{clause.id}: {file} has {text.count(old)} times: {old}")
        path.write_text(text.replace(old, new), encoding="utf-8")


def noticed(clause: Clause) -> tuple[int, int]:
    """How many of a clause's tests fail without it, and how many it has."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".*", "__pycache__", "docs")
        shutil.copytree(ROOT, tree, ignore=left_out)
        take_out(clause, tree)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", f"clause(id='{clause.id}')"]
        done = subprocess.run([*command, "tests/checking"], cwd=tree, capture_output=True, text=True, check=False)
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    bad = counts.get("failed", 0) + counts.get("error", 0)
    return bad, bad + counts.get("passed", 0)


def main(wanted: list[str]) -> int:
    """A line per clause."""
    unnoticed = 0
    for clause in CLAUSES:
        if not wanted or clause.id in wanted:
            failed, tests = noticed(clause)
            unnoticed += not failed
            print(f"{clause.id:4} {failed:4} of {tests:4} tests notice" + "  <-- none" * (not failed))
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
