"""Checks the layers of released packages, from an empty environment: python docs/examples/findings/run.py

Installs gradcheck and the packages below build/findings, and five releases of Paddle where `gradcheck backends` keeps
them (those that are there are used); runs `released.grad.yaml` and `fixed.grad.yaml`, prints the summary and writes
docs/findings.md. Needs a package index and, with the releases still to be installed, 5 GB of disk.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PLACE = ROOT / "build" / "findings"
PACKAGES = PLACE / "packages"
RELEASES = ("2.6.2", "3.0.0", "3.1.1", "3.2.2", "3.3.1")
"""Of Paddle, oldest first. All layers are checked on the last one, the findings on each."""
VERSIONS = {
    "paddlenlp": "2.8.1",
    "paddleformers": "1.2.0",
    "ppdiffusers": "0.29.0",
    "paddlespeech": "1.5.0",
    "paddleseg": "2.8.0",
    "paddledet": "2.6.0",
    "paddle3d": "1.0.0",
    "paddleclas": "2.6.0",
    "paddlers": "1.0b0",
    "paddleslim": "2.6.0",
    "paddlesci": "1.4.0",
    "paddlesde": "0.2.5",
    "erniekit": "1.3.0",
    "paddle_quantum": "2.4.0",
    "insightface_paddle": "2.0.0",
}
"""The packages, and the latest of each that Python 3.11 can install."""


def main() -> int:
    """Install, run, print, write."""
    tool = installed()
    results = {release: checked(tool, release) for release in RELEASES}
    import page  # its YAML reader is installed by now, below build/findings

    latest = results[RELEASES[-1]]
    text = page.summary(latest, layers(), {"paddlepaddle": RELEASES[-1]} | VERSIONS)
    print(text)
    (ROOT / "docs" / "findings.md").write_text(page.page(results, text, panels(tool)), encoding="utf-8")
    fixed = [name for name, result in latest.items() if name.startswith("fixed-") and result["status"] != "PASS"]
    return 1 if fixed else 0


def installed() -> Path:
    """Install gradcheck in a separate environment, the packages alone, and the releases; return the tool's path."""
    venv = PLACE / "venv"
    say(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q")
    say(*pip, ROOT)
    for package, version in VERSIONS.items():
        if not list(PACKAGES.glob(f"{package}-{version}.dist-info")):
            say(*pip, "--no-deps", "--no-compile", "--target", PACKAGES, f"{package}=={version}")
    tool = venv / "bin" / "gradcheck"
    sys.path.insert(0, str(next((venv / "lib").glob("python*/site-packages"))))  # from here on imports find it
    from gradcheck.backends.environments import COMPLETE, folder_of

    wanted = [name for release in RELEASES if not (folder_of(name := f"paddle@{release}") / COMPLETE).is_file()]
    if wanted:
        say(tool, "backends", "add", *wanted)
    return tool


def checked(tool: Path, release: str) -> dict[str, dict[str, Any]]:
    """The results on one release of Paddle, by the scenario's id."""
    report = PLACE / f"paddle-{release}.json"
    findings = [] if release == RELEASES[-1] else ["-t", "finding"]
    report.unlink(missing_ok=True)
    command = [
        tool,
        "run",
        HERE,
        *findings,
        "-b",
        f"paddle@{release}",
        "--allow-code",
        "-q",
        "--report",
        f"json:{report}",
    ]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # exit status 1: there are findings
    return {result["scenario"]: result for result in json.loads(report.read_text(encoding="utf-8"))["results"]}


def panels(tool: Path) -> dict[str, str]:
    """The screen's panel of each finding that fails on the last release, by the scenario's id."""
    command = [tool, "run", HERE, "-t", "finding", "-b", f"paddle@{RELEASES[-1]}", "--allow-code", "--format", "rich"]
    screen = subprocess.run(
        [*command, "--color", "never"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "110", "GLOG_minloglevel": "3"},
    ).stdout
    boxes = re.findall(r"^╭─ FAIL ([a-z0-9-]+)@.*?^╰─+╯$", screen, re.M | re.S)
    shown = re.findall(r"^╭─ FAIL .*?^╰─+╯$", screen, re.M | re.S)
    return dict(zip(boxes, shown, strict=True))


def layers() -> list[str]:
    """Every PyLayer that a package defines, as file:Class."""
    from gradcheck.backends.environments import folder_of

    paddle = folder_of(f"paddle@{RELEASES[-1]}")
    places = [(PACKAGES, PACKAGES), *((path, path.parent) for path in paddle.glob("lib/python*/site-packages/paddle"))]
    return sorted(
        f"{file.relative_to(base)}:{name}"
        for root, base in places
        for file in root.rglob("*.py")
        for name in classes(file)
    )


def classes(file: Path) -> Iterator[str]:
    """The classes of a file whose base is called PyLayer; a package's own tests are not counted."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if "PyLayer)" in text:
        for node in ast.walk(ast.parse(text)):
            bases = [ast.unparse(base).rpartition(".") for base in node.bases] if isinstance(node, ast.ClassDef) else []
            if any(name == "PyLayer" and "core" not in prefix for prefix, _, name in bases):
                yield node.name


def say(*command: str | os.PathLike[str]) -> None:
    """Show a command, and run it."""
    print("$", *command, flush=True)
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
