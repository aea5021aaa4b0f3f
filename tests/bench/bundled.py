"""The run of all bundled scenarios, as its screen shows it: what README and the FAQ quote.

python tests/bench/bundled.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COLUMNS = 200
"""Wide enough for the header to be one line."""


def main() -> None:
    """Run the scenarios, and print or write what the screen shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures = figures_of(screen())
    print(figures["header"], figures["summary"], sep="\n")
    if options.json:
        options.json.write_text(json.dumps(figures), encoding="utf-8")


def screen() -> str:
    """The screen of the run. Raises CalledProcessError: a case is not as expected."""
    command = [sys.executable, "-m", "gradcheck", "run", "--bundled", "-j", "2", "--format", "rich", "--color", "never"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COLUMNS": str(COLUMNS)}
        return subprocess.run(command, cwd=folder, env=environment, stdout=-1, text=True, check=True).stdout


def figures_of(shown: str) -> dict[str, Any]:
    """The header without an installed Paddle, which the run does not use; the rows of files; the last line."""
    lines = shown.strip().splitlines()
    rows = [re.split(r" {2,}", line) for line in lines if line.startswith("specs/")]
    cases = re.search(r"(\d+) cases", lines[0])
    seconds = re.search(r"in ([\d.]+) s$", lines[-1])
    if cases is None or seconds is None:
        raise ValueError(f"this is not the screen of a run: {lines[0]} … {lines[-1]}")
    return {
        "header": re.sub(r" · paddlepaddle \S+", "", lines[0]),
        "files": {path: rest for path, *rest in rows},
        "summary": lines[-1],
        "cases": int(cases[1]),
        "seconds": float(seconds[1]),
    }


if __name__ == "__main__":
    main()
