"""Runs the benchmarks that count verdicts, not seconds, and writes their figures into docs/benchmarks.md.

python docs/examples/benchmarks.py [mutants.py …]      # by default each that the page has a place for
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
SUMMARY = re.compile(r"caught|false alarms|named|verdicts|INCONCLUSIVE")
"""What the lines hold that are shown, of those that a benchmark prints; the last six."""


def main() -> None:
    """Run them, one after the other, and write each into its place as it ends."""
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    machine = f"On {system}, Python {platform.python_version()}, NumPy {version('numpy')}:"
    for name in sys.argv[1:] or re.findall(r"^<!-- (\w+\.py) -->$", PAGE.read_text(encoding="utf-8"), re.M):
        command = [sys.executable, ROOT / "tests/bench" / name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = [line for line in done.stdout.splitlines() if SUMMARY.search(line) and not line.startswith(" ")][-6:]
        shown = "\n".join([machine, "", "```text", f"python tests/bench/{name}", *lines, "```"])
        print(shown)
        place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- / -->)", re.S)
        text = place.sub(lambda found, shown=shown: f"{found[1]}{shown}\n{found[2]}", PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
