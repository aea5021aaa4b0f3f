"""The time that all tests take, on as many processes as there are cores: what README and CONTRIBUTING quote.

python tests/bench/whole_tests.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUMMARY = re.compile(r"(\d+) passed.* in ([\d.]+)s")


def main() -> None:
    """Run the tests, and print or write how many passed in how many seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)  # the time of a run that fails says nothing
    figures = figures_of(done.stdout)
    print(f"{figures['passed']} passed in {figures['seconds']} s")
    if options.json:
        options.json.write_text(json.dumps(figures), encoding="utf-8")


def figures_of(shown: str) -> dict[str, float]:
    """The tests that passed and the seconds, from the last line that pytest prints."""
    last = shown.strip().splitlines()[-1]
    found = SUMMARY.search(last)
    if found is None:
        raise ValueError(f"this is not the end of a run of pytest: {last}")
    return {"passed": int(found[1]), "seconds": float(found[2])}


if __name__ == "__main__":
    main()
