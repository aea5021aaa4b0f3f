"""Of everyday mistakes in layers as people write them, how many have a right line or a right fix.

    python tests/bench/slips.py [--draw N] [--only NAME] [--verbose]

The layers of each draw were written after the code was frozen, five mistakes in each: a text of its backward, what
stands there by mistake, and parts of the lines of forward at which the cause may be named. A fix is right if it passes
the check at two further points, which is done here again; a cause with a line of forward is right at one of these
lines; without a line, it is judged by what it says of the gradient (see causes.py). Everything else that is said is
false: none may be.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(Path(__file__).resolve().parent)]

import pylayer  # noqa: E402

pylayer.install_paddle()

from causes import TRUE_OF, compared  # noqa: E402
from causes import causes as causes_of  # noqa: E402

import gradcheck  # noqa: E402
from gradcheck.result import Status  # noqa: E402

FOLDER = Path(tempfile.mkdtemp(prefix="slips-"))
DRAWS = ("slips_first", "slips_second", "slips_third")
WANTED = 85.0


def module_with(draw: Any, layer: type, right: str, wrong: str, number: int) -> Any:
    """The module of a draw, in whose text one piece of a layer's backward is another."""
    text = inspect.getsource(layer)
    start = text.index("def backward")
    at = text.index(right, start)  # the first
    changed = text[:at] + wrong + text[at + len(right) :]
    whole = inspect.getsource(draw)
    return imported(f"{draw.__name__}_{layer.__name__}_{number}", whole.replace(text, changed))


def imported(name: str, text: str) -> Any:
    """The module of a text."""
    file = FOLDER / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def judged(module: Any, row: Any, at: str, result: Any) -> str:
    """The outcome of a check of a layer with a mistake."""
    if result.verdict is not Status.FAIL:
        return "not found"
    file, lines = module.__file__, Path(module.__file__).read_text().splitlines()
    said = causes_of(result)
    for cause in said:
        place, _, number = cause.line.rpartition(":")
        if not cause.line:
            if not true_as_a_whole(module, row, cause):
                return "false"
        elif cause.code == "GC127":
            if result.fix is None or result.fix.line != int(number):
                return "false"
        elif Path(place).name != Path(file).name or not any(part in lines[int(number) - 1] for part in at.split("|")):
            return "false"
    if result.fix is not None:
        return "right fix" if is_right(module, row, result.fix) else "false"
    if any(cause.line for cause in said):
        return "right line"
    return "right words" if said else "silent"


def is_right(module: Any, row: Any, fix: Any) -> bool:
    """Whether a layer passes with a fix, at two further points."""
    lines = Path(module.__file__).read_text().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text, start, end = "".join(lines), starts[fix.line - 1] + fix.column, starts[fix.end_line - 1] + fix.end_column
    fixed = imported(f"{module.__name__}_fixed", text[:start] + fix.replacement + text[end:])
    layer = getattr(fixed, row.layer.__name__)
    for seed in (11, 12):
        inputs = row.inputs(np.random.default_rng(seed))
        if not gradcheck.check(layer, *inputs, effort="least", **row.options):
            return False
    return True


def true_as_a_whole(module: Any, row: Any, cause: Any) -> bool:
    """Whether a cause without a line is true of the gradients of its inputs."""
    arrays = row.inputs(np.random.default_rng(0))
    found = compared(row.layer, getattr(module, row.layer.__name__), arrays)
    if cause.code == "GC105":  # of two inputs in the wrong order
        others = [gradient.right for gradient in found.values()]
        return all(any(found[name].equals(other) for other in others) for name in cause.inputs)
    if cause.code == "GC104":
        flips = [lambda g: g[:, ::-1], lambda g: np.roll(g, 1, axis=1), lambda g: np.roll(g, -1, axis=1)]
        return all(any(found[name].equals(flip(found[name].right)) for flip in flips) for name in cause.inputs)
    return cause.code in TRUE_OF and all(TRUE_OF[cause.code](found[name]) for name in cause.inputs)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draw", type=int, choices=range(1, len(DRAWS) + 1), default=1)
    parser.add_argument("--only", default="", help="part of the names of the layers to look at")
    parser.add_argument("--verbose", action="store_true", help="print what is said of each mistake")
    options = parser.parse_args()
    draw = importlib.import_module(DRAWS[options.draw - 1])
    counts, seconds = Counter[str](), []
    for row in draw.ROWS:
        if options.only.lower() not in row.layer.__name__.lower():
            continue
        if not gradcheck.check(row.layer, *row.inputs(np.random.default_rng(0)), **row.options):
            raise ValueError(f"{row.layer.__name__} is wrong itself")
        for number, (right, wrong, at) in enumerate(row.mistakes):
            module = module_with(draw, row.layer, right, wrong, number)
            layer = getattr(module, row.layer.__name__)
            started = time.perf_counter()
            try:
                result = gradcheck.check(layer, *row.inputs(np.random.default_rng(0)), **row.options)
            except Exception as error:
                raise ValueError(f"{row.layer.__name__} with {wrong!r} does not run: {error}") from error
            seconds.append(time.perf_counter() - started)
            outcome = judged(module, row, at, result)
            counts[outcome] += 1
            if options.verbose or outcome not in ("right fix", "right line"):
                print(f"{outcome:12} {row.layer.__name__}: {right!r} → {wrong!r}", flush=True)
                for cause in causes_of(result):
                    print(f"    {cause.code} {Path(cause.line).name} {cause.text}")
                    print(f"        {cause.source_line.strip()}")
                if result.fix is not None:
                    print(f"    fix {result.fix.line}: {result.fix.source_line}")
    total = counts.total() or 1
    named = 100 * (counts["right fix"] + counts["right line"]) / total
    print(
        f"{draw.__name__}: {total} mistakes: {dict(counts)}; {named:.0f} % have a right line or fix (wanted {WANTED})"
    )
    print(f"seconds of a check: {median(seconds):.2f} in the median, {max(seconds):.1f} at worst")
    return int(named < WANTED or counts["false"] > 0)


if __name__ == "__main__":
    sys.exit(main())
