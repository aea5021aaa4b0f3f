"""The path of one evaluation through gradcheck: what runs, in which files, and how often it goes from one to another.

    python tests/bench/path.py [SPEC ID] [--calls]

Runs one case in this process (by default the example of `gradcheck init`, once before to warm up), and prints
how many functions of the harness run, in how many files, how many calls go from one of these files to another, and how
often the layer's forward and backward run; then the roads between files, the most used first. With ``--calls`` the
calls themselves, indented, each run of equal lines as one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from gradcheck.case.execute import execute  # noqa: E402
from gradcheck.run.plan import plan  # noqa: E402
from gradcheck.spec.read import read  # noqa: E402
from gradcheck.support.resources import PACKAGE  # noqa: E402

OURS = str(ROOT / "gradcheck") + "/"


class Route:
    """What was called, as it was called."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.stack: list[str] = []
        """The files of our functions that run, the outermost first."""
        self.functions: Counter[tuple[str, str]] = Counter()
        self.roads: Counter[tuple[str, str]] = Counter()
        self.layer: Counter[str] = Counter()
        self.lines: list[str] = []

    def seen(self, frame: FrameType, event: str, _: Any) -> None:
        """A call or return, as `sys.setprofile` tells of it. Comprehensions and parts of classes are no functions; the
        layer's own are none of the harness, wherever its spec stands."""
        code = frame.f_code
        if event == "call" and code.co_filename == self.spec:
            self.layer[code.co_name] += 1
            self.lines.append(f"{'  ' * len(self.stack)}layer: {code.co_name}")
        ours = code.co_filename.startswith(OURS) and code.co_filename != self.spec
        if not ours or code.co_name.startswith("<"):
            return
        file = code.co_filename.removeprefix(OURS)
        if event == "return":
            self.stack.pop()
        elif event == "call":
            if self.stack and self.stack[-1] != file:
                self.roads[self.stack[-1], file] += 1
            self.functions[file, code.co_qualname] += 1
            self.lines.append(f"{'  ' * len(self.stack)}{file}: {code.co_qualname}")
            self.stack.append(file)


@contextmanager
def watched(spec: str) -> Iterator[Route]:
    """The path of what runs meanwhile."""
    path = Route(spec)
    sys.setprofile(path.seen)
    try:
        yield path
    finally:
        sys.setprofile(None)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", nargs="?")
    parser.add_argument("id", nargs="?")
    parser.add_argument("--calls", action="store_true")
    options = parser.parse_args()
    spec = read(options.spec or PACKAGE / "project" / "example.grad.yaml")
    case = next(case for case in plan([spec], ["numpy"]) if options.id in (None, case.scenario.id, case.name))
    execute(case)
    with watched(case.scenario.path) as path:
        result = execute(case)
    files = {file for file, _ in path.functions}
    print(f"{case.name}: {result.status}")
    print(f"{len(path.functions)} functions in {len(files)} files, called {path.functions.total()} times")
    print(f"{path.roads.total()} calls from one file to another, on {len(path.roads)} roads")
    print(f"the layer: {', '.join(f'{name} {times}' for name, times in path.layer.items() if name[0] != '<')}")
    for (one, other), times in path.roads.most_common(None if options.calls else 15):
        print(f"{times:5}  {one} → {other}")
    if options.calls:
        for line, same in groupby(path.lines):
            times = len([*same])
            print(line + (f"  × {times}" if times > 1 else ""))


if __name__ == "__main__":
    main()
