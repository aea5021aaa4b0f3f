"""The path from a scenario's text to its report: what runs, in which files, and how often it goes between them.

    python tests/bench/path.py [SPEC ID] [--calls] [--beside COMMIT] [--json FILE]

Each scenario is read, planned, run and reported as `gradcheck run` does, in a fresh process without a process for the
case, so that what is made on first use counts. Counted are the functions of gradcheck and of the engine: how many
different ones are entered, how often one file calls another (switches), how many calls there are and in how many files
they lie. What imports run is not counted, nor what the layer's own file defines.

By default these are a right and a wrong tanh. With a SPEC it is that file, or one scenario of it, and with ``--calls``
every call is shown, indented, equal lines next to each other as one.

With ``--beside`` the examples are measured at an older commit as well, and printed beside those of today.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

Figures = dict[str, int]

SCENARIO = """\
schema: gradcheck/v1
scenarios:
  - id: {id}
    title: A tanh
    source: {{document: "d tanh x = (1 - tanh(x)^2) dx"}}
    layer: |
      class Tanh(PyLayer):
          @staticmethod
          def forward(ctx, x):
              y = paddle.tanh(x)
              ctx.save_for_backward(y)
              return y

          @staticmethod
          def backward(ctx, dy):
              y, = ctx.saved_tensor()
              return dy * ({derivative})
    inputs:
      x: {{shape: [3, 4]}}
"""
EXAMPLES = {"right-tanh": "1 - y * y", "wrong-tanh": "1 - y"}


class Route:
    """What was called, as it was called."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.stack: list[str] = []
        """The files of our functions that run, the outermost first."""
        self.importing = 0
        """How many of our modules are being imported."""
        self.functions: Counter[tuple[str, str]] = Counter()
        self.roads: Counter[tuple[str, str]] = Counter()
        self.layer: Counter[str] = Counter()
        self.lines: list[str] = []

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call or a return that `sys.setprofile` reports; comprehensions and class bodies are left out."""
        code = frame.f_code
        if event not in ("call", "return"):
            return
        if code.co_filename == self.spec:
            if event == "call" and code.co_name[0] != "<":
                self.layer[code.co_name] += 1
                self.lines.append(f"{'  ' * len(self.stack)}layer: {code.co_name}")
            return
        file = short_name(code.co_filename)
        if not file:
            return
        if code.co_name == "<module>":
            self.importing += 1 if event == "call" else -1
        if code.co_name[0] == "<" or self.importing:
            return
        if event == "return":
            self.stack.pop()
            return
        if self.stack and self.stack[-1] != file:
            self.roads[self.stack[-1], file] += 1
        self.functions[file, code.co_qualname] += 1
        self.lines.append(f"{'  ' * len(self.stack)}{file}: {code.co_qualname}")
        self.stack.append(file)


def short_name(path: str) -> str:
    """The name of one of our files below the root, and nothing for other files."""
    below = path.removeprefix(f"{ROOT}/")
    return below if below.startswith(("gradcheck/", "engine/")) else ""


def follow(path: str, scenario_id: str | None) -> tuple[str, str, Route]:
    """Read, run and report a scenario; return the case's name, its status, and the route of it all."""
    # Both are imported before: they are what a process of `gradcheck run` begins with.
    from rich.console import Console

    from gradcheck.case.execute import execute
    from gradcheck.report.console import RichScreen
    from gradcheck.run.plan import plan
    from gradcheck.spec.read import read

    screen = RichScreen(Console(file=io.StringIO(), width=100), Console(file=io.StringIO(), width=100))
    route = Route(path)
    sys.setprofile(route.profile)
    try:
        cases = plan([read(path)], ["numpy"])
        case = next(case for case in cases if scenario_id in (None, case.scenario.id, case.name))
        with screen.running("header", 1):
            result = execute(case)
            screen.count(result)
            screen.show(result)
        screen.finish([result], 1.0, 0)
    finally:
        sys.setprofile(None)
    return case.name, str(result.status), route


def figures_of(route: Route) -> Figures:
    """What is counted of a route."""
    return {
        "functions": len(route.functions),
        "switches": route.roads.total(),
        "calls": route.functions.total(),
        "files": len({file for file, _ in route.functions}),
    }


def print_route(name: str, status: str, route: Route, show_calls: bool) -> None:
    """Print what was counted, and the most used roads."""
    print(f"{name}: {status}, {', '.join(f'{count} {what}' for what, count in figures_of(route).items())}")
    print(f"the layer: {', '.join(f'{name} {times}' for name, times in route.layer.items())}")
    for (source, target), times in route.roads.most_common(None if show_calls else 8):
        print(f"{times:5}  {source} → {target}")
    if show_calls:
        for line, same in groupby(route.lines):
            times = len([*same])
            print(line + (f"  × {times}" if times > 1 else ""))


def measure_examples(script: Path, show_calls: bool = False) -> dict[str, Figures]:
    """Measure the examples with the checkout that `script` lies in, a fresh process for each."""
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "figures.json")
        for name, derivative in EXAMPLES.items():
            path = Path(folder, f"{name}.grad.yaml")
            path.write_text(SCENARIO.format(id=name, derivative=derivative), encoding="utf-8")
            options = ["--json", str(file), *(["--calls"] if show_calls else [])]
            subprocess.run([sys.executable, str(script), str(path), *options], check=True)
            measured[name] = json.loads(file.read_text(encoding="utf-8"))
    return measured


def measure_commit(commit: str) -> dict[str, Figures]:
    """Measure the examples at a commit of this repository."""
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", folder, commit], check=True)
        try:
            script = Path(folder, "tests", "bench", Path(__file__).name)
            script.write_bytes(Path(__file__).read_bytes())
            return measure_examples(script)
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)


def print_beside(now: dict[str, Figures], then: dict[str, Figures], commit: str) -> None:
    """Print the figures of today beside those of a commit."""
    for name, figures in now.items():
        for what, count in figures.items():
            print(f"{name}: {what} {count}, {count / then[name][what]:.2f} × the {then[name][what]} of {commit}")


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", nargs="?")
    parser.add_argument("id", nargs="?")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--beside", metavar="COMMIT", default="")
    parser.add_argument("--json", metavar="FILE", type=Path)
    options = parser.parse_args()
    if options.spec:
        name, status, route = follow(options.spec, options.id)
        print_route(name, status, route, options.calls)
        figures: object = figures_of(route)
    else:
        now = measure_examples(Path(__file__), options.calls)
        figures = {"now": now}
        if options.beside:
            then = measure_commit(options.beside)
            figures = {"now": now, "then": then, "commit": options.beside}
            print_beside(now, then, options.beside)
    if options.json:
        options.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
