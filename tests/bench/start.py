"""What starting costs: wall time of four commands in multiples of that of ``python -c "import numpy"``.

    python tests/bench/start.py [--rounds N] [--json FILE]

Prints for each command the median of the rounds' milliseconds, and of its ratios to NumPy's import in the same round.
Each round runs all of them in turn, so that other work on the machine slows all alike. The commands are those that
this interpreter has installed, run in a folder with one layer and one spec.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SCRIPT = str(Path(sys.executable).with_name("gradcheck"))
NUMPY = "import numpy"
COMMANDS = {
    NUMPY: [sys.executable, "-c", NUMPY],
    "--help": [SCRIPT, "--help"],
    "check": [SCRIPT, "check", "layers:Tanh", "-i", "x=3x4"],
    "run, one case": [SCRIPT, "run", "--allow-code", "tanh.grad.yaml", "tanh"],
    "validate": [SCRIPT, "validate", "tanh.grad.yaml"],
}
"""Name of a command → its words."""
LAYER = """\
import paddle
from paddle.autograd import PyLayer


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)
"""
SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: tanh
    layer: {ref: "layers:Tanh"}
    inputs: {x: [3, 4]}
"""


def seconds_of(command: list[str], folder: str) -> float:
    """Return the wall time of a command that must succeed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Time all commands in turn, and print their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "layers.py").write_text(LAYER, encoding="utf-8")
        Path(folder, "tanh.grad.yaml").write_text(SPEC, encoding="utf-8")
        for number in range(1 + asked.rounds):  # the first one writes the bytecode
            for name, command in COMMANDS.items():
                took = seconds_of(command, folder)
                if number:
                    seconds[name].append(took)
    figures = {}
    for name, times in seconds.items():
        ratio = median(mine / base for mine, base in zip(times, seconds[NUMPY], strict=True))
        figures[name] = {"milliseconds": round(1000 * median(times), 1), "ratio": round(ratio, 2)}
        print(f"{name:14} {figures[name]['milliseconds']:8.1f} ms {ratio:6.2f}")
    if asked.json:
        asked.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
