"""Layers of many ranks, right and with single mistakes: how often the verdict is right, and the cause named.

python tests/bench/worlds.py [--ranks 4|8] [--only NAME] [--show]
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from worlds_layers import HEAD, LAYERS, Mistake, Parallel  # noqa: E402

import gradcheck  # noqa: E402
from gradcheck.report.check_result import CheckResult  # noqa: E402

FOLDER = Path(tempfile.mkdtemp(prefix="worlds-"))


def checked(layer: Parallel, ranks: int, mistake: Mistake | None = None) -> tuple[CheckResult, Path]:
    """The check of a layer, with a mistake or without, and the file of its code."""
    source = layer.source
    if mistake is not None:
        if source.count(mistake.old) != 1:
            raise ValueError(f"{layer.name}, {mistake.says}: not once in the source")
        source = source.replace(mistake.old, mistake.new)
    file = FOLDER / f"layer_{len(list(FOLDER.iterdir()))}.py"
    file.write_text(HEAD + source.lstrip("\n"))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return gradcheck.check(module.Layer, *inputs(layer, ranks), world=ranks, outputs=layer.outputs), file


def inputs(layer: Parallel, ranks: int) -> list[Any]:
    """Arrays of all ranks, or of those that all have; whole numbers are below the number of classes of all ranks."""
    random = np.random.default_rng(0)
    found: list[Any] = []
    for shape, stands in layer.inputs.values():
        kind, _, whole = stands.partition(" ")
        size = shape if kind != "split" else (ranks, *shape)
        values = random.integers(0, 2 * ranks, size) if whole else random.standard_normal(size)
        found.append(values if kind == "split" else getattr(gradcheck, kind)(values))
    return found


def told(found: CheckResult, mistake: Mistake, file: Path) -> tuple[bool, bool]:
    """Whether a right cause is named, and with a right line."""
    code = file.read_text().splitlines()
    named = [d for d in found.diagnosis if d.code in mistake.codes.split()]
    for d in named:
        lines = [int(n) for n in re.findall(rf"{re.escape(file.name)}:(\d+)", f"{d.line} {d.text}")]
        if not mistake.lines or any(part in code[n - 1] for n in lines for part in mistake.lines):
            return True, True
    return bool(named), False


def row(layer: Parallel, ranks: int, mistake: Mistake | None, show: bool) -> tuple[str, bool, bool, bool]:
    """A line of the table, whether the verdict is right, the cause named, and its line."""
    began = time.perf_counter()
    found, file = checked(layer, ranks, mistake)
    seconds = time.perf_counter() - began
    right = found.verdict.name == ("PASS" if mistake is None else "FAIL")
    cause, line = told(found, mistake, file) if mistake is not None else (True, True)
    codes = " ".join(d.code for d in found.diagnosis)
    marks = "   " if mistake is None else f"{'c' if cause else '-'}{'l' if line else '-'} "
    text = f"{'ok ' if right else 'BAD'} {found.verdict.name:12} {marks}{codes:22} {layer.name}"
    text += f": {mistake.says}" if mistake else ""
    if show and not (right and line):
        code = file.read_text().splitlines()
        for d in found.diagnosis:
            number = re.search(r":(\d+)$", d.line or "")
            text += f"\n        {d.code} {d.text}\n            {code[int(number[1]) - 1].strip() if number else ''}"
    return f"{text}  ({seconds * 1e3:.0f} ms)", right, cause, line


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4, choices=[4, 8], help="2 ranks are no ring; sizes divide by 4")
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="what is said where the cause or its line is not right")
    options = parser.parse_args(arguments)
    rights, wrongs = [], []
    for layer in LAYERS:
        for mistake in (None, *layer.mistakes):
            if options.only in f"{layer.name}: {mistake.says if mistake else ''}":
                text, *counts = row(layer, options.ranks, mistake, options.show)
                (wrongs if mistake else rights).append(counts)
                print(text, flush=True)
    print(f"\n{sum(one[0] for one in rights)} of {len(rights)} right layers pass, on {options.ranks} ranks")
    print(f"{sum(one[0] for one in wrongs)} of {len(wrongs)} wrong layers fail", end="; ")
    print(f"{sum(one[1] for one in wrongs)} with the cause, {sum(one[2] for one in wrongs)} with its line as well")
    return 0 if all(one[0] for one in [*rights, *wrongs]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
