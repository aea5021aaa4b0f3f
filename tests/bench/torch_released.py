"""Functions of released packages for torch: how many are right, differ by design, or are wrong.

    python tests/bench/torch_released.py [--json FILE]

Runs docs/examples/findings/torch.grad.yaml, which needs the packages that it names, and counts its cases by package.
A case is right if it passes as the derivative, and by design if it passes as a scenario that says how it differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from gradcheck.spec.model import LayerRef, Scenario  # noqa: E402
from gradcheck.spec.read import read  # noqa: E402

SPEC = ROOT / "docs/examples/findings/torch.grad.yaml"
OUTCOMES = ("right", "by design", "wrong")


def results() -> list[dict[str, Any]]:
    """Run all cases, and return their results as a report has them."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(ROOT / "cli.py"), "run", "--allow-code", str(SPEC), "--report", f"json:{report}"]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL)  # its status is 1 as cases fail
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["results"]
        return found


def package_of(scenario: Scenario) -> str:
    """Return the package that the layer of a scenario is imported from."""
    assert isinstance(scenario.layer, LayerRef)
    return scenario.layer.ref.partition(":")[0].partition(".")[0]


def outcome_of(scenario: Scenario, status: str) -> str:
    """Return the column of a result. Raises ValueError: it is neither PASS nor FAIL."""
    if status not in ("PASS", "FAIL"):
        raise ValueError(f"{scenario.id}: {status}")
    if status == "FAIL":
        return "wrong"
    return "right" if scenario.expect.gradient == "matches" else "by design"


def main() -> None:
    """Count the cases, and print a line for each package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    scenarios = {scenario.id: scenario for scenario in read(SPEC).scenarios}
    packages: dict[str, dict[str, Any]] = {}
    for scenario in scenarios.values():
        package = package_of(scenario)
        packages.setdefault(package, {"version": version(package), **dict.fromkeys(OUTCOMES, 0)})
    for result in results():
        scenario = scenarios[result["scenario"]]
        packages[package_of(scenario)][outcome_of(scenario, result["status"])] += 1
    for package, row in packages.items():
        print(package, row["version"], *(f"{row[outcome]} {outcome}" for outcome in OUTCOMES))
    if asked.json:
        asked.json.write_text(json.dumps({"packages": packages}), encoding="utf-8")


if __name__ == "__main__":
    main()
