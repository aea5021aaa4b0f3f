"""Runs the benchmarks that count verdicts, not seconds, and writes their figures into docs/benchmarks.md.

python docs/examples/benchmarks.py
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
COUNTED = {"mutants.py": r"caught|false alarms", "causes.py": r""}
"""Benchmark → which of the lines that it prints are shown; by default the last three."""


def main() -> None:
    """Run them, one after the other."""
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    machine = f"{system}, Python {platform.python_version()}, NumPy {version('numpy')}"
    parts = [f"Measured on {machine}.\n"]
    for name, wanted in COUNTED.items():
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, ROOT / "tests/bench" / name], capture_output=True, text=True, check=False
        )
        lines = [line for line in done.stdout.splitlines() if line.strip() and (not wanted or re.search(wanted, line))]
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
        parts.append(f"```text\n$ python tests/bench/{name}\n" + "\n".join(lines[-3:]) + "\n```\n")
    text = PAGE.read_text(encoding="utf-8")
    figures = "<!-- figures -->\n" + "\n".join(parts) + "<!-- /figures -->"
    PAGE.write_text(
        re.sub(r"<!-- figures -->.*<!-- /figures -->", lambda _: figures, text, flags=re.S), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
